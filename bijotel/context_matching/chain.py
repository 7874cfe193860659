"""Of several stretches shared by two texts, choose those that stand in the same order in both.

The choice has most tokens, and among equal ones comes earliest in the text. Stretches may not
overlap on either side; one that would is cut back to where it no longer does, and counts only
while what remains is long enough.

Source: ``cases/README.md``, R2.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from typing import NamedTuple


class Stretch(NamedTuple):
    """Consecutive words of a passage that are consecutive in a text too."""

    start: int
    """First word, counted in the passage."""
    place: int
    """First word, counted in the text."""
    size: int
    """Number of words, at least 1."""


def in_order(stretches: Iterable[Stretch], least: int) -> tuple[Stretch, ...]:
    """Choose the ordered stretches with most words.

    Args:
        stretches: All common stretches, each as long as it goes.
        least: What a chosen stretch must have at least.

    Cost: the total size of the stretches, times the logarithm of the passage's length.
    """
    ordered = sorted(stretches)
    if all(
        a.start + a.size <= b.start and a.place + a.size <= b.place for a, b in pairwise(ordered)
    ):
        return tuple(ordered)
    return _Choice(_useful(ordered), least).trace()


def _useful(stretches: list[Stretch]) -> list[Stretch]:
    """Leave out copies of a stretch that an earlier copy can always stand in for.

    A heading that the text repeats a hundred times has a hundred copies, but only the first one
    after something else that may be chosen before it is of use.
    """
    ordered = sorted(stretches, key=lambda stretch: (stretch.start, stretch.size, stretch.place))
    starts = [stretch.start for stretch in ordered]
    useful: list[Stretch] = []
    done = 0
    for (start, size), group in groupby(ordered, key=lambda stretch: (stretch.start, stretch.size)):
        copies = list(group)
        done += len(copies)
        later = bisect_left(starts, start + size)
        if len(copies) <= len(useful) + later - done:
            useful += copies
            continue
        places = [stretch.place for stretch in copies]
        wanted = {0}
        for other in (*useful, *ordered[done:later]):
            first = bisect_left(places, other.place - size)
            last = bisect_left(places, other.place + other.size)
            wanted.update(range(first, min(last + 1, len(places))))
        useful += (copies[number] for number in sorted(wanted))
    return useful


class _Choice:
    """Dynamic programming over the cells (word of the passage, word of the text), backwards.

    A cell lies on exactly one stretch. ``follow`` holds for each cell the most words from there
    on when the cell is counted and its stretch began earlier; ``begin`` the most when a stretch
    begins at the cell. Cells where a stretch can neither begin nor end are passed over.
    """

    def __init__(self, stretches: list[Stretch], least: int) -> None:
        self._least = least
        self._stretches = stretches
        self._follow = [[0] * stretch.size for stretch in stretches]
        self._goes_on = [[False] * stretch.size for stretch in stretches]
        self._begin: list[tuple[int, int, int, int, int]] = []
        self._frontier = _Frontier()
        self._sweep()

    def _sweep(self) -> None:
        cells = sorted(
            (
                (stretch.place + offset, number, offset)
                for number, stretch in enumerate(self._stretches)
                for offset in self._offsets(stretch.size)
            ),
            reverse=True,
        )
        waiting: list[tuple[int, int]] = []
        column = -1
        for place, number, offset in cells:
            if place != column:
                self._frontier.add(waiting)
                waiting, column = [], place
            start = self._stretches[number].start + offset
            total = self._visit(number, offset, start)
            if total:
                self._begin.append((place, start, total, number, offset))
                waiting.append((start, total))
        self._frontier.add(waiting)

    def _offsets(self, size: int) -> Iterator[int]:
        inside = range(size - self._least + 1, self._least - 1)
        return (offset for offset in range(size) if offset not in inside)

    def _visit(self, number: int, offset: int, start: int) -> int:
        """Fill in one cell; say what a stretch that begins there leads to, 0 if none may."""
        follow = self._follow[number]
        last = offset + self._least - 1
        if offset + 1 >= self._least:
            after = self._frontier.best(start + 1)
            if offset + 1 < len(follow) and follow[offset + 1] >= after:
                after = follow[offset + 1]
                self._goes_on[number][offset] = True
            follow[offset] = 1 + after
        return follow[last] + self._least - 1 if last < len(follow) else 0

    def trace(self) -> tuple[Stretch, ...]:
        """Walk forward along the best choice that is earliest in the text."""
        chosen: list[Stretch] = []
        start = place = 0
        left = self._frontier.best(0)
        for at, first, total, number, offset in sorted(self._begin):
            if total != left or at < place or first < start or not left:
                continue
            size = self._least
            while self._goes_on[number][offset + size - 1]:
                size += 1
            chosen.append(Stretch(first, at, size))
            start, place, left = first + size, at + size, left - size
        return tuple(chosen)


class _Frontier:
    """The most words that can be had from each word of the passage on."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._totals: list[int] = []

    def best(self, start: int) -> int:
        at = bisect_left(self._starts, start)
        return self._totals[at] if at < len(self._totals) else 0

    def add(self, cells: Iterable[tuple[int, int]]) -> None:
        for start, total in cells:
            if total <= self.best(start):
                continue
            end = bisect_left(self._starts, start + 1)
            begin = end
            while begin and self._totals[begin - 1] <= total:
                begin -= 1
            self._starts[begin:end] = [start]
            self._totals[begin:end] = [total]
