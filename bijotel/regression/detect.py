"""Both layers over one series: the newest values against the earlier ones, and the level.

Rules kept: a value that is missing or not finite is no data point; too few data points are said
to be too few and never pass for "no anomaly"; nothing in a result is NaN or infinite.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from statistics import median
from typing import Any, Final, Literal, TypeAlias

from bijotel.errors import ConfigurationError
from bijotel.regression.model import (
    FEWEST_EARLIER,
    FEWEST_FOR_SHIFTS,
    FEWEST_IN_SLOT,
    LARGEST,
    LARGEST_WINDOW,
    Detection,
    Judgement,
    Point,
    Shift,
    Shortage,
)
from bijotel.regression.outliers import Baseline
from bijotel.regression.shifts import find_shifts

Window: TypeAlias = "int | Literal['all']"

DEFAULT_WINDOW: Final = 500


def detect(
    values: Iterable[Any],
    *,
    window: Window = DEFAULT_WINDOW,
    season: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Detection:
    """Judge the newest value of a series, and look for shifts of its level.

    Args:
        values: Numbers, oldest first. None, NaN and infinities are counted as skipped.
        window: How many data points are judged, the newest ones; at least 20, or ``"all"``.
        season: For each value its slot of the season, such as the hour of the day. The median of
            its slot is then subtracted from each value; slots with too few values are skipped.
        seed: Chooses the random orders of the test for shifts.

    Returns:
        Outliers and shifts by their place in ``values``. Where the order of the values does not
        matter, together at most 1 of 100 series of 500 alarm, whatever the distribution is.

    Raises:
        ConfigurationError: a value is no number, the window is too small, or there is not one
            slot for each value.

    Added in 0.1.
    """
    check_window(window)
    numbers = list(values)
    slots: Sequence[Hashable] = [None] * len(numbers) if season is None else season
    if len(slots) != len(numbers):
        raise ConfigurationError(
            f"season: expected one slot for each value, got {len(slots)} for {len(numbers)} values"
        )
    points = [
        Point(place, number, slot)
        for place, (value, slot) in enumerate(zip(numbers, slots, strict=True))
        if (number := _number(value, place)) is not None
    ]
    skipped = len(numbers) - len(points)
    return judge(points if window == "all" else points[-window:], skipped=skipped, seed=seed)


def check_window(window: Any) -> None:
    """Refuse a window in which shifts cannot be looked for.

    Raises:
        ConfigurationError: neither ``"all"`` nor an integer from 20 to ``LARGEST_WINDOW``.
    """
    if window == "all" or (type(window) is int and FEWEST_FOR_SHIFTS <= window <= LARGEST_WINDOW):
        return
    raise ConfigurationError(
        f"window: expected 'all' or a number from {FEWEST_FOR_SHIFTS} to {LARGEST_WINDOW}, "
        f"got {window!r:.40}"
    )


def judge(
    points: Sequence[Point],
    *,
    wanted: Collection[int] | None = None,
    skipped: int = 0,
    unjudged: int = 0,
    outliers: bool = True,
    seed: int = 0,
) -> Detection:
    """Run both layers over data points that were already chosen.

    Args:
        points: Oldest first, all of the window and nothing else.
        wanted: ``seq`` of those that are judged, each by the values before it; None: the last.
        skipped: How many entries had no data point.
        unjudged: How many that are wanted the window is too small for.
        outliers: Whether single values mean anything; those of a rate (0 and 1) do not.
        seed: Chooses the random orders of the test for shifts.
    """
    kept = _without_season(points)
    if wanted is None:
        wanted = {point.seq for point in points[-1:]}
    judged = tuple(_judgements(kept, wanted)) if outliers else ()
    enough = len(kept) >= FEWEST_FOR_SHIFTS
    return Detection(
        used=len(kept),
        skipped=skipped + len(points) - len(kept),
        judged=judged,
        shifts=_shifts(kept, seed) if enough else (),
        outlier_shortage=None
        if judged or not outliers or (points and not wanted)
        else _outlier_shortage(points, kept),
        shift_shortage=None if enough else Shortage(len(kept), FEWEST_FOR_SHIFTS),
        unjudged=unjudged if outliers else 0,
    )


def _shifts(kept: Sequence[tuple[Point, Point]], seed: int) -> tuple[Shift, ...]:
    """Find the shifts; their levels are those of the values at a usual place of the season."""
    shifts = find_shifts([residual for _, residual in kept], seed)
    if all(point.slot is None for point, _ in kept):
        return shifts
    usual = median(point.value for point, _ in kept)
    return tuple(
        replace(shift, before=shift.before + usual, after=shift.after + usual) for shift in shifts
    )


def _judgements(
    kept: Sequence[tuple[Point, Point]], wanted: Collection[int]
) -> Iterator[Judgement]:
    places = [place for place, (point, _) in enumerate(kept) if point.seq in wanted]
    first = max(places[0], FEWEST_EARLIER) if places else len(kept)
    baseline = Baseline(residual.value for _, residual in kept[:first])
    for point, residual in kept[first:]:
        if point.seq in wanted:
            judged = baseline.judge(point.seq, residual.value)
            usual = point.value - residual.value  # in its slot of the season
            low, high = judged.fences
            yield replace(judged, value=point.value, fences=(low + usual, high + usual))
        baseline.add(residual.value)


def _without_season(points: Sequence[Point]) -> list[tuple[Point, Point]]:
    """Pair each point with what its season leaves of it; drop those of slots with few others."""
    slots: defaultdict[Hashable, list[float]] = defaultdict(list)
    for point in points:
        if point.slot is not None:
            slots[point.slot].append(point.value)
    medians: dict[Hashable, float] = {
        slot: median(values) for slot, values in slots.items() if len(values) > FEWEST_IN_SLOT
    }
    medians[None] = 0.0
    return [
        (point, point._replace(value=point.value - medians[point.slot]))
        for point in points
        if point.slot in medians
    ]


def _outlier_shortage(points: Sequence[Point], kept: Sequence[tuple[Point, Point]]) -> Shortage:
    newest = points[-1] if points else None
    if newest is None or (kept and kept[-1][0].seq == newest.seq):
        return Shortage(max(0, len(kept) - 1), FEWEST_EARLIER)
    same = sum(point.slot == newest.slot for point in points)
    return Shortage(same - 1, FEWEST_IN_SLOT)


def _number(value: Any, place: int) -> float | None:
    """Give a value as a finite float, or None when it is missing.

    Raises:
        ConfigurationError: it is of another type.
    """
    if value is None:
        return None
    if not isinstance(value, (Real, Decimal)):
        raise ConfigurationError(
            f"values: item {place}: expected a number or None, got {type(value).__name__}"
        )
    try:
        number = float(value)
    except (OverflowError, ValueError):  # beyond a float, or a signalling NaN
        return None
    return number if abs(number) <= LARGEST else None
