"""What is known about one passage on its way to its match, and how the passages compare.

The comparison (rank, duplicates, coverage) is R7's; what stands where is decided in ``match``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from bijotel.context_matching.cover import Standing, covered_by
from bijotel.context_matching.model import Level, PassageMatch, Reason, Region, Status
from bijotel.context_matching.tokens import words

_SKETCH = 8

SHORTEST = 3
"""Tokens that a passage must have to be told from a chance occurrence."""


@dataclass(slots=True)
class Found:
    """One distinct passage; absent until something else is found."""

    size: int = 0
    """Number of its tokens; 0 where nobody had to count them."""
    sketch: tuple[str, str] = ("", "")
    """Its first and last letters; they differ in most passages that differ."""
    status: Status = "absent"
    level: Level | None = None
    containment: float | None = 0.0
    regions: tuple[Region, ...] = ()
    reason: Reason | None = None

    @property
    def taken(self) -> tuple[Region, ...]:
        """Regions whose tokens are no evidence for another passage."""
        return self.regions if self.status == "included" else ()

    def know(self, tokens: Sequence[str]) -> None:
        """Note the passage's tokens."""
        self.size = len(tokens)
        self.know_letters("".join((*tokens[:_SKETCH], *tokens[-_SKETCH:])))

    def know_letters(self, text: str) -> None:
        """Note the first and last letters of a text that has those of the passage."""
        first = islice(filter(str.isalnum, text), _SKETCH)
        last = islice(filter(str.isalnum, reversed(text)), _SKETCH)
        self.sketch = ("".join(first), "".join(last))

    def include(self, level: Level, regions: tuple[Region, ...]) -> None:
        """Note that the passage is there as a whole, which proves nothing for a very short one."""
        if self.size < SHORTEST:
            self.unknown("too-short")
        else:
            self.status, self.level, self.containment = "included", level, 1.0
            self.regions = regions

    def divide(self, containment: float, regions: tuple[Region, ...]) -> None:
        """Note that pieces of the passage are there."""
        self.status, self.containment, self.regions = "partial", containment, regions

    def unknown(self, reason: Reason) -> None:
        """Note that nothing can be said."""
        self.status, self.containment, self.reason = "unknown", None, reason


def ranked(texts: Sequence[str], found: Mapping[str, Found]) -> list[PassageMatch]:
    """Compare the passages of one prompt and make their matches, in order."""
    passages = [found[text] for text in texts]
    there = [number for number, one in enumerate(passages) if one.regions]
    there.sort(key=lambda number: (passages[number].regions[0][0], number))
    positions = {number: rank for rank, number in enumerate(there)}
    covers = covered_by(
        Standing(number, one.size, one.regions)
        for number, one in enumerate(passages)
        if one.status == "included"
    )
    originals = _originals(texts, passages)
    return [
        PassageMatch(
            status=one.status,
            level=one.level,
            containment=one.containment,
            regions=one.regions,
            position=positions.get(number),
            duplicate_of=originals.get(number),
            covered_by=covers.get(number),
            reason=one.reason,
        )
        for number, one in enumerate(passages)
    ]


def _originals(texts: Sequence[str], passages: Sequence[Found]) -> dict[int, int]:
    """Name for each passage the first earlier one with the same tokens, if it has any."""
    alike: dict[tuple[str, str], list[int]] = {}
    for number, one in enumerate(passages):
        if one.sketch[0]:
            alike.setdefault(one.sketch, []).append(number)
    originals: dict[int, int] = {}
    for numbers in alike.values():
        if len(numbers) == 1:
            continue
        key = cache(lambda text: tuple(words(text)))
        first: dict[tuple[str, ...], int] = {}
        for number in numbers:
            original = first.setdefault(key(texts[number]), number)
            if original != number:
                originals[number] = original
    return originals
