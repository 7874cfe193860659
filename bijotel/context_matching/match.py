"""The rules: which retrieved passages stand in a prompt, whole, in part or not, and who can tell.

Decoding is left to ``decode``, tokens to ``tokens``, places to ``reading``, runs to ``runs``,
ranks, duplicates and coverage to ``verdict``.
No I/O, no clock, no OpenTelemetry; cost is near linear. Arguments of another type raise, no
string does, nor anything inside a prompt.

Source: ``cases/README.md``, rules R1 to R8. Containment: A. Z. Broder, On the resemblance and
containment of documents, 1997.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, product
from typing import NamedTuple

from bijotel.context_matching.chain import Stretch
from bijotel.context_matching.decode import decode_prompt
from bijotel.context_matching.model import ContextMatches
from bijotel.context_matching.normalize import Plain, has_escapes, plain, unescaped
from bijotel.context_matching.reading import Reading, escaped_readings
from bijotel.context_matching.runs import SHORT, Coded, merged, ordered_runs
from bijotel.context_matching.tokens import is_blank, words
from bijotel.context_matching.verdict import SHORTEST, Found, ranked

MAX_PROMPT = 4 * 1024 * 1024
"""Characters of the longest prompt that is searched."""


def match_context(
    passages: Sequence[str | None],
    prompt: object,
    *,
    query: str | None = None,
    prompt_truncated: bool = False,
) -> ContextMatches:
    """Find out which passages reached a prompt.

    Args:
        passages: Retrieved texts in order; None for one whose text is not known.
        prompt: The prompt as recorded: a string, a list of messages, or None. Message lists are
            found also where they are encoded as JSON or Python literals.
        query: The user's question. What stands only in the question did not come from retrieval.
        prompt_truncated: The recorded prompt is known to be cut at its end.

    Returns:
        One match for each passage; regions point into ``.text``, the decoded prompt.

    Raises:
        TypeError: ``passages`` is no sequence of texts (a single text is none), ``prompt`` is
            neither text nor a list of messages, or ``query`` is no text.

    Range:
        ``containment`` is from 0 to 1: tokens in counted runs / tokens of the passage.

    Undefined when:
        The passage or the prompt has no text, the passage has fewer than three tokens, the prompt
        is cut, or longer than 4 Mi characters: status ``unknown``, containment None, ``reason``.

    Source:
        ``cases/README.md``.
    """
    passages = _checked(passages, prompt, query)
    too_large = isinstance(prompt, str) and len(prompt) > MAX_PROMPT
    text = "" if too_large else decode_prompt(prompt, truncated=prompt_truncated)
    too_large = too_large or len(text) > MAX_PROMPT
    texts = [passage or "" for passage in passages]
    found = {passage: Found() for passage in texts}
    sought = {passage: one for passage, one in found.items() if not is_blank(passage)}
    for passage in found.keys() - sought.keys():
        found[passage].unknown("no-content")
    if too_large or is_blank(text):
        for passage, one in sought.items():
            one.know(words(passage))
            one.unknown("too-large" if too_large else "no-prompt")
    else:
        _Search(text, query, truncated=prompt_truncated).run(sought)
    return ContextMatches(ranked(texts, found), text)


def _checked(passages: object, prompt: object, query: object) -> tuple[str | None, ...]:
    """Give the passages, or raise for an argument that would match nothing without a word."""
    if isinstance(passages, (str, bytes, Mapping)) or not isinstance(passages, Iterable):
        raise _wrong("passages", "a sequence of str or None", passages)
    given = tuple(passages)
    for position, passage in enumerate(given):
        if not (passage is None or isinstance(passage, str)):
            raise _wrong(f"passages[{position}]", "str or None", passage)
    if not (prompt is None or isinstance(prompt, (str, list, tuple, Mapping))):
        raise _wrong("prompt", "str, a list of messages or None", prompt)
    if not (query is None or isinstance(query, str)):
        raise _wrong("query", "str or None", query)
    return given


def _wrong(name: str, expected: str, got: object) -> TypeError:
    return TypeError(f"{name}: expected {expected}, got {type(got).__qualname__}")


class _Trial(NamedTuple):
    """Where pieces of a passage may be."""

    reading: Reading
    coded: Coded


class _Search:
    """All passages against one prompt: first the whole ones, then pieces of the others."""

    def __init__(self, text: str, query: str | None, *, truncated: bool) -> None:
        self._plain = Reading(text, Plain(text), query)
        self._escaped = cache(lambda: tuple(escaped_readings(text, query)))
        self._truncated = truncated

    def run(self, found: Mapping[str, Found]) -> None:
        """Decide about every passage."""
        trials = {passage: self._seek_whole(passage, one) for passage, one in found.items()}
        taken = merged(sorted(chain.from_iterable(one.taken for one in found.values())))
        open_code = cache(lambda reading: reading.open_code(taken))
        for passage, one in found.items():
            if one.status == "absent":
                self._seek_pieces(one, trials[passage], open_code)

    def _seek_whole(self, passage: str, one: Found) -> list[_Trial]:
        """Decide whether a passage is whole; if not, say where pieces of it may be."""
        once = self._plain.verbatim_once(passage)
        if once is not None:
            one.know(once[1])
            one.include("verbatim", (once[0],))
            return []
        if self._has_other_letters(passage, one):
            return []
        own = words(passage)
        one.know(own)
        trials: list[_Trial] = []
        for reading, variant in self._pairs(passage, own):
            index = reading.index
            seeds = None if index.lettered else index.seeds(variant)
            if seeds == [] and len(variant) >= SHORT:
                continue
            code = index.encode(variant)
            if seeds is None or len(seeds) == index.count_blocks(len(code)):
                literal = reading is self._plain and variant is own
                if literal and (regions := reading.verbatim(passage, code)):
                    one.include("verbatim", regions)
                    return []
                if regions := reading.normalized(code):
                    one.include("normalized", regions)
                    return []
            trials.append(_Trial(reading, Coded(code, seeds)))
        return trials

    def _has_other_letters(self, passage: str, one: Found) -> bool:
        """Settle quickly that nothing of a passage is there, where letters are tokens."""
        if passage.isascii() or not self._plain.is_lettered:
            return False
        if has_escapes(passage) or self._escaped():
            return False
        bare = plain(passage)
        if self._plain.letters.may_share_run(bare):
            return False
        one.know_letters(bare)
        return True

    def _pairs(self, passage: str, own: list[str]) -> Iterator[tuple[Reading, list[str]]]:
        """Pair every reading of the prompt with every reading of the passage."""
        variants = [own]
        if has_escapes(passage):
            variants.append(words(unescaped(Plain(passage)).text))
        yield from product((self._plain,), variants)
        yield from product(self._escaped(), variants)

    def _seek_pieces(
        self, one: Found, trials: list[_Trial], open_code: Callable[[Reading], str]
    ) -> None:
        """Decide about a passage that is not whole."""
        best: tuple[Stretch, ...] = ()
        share = 0.0
        where = self._plain
        for reading, coded in trials if one.size >= SHORTEST else ():
            runs = ordered_runs(coded, open_code(reading), reading.index, reading.is_evidence)
            total = sum(run.size for run in runs)
            if total > share * len(coded.code):
                best, share, where = runs, total / len(coded.code), reading
        if best and (not self._truncated or where.reaches_end(best[-1])):
            one.divide(share, tuple(where.region(run.place, run.size) for run in best))
        elif self._truncated:
            one.unknown("prompt-truncated")
