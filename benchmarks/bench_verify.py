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
from pathlib import Path

from benchmarks.chains import KEY, build_chain
from benchmarks.table import Row, print_rows
from bijotel.verify import verify_chain

ENTRIES = 150_000
SHORT = 15_000
ATTEMPTS = 5

# Not ru_maxrss, in which a child starts with the size of the parent that it was forked from.
_PEAK = "import re; print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])"
_VERIFY_AND_PEAK = (
    "import sys; from bijotel.verify import verify_chain; "
    f"assert verify_chain(sys.argv[1], bytes(range(32))).ok; {_PEAK}"
)


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
        long = build_chain(Path(name) / "long.db", ENTRIES)
        short = build_chain(Path(name) / "short.db", SHORT)
        return [*_speed(long), _memory(short, long)]


def main() -> None:
    """Measure and print."""
    print_rows(rows())


if __name__ == "__main__":
    main()
