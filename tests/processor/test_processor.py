"""The span processor seals what ends, and never harms its host."""

from __future__ import annotations

import gc
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, Sampler, SamplingResult

from bijotel import ConfigurationError, HmacChainSpanProcessor, KeyRing
from bijotel.canonical import loads
from bijotel.stores.sqlite import SqliteStore
from tests.processor.conftest import CHAT, KEY, entries, spans

Make = Callable[..., HmacChainSpanProcessor]


def chat(provider: TracerProvider, name: str = "chat m", **attributes: object) -> None:
    with provider.get_tracer("t", "1").start_as_current_span(
        name, attributes={**CHAT, **attributes}
    ):
        pass


def test_an_ended_genai_span_becomes_an_entry(provider: TracerProvider, make: Make, db: Path):
    """A chain starts with its genesis; each ended span follows, with all it holds."""
    processor = make()
    chat(provider, "chat one", question="hi")
    chat(provider, "chat two")
    assert processor.force_flush() is True
    assert [entry.kind for entry in entries(db)] == ["genesis", "span", "span"]
    one, two = spans(db)
    assert (one.name, two.name) == ("chat one", "chat two")
    assert one.attributes == {**CHAT, "question": "hi"}
    assert one.scope.name == "t"
    stats = processor.stats()._asdict()
    assert stats == {
        "taken": 2,
        "sealed": 2,
        "queued": 0,
        "spooled": 0,
        "dropped": 0,
        "recovered": 0,
        "errors": {},
        "stalled": False,
    }


def test_other_spans_are_not_sealed(provider: TracerProvider, make: Make, db: Path):
    """A span without any generative AI attribute stays out of the chain."""
    processor = make()
    provider.get_tracer("t").start_span("GET /", attributes={"http.method": "GET"}).end()
    chat(provider)
    processor.force_flush()
    assert [span.name for span in spans(db)] == ["chat m"]
    assert processor.stats().taken == 1


def test_select_is_the_callers_choice(provider: TracerProvider, make: Make, db: Path):
    """``select=`` sees each ended span and decides."""
    processor = make(select=lambda span: span.name == "GET /")
    provider.get_tracer("t").start_span("GET /").end()
    chat(provider)
    processor.force_flush()
    assert [span.name for span in spans(db)] == ["GET /"]


def test_commit_mode_returns_after_the_commit(provider: TracerProvider, make: Make, db: Path):
    """In ``commit`` mode the entry is there when the span has ended, without a flush."""
    make(durability="commit", commit_timeout_millis=10_000)
    chat(provider)
    assert [span.name for span in spans(db)] == ["chat m"]


def test_values_that_json_cannot_carry_are_sealed(provider: TracerProvider, make: Make, db: Path):
    """No value of an attribute costs its span, nor a neighbour."""
    processor = make()
    values = {
        "nan": float("nan"),
        "inf": float("inf"),
        "big": 2**70,
        "bytes": b"\x00\xff",
        "half": "a\ud83e",
        "nul": "a\0b",
        "long": "x" * 1_000_000,
    }
    for name, value in values.items():
        chat(provider, f"chat {name}", value=value)
    processor.force_flush()
    sealed = {span.name: span.attributes["value"] for span in spans(db)}
    assert sealed.pop("chat nan") != values.pop("nan")  # NaN equals nothing, itself included
    assert sealed == {f"chat {name}": value for name, value in values.items()}
    assert processor.stats().errors == {}


def test_what_is_sealed_is_the_span_at_its_end(provider: TracerProvider, make: Make, db: Path):
    """A later processor that rewrites the span does not reach what is sealed."""

    class Rewriter(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            span._attributes = {"gen_ai.operation.name": "rewritten"}  # type: ignore[assignment]

    processor = make()
    provider.add_span_processor(Rewriter())
    chat(provider)
    processor.force_flush()
    assert spans(db)[0].attributes["gen_ai.operation.name"] == "chat"


def test_two_processors_keep_every_span_once(provider: TracerProvider, make: Make, db: Path):
    """A provider that was set up twice seals each span once, and says how many it met again."""
    first, second = make(), make()
    for number in range(50):
        chat(provider, f"chat {number}")
    assert first.force_flush()
    assert second.force_flush()
    assert sorted(span.name for span in spans(db)) == sorted(f"chat {n}" for n in range(50))
    assert (first.stats().errors, second.stats().errors) == ({}, {})


def test_eight_threads_share_a_processor(provider: TracerProvider, make: Make, db: Path):
    """Spans that end at once on many threads are all sealed, each once."""
    processor = make()

    def work(thread: int) -> None:
        for number in range(100):
            chat(provider, f"chat {thread}-{number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert processor.force_flush()
    names = [span.name for span in spans(db)]
    assert len(names) == len(set(names)) == 800


def test_the_applications_exception_is_its_own(provider: TracerProvider, db: Path):
    """A store that cannot be written never changes what the application sees."""
    processor = HmacChainSpanProcessor(db.parent / "missing" / "chain.db", key=KEY)
    seen: list[str] = []

    class After(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            seen.append(span.name)

    provider.add_span_processor(processor)
    provider.add_span_processor(After())
    error = ValueError("the application's own")
    with pytest.raises(ValueError, match="own") as caught:
        with provider.get_tracer("t").start_as_current_span("chat", attributes=CHAT):
            raise error
    assert caught.value is error
    assert caught.value.__context__ is None
    assert seen == ["chat"]
    assert processor.force_flush(timeout_millis=200) is False
    assert processor.stats().errors["UnavailableError"] >= 1
    assert processor.stats().queued == 1


def test_our_own_faults_are_counted_and_logged_once(
    provider: TracerProvider, make: Make, db: Path, caplog: pytest.LogCaptureFixture
):
    """A ``select`` that raises costs nothing but its own verdict."""

    def select(span: ReadableSpan) -> bool:
        raise KeyError(span.name)

    processor = make(select=select)
    for _ in range(3):
        chat(provider)
    assert processor.stats().errors == {"KeyError": 3}
    messages = [record.getMessage() for record in caplog.records if record.name == "bijotel"]
    assert messages == ["bijotel: KeyError while a span ended: 'chat m'"]


def test_a_full_queue_becomes_a_gap_entry(provider: TracerProvider, make: Make, db: Path):
    """1,000 spans into a queue of 100 with the store locked: 900 are missing, on record."""
    processor = make(max_queue_size=100)
    chat(provider, "chat first")
    processor.force_flush()
    blocker = sqlite3.connect(db, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    chat(provider, "chat held")
    while processor.stats().queued != 1 or processor._writer._queue:
        time.sleep(0.001)
    before = time.time_ns()
    for number in range(1000):
        chat(provider, f"chat {number}")
    after = time.time_ns()
    assert processor.stats().dropped == 900
    blocker.execute("ROLLBACK")
    blocker.close()
    assert processor.force_flush()
    gaps = [loads(entry.body) for entry in entries(db) if entry.kind == "gap"]
    assert sum(gap["count"] for gap in gaps) == 900
    assert {gap["reason"] for gap in gaps} == {"queue-full"}
    assert before <= int(gaps[0]["first_unix_nano"]) <= int(gaps[-1]["last_unix_nano"]) <= after
    kept = [span.name for span in spans(db)]
    assert kept == ["chat first", "chat held", *(f"chat {number}" for number in range(100))]


def test_a_span_that_cannot_be_encoded_becomes_a_gap(
    provider: TracerProvider, make: Make, db: Path
):
    """A hand-made span without the fields of one is counted, its neighbours are sealed."""
    processor = make(select=lambda span: True)

    class Broken:
        context = None
        attributes = None
        dropped_attributes = dropped_events = dropped_links = 0
        kind = name = parent = None

    processor.on_end(Broken())  # type: ignore[arg-type]
    chat(provider)
    assert processor.force_flush()
    kinds = sorted(entry.kind for entry in entries(db))
    assert kinds == ["gap", "genesis", "span"]
    (gap,) = (loads(entry.body) for entry in entries(db) if entry.kind == "gap")
    assert (gap["count"], gap["reason"]) == (1, "encode-failed")


def test_a_locked_store_keeps_the_spans(provider: TracerProvider, make: Make, db: Path):
    """While another process holds the store the host goes on, and nothing is lost."""
    processor = make()
    chat(provider)
    processor.force_flush()
    blocker = sqlite3.connect(db, isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    started = time.perf_counter()
    for number in range(200):
        chat(provider, f"chat {number}")
    assert time.perf_counter() - started < 2
    assert processor.force_flush(timeout_millis=300) is False
    blocker.execute("COMMIT")
    blocker.close()
    assert processor.force_flush() is True
    assert len(spans(db)) == 201


def test_commit_mode_stops_waiting_when_the_store_stalls(
    provider: TracerProvider, make: Make, db: Path
):
    """A stalled store costs the host one timeout, not one for each span."""
    processor = make(durability="commit", commit_timeout_millis=200)
    chat(provider)
    blocker = sqlite3.connect(db, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    started = time.perf_counter()
    for number in range(20):
        chat(provider, f"chat {number}")
    waited = time.perf_counter() - started
    assert 0.2 <= waited < 1.0
    assert processor.stats().stalled is True
    blocker.execute("ROLLBACK")
    blocker.close()
    assert processor.force_flush()
    chat(provider, "chat last")
    assert processor.stats().stalled is False
    assert [span.name for span in spans(db)][-1] == "chat last"
    assert len(spans(db)) == 22


def test_spans_that_end_after_shutdown_are_sealed(provider: TracerProvider, make: Make, db: Path):
    """Shutting down is no reason to lose a span that ends later."""
    processor = make()
    late = provider.get_tracer("t").start_span("chat late", attributes=CHAT)
    chat(provider)
    processor.shutdown()
    late.end()
    assert processor.force_flush()
    assert [span.name for span in spans(db)] == ["chat m", "chat late"]


def test_shutdown_with_the_store_down_keeps_what_is_left(
    provider: TracerProvider, make: Make, db: Path, caplog: pytest.LogCaptureFixture
):
    """What could not be sealed is said with its number, and sealed when the store is back."""
    processor = make()
    chat(provider)
    processor.force_flush()
    blocker = sqlite3.connect(db, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    chat(provider, "chat left")
    assert processor._writer.stop(0.2) is False
    assert "not sealed in time: 1 spans in the spool, 0 in memory" in caplog.text
    assert (processor.stats().queued, processor.stats().spooled) == (0, 1)
    blocker.execute("ROLLBACK")
    blocker.close()
    assert processor.force_flush()
    assert [span.name for span in spans(db)] == ["chat m", "chat left"]


def test_a_thread_that_was_taken_over_closes_the_store(
    provider: TracerProvider, make: Make, db: Path, monkeypatch: pytest.MonkeyPatch
):
    """It hung in the store when the shutdown went on without it, and commits after all."""
    store = SqliteStore(db)
    processor = make(store=store)
    chat(provider)
    assert processor.force_flush()
    append, hanging, go_on = store.append, threading.Event(), threading.Event()

    def hang(*arguments: Any) -> Any:
        hanging.set()
        assert go_on.wait(10)
        return append(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(store, "append", hang)
        chat(provider, "chat held")
        assert hanging.wait(10)
        thread = processor._writer._thread
        assert thread is not None
        assert processor._writer.stop(0.1) is False
        go_on.set()
        thread.join(10)
    assert store._connection is None
    assert processor.force_flush()
    assert [span.name for span in spans(db)] == ["chat m", "chat held"]


def test_spans_that_never_end_leave_nothing_behind(provider: TracerProvider, make: Make, db: Path):
    """What is remembered of a running span goes with it."""
    from bijotel import RAGSource, rag_provenance

    processor = make()
    with rag_provenance([RAGSource("d", 0)]):
        running = [provider.get_tracer("t").start_span(f"chat {number}") for number in range(100)]
    assert len(processor._memory._entries) >= 100
    del running
    gc.collect()
    assert len(processor._memory._entries) <= 1


def test_a_recorded_span_is_sealed_though_not_sampled(db: Path):
    """Sealing does not depend on the decision to export."""

    class RecordOnly(Sampler):
        def should_sample(self, *args: Any, attributes: Any = None, **kwargs: Any) -> Any:
            return SamplingResult(Decision.RECORD_ONLY, attributes or args[4])

        def get_description(self) -> str:
            return "RecordOnly"

    provider = TracerProvider(sampler=RecordOnly(), shutdown_on_exit=False)
    processor = HmacChainSpanProcessor(db, key=KEY)
    provider.add_span_processor(processor)
    chat(provider)
    processor.force_flush()
    assert spans(db)[0].trace_flags & 1 == 0
    provider.shutdown()


def test_a_wrong_key_is_refused_at_once(provider: TracerProvider, make: Make, db: Path):
    """A chain of another key is never continued."""
    make()
    chat(provider)
    provider.force_flush()
    with pytest.raises(ConfigurationError, match="was sealed with key db253c4328c8e7bb") as caught:
        HmacChainSpanProcessor(db, key=b"x" * 31 + b"y")
    assert "which is not among the given keys" in str(caught.value)


def test_a_tampered_head_is_never_continued(provider: TracerProvider, make: Make, db: Path):
    """The writer stops at a head that does not verify, and rebuilds nothing."""
    processor = make()
    chat(provider)
    processor.force_flush()
    processor.shutdown()
    connection = sqlite3.connect(db)
    with connection:
        connection.execute("UPDATE heads SET mac = zeroblob(32)")
    connection.close()
    chat(provider)
    assert processor.force_flush(timeout_millis=200) is False
    assert processor.stats().errors["UnavailableError"] >= 1
    with SqliteStore(db).snapshot() as snapshot:
        assert len(list(snapshot.scan(0, 1000))) == 2


def test_a_missing_head_is_never_replaced(provider: TracerProvider, make: Make, db: Path):
    """Entries without a head are evidence; no new chain is begun beside them."""
    processor = make()
    chat(provider)
    processor.force_flush()
    processor.shutdown()
    connection = sqlite3.connect(db)
    with connection:
        connection.execute("DELETE FROM heads")
    connection.close()
    chat(provider)
    assert processor.force_flush(timeout_millis=200) is False
    with SqliteStore(db).snapshot() as snapshot:
        assert snapshot.head_rows() == []
        assert len(list(snapshot.scan(0, 1000))) == 2


def test_a_new_chain_is_logged(
    provider: TracerProvider, make: Make, db: Path, caplog: pytest.LogCaptureFixture
):
    """A chain that begins where one was expected is how a replaced store looks from inside."""
    with caplog.at_level(logging.WARNING, "bijotel"):
        processor = make(chain="audit")
        chat(provider)
        processor.force_flush()
    assert "began chain 'audit'" in caplog.text
    assert str(db) in caplog.text


def test_two_chains_share_a_file(provider: TracerProvider, make: Make, db: Path):
    """Each chain has its own genesis and head."""
    from bijotel import verify_chain

    make(chain="a"), make(chain="b")
    chat(provider)
    provider.force_flush()
    report = verify_chain(db, KEY, deep=True)
    assert report.ok
    assert [(chain.name, chain.entries) for chain in report.chains] == [("a", 2), ("b", 2)]


def test_no_span_reaches_a_processor_that_no_sampler_records(db: Path):
    """ALWAYS_OFF spans cannot be sealed; nothing is made for them."""
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    processor = HmacChainSpanProcessor(db, key=KEY)
    provider.add_span_processor(processor)
    chat(provider)
    assert processor.force_flush()
    assert not db.exists()
    provider.shutdown()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"durability": "often"}, "durability: expected 'queued' or 'commit', got 'often'"),
        ({"max_queue_size": 0}, "max_queue_size: expected at least 1, got 0"),
        ({"commit_timeout_millis": 0}, "commit_timeout_millis: expected more than 0, got 0"),
        ({"max_queue_size": "many"}, "max_queue_size: expected at least 1, got 'many'"),
        ({"max_spool_bytes": -1}, "max_spool_bytes: expected at least 0, got -1"),
        ({"max_spool_bytes": "1GB"}, "max_spool_bytes: expected at least 0, got '1GB'"),
        ({"commit_timeout_millis": "20"}, "commit_timeout_millis: expected more than 0, got '20'"),
        ({"select": 3}, "select: expected a function, got 3"),
        ({"spool": ""}, "spool: expected the name of a folder, got ''"),
        ({"chain": 7}, "chain name: expected text, got 7"),
        ({"chain": ""}, "chain name: expected 1 to 200 characters without NUL, got 0"),
        ({"key": b"short"}, "HMAC key: expected exactly 32 bytes, got 5 bytes"),
        ({"key": None}, "no HMAC key: set BIJOTEL_HMAC_SECRET"),
        ({"store": "mysql://x"}, "store: scheme 'mysql' is not known"),
    ],
)
def test_wrong_options_are_refused(make: Make, options: dict[str, object], message: str):
    """What cannot be done as asked is said when it is asked."""
    with pytest.raises(ConfigurationError) as caught:
        make(**options)
    assert message in str(caught.value)


def test_the_key_is_nowhere_in_the_repr(make: Make):
    """A processor in a log line gives nothing away."""
    processor = make(key=KeyRing(KEY))
    assert KEY.hex() not in repr(processor)
    assert repr(processor).startswith("HmacChainSpanProcessor('")


def test_our_io_is_not_traced(provider: TracerProvider, make: Make, db: Path):
    """With sqlite3 instrumented, sealing one span makes no further spans."""
    from opentelemetry.instrumentation.sqlite3 import SQLite3Instrumentor

    ended: list[str] = []

    class Count(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            ended.append(span.name)

    provider.add_span_processor(Count())
    SQLite3Instrumentor().instrument(tracer_provider=provider)
    try:
        processor = make(select=lambda span: True)
        chat(provider)
        processor.force_flush()
    finally:
        SQLite3Instrumentor().uninstrument()
    assert ended == ["chat m"]
    assert processor.stats().sealed == 1


def test_provenance_reaches_the_model_call_inside(provider: TracerProvider, make: Make, db: Path):
    """The span that an instrumentation opens inside gets the scope's sources; others do not."""
    from bijotel import RAGSource, with_rag_provenance

    processor = make()
    tracer = provider.get_tracer("t")

    @with_rag_provenance([RAGSource("doc", 3, retriever="r")])
    def ask() -> None:
        with tracer.start_as_current_span("chat late") as span:
            span.set_attributes(CHAT)
        with tracer.start_as_current_span("chat early", attributes=CHAT):
            pass
        with tracer.start_as_current_span("embed") as span:
            span.set_attribute("gen_ai.operation.name", "embeddings")

    with tracer.start_as_current_span("request"):
        ask()
    processor.force_flush()
    by_name = {span.name: span for span in spans(db)}
    assert by_name["chat late"].inherited["bijotel.rag.source_count"] == 1
    assert "bijotel.rag.sources" not in by_name["chat late"].attributes
    assert by_name["chat early"].attributes["bijotel.rag.source_count"] == 1
    assert by_name["chat early"].inherited == {}
    assert by_name["embed"].inherited == {}
    assert by_name["request"].attributes["bijotel.rag.source_count"] == 1


def test_an_evicted_stamp_is_inherited(db: Path):
    """When the tracer's limit pushed the stamp out, the sealed body still has it."""
    from opentelemetry.sdk.trace import SpanLimits

    from bijotel import RAGSource, rag_provenance

    provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=4), shutdown_on_exit=False)
    processor = HmacChainSpanProcessor(db, key=KEY)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("t")
    with rag_provenance([RAGSource("doc", 0)]):
        with tracer.start_as_current_span("chat", attributes=CHAT) as span:
            for number in range(3):
                span.set_attribute(f"k{number}", number)
            span.set_attribute("gen_ai.operation.name", "chat")
    processor.force_flush()
    (call,) = (span for span in spans(db) if span.name == "chat")
    assert call.dropped.attributes > 0
    assert call.inherited["bijotel.rag.source_count"] == 1
    provider.shutdown()


def test_install_is_idempotent(provider: TracerProvider, db: Path):
    """Five set-ups leave one processor, also after a reload of the module."""
    import importlib

    from bijotel import installation

    first = installation.install(provider, store=db, key=KEY)
    again = [installation.install(provider, store=str(db), key=KEY) for _ in range(4)]
    importlib.reload(installation)
    reloaded = installation.install(provider, store=db, key=KEY)
    assert all(processor is first for processor in [*again, reloaded])
    assert installation.install(provider, store=db, key=KEY, chain="b") is not first
    chat(provider)
    provider.force_flush()
    assert first.stats().taken == 1


def test_install_without_an_sdk_provider_says_so(monkeypatch: pytest.MonkeyPatch, db: Path):
    """The API's own proxy takes no processors."""
    from bijotel import install

    monkeypatch.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
    with pytest.raises(ConfigurationError, match="ProxyTracerProvider takes no span processors"):
        install(store=db, key=KEY)


def test_install_warns_of_a_sampler_that_drops(db: Path, caplog: pytest.LogCaptureFixture):
    """What is never recorded cannot be sealed: said once for a provider."""
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    from bijotel import install

    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(0.5)), shutdown_on_exit=False)
    for _ in range(2):
        install(provider, store=db, key=KEY)
    warnings = [record.getMessage() for record in caplog.records if "sampler" in record.msg]
    assert len(warnings) == 1
    assert "TraceIdRatioBased{0.5}" in warnings[0]
    provider.shutdown()


def test_install_is_silent_for_a_sampler_that_records_all(
    provider: TracerProvider, db: Path, caplog: pytest.LogCaptureFixture
):
    """The SDK's default loses nothing of its own."""
    from bijotel import install

    install(provider, store=db, key=KEY)
    assert not [record for record in caplog.records if "sampler" in record.msg]


def test_the_first_loss_of_a_reason_is_logged(
    provider: TracerProvider, make: Make, db: Path, caplog: pytest.LogCaptureFixture
):
    """Once, so that a queue that overflows does not fill the log too."""
    blocker = sqlite3.connect(db, isolation_level=None)
    blocker.execute("PRAGMA journal_mode = WAL")
    blocker.execute("BEGIN IMMEDIATE")
    processor = make(max_queue_size=5, max_spool_bytes=0)
    for number in range(50):
        chat(provider, f"chat {number}")
    assert processor.stats().dropped > 10
    blocker.close()
    assert processor.force_flush()
    told = [record.message for record in caplog.records if "is lost" in record.message]
    assert told == ["bijotel: a span is lost (spool-full); more are counted, not logged"]


def test_another_applications_database_is_said_at_once(
    make: Make, db: Path, caplog: pytest.LogCaptureFixture
):
    """Nobody has to wait for the first span to learn that nothing will be sealed."""
    with sqlite3.connect(db) as other:
        other.execute("PRAGMA application_id = 7")
        other.execute("CREATE TABLE notes (text)")
    other.close()
    make()
    (record,) = caplog.records
    assert record.message.startswith("bijotel: nothing is sealed as long as this lasts: ")
    assert str(db) in record.message
