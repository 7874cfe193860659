"""What the application pays for a span, and how fast spans are sealed behind it.

The floor is a bare SQLite insert of the same octets with their SHA-256, on a persistent
connection, with the same durability.
"""

from __future__ import annotations

import hashlib
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.spans import realistic_spans
from benchmarks.table import Row, percentile, print_rows
from bijotel import HmacChainSpanProcessor
from bijotel.model import Dropped
from bijotel.spans.encode import encode_record
from bijotel.spans.read import read_span

KEY = bytes(range(32))
BURST = 4000
STEADY = 1000
SUSTAINED = 20_000
COMMITS = 300


def _on_end_times(processor: HmacChainSpanProcessor, spans: list, pause: float) -> list[float]:
    times = []
    for span in spans:
        if pause:
            time.sleep(pause)
        started = time.perf_counter_ns()
        processor.on_end(span)
        times.append((time.perf_counter_ns() - started) / 1000)
    return times


def _latency_row(name: str, times: list[float], median_target: float, p99_target: float) -> Row:
    median, p99 = statistics.median(times), percentile(times, 0.99)
    return Row(
        name,
        f"{median:.1f} us, p99 {p99:.1f}",
        "",
        "",
        f"<= {median_target:g} us, p99 <= {p99_target:g}",
        median <= median_target and p99 <= p99_target,
    )


def _queued_latency(folder: Path) -> list[Row]:
    processor = HmacChainSpanProcessor(folder / "queued.db", key=KEY, max_queue_size=100_000)
    _on_end_times(processor, realistic_spans(100), 0)
    processor.force_flush()
    burst = _on_end_times(processor, realistic_spans(BURST), 0)
    processor.force_flush()
    steady = _on_end_times(processor, realistic_spans(STEADY), 0.001)
    processor.shutdown()
    return [
        _latency_row("on_end, queued, in a burst", burst, 8, 80),
        _latency_row("on_end, queued, one a millisecond", steady, 35, 80),
    ]


def _bodies(count: int) -> list[bytes]:
    return [
        encode_record(read_span(span, span.attributes, Dropped())).body
        for span in realistic_spans(count)
    ]


def _floor_connection(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE log (seq INTEGER, hash BLOB, body BLOB)")
    return connection


def _floor_insert(connection: sqlite3.Connection, bodies: list[bytes]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(
        "INSERT INTO log VALUES (?, ?, ?)",
        [(number, hashlib.sha256(body).digest(), body) for number, body in enumerate(bodies)],
    )
    connection.execute("COMMIT")


def _commit_latency(folder: Path) -> Row:
    """Ours and the floor alternate, so that a noisy neighbour hits both."""
    processor = HmacChainSpanProcessor(
        folder / "commit.db", key=KEY, durability="commit", commit_timeout_millis=5000
    )
    connection = _floor_connection(folder / "commit-floor.db")
    ours, floor = [], []
    for span, body in zip(realistic_spans(COMMITS), _bodies(COMMITS), strict=True):
        ours += _on_end_times(processor, [span], 0)
        started = time.perf_counter_ns()
        _floor_insert(connection, [body])
        floor.append((time.perf_counter_ns() - started) / 1000)
    connection.close()
    processor.shutdown()
    median, floor_median = statistics.median(ours), statistics.median(floor)
    ratio = median / floor_median
    return Row(
        "on_end, commit mode",
        f"{median:.0f} us, p99 {percentile(ours, 0.99):.0f}",
        f"{floor_median:.0f} us, p99 {percentile(floor, 0.99):.0f}",
        f"{ratio:.2f} x",
        "<= 2 x",
        ratio <= 2,
    )


def _sustained(folder: Path) -> Row:
    spans, bodies = realistic_spans(SUSTAINED), _bodies(SUSTAINED)
    ours, floor = [], []
    for attempt in range(3):
        processor = HmacChainSpanProcessor(
            folder / f"sustained{attempt}.db", key=KEY, max_queue_size=SUSTAINED
        )
        started = time.perf_counter()
        for span in spans:
            processor.on_end(span)
        assert processor.force_flush(120_000)
        ours.append(SUSTAINED / (time.perf_counter() - started))
        assert processor.stats().sealed == SUSTAINED
        processor.shutdown()
        connection = _floor_connection(folder / f"floor{attempt}.db")
        started = time.perf_counter()
        for first in range(0, SUSTAINED, 100):
            _floor_insert(connection, bodies[first : first + 100])
        floor.append(SUSTAINED / (time.perf_counter() - started))
        connection.close()
    rate, floor_rate = statistics.median(ours), statistics.median(floor)
    return Row(
        "sealing, queued, sustained",
        f"{rate:,.0f} spans/s",
        f"{floor_rate:,.0f} rows/s",
        f"{rate / floor_rate:.2f} x",
        ">= 0.33 x and >= 6,000 spans/s",
        rate >= floor_rate / 3 and rate >= 6000,
    )


def rows() -> list[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="bijotel-bench-") as name:
        folder = Path(name)
        return [*_queued_latency(folder), _commit_latency(folder), _sustained(folder)]


if __name__ == "__main__":
    print_rows(rows())
