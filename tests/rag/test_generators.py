"""with_rag_provenance on generators and async generators.

The fourteen behaviours that a decorator of generators owes its users; each is asked of both
kinds where both have it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from bijotel.rag import current_provenance, rag_context, with_rag_provenance


@pytest.fixture
def stream(tracing, source):
    """A decorated generator whose body makes a child span at each of three steps."""

    @with_rag_provenance(lambda *args: [source("a")])
    def stream(*args):
        for n in range(3):
            tracing.child(f"step {n}")
            yield n, trace.get_current_span()
        return "returned"

    return stream


@pytest.fixture
def astream(tracing, source):
    """The same as an async generator."""

    @with_rag_provenance(lambda *args: [source("a")])
    async def astream(*args):
        for n in range(3):
            tracing.child(f"step {n}")
            await asyncio.sleep(0)
            yield n, trace.get_current_span()

    return astream


def _check(tracing, name, steps=3):
    """One own span, ended last, not failed; the steps' spans are its children, in its scope."""
    own = tracing.named(name)
    assert [s.name.split(".")[-1] for s in tracing.ended] == [
        *(f"step {n}" for n in range(steps)),
        name,
    ]
    assert own.status.status_code is StatusCode.UNSET
    assert own.events == ()
    assert own.attributes["bijotel.rag.source_count"] == 1
    for n in range(steps):
        assert tracing.named(f"step {n}").parent.span_id == own.context.span_id
        assert tracing.ids_at_start(f"step {n}") == ["a"]


def test_plain_iteration(tracing, stream):
    """All values arrive; the span is current in each step and ends after the last value."""
    seen = []
    for n, span in stream(1):
        seen.append(n)
        assert span.name.endswith("stream")
        assert trace.get_current_span() is trace.INVALID_SPAN
        assert current_provenance() is None
        assert not any(s.name == span.name for s in tracing.ended)
    assert seen == [0, 1, 2]
    _check(tracing, "stream")


def test_plain_async_iteration(tracing, astream):
    """The same for an async generator."""

    async def main():
        seen = []
        async for n, span in astream(1):
            seen.append(n)
            assert span.name.endswith("astream")
            assert trace.get_current_span() is trace.INVALID_SPAN
            assert current_provenance() is None
        return seen

    assert asyncio.run(main()) == [0, 1, 2]
    _check(tracing, "astream")


def test_between_two_steps_the_callers_own_span_is_current(tracing, stream, astream):
    """Whatever the caller makes current meanwhile; the body does not see it."""

    async def main():
        async for _, inside in astream():
            with tracing.tracer.start_as_current_span("mine") as mine:
                assert trace.get_current_span() is mine
            assert inside is request

    with tracing.tracer.start_as_current_span("request") as request:
        for _, inside in stream():
            with tracing.tracer.start_as_current_span("mine") as mine:
                assert trace.get_current_span() is mine
            assert inside is request
        assert trace.get_current_span() is request
        asyncio.run(main())
        assert trace.get_current_span() is request
    assert {s.name for s in tracing.ended} == {"mine", "request", "step 0", "step 1", "step 2"}


def test_the_span_of_the_first_step_is_stamped(tracing, source, stream):
    """Not that of the call, and only once."""
    with tracing.tracer.start_as_current_span("call"):
        made = stream()
    with tracing.tracer.start_as_current_span("first"):
        next(made)
    with tracing.tracer.start_as_current_span("second"):
        next(made)
    made.close()
    assert tracing.named("first").attributes == rag_context([source("a")])
    assert dict(tracing.named("call").attributes) == dict(tracing.named("second").attributes) == {}
    assert tracing.named("step 1").parent.span_id == tracing.named("first").context.span_id


@with_rag_provenance([])
def echo():
    """Answers what it is sent, and survives what is thrown."""
    got = None
    while got != "stop":
        try:
            got = yield got
        except ValueError as error:
            got = error
    return "returned"


@with_rag_provenance([])
async def aecho():
    got = None
    while got != "stop":
        try:
            got = yield got
        except ValueError as error:
            got = error


def test_send_throw_and_return(any_tracing):
    """The body gets what is sent and thrown and goes on; its return value comes out."""
    made = echo()
    assert next(made) is None
    assert made.send("x") == "x"
    error = ValueError("v")
    assert made.throw(error) is error
    assert made.send("y") == "y"
    with pytest.raises(StopIteration) as stop:
        made.send("stop")
    assert stop.value.value == "returned"

    def outer():
        return (yield from echo())

    delegating = outer()
    next(delegating)
    with pytest.raises(StopIteration) as stop:
        delegating.send("stop")
    assert stop.value.value == "returned"


def test_asend_and_athrow(any_tracing):
    """The same for an async generator."""

    async def main():
        made = aecho()
        assert await made.asend(None) is None
        assert await made.asend("x") == "x"
        error = ValueError("v")
        assert await made.athrow(error) is error
        assert await made.asend("y") == "y"
        with pytest.raises(StopAsyncIteration):
            await made.asend("stop")

    asyncio.run(main())


def test_an_early_close_is_no_failure(tracing, stream):
    """The span ends once, by close or by leaving the loop; a second close is harmless."""
    made = stream()
    next(made)
    made.close()
    made.close()
    with pytest.raises(StopIteration):
        next(made)
    _check(tracing, "stream", steps=1)


def test_an_early_aclose_is_no_failure(tracing, astream):
    """The same for an async generator."""

    async def main():
        made = astream()
        await made.__anext__()
        await made.aclose()
        await made.aclose()

    asyncio.run(main())
    _check(tracing, "astream", steps=1)


def test_a_consumer_that_breaks_leaves_the_record(tracing, stream, astream):
    """Whether it breaks or fails; no span stays current in its task."""

    async def main():
        async for _ in astream():
            break
        assert trace.get_current_span() is trace.INVALID_SPAN
        await asyncio.sleep(0.01)  # the loop closes what was dropped
        assert [s.name.split(".")[-1] for s in tracing.ended] == ["step 0", "astream"]
        tracing.ended.clear()
        with pytest.raises(KeyError):
            async for _ in astream():
                raise KeyError
        await asyncio.sleep(0.01)
        assert [s.name.split(".")[-1] for s in tracing.ended] == ["step 0", "astream"]

    asyncio.run(main())
    tracing.ended.clear()
    for _ in stream():
        break
    gc.collect()
    _check(tracing, "stream", steps=1)


def test_the_body_cleans_up_when_closed(tracing, source):
    """Its finally runs in its scope; what it raises or returns there is what the caller gets."""
    seen = []

    @with_rag_provenance([source("a")])
    def stream(fails):
        try:
            yield 1
        except GeneratorExit:
            seen.append(current_provenance() is not None)
            if fails:
                raise error from None
            return 5

    error = KeyError("k")
    made = stream(fails=True)
    next(made)
    with pytest.raises(KeyError) as caught:
        made.close()
    assert caught.value is error
    assert tracing.named("stream").status.status_code is StatusCode.ERROR
    made = stream(fails=False)
    next(made)
    assert made.close() == (5 if sys.version_info >= (3, 13) else None)
    assert seen == [True, True]


def _body(reactions, end, log):
    """Yields once for each reaction to what may be thrown there, then ends."""
    for position, reaction in enumerate(reactions):
        try:
            log.append((yield position))
        except BaseException as error:
            log.append(repr(error))
            if reaction == "pass on":
                raise
            if reaction == "raise":
                raise LookupError(position)  # noqa: B904 - the chain is compared
            if reaction == "raise later":
                break
            if reaction == "return":
                return "early"
    if end == "raise":
        raise LookupError("end")
    return "late"


async def _abody(reactions, end, log):
    for position, reaction in enumerate(reactions):
        await asyncio.sleep(0)
        try:
            log.append((yield position))
        except BaseException as error:
            log.append(repr(error))
            await asyncio.sleep(0)
            # One that swallows this can never be finished, and garbage collection would complain.
            if reaction == "pass on" or isinstance(error, GeneratorExit):
                raise
            if reaction == "raise":
                raise LookupError(position)  # noqa: B904 - the chain is compared
            if reaction == "raise later":
                break
            if reaction == "return":
                return
    if end == "raise":
        raise LookupError("end")


def _outcome(step, *arguments):
    """What a step gives: its value, or its exception with the chain behind it."""
    try:
        return step(*arguments)
    except BaseException as error:
        chain, each = [], error
        while each is not None:
            chain.append(repr(each))
            each = each.__context__
        return chain


def _finish(make, *arguments):
    """Run one step of an async generator to its end, without a loop."""
    step = make(*arguments)
    try:
        while True:
            step.send(None)
    except StopIteration as stop:
        return stop.value


_SCRIPTS = st.lists(
    st.just(("send", None))
    | st.tuples(st.just("send"), st.integers(0, 9))
    | st.tuples(
        st.just("throw"),
        st.sampled_from([KeyError, GeneratorExit, StopIteration, StopAsyncIteration, RuntimeError]),
    )
    | st.just(("close",)),
    max_size=6,
)
_REACTIONS = st.lists(
    st.sampled_from(["pass on", "swallow", "raise", "raise later", "return"]), max_size=4
)


def _play(made, log, prefix, script, run):
    """Do what a script says and note what comes of it; then close until nothing is left."""
    for operation, *arguments in [*script, *[("close",)] * 6]:
        thrown = [each("t") if isinstance(each, type) else each for each in arguments]
        log.append(_outcome(run, getattr(made, prefix + operation), *thrown))
    return log


@given(_REACTIONS, st.sampled_from(["return", "raise"]), _SCRIPTS)
def test_a_decorated_generator_behaves_as_the_undecorated_one(reactions, end, script):
    """Any body, any sequence of send, throw and close: the same values, exceptions, chains."""
    seen = []
    for function in (_body, with_rag_provenance([])(_body)):
        log = []
        made = function(reactions, end, log)
        seen.append(_play(made, log, "", script, lambda step, *given: step(*given)))
    assert seen[0] == seen[1]


@given(_REACTIONS, st.sampled_from(["return", "raise"]), _SCRIPTS)
def test_a_decorated_async_generator_behaves_as_the_undecorated_one(reactions, end, script):
    """The same for asend, athrow and aclose."""
    seen = []
    for function in (_abody, with_rag_provenance([])(_abody)):
        log = []
        seen.append(_play(function(reactions, end, log), log, "a", script, _finish))
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "kind", [KeyError, RuntimeError, asyncio.CancelledError, KeyboardInterrupt]
)
def test_an_exception_of_the_body_reaches_the_caller_unchanged(tracing, source, kind):
    """The very object; the own span has it and the status."""
    error = kind("k")

    @with_rag_provenance([source("a")])
    def stream():
        yield 1
        raise error

    @with_rag_provenance([source("a")])
    async def astream():
        yield 1
        raise error

    made = stream()
    next(made)
    with pytest.raises(kind) as caught:
        next(made)
    assert caught.value is error
    step = astream()
    with pytest.raises(StopIteration):
        step.asend(None).send(None)
    with pytest.raises(kind) as caught:
        step.asend(None).send(None)
    assert caught.value is error
    assert error.__context__ is None
    for name in ("stream", "astream"):
        assert tracing.named(name).status.status_code is StatusCode.ERROR
        assert tracing.named(name).events[0].name == "exception"


def test_stop_iteration_in_a_body(any_tracing):
    """It is turned as Python turns it, and contextlib recognises its own."""

    @with_rag_provenance([])
    def stream():
        yield 1
        raise StopIteration  # noqa: PLR1708 - this is what is tested

    with pytest.raises(RuntimeError, match="generator raised StopIteration"):
        list(stream())

    @contextlib.contextmanager
    @with_rag_provenance([])
    def manager():
        yield 1

    for error in (StopIteration("s"), KeyError("k"), RuntimeError("r")):
        with pytest.raises(type(error)) as caught, manager():
            raise error
        assert caught.value is error


def test_a_dropped_generator_ends_its_span_and_an_unstarted_one_has_none(tracing, stream, astream):
    """By garbage collection; also when it is part of a cycle."""
    made = stream()
    next(made)
    del made
    _check(tracing, "stream", steps=1)
    tracing.ended.clear()
    loop = [stream()]
    loop.append(loop)
    next(loop[0])
    del loop
    gc.collect()
    _check(tracing, "stream", steps=1)
    tracing.ended.clear()
    stream()
    astream()
    gc.collect()
    assert tracing.ended == []


def test_an_async_generator_that_outlives_its_loop_ends_its_span(tracing, astream):
    """Nobody is left to close it; the span ends all the same."""
    loop = asyncio.new_event_loop()
    made = astream()
    loop.run_until_complete(made.__anext__())
    loop.close()
    del made
    gc.collect()
    assert tracing.named("astream").status.status_code is StatusCode.UNSET


def test_aclose_from_another_task(tracing, source):
    """No token meets another context; the span ends, and both tasks see what they saw before."""
    inside = []

    @with_rag_provenance([source("a")])
    async def stream():
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            inside.append(current_provenance() is not None)

    async def close(made):
        await made.aclose()
        return trace.get_current_span()

    async def main():
        made = stream()
        assert await made.__anext__() == 1
        assert await asyncio.create_task(close(made)) is trace.INVALID_SPAN
        return trace.get_current_span()

    assert asyncio.run(main()) is trace.INVALID_SPAN
    assert inside == [True]
    assert tracing.named("stream").status.status_code is StatusCode.UNSET


def test_each_step_in_another_task(tracing, astream):
    """An async generator may be handed from task to task."""

    async def step(made):
        return (await made.__anext__())[0]

    async def main():
        made = astream()
        got = [await asyncio.create_task(step(made)) for _ in range(3)]
        with pytest.raises(StopAsyncIteration):
            await asyncio.create_task(_await(made.__anext__()))
        return got

    assert asyncio.run(main()) == [0, 1, 2]
    _check(tracing, "astream")


async def _await(awaitable):
    return await awaitable


def test_the_loop_shuts_down_with_a_started_generator(tracing, source):
    """The loop closes it once, cleanup included, and complains about nothing."""
    problems, inside = [], []

    @with_rag_provenance([source("a")])
    async def stream():
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            inside.append(current_provenance() is not None)

    kept = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, info: problems.append(info))
        kept.append(stream())
        await kept[0].__anext__()

    asyncio.run(main())
    assert problems == []
    assert inside == [True]
    assert tracing.named("stream").status.status_code is StatusCode.UNSET


def test_a_step_that_is_cancelled(tracing, source):
    """Cancelling a consumer reaches the body at its await; cleanup runs there."""
    cleaned = []

    @with_rag_provenance([source("a")])
    async def stream():
        try:
            yield 1
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    async def consume():
        async for _ in stream():
            pass

    async def main():
        task = asyncio.create_task(consume())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert cleaned == [True]
    assert tracing.named("stream").status.status_code is StatusCode.ERROR


def test_two_async_generators_at_once(tracing, source):
    """Each child has its own parent; nothing is mixed up."""

    @with_rag_provenance(lambda doc: [source(doc)])
    async def stream(doc):
        for n in range(3):
            await asyncio.sleep(0.001)
            tracing.child(f"{doc}{n}")
            yield doc

    async def consume(doc):
        return [each async for each in stream(doc)]

    async def main():
        return await asyncio.gather(consume("a"), consume("b"))

    assert asyncio.run(main()) == [["a"] * 3, ["b"] * 3]
    parents = {s.context.span_id: s for s in tracing.ended if s.name.endswith("stream")}
    assert len(parents) == 2
    for doc in "ab":
        owners = {tracing.named(f"{doc}{n}").parent.span_id for n in range(3)}
        assert len(owners) == 1
        assert tracing.ids_at_start(f"{doc}1") == [doc]
        assert parents[owners.pop()].attributes == rag_context([source(doc)])


def test_interleaved_generators(tracing, source):
    """Steps of two generators by turns, in one thread."""

    @with_rag_provenance(lambda doc: [source(doc)])
    def stream(doc):
        for n in range(2):
            tracing.child(f"{doc}{n}")
            yield

    for _ in zip(stream("a"), stream("b"), strict=True):
        assert current_provenance() is None
    gc.collect()
    for name in ("a0", "a1", "b0", "b1"):
        assert tracing.ids_at_start(name) == [name[0]]


def test_a_span_that_the_body_holds_over_a_yield(tracing, source):
    """It is current in the body at the next step, and never in the caller."""

    @with_rag_provenance([source("a")])
    def stream():
        with tracing.tracer.start_as_current_span("held") as held:
            yield
            assert trace.get_current_span() is held
            yield
        assert trace.get_current_span() is not held

    for _ in stream():
        assert trace.get_current_span() is trace.INVALID_SPAN
    assert tracing.named("held").parent.span_id == tracing.named("stream").context.span_id


def test_the_results_are_of_the_bodys_kind(tracing, stream, astream):
    """Real generators with the function's name."""
    assert inspect.isgenerator(stream())
    assert inspect.isasyncgen(astream())
    for made in (stream(), astream()):
        assert made.__name__ in {"stream", "astream"}
        assert made.__qualname__.endswith(f"<locals>.{made.__name__}")


def test_methods_that_are_generators(tracing, source):
    """Above and below classmethod, on the class and on an object."""

    class Service:
        @with_rag_provenance(lambda self, doc: [source(doc)])
        def stream(self, doc):
            yield self, doc

        @with_rag_provenance(lambda cls, doc: [source(doc)])
        @classmethod
        def cstream(cls, doc):
            yield cls, doc

        @staticmethod
        @with_rag_provenance(lambda doc: [source(doc)])
        async def astream(doc):
            yield doc

    async def collect(made):
        return [each async for each in made]

    service = Service()
    assert list(service.stream("a")) == [(service, "a")]
    assert list(service.cstream("b")) == list(Service.cstream("b")) == [(Service, "b")]
    assert asyncio.run(collect(service.astream("c"))) == ["c"]
    for function in (service.stream, Service.cstream):
        assert inspect.isgeneratorfunction(function)
    assert inspect.isasyncgenfunction(Service.astream)
    assert len(tracing.ended) == 4


def test_a_plain_function_that_returns_a_generator(tracing, source, stream):
    """Its scope lasts until the generator ends; one that is never started ends it as well."""

    def body():
        tracing.child("late")
        yield 1

    @with_rag_provenance([source("outer")])
    def answer():
        return body()

    @with_rag_provenance([source("outer")])
    async def later():
        return body()

    assert list(answer()) == [1]
    assert tracing.ids_at_start("late") == ["outer"]
    assert [s.name.split(".")[-1] for s in tracing.ended] == ["late", "answer"]
    tracing.ended.clear()
    answer()
    gc.collect()
    assert [s.name.split(".")[-1] for s in tracing.ended] == ["answer"]


def test_generator_based_coroutines(tracing, source):
    """What types.coroutine made stays awaitable."""

    @with_rag_provenance([source("a")])
    @types.coroutine
    def old():
        yield from asyncio.sleep(0).__await__()
        tracing.child("inside")
        return 1

    async def main():
        return await old()

    assert asyncio.run(main()) == 1
    assert tracing.ids_at_start("inside") == ["a"]


def test_failing_sources_do_not_break_a_stream(tracing):
    """They are asked for at the first step; the values arrive."""

    @with_rag_provenance(lambda: {}["k"])
    def stream():
        yield from (1, 2)

    assert list(stream()) == [1, 2]
    assert dict(tracing.named("stream").attributes) == {"bijotel.rag.error": "KeyError"}


def test_generators_in_all_worlds(any_tracing, source):
    """Without an SDK and without sampling the values are the same."""

    @with_rag_provenance([source("a")])
    def stream(n):
        got = yield n
        return got

    @with_rag_provenance([source("a")])
    async def astream(n):
        yield n
        yield n + 1

    async def collect():
        return [each async for each in astream(1)]

    made = stream(1)
    assert next(made) == 1
    with pytest.raises(StopIteration) as stop:
        made.send(7)
    assert stop.value.value == 7
    assert asyncio.run(collect()) == [1, 2]
