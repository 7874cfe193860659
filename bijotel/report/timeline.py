"""When calls began -> bars of a drawing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bijotel.report.model import PROOF_STYLES, Bar, Proof, Row, Style, Timeline
from bijotel.report.text import counted, moment

WIDTH: Final = 1000
HEIGHT: Final = 140
BARS: Final = 80
_GAP: Final = 1.5
_ORDER: Final[tuple[Proof, ...]] = ("verified", "not verified", "false")


def draw_timeline(rows: Sequence[Row], gaps: Sequence[tuple[int, str]]) -> Timeline | None:
    """Draw how many calls began when.

    Args:
        rows: The decisions; those without a time are left out.
        gaps: The time and the words of each gap.

    Returns:
        The drawing, None when no decision has a time.
    """
    timed = [row for row in rows if row.start_unix_nano]
    if not timed:
        return None
    first = min(row.start_unix_nano for row in timed)
    last = max(row.start_unix_nano for row in timed)
    step = -(-(last - first + 1) // BARS)
    bins: list[dict[Proof, int]] = [dict.fromkeys(_ORDER, 0) for _ in range(BARS)]
    for row in timed:
        bins[(row.start_unix_nano - first) // step][row.proof] += 1
    highest = max(sum(each.values()) for each in bins)
    bars = tuple(
        _bar(place, counts, highest, moment(first + place * step))
        for place, counts in enumerate(bins)
        if any(counts.values())
    )
    marks = tuple(
        (round(WIDTH * (at - first) / (step * BARS), 1), words)
        for at, words in gaps
        if first <= at < first + step * BARS
    )
    summary = f"{counted(len(timed), 'sealed call')} from {moment(first)} to {moment(last)}"
    return Timeline(bars, marks, moment(first), moment(last), highest, summary)


def _bar(place: int, counts: dict[Proof, int], highest: int, begun: str) -> Bar:
    width = WIDTH / BARS
    parts: list[tuple[float, float, Style]] = []
    top = float(HEIGHT)
    for proof in _ORDER:
        if counts[proof]:
            height = HEIGHT * counts[proof] / highest
            top -= height
            parts.append((round(top, 2), round(height, 2), PROOF_STYLES[proof]))
    words = ", ".join(f"{counts[proof]} {proof}" for proof in _ORDER if counts[proof])
    x, inner = round(place * width, 2), round(width - _GAP, 2)
    return Bar(x, inner, tuple(parts), f"from {begun}: {words}")
