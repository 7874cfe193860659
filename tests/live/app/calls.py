"""The calls: every kind of decorated function around a real SDK, each with its own source.

A call is named by its label, which is both the model that is asked for and the id of the one
source that its record must have.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

from opentelemetry import trace

from bijotel import RAGSource, rag_context, with_rag_provenance

CROWD = 4
AFTERWARDS = "undecorated-after-a-stream"
BY_HAND = "outer-stamped-by-hand"
SURROUNDINGS = {
    "http": {"http.request.method": "POST", "url.full": "http://127.0.0.1/v1"},
    "agent": {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "surroundings"},
    "tool": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"},
    "chain": {"openinference.span.kind": "CHAIN"},
    "retrieval": {"gen_ai.operation.name": "retrieval"},
}

_tracer = trace.get_tracer("app")


def source(label: str) -> RAGSource:
    return RAGSource(label, 0, retriever="live")


# The label is each function's first argument, and so the source of that very call.
decorated = with_rag_provenance(lambda label, *_: [source(label)])


def run_all(sdk: Any) -> None:
    for outer in ("", "-outer"):
        _one_by_one(sdk, outer)
        asyncio.run(_one_by_one_async(sdk, outer))
    # The official Anthropic package leaves its context behind when a stream ends outside its call.
    contextvars.copy_context().run(_streams_that_end_elsewhere, sdk)
    _interleaved(sdk)
    _threads(sdk)
    asyncio.run(_gathered(sdk))
    _nested(sdk)
    _surrounded(sdk)
    _failing(sdk)
    asyncio.run(_extras(sdk))
    _without_propagation(sdk)


@decorated
def plain(label: str, sdk: Any) -> str:
    return sdk.ask(label)


@decorated
def streaming(label: str, sdk: Any) -> str:
    return "".join(sdk.stream(label))


@decorated
def generator(label: str, sdk: Any) -> Iterator[str]:
    yield from sdk.stream(label)


@decorated
async def plain_async(label: str, sdk: Any) -> str:
    return await sdk.ask_async(label)


@decorated
async def streaming_async(label: str, sdk: Any) -> str:
    return "".join([text async for text in sdk.stream_async(label)])


@decorated
async def generator_async(label: str, sdk: Any) -> AsyncIterator[str]:
    async for text in sdk.stream_async(label):
        yield text


def _outer(suffix: str) -> Any:
    return _tracer.start_as_current_span(f"request{suffix}") if suffix else nullcontext()


def _expect(answer: str) -> None:
    assert "tulip" in answer, answer


def _one_by_one(sdk: Any, suffix: str) -> None:
    for name, function in (("plain", plain), ("streaming", streaming)):
        with _outer(suffix):
            _expect(function(f"{name}{suffix}", sdk))
    with _outer(suffix):
        _expect("".join(generator(f"generator{suffix}", sdk)))


async def _one_by_one_async(sdk: Any, suffix: str) -> None:
    for name, function in (("plain-async", plain_async), ("streaming-async", streaming_async)):
        with _outer(suffix):
            _expect(await function(f"{name}{suffix}", sdk))
    with _outer(suffix):
        _expect("".join([text async for text in generator_async(f"generator-async{suffix}", sdk)]))


def _streams_that_end_elsewhere(sdk: Any) -> None:
    @decorated
    def opened(label: str) -> Any:
        return sdk.open_stream(label)

    for _ in opened("stream-read-by-the-caller"):
        pass
    _expect(sdk.ask(AFTERWARDS))
    stopped = generator("stopped-early", sdk)
    next(stopped)
    stopped.close()


def _interleaved(sdk: Any) -> None:
    """Two generators of one thread, stepped in turn."""
    first, second = (generator(f"interleaved-{n}", sdk) for n in range(2))
    steps = list(zip(first, second, strict=True))
    for answer in zip(*steps, strict=True):
        _expect("".join(answer))


def _threads(sdk: Any) -> None:
    barrier = threading.Barrier(CROWD)

    @decorated
    def meet(label: str) -> str:
        barrier.wait(timeout=30)
        return sdk.ask(label)

    with ThreadPoolExecutor(CROWD) as pool, _outer("-crowd"):
        for answer in pool.map(meet, [f"thread-{n}" for n in range(CROWD)]):
            _expect(answer)


async def _gathered(sdk: Any) -> None:
    here = 0
    all_here = asyncio.Event()

    @decorated
    async def meet(label: str) -> str:
        nonlocal here
        here += 1
        if here == CROWD:
            all_here.set()
        await asyncio.wait_for(all_here.wait(), timeout=30)
        return await sdk.ask_async(label)

    with _outer("-crowd"):
        waiting: list[Awaitable[str]] = [meet(f"gather-{n}") for n in range(CROWD)]
        for answer in await asyncio.gather(*waiting):
            _expect(answer)
        labels = [f"gather-stream-{n}" for n in range(CROWD)]
        for answer in await asyncio.gather(*(streaming_async(label, sdk) for label in labels)):
            _expect(answer)


def _nested(sdk: Any) -> None:
    @decorated
    def outside(label: str) -> None:
        _expect(sdk.ask(label))
        _expect(plain("nested-inside", sdk))
        _expect(sdk.ask(label))

    outside("nested-outside")


def _surrounded(sdk: Any) -> None:
    """A model call deep within spans that are no model calls."""

    @decorated
    def surrounded(label: str) -> None:
        for name, attributes in SURROUNDINGS.items():
            with _tracer.start_as_current_span(name, attributes=attributes):
                _expect(sdk.ask(label))
        with _tracer.start_as_current_span("late") as span:
            span.set_attribute("gen_ai.operation.name", "chat")
            span.set_attribute("gen_ai.request.model", label)
        sdk.no_inference("no-inference")

    surrounded("surrounded")


def _failing(sdk: Any) -> None:
    @decorated
    def failing(label: str) -> None:
        sdk.fail(label)

    caught = "nothing"
    try:
        failing("failing")
    except Exception as error:
        caught = type(error).__name__
    assert caught == "NotFoundError", caught


async def _extras(sdk: Any) -> None:
    @decorated
    async def extra(label: str) -> str:
        return await sdk.extra(label)

    for label in sdk.extras:
        _expect(await extra(label))


def _without_propagation(sdk: Any) -> None:
    """What the earlier failure looked like: the outer span has the record, its child has not."""
    with _tracer.start_as_current_span(BY_HAND) as span:
        span.set_attributes(rag_context([source(BY_HAND)]))
        _expect(sdk.ask(BY_HAND))
