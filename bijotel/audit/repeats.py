"""Which words of a text repeat what earlier texts said. Pure.

A word repeats when it stands in a run of neighbouring words that one of the earlier texts has
too. A run counts from the number of words on that context matching asks for, so that a turn of
phrase is no repetition. Most texts share no run at all, which their three-word shingles tell
without a look at anything longer.

Source: ``cases/README.md``, R2. Shingles and resemblance: A. Z. Broder, On the resemblance and
containment of documents, 1997.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Run: TypeAlias = "tuple[str, ...]"
"""Neighbouring words."""

SHINGLE = 3
"""Words in a shingle."""


@dataclass(frozen=True, slots=True)
class Text:
    """The words of a text, with its shingles."""

    words: Run
    shingles: frozenset[Run]


def text_of(words: Sequence[str]) -> Text:
    """Make a text of its words."""
    return Text(tuple(words), frozenset(_runs(words, SHINGLE)))


class Earlier:
    """The texts that came before others."""

    def __init__(self) -> None:
        self._texts: list[Text] = []
        self._shingles: set[Run] = set()
        self._known: dict[int, tuple[set[Run], int]] = {}

    def add(self, text: Text) -> None:
        """Take in one more text."""
        self._texts.append(text)
        self._shingles |= text.shingles

    def resembled_by(self, text: Text) -> bool:
        """Tell whether three fifths of the shingles of a text and of an earlier one are common."""
        mine = text.shingles
        # No single text has more of them than all texts together.
        if not mine or 5 * len(mine & self._shingles) < 3 * len(mine):
            return False
        for earlier in self._texts:
            common = len(mine & earlier.shingles)
            if 5 * common >= 3 * (len(mine) + len(earlier.shingles) - common):
                return True
        return False

    def repeated_by(self, text: Text, least: int) -> int:
        """Count the words of a text in runs of at least ``least`` words of an earlier text."""
        if least >= SHINGLE and not self._may_repeat(text, least - SHINGLE + 1):
            return 0
        known = self._runs_of(least)
        count = end = 0
        for start, run in enumerate(_runs(text.words, least)):
            if run in known:
                count += start + least - max(start, end)
                end = start + least
        return count

    def _may_repeat(self, text: Text, least: int) -> bool:
        """Tell whether so many neighbouring shingles are known, which any run consists of."""
        if self._shingles.isdisjoint(text.shingles):
            return False
        streak = 0
        for shingle in _runs(text.words, SHINGLE):
            streak = streak + 1 if shingle in self._shingles else 0
            if streak >= least:
                return True
        return False

    def _runs_of(self, size: int) -> set[Run]:
        """Give all runs of one size; they are gathered when first asked for."""
        known, done = self._known.get(size, (set(), 0))
        for text in self._texts[done:]:
            known.update(_runs(text.words, size))
        self._known[size] = (known, len(self._texts))
        return known


def _runs(words: Sequence[str], size: int) -> Iterator[Run]:
    return zip(*(words[start:] for start in range(size)), strict=False)
