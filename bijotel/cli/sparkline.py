"""A series as one line of bars. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final

WIDTH: Final = 40
"""Bars at most; each then stands for the mean of several values."""
BARS: Final = "▁▂▃▄▅▆▇█"
ASCII_BARS: Final = "_.-~=+*#"


def sparkline(values: Sequence[float], *, bars: str = BARS) -> str:
    """Draw finite values from the smallest to the largest; equal ones lie in the middle."""
    count = min(WIDTH, len(values))
    borders = [len(values) * part // count for part in range(count + 1)] if count else []
    means = [fmean(values[first:end]) for first, end in pairwise(borders)]
    if not means:
        return ""
    low, high = min(means), max(means)
    if low == high:
        return bars[len(bars) // 2 - 1] * count
    return "".join(
        bars[min(len(bars) - 1, int((mean - low) / (high - low) * len(bars)))] for mean in means
    )


def bars_for(encoding: str | None) -> str:
    """Choose the bars that a code page can print."""
    try:
        BARS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII_BARS
    return BARS
