"""The letters of a text in a row: settles at little cost that a passage has nothing of it.

Where letters are tokens, as in Thai or Chinese, cutting a text into tokens takes far longer than
looking for it. But every token has a letter or digit, so that two texts which share a run of
tokens share a row of at least as many letters, whatever separators and marks stand between.
Only a passage that shares one has to be cut into tokens.

A row is octets, one or two for each letter, so that eight octets are one number and looking up
all of a passage's takes a few calls.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

from bijotel.context_matching.patterns import has_letters_beyond, stands_alone

RUN: Final = 8
"""Tokens of the shortest run that counts in a passage of at least twice as many."""

_BLOCK: Final = 8
"""Octets of a block: one number."""
_SAMPLE: Final = 1_000
_NO_LETTER: Final = re.compile(r"[\W_\U00010000-\U0010ffff]+")
_UNUSED: Final = "\ufffe"


class Letters:
    """The letters of one text to search in."""

    def __init__(self, bare: str) -> None:
        """Take them from a text whose presentation is undone."""
        self._bare = bare
        narrow = _one_octet_each(bare)
        self._write = narrow or _two_octets_each
        self._width = 1 if narrow else 2
        self._size = _BLOCK // self._width

    @cached_property
    def are_tokens(self) -> bool:
        """Whether most letters are tokens of their own, by a sample from all over the text."""
        if has_letters_beyond(self._bare):  # a row has only those of the first plane
            return False
        sample = self._bare[:: max(1, len(self._bare) // _SAMPLE)]
        return 2 * stands_alone(sample) > sum(map(str.isalnum, sample))

    def may_share_run(self, bare: str) -> bool:
        """Tell whether a passage may have a run in the text; False is certain.

        A passage of fewer than 16 tokens has shorter runs that count, so that it always may.

        Args:
            bare: The passage with its presentation undone.
        """
        if stands_alone(bare[: 8 * RUN]) < 2 * RUN:
            return True
        row = self._write(bare)
        # Any eight letters hold a block of eight that begins anywhere, of four at every fourth.
        for phase in range(0, self._size, min(self._size, RUN - self._size + 1)):
            blocks = self._cut(row, phase)
            if not self._blocks.isdisjoint(blocks) and self._holds_run(row, blocks):
                return True
        return False

    def _holds_run(self, row: bytes, blocks: Sequence[int]) -> bool:
        """Look closer at a row some of whose blocks are there."""
        rest = RUN - self._size
        hits = [self._size * number for number, block in enumerate(blocks) if block in self._blocks]
        return rest == 0 or any(
            # Its first and its last block are there, and so is all of it.
            self._has_block(row, start)
            and self._has_block(row, start + rest)
            and row[self._width * start : self._width * (start + RUN)] in self._row
            for hit in hits
            for start in range(max(0, hit - rest), hit + 1)
        )

    @cached_property
    def _row(self) -> bytes:
        return self._write(self._bare)

    @cached_property
    def _blocks(self) -> set[int]:
        """Every block, wherever it begins."""
        found: set[int] = set()
        for phase in range(self._size):
            found.update(self._cut(self._row, phase))
        return found

    def _cut(self, row: bytes, phase: int) -> Sequence[int]:
        """Cut a row into blocks, the first of which begins at a letter."""
        start = phase * self._width
        size = max(0, len(row) - start) // _BLOCK * _BLOCK
        return memoryview(row)[start : start + size].cast("Q")

    def _has_block(self, row: bytes, place: int) -> bool:
        start = self._width * place
        block = memoryview(row)[start : start + _BLOCK]
        return len(block) == _BLOCK and block.cast("Q")[0] in self._blocks


def _one_octet_each(text: str) -> Callable[[str], bytes] | None:
    """Number the characters of a text, if there are few; others are in no row.

    A passage's letter that the text does not have is left out of its row, which can make two
    stretches look like one, and so only ever hides that nothing is shared.
    """
    # Number 0 has to be NUL in a table that codecs take for a quick one.
    known = ["\0", *sorted(char for char in set(text) if "\0" < char < _UNUSED)]
    if len(known) > 256:
        return None
    table = codecs.charmap_build("".join(known).ljust(256, _UNUSED))
    others = bytes(number for number, char in enumerate(known) if not char.isalnum())

    def write(bare: str) -> bytes:
        return codecs.charmap_encode(bare, "ignore", table)[0].translate(None, others)

    return write


def _two_octets_each(bare: str) -> bytes:
    return _NO_LETTER.sub("", bare).encode("utf-16-le")
