"""Has the level of a series moved, and where? Pure: the same seed gives the same answer.

The rank sums before and after every possible border are compared, and the largest standardized
difference is held against the same figure of random orders of the same values. That is exact
for ties, constants and heavy tails: where the order of the values does not matter, at most 25
of 10,000 series alarm, whatever their distribution is.

Most series are random, and a few orders tell: drawing stops once an alarm is out of reach.

Source: Pettitt, Applied Statistics 28 (1979), 126-135; Hawkins and Deng, Journal of Quality
Technology 42 (2010), 165-173; Besag and Clifford, Biometrika 78 (1991), 301-304, for stopping.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import sqrt
from operator import mul
from random import Random
from statistics import fmean, median
from typing import Final, NamedTuple

from bijotel.regression.model import FEWEST_FOR_SHIFTS, Point, Shift

ALARM: Final = 0.0025
"""The largest p-value of a shift."""
FEWEST_ON_A_SIDE: Final = 5
MOST_SHIFTS: Final = 10
"""So many are named, the newest first."""

_ORDERS: Final = 1999
# p = (exceeding orders + 1) / (orders + 1), the observed order being one of them.
_MOST_EXCEEDING: Final = int(ALARM * (_ORDERS + 1)) - 1
_MOST_SINGLE: Final = 2000
_MOST_BLOCKS: Final = 1000
"""Longer series are scanned in so many blocks of equal length; these are exchangeable too."""
# Rounding must not make an order that is equally shifted look less so.
_ROUNDING: Final = 1 - 1e-12


class _Border(NamedTuple):
    place: int
    p_value: float


def find_shifts(points: Sequence[Point], seed: int) -> tuple[Shift, ...]:
    """Find the shifts of a series; what lies on both sides of one is looked at again.

    A series without a shift is tested once, so that looking again adds no false alarm.
    """
    values = [point.value for point in points]
    random = Random(seed)  # noqa: S311 - orders of values, no secret
    waiting = [(0, len(values))]
    found: dict[int, float] = {}
    while waiting and len(found) < MOST_SHIFTS:
        first, end = waiting.pop()
        border = _border(values[first:end], random)
        if border is not None:
            middle = first + border.place
            found[middle] = border.p_value
            waiting += [(first, middle), (middle, end)]
    places = sorted(found)
    parts = [values[first:end] for first, end in pairwise([0, *places, len(values)])]
    return tuple(
        Shift(points[place].seq, *_levels(before, after), found[place])
        for place, (before, after) in zip(places, pairwise(parts), strict=True)
    )


def _levels(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Name both levels so that the difference is seen: of rates and rare counts it is the mean."""
    levels = median(before), median(after)
    if levels[0] == levels[1] or {*before, *after} <= {0.0, 1.0}:
        return fmean(before), fmean(after)
    return levels


def _border(values: Sequence[float], random: Random) -> _Border | None:
    """Find the border of the largest difference, when few random orders have a larger one."""
    if len(values) < FEWEST_FOR_SHIFTS:
        return None
    length = 1 if len(values) <= _MOST_SINGLE else -(-len(values) // _MOST_BLOCKS)
    cut = len(values) % length
    ranks = _centred_ranks(values[cut:])
    units = [sum(ranks[first : first + length]) for first in range(0, len(ranks), length)]
    weights = _weights(len(units), -(-FEWEST_ON_A_SIDE // length))
    observed = _largest(units, weights)
    p_value = _p_value(units, weights, observed, random) if observed else 1.0
    if p_value > ALARM:
        return None
    differences = [
        abs(sum_) * weight for sum_, weight in zip(accumulate(units), weights, strict=False)
    ]
    near = (differences.index(max(differences)) + 1) * length
    return _Border(cut + _best(ranks, near, max(length, FEWEST_ON_A_SIDE)), p_value)


def _p_value(units: list[int], weights: list[float], observed: float, random: Random) -> float:
    """Draw random orders until an alarm is out of reach, or all of them."""
    draw = random.random
    limit = observed * _ROUNDING
    exceeding = 0
    for drawn in range(1, _ORDERS + 1):
        if _largest(sorted(units, key=lambda _: draw()), weights) >= limit:
            exceeding += 1
            if exceeding > _MOST_EXCEEDING:
                return exceeding / drawn
    return (exceeding + 1) / (_ORDERS + 1)


def _centred_ranks(values: Sequence[float]) -> list[int]:
    """Give twice each value's rank less the mean rank: integers, ties share theirs."""
    ordered = sorted(values)
    ranks = {
        value: bisect_left(ordered, value) + bisect_right(ordered, value) - len(values)
        for value in set(values)
    }
    return [ranks[value] for value in values]


def _weights(count: int, margin: int) -> list[float]:
    """Give, for the border behind each unit, what standardizes the rank sum before it."""
    return [
        1 / sqrt(before * (count - before)) if margin <= before <= count - margin else 0.0
        for before in range(1, count)
    ]


def _largest(units: Sequence[int], weights: Sequence[float]) -> float:
    differences: Iterator[float] = map(mul, accumulate(units), weights)
    return max(map(abs, differences))


def _best(ranks: Sequence[int], near: int, reach: int) -> int:
    """Find the border of the largest difference between single values, not far from a place.

    At an end it may have fewer values on a side than a border that is tested.
    """
    count = len(ranks)
    sums = list(accumulate(ranks))
    return max(
        range(max(1, near - reach), min(count - 1, near + reach) + 1),
        key=lambda before: abs(sums[before - 1]) / sqrt(before * (count - before)),
    )
