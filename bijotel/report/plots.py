"""Series with what was found in them -> lines of a drawing, and the same in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bijotel.dimensions import Series
from bijotel.regression import Detection
from bijotel.report.model import Plot, Style

WIDTH: Final = 460
HEIGHT: Final = 90
_STYLES: Final[dict[str, Style]] = {
    "ANOMALY": "bad",
    "NO_ANOMALY": "good",
    "INSUFFICIENT_DATA": "doubtful",
}
_WORDS: Final = {
    "ANOMALY": "anomaly",
    "NO_ANOMALY": "no anomaly",
    "INSUFFICIENT_DATA": "too few data",
}


def draw_plot(series: Series, found: Detection) -> Plot | None:
    """Draw a series over the order of its entries; None when it has no value."""
    values = series.values
    if not values:
        return None
    low, high = min(values), max(values)
    numbers = [kept.point.seq for kept in series.kept]
    places = {seq: _x(place, len(values)) for place, seq in enumerate(numbers)}
    heights = {seq: _y(value, low, high) for seq, value in zip(numbers, values, strict=True)}
    return Plot(
        name=series.dimension.name,
        unit=series.dimension.unit,
        verdict=_WORDS[found.verdict],
        style=_STYLES[found.verdict],
        counts=f"{found.used} used, {found.skipped} skipped",
        line=" ".join(f"{places[seq]},{heights[seq]}" for seq in numbers),
        outliers=tuple(
            (places[each.seq], heights[each.seq], f"entry {each.seq}: {each.value:.6g}")
            for each in found.outliers
            if each.seq in places
        ),
        shifts=tuple(
            (
                places[each.first_seq],
                f"entry {each.first_seq}: {each.before:.6g} to {each.after:.6g}",
            )
            for each in found.shifts
            if each.first_seq in places
        ),
        low=f"{low:.6g}",
        high=f"{high:.6g}",
        words=tuple(_say(found, values)),
    )


def _x(place: int, number: int) -> float:
    return round(WIDTH * place / max(1, number - 1), 1) if number > 1 else WIDTH / 2


def _y(value: float, low: float, high: float) -> float:
    share = 0.5 if high == low else (value - low) / (high - low)
    return round(HEIGHT * (1 - share), 1)


def _say(found: Detection, values: Sequence[float]) -> Iterator[str]:
    """Say in words what the drawing shows."""
    yield f"newest value {values[-1]:.6g}, from {min(values):.6g} to {max(values):.6g}"
    for outlier in found.outliers:
        yield f"outlier: entry {outlier.seq} is {outlier.value:.6g}"
    for shift in found.shifts:
        yield (
            f"the level moved with entry {shift.first_seq}: {shift.before:.6g} to "
            f"{shift.after:.6g} (p = {shift.p_value:g})"
        )
    if found.needed is not None:
        yield f"{found.needed} data points are needed to tell, {found.used} are there"
