"""The rows that benchmarks give, and how they are printed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Row(NamedTuple):
    """One figure."""

    name: str
    ours: str
    """The measured value with its unit."""
    floor: str
    """What the machine itself allows, measured in the same run; empty where there is none."""
    ratio: str
    target: str
    met: bool


def percentile(values: list[float], share: float) -> float:
    """The value below which a share of all values lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def median_seconds(work: Callable[[], object], repeat: int = 5) -> float:
    """The median time of several runs."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def print_rows(rows: Iterable[Row]) -> None:
    """Print a table; a missed target is marked, and fails nothing."""
    table = [
        ("figure", "ours", "floor", "ratio", "target", ""),
        *((*row[:5], "met" if row.met else "MISSED") for row in rows),
    ]
    widths = [max(len(line[column]) for line in table) for column in range(6)]
    for line in table:
        print(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        )
