"""One reading of the prompt: its tokens, where they stand, and what is no evidence in it.

The plain reading takes the decoded prompt as it is. The others undo JSON string escapes that
stand in running text. Offsets always point into the decoded prompt.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from bijotel.context_matching.chain import Stretch
from bijotel.context_matching.index import NOWHERE, WordIndex, find_all
from bijotel.context_matching.letters import Letters
from bijotel.context_matching.model import Region
from bijotel.context_matching.normalize import Plain, has_escapes, traced, unescaped
from bijotel.context_matching.tokens import Tokens, tokenize_bare, tokenize_plain, words

MAX_REGIONS = 1_000
"""Regions given for one passage."""

_HEAD = 96
"""Characters of a passage that are looked up before anything else is done with it."""

_LITERAL_PLACES = 10_000
"""Places where a passage stands letter by letter that are tried before giving up on verbatim."""

_ESCAPE_LEVELS = 3
"""How often escapes in running text are undone."""


class Reading:
    """The tokens of one prompt in one reading."""

    def __init__(self, text: str, source: Plain, query: str | None) -> None:
        """Read ``source``, which was made from the decoded prompt ``text``."""
        self._text = text
        self._query = query
        self._source = source

    @property
    def is_lettered(self) -> bool:
        """Whether letters are tokens in most of the prompt."""
        return not self._text.isascii() and self.letters.are_tokens

    @cached_property
    def letters(self) -> Letters:
        """The letters of the prompt."""
        return Letters(self._bare.text)

    @cached_property
    def _bare(self) -> Plain:
        """The prompt with its presentation undone."""
        return traced(self._source)

    @cached_property
    def index(self) -> WordIndex:
        """The tokens' words, indexed."""
        # Words alone cost much less, and offsets are not needed where nothing is found; where
        # letters are tokens, what has nothing there never comes here.
        known = "tokens" in self.__dict__ or self.is_lettered
        return WordIndex(self.tokens.words if known else words(self._source.text))

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens and where they stand in the decoded prompt."""
        if self._source.text.isascii():
            return tokenize_plain(self._source)
        return tokenize_bare(self._bare)

    @cached_property
    def _asked(self) -> tuple[int, list[int]]:
        """Size of the query in tokens and the places where it stands."""
        wanted = words(self._query or "")
        if not wanted:
            return 0, []
        return len(wanted), list(self.index.occurrences(self.index.encode(wanted)))

    def is_evidence(self, stretch: Stretch) -> bool:
        """Tell whether a stretch does not lie wholly inside an occurrence of the query."""
        size, places = self._asked
        at = bisect_right(places, stretch.place) - 1
        return at < 0 or places[at] + size < stretch.place + stretch.size

    def region(self, place: int, size: int) -> Region:
        """Say where tokens stand in the decoded prompt, from the first to the last."""
        return self.tokens.starts[place], self.tokens.ends[place + size - 1]

    def reaches_end(self, stretch: Stretch) -> bool:
        """Tell whether a stretch ends with the last token, or the one before it."""
        return stretch.place + stretch.size >= len(self.index.words) - 1

    def normalized(self, code: str) -> tuple[Region, ...]:
        """Find a passage by its tokens alone; without tokens it is nowhere."""
        size = len(code)
        if not size or NOWHERE in code:
            return ()
        places = (
            place
            for place in self.index.occurrences(code)
            if self.is_evidence(Stretch(0, place, size))
        )
        return tuple(self.region(place, size) for place in islice(places, MAX_REGIONS))

    def verbatim(self, passage: str, code: str) -> tuple[Region, ...]:
        """Find a passage letter by letter, beginning and ending on token boundaries."""
        if NOWHERE in code:
            return ()
        return tuple(islice(self._literal_places(passage, code), MAX_REGIONS))

    def _literal_places(self, passage: str, code: str) -> Iterator[Region]:
        for start in islice(find_all(self._text, passage), _LITERAL_PLACES):
            end = start + len(passage)
            span = self._whole_tokens(start, end)
            if span is None or self.index.code[span[0] : span[1]] != code:
                continue
            if not code or self.is_evidence(Stretch(0, span[0], len(code))):
                yield start, end

    def _whole_tokens(self, start: int, end: int) -> tuple[int, int] | None:
        """Say which tokens lie between two offsets; None when one lies across an end."""
        tokens = self.tokens
        first, last = bisect_left(tokens.starts, start), bisect_right(tokens.ends, end)
        if first and tokens.ends[first - 1] > start:
            return None
        if last < len(tokens.starts) and tokens.starts[last] < end:
            return None
        return first, max(first, last)

    def verbatim_once(self, passage: str) -> tuple[Region, list[str]] | None:
        """Find a passage that stands in one place only, and its words, at little cost.

        None says nothing: the passage may be there all the same.
        """
        # An entity at either end may be cut.
        start = -1 if "&" in passage else self._only_place(passage)
        span = self._whole_tokens(start, start + len(passage)) if start >= 0 else None
        if span is None:
            return None
        if self._asked[1] and not self.is_evidence(Stretch(0, span[0], span[1] - span[0])):
            return None
        own = self.tokens.words[span[0] : span[1]]
        # A sign before the passage may have made another word of its first.
        head = _head(passage)
        return ((start, start + len(passage)), own) if own[: len(head)] == head else None

    def _only_place(self, passage: str) -> int:
        """Say where a passage begins that stands in one place, -1 where that is not so."""
        text = self._text
        if self.is_lettered or not (text.isascii() or "index" in self.__dict__):
            # Such a text takes longer to index than a passage to look for.
            start = text.find(passage)
            return start if start >= 0 and text.find(passage, start + 1) < 0 else -1
        blocks, block = self.index.blocks, tuple(_head(passage)[: self.index.block_size])
        place = blocks.first.get(block)
        if place is None or block in blocks.again:
            return -1
        tokens = self.tokens
        after = tokens.ends[place - 1] if place else 0
        return text.find(passage, after, tokens.starts[place] + len(passage))

    def open_code(self, regions: Iterable[Region]) -> str:
        """Write the code with the tokens inside these regions (sorted, disjoint) closed."""
        tokens = self.tokens
        spans = (
            (bisect_left(tokens.starts, start), bisect_right(tokens.ends, end))
            for start, end in regions
        )
        return self.index.closed((first, last) for first, last in spans if first < last)


def _head(passage: str) -> list[str]:
    """Cut the first words out of a passage, but the last of them, which may be cut itself."""
    return words(passage[:_HEAD])[:-1]


def escaped_readings(text: str, query: str | None) -> Iterator[Reading]:
    """Read a prompt with the escapes in its running text undone once, twice and so on."""
    source = Plain(text)
    for _ in range(_ESCAPE_LEVELS):
        if not has_escapes(source.text):
            return
        source = unescaped(source)
        yield Reading(text, source, query)
