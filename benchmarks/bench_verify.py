"""How fast a chain is verified, by one process and by two, and how much memory that takes.

The floor selects all columns of the same rows and hashes each body with SHA-256, in one process
on a persistent connection: less than that no verifier can do.
"""

from __future__ import annotations

import hashlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from benchmarks.spans import realistic_spans
from benchmarks.table import Row, print_rows
from bijotel import seal
from bijotel.keys import HmacKey
from bijotel.model import ChainHead, Draft, Dropped
from bijotel.seal import Batch
from bijotel.spans.encode import encode_record
from bijotel.spans.read import read_span
from bijotel.stores.sqlite import SqliteStore
from bijotel.verify import verify_chain

KEY = HmacKey(bytes(range(32)))
ENTRIES = 150_000
SHORT = 15_000
ATTEMPTS = 5
SEALED_AT = 1_700_000_000_000_000_000

# Not ru_maxrss, in which a child starts with the size of the parent that it was forked from.
_PEAK = "import re; print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])"
_VERIFY_AND_PEAK = (
    "import sys; from bijotel.verify import verify_chain; "
    f"assert verify_chain(sys.argv[1], bytes(range(32))).ok; {_PEAK}"
)


def _drafts() -> Iterator[Draft]:
    """Realistic spans without end: one encoded body, again and again with other ids."""
    (span,) = realistic_spans(1)
    template = encode_record(read_span(span, dict(span.attributes or {}), Dropped()))
    trace_id, span_id = template.trace_id.hex().encode(), template.span_id.hex().encode()
    for number in range(1, 2**32):
        new_trace_id, new_span_id = number.to_bytes(16, "big"), number.to_bytes(8, "big")
        body = template.body.replace(trace_id, new_trace_id.hex().encode())
        body = body.replace(span_id, new_span_id.hex().encode())
        yield template._replace(
            trace_id=new_trace_id, span_id=new_span_id, body=body, body_hash=seal.body_hash(body)
        )


def _build(path: Path, count: int) -> Path:
    """Seal a chain of so many entries."""
    store, drafts = SqliteStore(path), _drafts()
    for first in range(0, count, 1000):
        batch = list(islice(drafts, min(1000, count - first) - (first == 0)))

        def make(head: ChainHead | None, batch: list[Draft] = batch) -> Batch:
            if head is None:
                return seal.open_chain("default", bytes(range(16)), KEY, batch, SEALED_AT)
            return seal.seal_entries(head, batch, KEY, SEALED_AT)

        store.append("default", make)
    store.release()
    return path


def _floor(path: Path) -> float:
    connection = sqlite3.connect(path)
    started = time.perf_counter()
    count = 0
    for row in connection.execute("SELECT * FROM entries"):
        hashlib.sha256(row[16]).digest()
        count += 1
    seconds = time.perf_counter() - started
    connection.close()
    return count / seconds


def _ours(path: Path, workers: int) -> float:
    started = time.perf_counter()
    report = verify_chain(path, KEY, workers=workers)
    seconds = time.perf_counter() - started
    assert report.ok
    return report.checked["entries"] / seconds


def _speed(path: Path) -> list[Row]:
    """All three alternate, so that a noisy neighbour hits each."""
    runs = [(_floor(path), _ours(path, 1), _ours(path, 2)) for _ in range(ATTEMPTS)]
    floor, one, two = (statistics.median(column) for column in zip(*runs, strict=True))
    return [
        Row(
            f"verify {ENTRIES:,} entries, one process",
            f"{one:,.0f} entries/s",
            f"{floor:,.0f} rows/s",
            f"{one / floor:.2f} x",
            ">= 0.60 x",
            one >= 0.6 * floor,
        ),
        Row(
            f"verify {ENTRIES:,} entries, two workers",
            f"{two:,.0f} entries/s",
            f"{one:,.0f} entries/s",
            f"{two / one:.2f} x",
            ">= 1.5 x one process",
            two >= 1.5 * one,
        ),
    ]


def _peak_mib(code: str, *arguments: str) -> float:
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(result.stdout) / 1024


def _memory(short: Path, long: Path) -> Row:
    bare = _peak_mib(_PEAK)
    small, large = (_peak_mib(_VERIFY_AND_PEAK, str(path)) - bare for path in (short, long))
    return Row(
        f"memory for {ENTRIES:,} entries, beyond the interpreter",
        f"{large:.0f} MiB",
        f"{small:.0f} MiB for {SHORT:,}",
        f"{large / small:.2f} x",
        "<= 64 MiB, flat",
        large <= 64 and large <= small + 8,
    )


def rows() -> list[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="bijotel-bench-") as name:
        long = _build(Path(name) / "long.db", ENTRIES)
        short = _build(Path(name) / "short.db", SHORT)
        return [*_speed(long), _memory(short, long)]


def main() -> None:
    """Measure and print."""
    print_rows(rows())


if __name__ == "__main__":
    main()
