"""What the host notices of a store that is down: nothing."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from bijotel import HmacChainSpanProcessor, RAGSource, rag_provenance
from bijotel.canonical import loads
from bijotel.stores.sqlite import BUSY_SECONDS
from tests.processor.conftest import CHAT, entries, spans
from tests.processor.test_processor import chat

Make = Callable[..., HmacChainSpanProcessor]


@contextmanager
def locked(db: Path) -> Iterator[None]:
    """Hold the store's write lock, as a stuck writer does."""
    blocker = sqlite3.connect(db, isolation_level=None, check_same_thread=False)
    blocker.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        blocker.close()


def ended(count: int) -> list[ReadableSpan]:
    """Spans of 10 KB that ended before any processor was there."""
    provider = TracerProvider(shutdown_on_exit=False)
    tracer = provider.get_tracer("t")
    found = []
    for number in range(count):
        span = tracer.start_span(f"chat {number}", attributes={**CHAT, "prompt": "x" * 10_000})
        span.end()
        found.append(span._readable_span())
    return found


def test_on_end_never_waits_while_the_store_is_down(make: Make, db: Path):
    """Spilling to the disk included; how many microseconds it takes is measured elsewhere."""
    processor = make(max_queue_size=1000)
    early, *late = ended(3001)
    processor.on_end(early)
    assert processor.force_flush()
    took = []
    with locked(db):
        for number, span in enumerate(late):
            started = time.perf_counter()
            processor.on_end(span)
            took.append(time.perf_counter() - started)
            if number % 100 == 99:
                time.sleep(0.05)
    # A call that waited for the store would take as long as one attempt on it.
    assert sorted(took)[int(len(took) * 0.99)] < BUSY_SECONDS / 4
    stats = processor.stats()
    assert stats.spooled > 0
    assert processor.force_flush()
    assert len(spans(db)) + stats.dropped == 3001


@pytest.mark.parametrize("durability", ["queued", "commit"])
def test_an_event_loop_is_not_held_up(provider: TracerProvider, make: Make, db: Path, durability: str):  # fmt: skip
    """Requests that end spans while the store is locked: the loop lags under 50 ms.

    In ``commit`` mode the first one waits for its 20 ms, and no further one does.
    """
    processor = make(durability=durability, commit_timeout_millis=20)
    chat(provider, "chat first")
    assert processor.force_flush()
    lags: list[float] = []

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            lags.append(time.perf_counter() - before - 0.005)

    async def request(number: int) -> None:
        await asyncio.sleep(number % 10 / 100)
        chat(provider, f"chat {number}")

    async def serve() -> None:
        watching = asyncio.create_task(watch())
        for _ in range(10):
            await asyncio.gather(*(request(number) for number in range(50)))
        watching.cancel()

    with locked(db):
        asyncio.run(serve())
        assert processor.stats().queued == 500
    assert sorted(lags)[int(len(lags) * 0.99)] < 0.05
    assert processor.stats().stalled is (durability == "commit")
    assert processor.force_flush()
    assert len(spans(db)) == 501


def test_a_flush_in_a_worker_thread_leaves_the_loop_alone(
    provider: TracerProvider, make: Make, db: Path
):
    """``asyncio.to_thread(force_flush)`` waits without holding the loop, and says False in time."""
    processor = make()
    chat(provider)
    assert processor.force_flush()

    async def flush() -> tuple[bool, int]:
        chat(provider, "chat later")
        flushing = asyncio.create_task(asyncio.to_thread(processor.force_flush, 300))
        turns = 0
        while not flushing.done():
            await asyncio.sleep(0.005)
            turns += 1
        return await flushing, turns

    with locked(db):
        started = time.monotonic()
        flushed, turns = asyncio.run(flush())
        assert 0.3 <= time.monotonic() - started < 1.5
    assert flushed is False
    assert turns > 10


NEVER_ENDED = """
import sys
import threading
from opentelemetry.sdk.trace import TracerProvider
from bijotel import RAGSource, install, rag_provenance
provider = TracerProvider()
install(provider, store=sys.argv[1], key=bytes(range(32)))
tracer = provider.get_tracer("t")
def start(count):
    for number in range(count):
        with rag_provenance([RAGSource("d", 0)]):
            tracer.start_span("chat", attributes={"gen_ai.operation.name": "chat",
                                                  "gen_ai.input.messages": "x" * 10_000 + str(number)})
start(2000)
# Not ru_maxrss, in which a child starts with the size of its parent.
def peak():
    with open("/proc/self/status") as status:
        return int(status.read().partition("VmHWM:")[2].split()[0])
before = peak()
start(100_000)
print(peak() - before)
"""


@pytest.mark.slow
def test_a_hundred_thousand_spans_that_never_end(db: Path):
    """Nothing is kept of a span that was started and dropped: memory stays flat."""
    command = [sys.executable, "-c", NEVER_ENDED, str(db)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert int(done.stdout) < 50 * 1024  # KiB


def test_what_is_remembered_of_a_dropped_span_goes_with_it(provider: TracerProvider, make: Make):
    """The scope's provenance is remembered for as long as the span is alive."""
    processor = make()
    with rag_provenance([RAGSource("d", 0)]):
        running = [provider.get_tracer("t").start_span("chat") for _ in range(50)]
    assert len(processor._memory._entries) >= 50
    running.clear()
    gc.collect()
    assert len(processor._memory._entries) <= 1


def test_a_signals_handler_may_end_spans(make: Make, db: Path):
    """A handler that interrupts ``on_end`` in its own thread does not wait for itself."""
    processor = make()
    here, in_handler = ended(3000), ended(300)
    taken = iter(in_handler)

    def handle(*_: object) -> None:
        if (span := next(taken, None)) is not None:
            processor.on_end(span)
            signal.setitimer(signal.ITIMER_REAL, 0.0003)

    previous = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0003)
    try:
        for span in here:
            processor.on_end(span)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert processor.force_flush()
    interruptions = len(in_handler) - sum(1 for _ in taken)
    assert interruptions > 5
    assert len(spans(db)) == 3000 + interruptions


def test_a_signals_handler_starts_no_second_thread(make: Make, db: Path, monkeypatch):
    """It comes just while the first span's end starts the thread, and starts it itself."""
    processor = make()
    first, within = ended(2)
    ledger = processor._writer._ledger
    started, open_ledger = [], ledger.open

    def interrupted() -> None:
        open_ledger()
        monkeypatch.setattr(ledger, "open", open_ledger)
        processor.on_end(within)

    run = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda each: (started.append(each), run(each)))
    monkeypatch.setattr(ledger, "open", interrupted)
    processor.on_end(first)
    assert started == [processor._writer._thread]
    assert processor.force_flush()
    assert len(spans(db)) == 2


def test_new_spans_go_behind_the_spool_while_it_is_emptied(
    provider: TracerProvider, make: Make, db: Path
):
    """A queue that fills up during recovery moves to the disk; nothing is dropped or reordered."""
    first = make(max_queue_size=20_000, select=lambda span: not span.name.startswith("new"))
    chat(provider, "chat first")
    assert first.force_flush()
    with locked(db):
        for number in range(4000):
            chat(provider, f"old {number}")
        assert first._writer.stop(0.1) is False
        deadline = time.monotonic() + 30
        # The thread goes on where the stop did not wait for it; asked again when it has ended, the
        # stop lets go of the files, which only then are another's to adopt.
        while first._writer._ledger._outbox is not None and time.monotonic() < deadline:
            time.sleep(0.01)
            first._writer.stop(0)
        assert first._writer._ledger._outbox is None
        assert first.stats().spooled == 4000
    again = make(max_queue_size=20, select=lambda span: span.name.startswith("new"))
    spooled = 0
    for number in range(200):
        while len(again._writer._queue) > 15:
            time.sleep(0.0005)
        chat(provider, f"new {number}")
        spooled = max(spooled, again.stats().spooled)
    assert again.force_flush()
    assert (again.stats().dropped, again.stats().recovered) == (0, 4000)
    assert spooled > 0
    names = [span.name for span in spans(db) if not span.name.startswith("chat")]
    assert names[:4000] == [f"old {number}" for number in range(4000)]
    assert [name for name in names if name.startswith("new")] == [f"new {n}" for n in range(200)]


def test_a_spool_that_somebody_removes_is_a_gap(
    provider: TracerProvider, make: Make, db: Path, caplog: pytest.LogCaptureFixture
):
    """What was in it is counted, but for what was read already, and sealing goes on."""
    processor = make(max_queue_size=400)
    chat(provider, "chat first")
    assert processor.force_flush()
    with locked(db):
        for number in range(1000):
            chat(provider, f"chat {number}")
            while len(processor._writer._queue) > 300:
                time.sleep(0.01)
        assert processor.stats().spooled > 300
        for path in Path(f"{db}-spool").glob("*.spool"):
            path.unlink()
    chat(provider, "chat last")
    assert processor.force_flush()
    gaps = [loads(entry.body) for entry in entries(db) if entry.kind == "gap"]
    assert [gap["reason"] for gap in gaps] == ["spool-damaged"]
    names = [span.name for span in spans(db)]
    assert names[-1] == "chat last"
    assert len(names) + gaps[0]["count"] == 1002
    assert processor.stats().spooled == 0


def test_a_disk_without_room_for_the_spool(provider: TracerProvider, make: Make, db: Path):
    """Neither store nor spool can be written: what does not fit the queue is a gap, with a count."""
    processor = make(max_queue_size=50)
    chat(provider, "chat first")
    assert processor.force_flush()
    folder = Path(f"{db}-spool")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.touch()  # nothing can be made in it
    with locked(db):
        for number in range(200):
            chat(provider, f"chat {number}")
            time.sleep(0.002)
    assert processor.force_flush()
    stats = processor.stats()
    assert stats.errors.keys() <= {"NotADirectoryError", "FileExistsError"}
    assert stats.dropped > 0
    gaps = [loads(entry.body) for entry in entries(db) if entry.kind == "gap"]
    assert sum(gap["count"] for gap in gaps) == stats.dropped
    assert {gap["reason"] for gap in gaps} == {"queue-full"}
    assert len(spans(db)) + stats.dropped == 201


@pytest.mark.fork
def test_a_stop_says_what_is_left(
    provider: TracerProvider, make: Make, db: Path, caplog: pytest.LogCaptureFixture
):
    """With the store down for good the exit is bounded, and asked again it does not wait."""
    processor = make()
    chat(provider, "chat first")
    assert processor.force_flush()
    with locked(db), caplog.at_level(logging.ERROR, "bijotel"):
        chat(provider, "chat left")
        started = time.monotonic()
        processor.shutdown()
        assert time.monotonic() - started < 3
        started = time.monotonic()
        processor.shutdown()
        processor.shutdown()
        assert time.monotonic() - started < 0.2
        chat(provider, "chat after the end")
        assert processor.stats().queued == 0
    assert caplog.text.count("not sealed in time") == 1
    assert "not sealed in time: 1 spans in the spool, 0 in memory" in caplog.text
    assert processor.force_flush()
    assert [span.name for span in spans(db)] == ["chat first", "chat left", "chat after the end"]
    assert os.listdir(f"{db}-spool") != []
    processor.shutdown()
    assert os.listdir(f"{db}-spool") == []
