"""rag_provenance as a with block."""

from __future__ import annotations

import asyncio
import contextvars
import time

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, StatusCode

from bijotel import semconv
from bijotel.rag import RAGSource, current_provenance, rag_context, rag_provenance

TEXT = "The burrs of the Kvarn grinder are wear parts."


def test_a_block_stamps_the_current_span(tracing, source):
    """The scope holds inside and ends with the block; what comes out is the stamped span."""
    with tracing.tracer.start_as_current_span("request") as request:
        with rag_provenance([source()], total_context_tokens=7) as span:
            assert span is request
            tracing.child("inside")
        tracing.child("outside")
    assert tracing.named("request").attributes == rag_context([source()], total_context_tokens=7)
    assert tracing.ids_at_start("inside") == ["a"]
    assert tracing.ids_at_start("outside") is None


def test_an_async_block_without_a_span_opens_one(tracing, source):
    """It lasts as long as the block and is current inside."""

    async def main():
        async with rag_provenance([source()]) as span:
            assert trace.get_current_span() is span
            await asyncio.sleep(0)
            assert tracing.ended == []
        assert trace.get_current_span() is trace.INVALID_SPAN

    asyncio.run(main())
    assert tracing.named("rag_provenance").attributes == rag_context([source()])


def test_a_prompt_is_matched_and_not_handed_on(tracing):
    """As with the decorator."""
    with rag_provenance([RAGSource("a", 0, content=TEXT)], prompt=TEXT):
        assert semconv.RAG_IN_CONTEXT not in current_provenance().attributes
        assert current_provenance().contents == (TEXT,)
    assert tracing.named("rag_provenance").attributes[semconv.RAG_IN_CONTEXT] == ("included",)


def test_an_explicit_span_is_stamped(tracing, source, ids_of):
    """Even one that is not current, and one that carries another record."""
    span = tracing.tracer.start_span("elsewhere")
    for doc in "ab":
        with rag_provenance([source(doc)], span=span) as stamped:
            assert stamped is span
            assert trace.get_current_span() is trace.INVALID_SPAN
            tracing.child(f"in {doc}")
    span.end()
    assert ids_of(tracing.named("elsewhere").attributes) == ["b"]
    assert tracing.ids_at_start("in b") == ["b"]


def test_an_explicit_span_that_is_over_gets_a_child(tracing, source, caplog):
    """Nothing is lost: the late record is in the right trace."""
    span = tracing.tracer.start_span("over")
    span.end()
    with rag_provenance([source()], span=span) as stamped:
        assert stamped is not span
    late = tracing.named("rag_provenance")
    assert late.parent.span_id == span.context.span_id
    assert late.attributes == rag_context([source()])
    assert caplog.records == []


def test_when_nothing_records_the_result_says_so(no_tracing, source):
    """The span that comes out does not record."""
    with rag_provenance([source()]) as span:
        assert not span.is_recording()
        assert current_provenance().attributes == rag_context([source()])


def test_an_exception_leaves_the_block_unchanged(tracing, source):
    """And is recorded on the block's own span."""
    error = KeyError("k")
    with pytest.raises(KeyError) as caught, rag_provenance([source()]):
        raise error
    assert caught.value is error
    assert error.__context__ is None
    assert tracing.named("rag_provenance").status.status_code is StatusCode.ERROR


def test_a_block_is_entered_once(tracing, source):
    """A second entry would have to share the state of the first."""
    block = rag_provenance([source()])
    with block, pytest.raises(RuntimeError, match="entered once; make one for each use"):
        block.__enter__()
    with pytest.raises(RuntimeError, match="entered once"):
        block.__enter__()
    assert len(tracing.ended) == 1


def test_leaving_without_entering_is_harmless(tracing, source):
    """Nothing was begun, nothing ends."""
    rag_provenance([source()]).__exit__(None, None, None)
    assert tracing.ended == []


def test_a_stamped_span_stays_stamped_as_it_is(tracing, source, ids_of):
    """After an explicit stamp, an earlier record does not come back by itself."""
    with tracing.tracer.start_as_current_span("request") as request:
        for doc in ("a", "b", "a"):
            with rag_provenance([source(doc)], span=request if doc == "b" else None):
                pass
    assert ids_of(tracing.named("request").attributes) == ["b"]
    assert ids_of(tracing.named("rag_provenance").attributes) == ["a"]


class _Odd(NonRecordingSpan):
    """A foreign span class whose objects cannot be remembered."""

    __hash__ = None

    def __init__(self):
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.attributes = {}

    def is_recording(self):
        return True

    def set_attributes(self, attributes):
        self.attributes.update(attributes)


def test_a_span_that_cannot_be_remembered_is_stamped(tracing, source):
    """A foreign span without hash gets its record all the same."""
    span = _Odd()
    with trace.use_span(span), rag_provenance([source()]):
        pass
    assert span.attributes == rag_context([source()])


def test_blocks_nest_and_may_be_left_in_any_order(tracing, source):
    """The inner one wins; afterwards the caller's context is back."""
    outer, inner = rag_provenance([source("o")]), rag_provenance([source("i")])
    with outer:
        with inner:
            tracing.child("both")
        tracing.child("outer")
    assert tracing.ids_at_start("both") == ["i"]
    assert tracing.ids_at_start("outer") == ["o"]


def test_a_block_left_in_another_context_logs_nothing(tracing, source):
    """A task, a thread or a generator may enter here and leave there."""
    block = rag_provenance([source()])
    here = contextvars.copy_context()
    here.run(block.__enter__)
    copied = here.copy()

    def leave():
        assert current_provenance() is not None
        block.__exit__(None, None, None)
        return current_provenance()

    assert copied.run(leave) is None
    assert len(tracing.ended) == 1
    foreign = rag_provenance([source()])
    contextvars.copy_context().run(foreign.__enter__)
    foreign.__exit__(None, None, None)
    assert trace.get_current_span() is trace.INVALID_SPAN
    assert len(tracing.ended) == 2


def test_an_async_generator_with_a_block_closed_elsewhere(tracing, source):
    """The usual way to leave a block in another context."""

    async def stream():
        async with rag_provenance([source()]):
            yield 1

    async def main():
        made = stream()
        await asyncio.create_task(_step(made))
        await asyncio.create_task(_close(made))
        assert current_provenance() is None

    asyncio.run(main())
    assert tracing.named("rag_provenance").status.status_code is StatusCode.UNSET


async def _step(made):
    return await made.__anext__()


async def _close(made):
    await made.aclose()


def test_wrong_arguments_are_refused_at_once(source):
    """Before the block is entered."""
    with pytest.raises(TypeError, match="sources: expected a sequence of RAGSource, got function"):
        rag_provenance(lambda: [source()])
    with pytest.raises(TypeError, match="total_context_tokens: expected a whole number"):
        rag_provenance([], total_context_tokens=1.5)


def test_five_thousand_sources_take_no_time(tracing):
    """Entering with a list of 5,000 takes less than 50 ms."""
    sources = [RAGSource(str(n), n) for n in range(5_000)]
    begin = time.thread_time()
    with rag_provenance(sources):
        pass
    assert time.thread_time() - begin < 0.05
