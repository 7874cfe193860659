"""Runs of words that a passage shares with a text, and which of them count.

A run is a stretch, as long as it goes, of consecutive words of the passage that are consecutive in
the text. It counts with eight words, or with half of a passage shorter than sixteen. Which
counted runs may stand together is decided in ``chain``.

Cost: near linear. A passage whose words have very many places in the text is matched greedily
from left to right.

Source: ``cases/README.md``, R2 and R8.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from bijotel.context_matching.chain import Stretch, in_order
from bijotel.context_matching.index import NOWHERE, Seed, WordIndex, find_all
from bijotel.context_matching.letters import RUN

SHORT = 2 * RUN
"""A passage of fewer words has runs that count with half of its words."""

_PLACES = 64
"""Places that a passage's words may have on average before runs are chosen greedily."""


class Coded(NamedTuple):
    """A passage made ready to be sought in one text."""

    code: str
    """Its words in the code of that text."""
    seeds: Sequence[Seed] | None = None
    """Its blocks that the text has; None when they are to be looked up in code, if at all."""


def least_run(size: int) -> int:
    """Say how many words of a passage of ``size`` words a run must have to count."""
    return min(RUN, (size + 1) // 2)


def counted_runs(passage: Sequence[str], text: Sequence[str]) -> tuple[Stretch, ...]:
    """Find the counted runs of a passage in a text, given as the words of their tokens.

    Args:
        passage: Words as :func:`~bijotel.context_matching.tokens.tokenize` gives them.
        text: Words of the text to search.

    Returns:
        Stretches in the order of both, the choice with most words; empty when no run counts.
    """
    index = WordIndex(text)
    coded = Coded(index.encode(passage), None if index.lettered else index.seeds(passage))
    return ordered_runs(coded, index.code, index)


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join sorted spans that touch or overlap."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def ordered_runs(
    coded: Coded,
    text: str,
    index: WordIndex,
    is_evidence: Callable[[Stretch], bool] = lambda _: True,
) -> tuple[Stretch, ...]:
    """Find the counted runs of a passage.

    Args:
        coded: The passage, made ready for ``index``.
        text: The code to search: that of ``index``, or the same with words closed.
        index: Where the passage's blocks are looked up.
        is_evidence: Leaves out runs, as long as they go, that do not count for another reason.
    """
    code, least = coded.code, least_run(len(coded.code))
    if len(code) < SHORT:
        places = islice(_searched(code, text, least), _PLACES * len(code))
        return in_order(filter(is_evidence, _runs(places, code, text)), least)
    seeds = index.seeds(code) if coded.seeds is None else coded.seeds
    further = sum(len(more) for _, _, more in seeds)
    if further > _PLACES * index.count_blocks(len(code)):
        return tuple(filter(is_evidence, _greedy(seeds, code, text)))
    return in_order(filter(is_evidence, _runs(_listed(seeds), code, text)), least)


def _runs(places: Iterable[tuple[int, int]], code: str, text: str) -> Iterator[Stretch]:
    """Give the runs that are long enough and go through one of these places of both."""
    least = least_run(len(code))
    done: dict[int, int] = {}
    for start, place in places:
        if done.get(place - start, 0) > start:
            continue
        after = _common(code, start, text, place)
        back = _common_before(code, start, text, place)
        done[place - start] = start + after
        if back + after >= least:
            yield Stretch(start - back, place - back, back + after)


def _searched(code: str, text: str, least: int) -> Iterator[tuple[int, int]]:
    """Find every shortest run of a short passage: ``(word of it, word of the text)``."""
    for start in range(len(code) - least + 1):
        window = code[start : start + least]
        if NOWHERE not in window:
            for place in find_all(text, window):
                yield start, place


def _listed(seeds: Iterable[Seed]) -> Iterator[tuple[int, int]]:
    """List where the blocks of a longer passage stand."""
    for start, place, more in seeds:
        yield start, place
        for further in more:
            yield start, further


def _greedy(seeds: Iterable[Seed], code: str, text: str) -> list[Stretch]:
    """Take the first run that comes next in both, again and again."""
    found: list[Stretch] = []
    start = place = 0
    for first, at_first, more in seeds:
        if first < start:
            continue
        begin = bisect_left(more, place)
        places = (at_first, *more[:_PLACES]) if at_first >= place else more[begin : begin + _PLACES]
        for at in places:
            back = min(_common_before(code, first, text, at), first - start, at - place)
            size = back + _common(code, first, text, at)
            if size >= RUN:
                found.append(Stretch(first - back, at - back, size))
                start, place = first - back + size, at - back + size
                break
    return found


def _common(code: str, start: int, text: str, place: int) -> int:
    """Count equal words from here on."""
    return _reach(
        min(len(code) - start, len(text) - place),
        lambda near, far: code.startswith(text[place + near : place + far], start + near),
    )


def _common_before(code: str, start: int, text: str, place: int) -> int:
    """Count equal words right before here."""
    return _reach(
        min(start, place),
        lambda near, far: code.endswith(text[place - far : place - near], 0, start - near),
    )


def _reach(limit: int, same: Callable[[int, int], bool]) -> int:
    """Find how far equality goes, in leaps that double until one fails and then halve."""
    size, leap = 0, 1
    while size + leap <= limit and same(size, size + leap):
        size += leap
        leap *= 2
    while leap := leap // 2:
        if size + leap <= limit and same(size, size + leap):
            size += leap
    return size
