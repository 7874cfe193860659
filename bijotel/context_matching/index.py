"""The words of a text, indexed so that runs of them are found fast.

Several indexes, each made when first needed. ``blocks`` knows every few neighbouring words. It
settles most passages that are not there without looking at anything else: with blocks of four words
every run of eight holds one that begins at a multiple of five. Where most words are single letters,
blocks are longer and looked up more often; ``letters`` settles the same sooner. ``code`` writes
each word as one character, so that string search and comparison work on whole runs at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import compress, count, repeat
from operator import ne
from typing import NamedTuple, TypeAlias

from bijotel.context_matching.letters import RUN

Block: TypeAlias = "tuple[str, ...] | str"
"""A few neighbouring words, or their code."""

_STRIDE = 5
# Where most words are single letters, as in Thai, short blocks are everywhere.
_STRIDE_OF_LETTERS = 3
NOWHERE = "\x01"
"""Stands in a passage's code for a word that the text does not have."""

CLOSED = "\x00"
"""Stands in a text's code for a word that is no evidence; equals nothing in a passage's code."""

_FIRST_CODE = 2
_LAST_CODE = 0x10FFFF


Seed: TypeAlias = tuple[int, int, Sequence[int]]
"""A block of a passage that the text has too: its first word, counted in the passage; its first
place in the text; its further places."""


class Blocks(NamedTuple):
    """All blocks of a text, wherever they begin."""

    first: dict[Block, int]
    """The first place of each."""
    again: dict[Block, list[int]]
    """Further places, for those that have several."""


class WordIndex:
    """One sequence of words to search in; never changed once made."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.lettered = sum(map(len, words)) < 2 * len(words)
        """Whether most words are single letters."""
        self._stride = _STRIDE_OF_LETTERS if self.lettered else _STRIDE
        self.block_size = RUN + 1 - self._stride

    @cached_property
    def blocks(self) -> Blocks:
        """All neighbouring words; in code where words are letters."""
        blocks = list(self.blocks_of(self.code if self.lettered else self.words, 1))
        first: dict[Block, int] = {}
        begins = map(first.setdefault, blocks, count())
        again: dict[Block, list[int]] = {}
        for place in compress(count(), map(ne, begins, count())):
            again.setdefault(blocks[place], []).append(place)
        return Blocks(first, again)

    @cached_property
    def _alphabet(self) -> dict[str, str]:
        # Words beyond the last code point get no code and equal nothing (over a million different
        # words: no text that people write).
        codes = map(chr, range(_FIRST_CODE, _LAST_CODE + 1))
        return dict(zip(dict.fromkeys(self.words), codes, strict=False))

    @cached_property
    def code(self) -> str:
        """The text, one character a word."""
        return "".join(map(self._alphabet.get, self.words, repeat(CLOSED)))

    def encode(self, words: Iterable[str]) -> str:
        """Write a passage's words in this text's code."""
        return "".join(map(self._alphabet.get, words, repeat(NOWHERE)))

    def seeds(self, words: Sequence[str]) -> list[Seed]:
        """Look up blocks of a passage; no seed means no run of eight words.

        Args:
            words: The passage's words, or its code where words are letters.
        """
        first, again = self.blocks
        blocks = list(self.blocks_of(words, self._stride))
        if first.keys().isdisjoint(blocks):
            return []
        return [
            (self._stride * number, first[block], again.get(block, ()))
            for number, block in enumerate(blocks)
            if block in first
        ]

    def count_blocks(self, size: int) -> int:
        """Say how many blocks of a passage of ``size`` words are looked up."""
        return max(0, size - self.block_size + self._stride) // self._stride

    def blocks_of(self, words: Sequence[str], stride: int) -> Iterable[Block]:
        """Cut out the blocks that begin at multiples of ``stride``."""
        if isinstance(words, str):
            size = self.block_size
            return [words[at : at + size] for at in range(0, len(words) - size + 1, stride)]
        return zip(*(words[at::stride] for at in range(self.block_size)), strict=False)

    def occurrences(self, code: str) -> Iterator[int]:
        """Find every place of a stretch, overlapping ones too."""
        return find_all(self.code, code)

    def closed(self, spans: Iterable[tuple[int, int]]) -> str:
        """Write the code with these spans of words (sorted, disjoint) made unmatchable."""
        pieces: list[str] = []
        done = 0
        for start, end in spans:
            pieces += (self.code[done:start], CLOSED * (end - start))
            done = end
        return "".join((*pieces, self.code[done:]))


def find_all(text: str, wanted: str) -> Iterator[int]:
    """Find every place of a string, overlapping ones too."""
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)
