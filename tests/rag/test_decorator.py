"""with_rag_provenance on functions, coroutine functions and methods."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import logging
import pickle
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import NonRecordingSpan, StatusCode

from bijotel import semconv
from bijotel.rag import RAGSource, current_provenance, rag_context, with_rag_provenance

ERROR = "bijotel.rag.error"


@with_rag_provenance([RAGSource("module", 0)])
def module_level(x):
    """Pickled by name."""
    return x + 1


class Service:
    """Methods of every kind, decorated below and above the built-in decorators."""

    @with_rag_provenance(lambda self, doc: [RAGSource(doc, 0, retriever=self.name)])
    def method(self, doc):
        return self.name, doc

    @classmethod
    @with_rag_provenance(lambda cls, doc: [RAGSource(doc, 0, retriever=cls.__name__)])
    def class_below(cls, doc):
        return cls, doc

    @with_rag_provenance(lambda cls, doc: [RAGSource(doc, 0, retriever=cls.__name__)])
    @classmethod
    def class_above(cls, doc):
        return cls, doc

    @staticmethod
    @with_rag_provenance(lambda doc: [RAGSource(doc, 0)])
    def static_below(doc):
        return doc

    @with_rag_provenance(lambda doc: [RAGSource(doc, 0)])
    @staticmethod
    def static_above(doc):
        return doc

    @with_rag_provenance(lambda self, doc: [RAGSource(doc, 0)])
    async def async_method(self, doc):
        await asyncio.sleep(0)
        return self, doc

    name = "service"


class Sub(Service):
    @with_rag_provenance([RAGSource("sub", 0)])
    def method(self, doc):
        return super().method(doc)


def test_the_current_span_is_stamped_before_the_body_runs(tracing, source):
    """The attributes are those of rag_context; no span is opened."""
    sources = [source("a"), source("b")]

    @with_rag_provenance(sources, total_context_tokens=7)
    def answer(x, *, y):
        assert trace.get_current_span().attributes == expected
        return x, y

    expected = rag_context(sources, total_context_tokens=7)
    with tracing.tracer.start_as_current_span("request"):
        assert answer(1, y=2) == (1, 2)
    assert [span.name for span in tracing.ended] == ["request"]
    assert tracing.named("request").attributes == expected


def test_without_a_current_span_one_is_opened_around_the_call(tracing, source):
    """Named like the function, with the record; spans of the body are its children."""

    @with_rag_provenance([source()])
    def answer():
        tracing.child("model call")
        return 1

    assert answer() == 1
    own = tracing.named("answer")
    assert own.name.endswith("<locals>.answer")
    assert own.instrumentation_scope.name == "bijotel"
    assert own.attributes == rag_context([source()])
    assert own.status.status_code is StatusCode.UNSET
    assert tracing.named("model call").parent.span_id == own.context.span_id
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_an_ended_span_counts_as_none(tracing, source, caplog):
    """Nothing is set on a span that is over; the record gets a span of its own."""
    span = tracing.tracer.start_span("over")
    span.end()

    @with_rag_provenance([source()])
    def answer():
        return 1

    with trace.use_span(span):
        answer()
    assert dict(tracing.named("over").attributes) == {}
    assert tracing.named("answer").parent.span_id == span.context.span_id
    assert caplog.records == []


def test_a_second_call_under_one_span_does_not_overwrite_the_first(tracing, source, ids_of):
    """The first record stays; another one gets a span of its own, an equal one does not."""

    @with_rag_provenance(lambda doc: [source(doc)])
    def answer(doc):
        return doc

    with tracing.tracer.start_as_current_span("request"):
        for doc in ("a", "b", "a"):
            answer(doc)
    assert [(s.name.split(".")[-1], ids_of(s.attributes)) for s in tracing.ended] == [
        ("answer", ["b"]),
        ("request", ["a"]),
    ]


def test_the_inner_call_wins_inside_and_the_outer_one_after_it(tracing, source, ids_of):
    """Each span sees the innermost scope in which it was started."""

    @with_rag_provenance([source("inner")])
    def inner():
        tracing.child("in inner")

    @with_rag_provenance([source("outer")])
    def outer():
        tracing.child("before")
        inner()
        tracing.child("after")

    with tracing.tracer.start_as_current_span("request"):
        outer()
    assert tracing.ids_at_start("in inner") == ["inner"]
    assert tracing.ids_at_start("before") == tracing.ids_at_start("after") == ["outer"]
    assert ids_of(tracing.named("request").attributes) == ["outer"]
    assert ids_of(tracing.named("inner").attributes) == ["inner"]


def test_the_scope_is_seen_by_tasks_and_not_by_the_caller(tracing, source):
    """Tasks that the body starts inherit it; afterwards nothing is left."""

    async def task():
        tracing.child("in task")

    @with_rag_provenance([source("a")])
    async def answer():
        await asyncio.create_task(task())

    async def main():
        running = asyncio.create_task(answer())
        await asyncio.sleep(0)
        tracing.child("beside")
        await running

    asyncio.run(main())
    assert tracing.ids_at_start("in task") == ["a"]
    assert tracing.ids_at_start("beside") is None


def test_what_a_prompt_says_is_not_handed_on(tracing):
    """Statuses hold for the decorated call; the scope has sources and texts only."""
    text = "The burrs of the Kvarn grinder are wear parts."
    seen = []

    @with_rag_provenance(
        [RAGSource("a", 0, content=text)], prompt=lambda question: f"{text} {question}"
    )
    def answer(question):
        seen.append(current_provenance())
        return question

    answer("Why?")
    own = tracing.named("answer").attributes
    assert own[semconv.RAG_IN_CONTEXT] == ("included",)
    assert own[semconv.RAG_IN_CONTEXT_COUNT] == 1
    assert seen[0].attributes == rag_context([RAGSource("a", 0)])
    assert seen[0].contents == (text,)


def test_a_static_prompt_is_matched_once_for_all_calls(tracing):
    """Text or messages, given when decorating."""
    text = "The burrs of the Kvarn grinder are wear parts."
    messages = [{"role": "user", "content": text}]
    answer = with_rag_provenance([RAGSource("a", 0, content=text)], prompt=messages)(_identity)
    assert answer(1) == 1
    assert tracing.named("_identity").attributes[semconv.RAG_IN_CONTEXT] == ("included",)


def _identity(x):
    return x


def test_static_sources_are_copied_when_decorating(tracing, source, ids_of):
    """Later changes of the list change nothing; an iterator is used up once."""
    sources = [source("a")]
    listed = with_rag_provenance(sources)(_identity)
    iterated = with_rag_provenance(iter([source("i")]))(_identity)
    sources.append(source("b"))
    for function in (listed, listed, iterated, iterated):
        function(1)
    assert [ids_of(s.attributes) for s in tracing.ended] == [["a"], ["a"], ["i"], ["i"]]


def test_sources_of_each_call(tracing, source, ids_of):
    """A callable gets the call's own arguments, as they were given."""
    seen = []

    def sources(*args, **kwargs):
        seen.append((args, kwargs))
        return (source(each) for each in args[0])

    @with_rag_provenance(sources)
    def answer(docs, step=1, self=None):
        return docs

    answer(["a"], step=2, self=3)
    answer([])
    assert seen == [((["a"],), {"step": 2, "self": 3}), (([],), {})]
    assert [ids_of(s.attributes) for s in tracing.ended] == [["a"], []]
    assert [s.attributes[semconv.RAG_SOURCE_COUNT] for s in tracing.ended] == [1, 0]


def test_methods_of_every_kind(tracing, ids_of):
    """Above and below classmethod and staticmethod; self and cls reach the callable."""
    service = Service()
    assert service.method("m") == ("service", "m")
    assert Service.method(service, "u") == ("service", "u")
    assert service.class_below("b") == (Service, "b")
    assert Service.class_above("c") == (Service, "c")
    assert Sub.class_above("d") == (Sub, "d")
    assert service.static_below("s") == Service.static_above("s") == "s"
    assert service.static_above(doc="t") == "t"
    assert asyncio.run(service.async_method("x")) == (service, "x")
    made = [
        (s.name, ids_of(s.attributes), s.attributes[semconv.RAG_RETRIEVER_ID])
        for s in tracing.ended
    ]
    assert made == [
        ("Service.method", ["m"], "service"),
        ("Service.method", ["u"], "service"),
        ("Service.class_below", ["b"], "Service"),
        ("Service.class_above", ["c"], "Service"),
        ("Service.class_above", ["d"], "Sub"),
        ("Service.static_below", ["s"], ""),
        ("Service.static_above", ["s"], ""),
        ("Service.static_above", ["t"], ""),
        ("Service.async_method", ["x"], ""),
    ]


def test_an_override_that_calls_super(tracing, ids_of):
    """Both calls have their record."""
    assert Sub().method("m") == ("service", "m")
    assert [(s.name, ids_of(s.attributes)) for s in tracing.ended] == [
        ("Service.method", ["m"]),
        ("Sub.method", ["sub"]),
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda: _signature,
        lambda: _coroutine,
        lambda: _generator,
        lambda: _async_generator,
        lambda: functools.partial(_coroutine, 1),
        lambda: Service().async_method,
    ],
)
def test_a_decorated_function_stays_what_it_was(make, source):
    """Kind, signature, names, documentation and annotations are the same."""
    function = make()
    decorated = with_rag_provenance([source()])(function)
    kinds = ("iscoroutinefunction", "isgeneratorfunction", "isasyncgenfunction", "isfunction")
    for kind in kinds:
        assert getattr(inspect, kind)(decorated) == getattr(inspect, kind)(function), kind
    assert asyncio.iscoroutinefunction(decorated) == asyncio.iscoroutinefunction(function)
    assert inspect.signature(decorated) == inspect.signature(function)
    names = ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "__defaults__")
    for name in names:
        assert getattr(decorated, name, None) == getattr(function, name, None)


def _signature(a: int, b: str = "x", *, c: object = None) -> dict:
    """Documented."""
    return {"a": a, "b": b, "c": c}


async def _coroutine(a: int) -> int:
    await asyncio.sleep(0)
    return a


def _generator(a: int):
    yield a


async def _async_generator(a: int):
    yield a


def test_wrong_arguments_fail_as_undecorated(source):
    """At the call, with the function's own message, and before any record is made."""
    for function in (_signature, _coroutine, _generator, _async_generator):
        with pytest.raises(TypeError) as expected:
            function()
        with pytest.raises(TypeError) as found:
            with_rag_provenance([source()])(function)()
        assert str(found.value) == str(expected.value)
    assert inspect.getcallargs(with_rag_provenance([])(_signature), 1) == {
        "a": 1,
        "b": "x",
        "c": None,
    }


def test_decorated_functions_can_be_pickled_and_copied():
    """By name, as functions are; bound methods with their object."""
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    assert copy.copy(module_level) is copy.deepcopy(module_level) is module_level
    service = Service()
    service.callback = service.method
    for other in (copy.deepcopy(service), copy.copy(service), pickle.loads(pickle.dumps(service))):
        other.name = "other"
        assert other.method("m") == ("other", "m")
    assert copy.deepcopy(service).callback.__self__ is not service
    assert copy.copy(service.method).__self__ is service
    assert pickle.loads(pickle.dumps(Service.class_above))("m") == (Service, "m")


def test_partials_and_callable_objects(tracing, source):
    """Whatever can be called can be decorated; a partial is named like its function."""

    class Answer:
        def __call__(self, x):
            return x

        async def later(self, x):
            return x

    class AsyncAnswer:
        async def __call__(self, x):
            tracing.child("in async call")
            return x

    wrap = with_rag_provenance([source("a")])
    assert wrap(functools.partial(_identity, 1))() == 1
    assert wrap(Answer())(2) == 2
    assert asyncio.run(wrap(Answer().later)(3)) == 3
    assert asyncio.run(wrap(functools.partial(_coroutine, 4))()) == 4
    assert asyncio.run(wrap(AsyncAnswer())(5)) == 5
    assert wrap(len)("abc") == 3
    names = [span.name.split(".")[-1] for span in tracing.ended]
    assert names == [
        "_identity",
        "Answer",
        "later",
        "_coroutine",
        "in async call",
        "AsyncAnswer",
        "len",
    ]
    assert tracing.ids_at_start("in async call") == ["a"]


def test_a_plain_function_that_returns_a_coroutine_keeps_its_scope(tracing, source):
    """Whether it made the coroutine itself or an outer decorator did."""

    @with_rag_provenance([source("a")])
    def answer(x):
        return _work(x)

    async def _work(x):
        await asyncio.sleep(0)
        tracing.child("late")
        return x

    assert asyncio.run(answer(1)) == 1
    assert tracing.ids_at_start("late") == ["a"]
    assert [s.name.split(".")[-1] for s in tracing.ended] == ["late", "answer"]


def test_other_awaitables_are_returned_as_they_are(tracing, source):
    """A future or task keeps its identity; a task made inside has the scope anyway."""

    async def work():
        tracing.child("in task")
        return 1

    made = []

    @with_rag_provenance([source("a")])
    def answer():
        made.append(asyncio.ensure_future(work()))
        return made[0]

    async def main():
        task = answer()
        assert task is made[0]
        return await task

    assert asyncio.run(main()) == 1
    assert tracing.ids_at_start("in task") == ["a"]


class _Own(Exception):
    pass


@pytest.mark.parametrize(
    "kind", [_Own, KeyError, asyncio.CancelledError, KeyboardInterrupt, SystemExit]
)
def test_the_caller_sees_the_functions_own_exception(any_tracing, source, kind):
    """The very object, unchanged: cause, context, and the frames where it was raised."""
    error = kind("k")

    @with_rag_provenance(lambda: [source()])
    def plain():
        raise error

    @with_rag_provenance(lambda: 1 / 0)
    async def later():
        await asyncio.sleep(0)
        raise error

    for call in (plain, lambda: _run(later())):
        with pytest.raises(kind) as caught:
            call()
        assert caught.value is error
        assert error.__context__ is None
        assert error.__cause__ is None
        frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        assert frames[-1] in {"plain", "later"}
        error.__traceback__ = None


def _run(coroutine):
    """Run a coroutine without a loop that would treat some exceptions its own way."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value


def test_stop_iteration_is_an_exception_as_any_other(any_tracing, source):
    """From a plain function it is seen as it is; from a coroutine as Python turns it."""

    @with_rag_provenance([source()])
    def plain():
        raise StopIteration(5)

    @with_rag_provenance([source()])
    async def later():
        raise StopIteration(5)

    with pytest.raises(StopIteration) as caught:
        plain()
    assert caught.value.value == 5
    with pytest.raises(RuntimeError, match="coroutine raised StopIteration"):
        asyncio.run(later())


def test_an_exception_is_recorded_on_the_own_span_only(tracing, source):
    """Status and event there; a span of the caller is the caller's to judge."""

    @with_rag_provenance([source()])
    def answer():
        raise KeyError("k")

    with pytest.raises(KeyError):
        answer()
    own = tracing.named("answer")
    assert own.status.status_code is StatusCode.ERROR
    assert own.status.description == "KeyError: 'k'"
    assert [event.attributes["exception.type"] for event in own.events] == ["KeyError"]
    span = tracing.tracer.start_span("request")
    with trace.use_span(span), pytest.raises(KeyError):
        answer()
    assert span.status.status_code is StatusCode.UNSET
    assert span.events == ()


class _Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def test_an_exception_without_text_still_ends_the_span(tracing, source, caplog):
    """What fails in recording is logged, and the exception stays the function's own."""

    @with_rag_provenance([source()])
    def answer():
        raise _Unprintable

    with pytest.raises(_Unprintable):
        answer()
    assert tracing.named("answer").end_time is not None


class _Failing(SpanProcessor):
    def __init__(self, moment):
        self.moment = moment

    def on_start(self, span, parent_context=None):
        self._fail("start")

    def on_end(self, span):
        self._fail("end")

    def _fail(self, moment):
        if moment == self.moment:
            raise OSError("full")


@pytest.mark.parametrize(
    ("moment", "what"),
    [("start", "stamping a span with its sources failed"), ("end", "ending a span failed")],
)
def test_a_failing_processor_does_not_reach_the_caller(tracing, source, caplog, moment, what):
    """Whether it fails when a span starts or when it ends."""
    tracing.provider.add_span_processor(_Failing(moment))
    answer = with_rag_provenance([source()])(lambda key: {"a": 1}[key])
    assert answer("a") == 1
    with pytest.raises(KeyError) as caught:
        answer("k")
    assert caught.value.__context__ is None
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        ("bijotel.rag", "WARNING", f"{what}; the call goes on, this is logged once")
    ]


def test_failing_sources_leave_a_visible_record(tracing, caplog):
    """The function runs; span and scope carry the error's type; it is logged once."""

    @with_rag_provenance(lambda: {}["missing"])
    def answer():
        return current_provenance().attributes

    assert answer() == {ERROR: "KeyError"}
    assert answer() == {ERROR: "KeyError"}
    assert [dict(s.attributes) for s in tracing.ended] == [{ERROR: "KeyError"}] * 2
    assert tracing.ended[0].status.status_code is StatusCode.UNSET
    (record,) = caplog.records
    assert record.getMessage() == (
        "the sources of a call could not be recorded; the call goes on, this is logged once"
    )
    assert record.exc_info[0] is KeyError


@pytest.mark.parametrize("returned", [None, "text", ["raw hit"], 5])
def test_sources_of_the_wrong_kind_are_an_error_of_the_call(tracing, returned):
    """Raw hits are not sources; the call goes on."""
    answer = with_rag_provenance(lambda x: returned)(_identity)
    assert answer(1) == 1
    assert dict(tracing.named("_identity").attributes) == {ERROR: "TypeError"}


def test_a_failing_prompt_leaves_the_sources(tracing, source, caplog):
    """Only what the prompt would have said is missing."""
    answer = with_rag_provenance([source()], prompt=lambda x: x.no_such)(_identity)
    assert answer(1) == 1
    assert tracing.named("_identity").attributes == {
        **rag_context([source()]),
        ERROR: "AttributeError",
    }
    assert "the prompt of a call could not be recorded" in caplog.text


def test_a_prompt_may_be_missing_for_one_call(tracing, source):
    """A callable that returns None says nothing about that call."""
    answer = with_rag_provenance([source()], prompt=lambda x: None)(_identity)
    answer(1)
    assert tracing.named("_identity").attributes == rag_context([source()])


async def _async_sources():
    return []


class _AsyncCallable:
    async def __call__(self):
        return []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("text",), "sources: expected a sequence of RAGSource, got str"),
        (([{"id": 1}],), r"sources\[0\]: expected RAGSource, got dict"),
        ((_async_sources,), "sources: expected a plain callable, got a coroutine function"),
        ((_AsyncCallable(),), "sources: expected a plain callable, got a coroutine function"),
    ],
)
def test_wrong_sources_are_refused_when_decorating(arguments, message):
    """Not at the first call."""
    with pytest.raises(TypeError, match=message):
        with_rag_provenance(*arguments)


def test_wrong_options_are_refused_when_decorating():
    """Token counts and prompts too."""
    with pytest.raises(TypeError, match="total_context_tokens: expected a whole number, got str"):
        with_rag_provenance(list, total_context_tokens="7")
    with pytest.raises(TypeError, match="prompt: expected a plain callable, got a coroutine"):
        with_rag_provenance([], prompt=_async_sources)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (Service, "class Service"),
        (property(_identity), "property"),
        (5, "int"),
        (classmethod(property(_identity)), "property"),
    ],
)
def test_only_functions_and_methods_can_be_decorated(function, kind):
    """A clear error when decorating, never at the first call."""
    with pytest.raises(TypeError, match=f"expected a function or method, got {kind}$"):
        with_rag_provenance([])(function)


def test_all_kinds_return_the_same_in_all_worlds(any_tracing, source):
    """Without an SDK, with a sampler that drops everything, and with a recording tracer."""
    wrap = with_rag_provenance([source()])
    assert wrap(_signature)(1, c=2) == _signature(1, c=2)
    assert asyncio.run(wrap(_coroutine)(3)) == 3
    assert list(wrap(_generator)(4)) == [4]

    async def collect():
        return [x async for x in wrap(_async_generator)(5)]

    assert asyncio.run(collect()) == [5]
    assert Service().method("m") == ("service", "m")


def test_spans_without_a_context_are_tolerated(tracing, source):
    """Some instrumentations make such spans current; the record gets its own span."""
    answer = with_rag_provenance([source()])(_identity)
    with trace.use_span(NonRecordingSpan(None)):
        assert answer(1) == 1
    assert tracing.named("_identity").parent is None


def test_a_call_that_nothing_records_is_told_once(dropped, source, caplog):
    """No evidence is lost without a sign, and the span that is current does not change."""
    seen = []
    answer = with_rag_provenance([source()])(lambda: seen.append(trace.get_current_span()))
    answer()
    answer()
    assert dropped.ended == []
    assert seen == [trace.INVALID_SPAN] * 2
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [
        (logging.INFO, "no span records: the provenance of calls is not kept (logged once)")
    ]


def test_a_context_that_the_body_leaves_attached_does_not_leak(tracing, source):
    """As with any span around a call."""

    @with_rag_provenance([source()])
    def answer():
        otel_context.attach(otel_context.set_value("left", 1))

    answer()
    assert otel_context.get_value("left") is None


def test_a_span_that_the_body_holds_over_an_await_stays_current(tracing, source):
    """The body finds its own context again at every step."""

    @with_rag_provenance([source()])
    async def answer():
        with tracing.tracer.start_as_current_span("inner") as inner:
            for _ in range(3):
                await asyncio.sleep(0)
                assert trace.get_current_span() is inner
        assert trace.get_current_span().name.endswith("answer")

    asyncio.run(answer())
    own = tracing.named("answer").context.span_id
    assert tracing.named("inner").parent.span_id == own


def test_concurrent_tasks_do_not_see_each_other(tracing, source, ids_of):
    """Fifty calls in one loop under one span: every span holds exactly its own id."""

    @with_rag_provenance(lambda doc: [source(doc)])
    async def answer(doc):
        for _ in range(int(doc) % 5):
            await asyncio.sleep(0.001)
        assert ids_of(current_provenance().attributes) == [doc]
        tracing.child(f"call {doc}")
        return doc

    async def main():
        return await asyncio.gather(*(answer(str(n)) for n in range(50)))

    with tracing.tracer.start_as_current_span("request"):
        assert asyncio.run(main()) == [str(n) for n in range(50)]
    recorded = [ids_of(s.attributes) for s in tracing.ended if semconv.RAG_SOURCES in s.attributes]
    assert sorted(recorded) == sorted([str(n)] for n in range(50))
    for n in range(50):
        assert tracing.ids_at_start(f"call {n}") == [str(n)]


def test_concurrent_threads_do_not_see_each_other(tracing, source, ids_of):
    """Twenty threads at once; a pool without a current span gets own spans."""
    barrier = threading.Barrier(20)

    @with_rag_provenance(lambda doc: [source(doc)])
    def answer(doc):
        barrier.wait(10)
        time.sleep(0.001)
        return ids_of(current_provenance().attributes)

    with ThreadPoolExecutor(20) as pool:
        docs = [str(n) for n in range(20)]
        assert list(pool.map(answer, docs)) == [[doc] for doc in docs]
    assert sorted(ids_of(s.attributes)[0] for s in tracing.ended) == sorted(docs)


def test_executors_and_tasks_under_one_root(tracing, source):
    """Where the context is carried over the root is stamped, elsewhere an own span is the sign."""
    answer = with_rag_provenance([source()])(_identity)

    async def work():
        return answer(1)

    async def main():
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(answer, 1).result()
            await loop.run_in_executor(pool, answer, 1)
        thread = threading.Thread(target=answer, args=(1,))
        thread.start()
        thread.join()
        assert len(tracing.ended) == 3
        await asyncio.to_thread(answer, 1)
        await asyncio.create_task(work())

    with tracing.tracer.start_as_current_span("root"):
        asyncio.run(main())
    assert [s.name.split(".")[-1] for s in tracing.ended] == ["_identity"] * 3 + ["root"]
    assert tracing.named("root").attributes == rag_context([source()])


def test_a_task_that_is_cancelled_before_it_starts(tracing, source):
    """No span, and no complaint about a coroutine that was never awaited."""

    async def main():
        task = asyncio.create_task(with_rag_provenance([source()])(_coroutine)(1))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert tracing.ended == []


def test_a_cancelled_call_has_its_record(tracing, source):
    """Cancelling reaches the body; the span ends with the error."""
    seen = []

    @with_rag_provenance([source()])
    async def answer():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append(current_provenance() is not None)
            raise

    async def main():
        task = asyncio.create_task(answer())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert seen == [True]
    assert tracing.named("answer").status.status_code is StatusCode.ERROR


def test_a_coroutine_that_is_dropped_half_way_ends_its_span(tracing, source):
    """Also without an event loop that would close it."""

    @with_rag_provenance([source()])
    async def answer():
        await asyncio.sleep(0)

    coroutine = answer()
    coroutine.send(None)
    assert tracing.ended == []
    del coroutine
    assert tracing.named("answer").status.status_code is StatusCode.UNSET


def test_the_cost_of_a_call(tracing, source):
    """A decorated call with static sources under a recording span takes less than 200 us."""
    answer = with_rag_provenance([source()])(_identity)
    with tracing.tracer.start_as_current_span("request"):
        begin = time.thread_time()
        for n in range(1000):
            answer(n)
        assert time.thread_time() - begin < 0.2
