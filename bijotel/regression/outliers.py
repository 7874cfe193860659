"""Is a value far from the values before it? Pure.

Mean and deviation are given as figures, but one old spike inflates them so that they hide a new
one. What decides is the distance from the median, in units of a spread that a quarter of wild
values cannot move; and a value is an outlier only where such distances are rare, so that heavy
tails do not ring all day.

Source: Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993), for the median and MAD;
Tukey, Exploratory Data Analysis (1977), for the fences.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import Final

from bijotel.regression.model import Judgement

FAR: Final = 5
"""Spreads from the median beyond which a value is far."""
FLOOR: Final = 0.01
"""The least spread, as a share of the median's size."""
ONE_IN: Final = 250
"""Of so many earlier values one may be as far as an outlier; one always may."""

# What makes either measure estimate the deviation of a normal distribution.
_MAD_SCALE: Final = 1.4826
_IQR_SCALE: Final = 1.349


class Baseline:
    """The values so far, kept so that a further one is judged without reading them all."""

    def __init__(self, values: Iterable[float]) -> None:
        """Begin with some values."""
        self._sorted: list[float] = []
        self._count = 0
        self._mean = 0.0
        self._squares = 0.0
        for value in values:
            self._sorted.append(value)
            self._measure(value)
        self._sorted.sort()

    def add(self, value: float) -> None:
        """Take one more value in."""
        insort(self._sorted, value)
        self._measure(value)

    def _measure(self, value: float) -> None:
        # Welford's recurrence: exactly zero for a constant, which a sum of squares is not.
        self._count += 1
        delta = value - self._mean
        self._mean += delta / self._count
        self._squares += delta * (value - self._mean)

    def judge(self, seq: int, value: float) -> Judgement:
        """Hold a value against those taken in, of which there are at least two."""
        values = self._sorted
        median, low, high = (_quantile(values, share) for share in (0.5, 0.25, 0.75))
        spread = max(
            _MAD_SCALE * _median_distance(values, median),
            (high - low) / _IQR_SCALE,
            FLOOR * abs(median),
        )
        deviation = math.sqrt(self._squares / (len(values) - 1))
        distance = abs(value - median)
        is_far = distance > FAR * spread
        reach = 1.5 * (high - low)
        return Judgement(
            seq=seq,
            value=value,
            z=_ratio(value - self._mean, deviation),
            robust_z=_ratio(value - median, spread),
            fences=(low - reach, high + reach),
            is_outlier=is_far and _as_far(values, median, distance) <= _allowed(len(values)),
        )


def _allowed(count: int) -> int:
    return max(1, count // ONE_IN)


def _as_far(values: Sequence[float], median: float, distance: float) -> int:
    """Count the values at least so far from the median."""

    def side(value: float) -> float:
        return value - median

    below = bisect_right(values, -distance, key=side)
    return below + len(values) - bisect_left(values, distance, key=side)


def _quantile(values: Sequence[float], share: float) -> float:
    """Interpolate between order statistics (type 7 of Hyndman and Fan)."""
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (place - low) * (values[high] - values[low])


def _median_distance(values: Sequence[float], median: float) -> float:
    """Give the median of the distances from the median, in logarithmic time."""
    middle = len(values) // 2
    upper = _nearest(values, median, middle)
    return upper if len(values) % 2 else (_nearest(values, median, middle - 1) + upper) / 2


def _nearest(values: Sequence[float], centre: float, rank: int) -> float:
    """Give the distance of rank ``rank``, from 0: the nearest values stand side by side."""
    first, last = 0, len(values) - rank - 1
    while first < last:
        middle = (first + last) // 2
        if centre - values[middle] > values[middle + rank + 1] - centre:
            first = middle + 1
        else:
            last = middle
    return max(centre - values[first], values[first + rank] - centre)


def _ratio(distance: float, unit: float) -> float | None:
    ratio = distance / unit if unit else math.inf
    return ratio if math.isfinite(ratio) else None
