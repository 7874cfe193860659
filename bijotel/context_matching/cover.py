"""Which included passages stand only inside longer ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bijotel.context_matching.model import Region


class Standing(NamedTuple):
    """An included passage."""

    number: int
    """Its index among the passages."""
    tokens: int
    """Number of its tokens."""
    regions: tuple[Region, ...]
    """Where it stands: sorted, at least one, none inside another."""


def covered_by(included: Iterable[Standing]) -> dict[int, int]:
    """Name for each passage whose regions all lie inside regions of a longer one that longer one.

    Args:
        included: Passages in the order of their numbers.

    Returns:
        Number of the covered passage -> number of the first longer passage that covers it.
    """
    alike: dict[tuple[int, tuple[Region, ...]], list[Standing]] = {}
    for standing in included:
        alike.setdefault((standing.tokens, standing.regions), []).append(standing)
    distinct = [group[0] for group in alike.values()]
    covers = _covers(distinct)
    return {
        standing.number: covers[group[0].number]
        for group in alike.values()
        if group[0].number in covers
        for standing in group
    }


def _covers(distinct: Sequence[Standing]) -> dict[int, int]:
    # Whatever lies around a region comes before it in this order.
    regions = sorted(
        (start, -end, -standing.tokens, standing)
        for standing in distinct
        for start, end in standing.regions
    )
    covers: dict[int, int] = {}
    around: list[tuple[int, Standing]] = []
    reach = 0
    for start, negative_end, _, standing in regions:
        end = -negative_end
        if end <= reach and (start, end) == standing.regions[0]:
            around = [(last, other) for last, other in around if last > start]
            for other in sorted(other for last, other in around if last >= end):
                if other.tokens > standing.tokens and _holds(other.regions, standing.regions):
                    covers[standing.number] = other.number
                    break
        around.append((end, standing))
        reach = max(reach, end)
    return covers


def _holds(outer: tuple[Region, ...], inner: tuple[Region, ...]) -> bool:
    """Tell whether every inner region lies in an outer one."""
    for start, end in inner:
        at = bisect_right(outer, (start, float("inf"))) - 1
        if at < 0 or outer[at][1] < end:
            return False
    return True
