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

from benchmarks.sealing import KEY, drafts, latency_row, on_end_times, sealing_seconds
from benchmarks.spans import realistic_spans
from benchmarks.table import Row, percentile, print_rows
from bijotel import HmacChainSpanProcessor

BURST = 4000
STEADY = 1000
SUSTAINED = 20_000
COMMITS = 300


def _queued_latency(folder: Path) -> list[Row]:
    processor = HmacChainSpanProcessor(folder / "queued.db", key=KEY, max_queue_size=100_000)
    on_end_times(processor, realistic_spans(100))
    processor.force_flush()
    burst = on_end_times(processor, realistic_spans(BURST))
    processor.force_flush()
    steady = on_end_times(processor, realistic_spans(STEADY), 0.001)
    processor.shutdown()
    return [
        latency_row("on_end, queued, in a burst", burst, 8, 80),
        latency_row("on_end, queued, one a millisecond", steady, 35, 80),
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
    for span, draft in zip(realistic_spans(COMMITS), drafts(COMMITS), strict=True):
        ours += on_end_times(processor, [span])
        started = time.perf_counter_ns()
        _floor_insert(connection, [draft.body])
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
    spans, bodies = realistic_spans(SUSTAINED), [draft.body for draft in drafts(SUSTAINED)]
    ours, floor = [], []
    for attempt in range(3):
        ours.append(SUSTAINED / sealing_seconds(folder / f"sustained{attempt}.db", spans))
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
