"""The scores of one trace, out of which passage reached which prompt. Pure and exact.

What is unknown, or has no text, leaves every score: :func:`scored_texts` gives what is left, and
:func:`why_not_applicable` tells whether that is enough. What the numbers mean to people is said
in :mod:`~bijotel.audit.result`.

Source: docs/reference/audit.md, which has every formula and when it is undefined.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias

from bijotel.audit.model import JudgedPassage, Listed, TraceContext, Verdict
from bijotel.audit.repeats import Earlier, Text, text_of
from bijotel.context_matching import counted_runs
from bijotel.context_matching.match import MAX_PROMPT
from bijotel.context_matching.normalize import Plain, has_escapes, unescaped
from bijotel.context_matching.runs import least_run
from bijotel.context_matching.tokens import words
from bijotel.dialects.calls import NO_PROMPT, dropped

Texts: TypeAlias = Mapping[int, Text]
"""The texts of the passages that are scored, by the passage's index."""

_USED_FROM = 0.5
"""Containment from which a partial passage counts as one."""

_WEIGHTS = (40, 30, 20, 10)
_WEIGHTS_WITH_GAIN = (35, 25, 15, 10, 15)
"""In the order of the fields of :class:`Scores`; the sum is 100."""

UNCHANGED = "the order did not change"
ALL_USED = "everything that was reranked was used"
NONE_USED = "nothing that was used was reranked"
_ONLY_STATUSES = "only statuses are recorded"


@dataclass(frozen=True, slots=True)
class Scores:
    """The sub-scores of a trace, each from 0 to 100 and not rounded."""

    precision: float
    """Share of the passages of the last stage that are in the prompt."""
    efficiency: float
    """Share of the retrieved words that reached the prompt."""
    uniqueness: float
    """Share of the words of the hits that do not repeat earlier hits."""
    coverage: float
    """Share of the passages that carry a score of their search."""
    rerank_gain: float | None = None
    """50 and 12.5 for each place that used passages gained; None when left out."""


class Share(NamedTuple):
    """A part of a whole that is not empty."""

    part: int
    whole: int

    @property
    def percent(self) -> Fraction:
        """From 0 to 100."""
        return Fraction(100 * self.part, self.whole)


@dataclass(frozen=True, slots=True)
class Measures:
    """The scores of a trace and the counts that they were made of."""

    scores: Scores
    overall: int
    """The weighted sum, rounded half up."""
    stage: Literal["reranker", "retrieval"]
    """Which recorded stage was the last before the call."""
    used: Share
    """Passages of the last stage in the prompt."""
    reached: Share
    """Retrieved words that reached the prompt; a word in a run that occurred before once only."""
    repeated: Share
    """Words of the hits that repeat earlier hits."""
    repeats: Share
    """Hits that repeat an earlier hit whole."""
    carrying: Share
    """Passages that carry a score."""
    gain_left_out: str
    """Why a trace with a reranker has no rerank gain, empty when it has one or no reranker."""
    best: tuple[int, ...]
    """Indexes of the passages that stand first in the lists of the last stage."""


def scored_texts(passages: tuple[JudgedPassage, ...]) -> Texts:
    """Give the texts of the passages that are scored.

    These are known, have at least one word, and are no longer than the longest prompt that is
    searched, so that one hostile text does not fill the memory.
    """
    return {
        row: text_of(found)
        for row, passage in enumerate(passages)
        if passage.verdict.status != "unknown"
        and len(passage.text or "") <= MAX_PROMPT
        and (found := words(passage.text or ""))
    }


def why_not_applicable(context: TraceContext, texts: Texts) -> str:
    """Say why a trace cannot be scored; empty when it can."""
    passages = context.passages
    feeding = [call.call for call in context.calls if call.role != "other"]
    if not passages:
        return _why_nothing_found(context)
    if not any(call.messages for call in feeding):
        return next((call.capture.reason for call in feeding if call.capture.reason), NO_PROMPT)
    listed = (*context.retrievals, *context.rerankers)
    for what, span in (
        *(("retrieval", each.retrieval.span) for each in listed),
        *(("model call", call.span) for call in feeding),
    ):
        if lost := dropped(span):
            return f"the {what} {span.span_id} has {lost}"
    unknown = [passage.verdict for passage in passages if passage.verdict.status == "unknown"]
    if not any(passage.text for passage in passages):
        all_unknown = len(unknown) == len(passages)
        why = _commonest(v.reason for v in unknown) if all_unknown else _ONLY_STATUSES
        return f"no passage has a text: {why}"
    if 2 * len(unknown) >= len(passages):
        reason = _commonest(verdict.reason for verdict in unknown)
        return f"{len(unknown)} of {len(passages)} passages are unknown: {reason}"
    if not any(row in texts for each in _last_stage(context)[1] for row in each.rows):
        return "no passage text in the last stage before the call"
    return ""


def measure(context: TraceContext, texts: Texts) -> Measures:
    """Score a trace to which :func:`why_not_applicable` has no objection."""
    used = frozenset(row for row in texts if _is_used(context, row))
    stage, lists = _last_stage(context)
    last = {row for each in lists for row in each.rows if row in texts}
    share = Share(len(last & used), len(last))
    reached = _reached(context, texts)
    repeated, repeats = _repeated(_hit_lists(context, texts), texts)
    carrying = sum(context.passages[row].score is not None for row in texts)
    covered = Share(carrying, len(texts))
    gain, left_out = _rerank_gain(context.rerankers, used)
    exact = (
        share.percent,
        reached.percent,
        100 - repeated.percent,
        covered.percent,
        *(() if gain is None else (gain,)),
    )
    return Measures(
        scores=Scores(*map(float, exact)),
        overall=_overall(exact),
        stage=stage,
        used=share,
        reached=reached,
        repeated=repeated,
        repeats=repeats,
        carrying=covered,
        gain_left_out=left_out,
        best=tuple(each.rows[0] for each in lists if each.rows),
    )


def _why_nothing_found(context: TraceContext) -> str:
    listed = (*context.retrievals, *context.rerankers)
    reasons = [each.retrieval.incomplete for each in listed if each.retrieval.incomplete]
    if reasons:
        return f"the retrieval lists no passages: {_commonest(reasons)}"
    return "the retrieval found nothing" if listed else "no retrieval recorded"


def _commonest(reasons: Iterable[str]) -> str:
    return Counter(reasons).most_common(1)[0][0]


def _is_used(context: TraceContext, row: int) -> bool:
    """Tell whether a passage counts as being in the prompt of a call that feeds the answer."""
    return any(_counts(call.verdicts[row]) for call in context.calls if call.role != "other")


def _counts(verdict: Verdict) -> bool:
    if verdict.status == "partial":
        return (verdict.containment or 0) >= _USED_FROM
    return verdict.status == "included" and verdict.covered_by is None


def _last_stage(
    context: TraceContext,
) -> tuple[Literal["reranker", "retrieval"], tuple[Listed, ...]]:
    """Give the lists that were there right before the call.

    A reranker stands in place of what it was given: of searches that share a passage with it and
    of rerankers before it.
    """
    if not context.rerankers:
        return "retrieval", context.retrievals
    later = [
        each
        for number, each in enumerate(context.rerankers)
        if not any(set(each.rows) & set(o.input_rows) for o in context.rerankers[number + 1 :])
    ]
    taken = {row for each in context.rerankers for row in (*each.rows, *each.input_rows)}
    apart = [each for each in context.retrievals if taken.isdisjoint(each.rows)]
    return "reranker", (*later, *apart)


def _reached(context: TraceContext, texts: Texts) -> Share:
    """Walk the passages: the whole ones, longest first, then pieces, then what is left."""
    earlier = Earlier()
    used = left = 0
    by_status: dict[str, list[int]] = {"included": [], "partial": [], "absent": []}
    for row in texts:
        by_status[context.passages[row].verdict.status].append(row)
    for row in sorted(by_status["included"], key=lambda row: -len(texts[row].words)):
        used += _new_words(earlier, texts[row], len(texts[row].words))
    for row in by_status["partial"]:
        for piece in _pieces(context, row, texts[row]):
            used += _new_words(earlier, piece, len(texts[row].words))
    for row in (*by_status["partial"], *by_status["absent"]):
        left += _new_words(earlier, texts[row], len(texts[row].words))
    return Share(used, used + left)


def _new_words(earlier: Earlier, text: Text, size: int) -> int:
    """Count the words of a passage of ``size`` words, or of its piece, not in runs seen before."""
    count = len(text.words) - earlier.repeated_by(text, least_run(size))
    earlier.add(text)
    return count


def _pieces(context: TraceContext, row: int, text: Text) -> Iterator[Text]:
    """Give the runs of a partial passage that stand in the prompt."""
    passage = context.passages[row]
    prompt = "" if passage.call is None else context.calls[passage.call].text
    found = "\n".join(prompt[start:end] for start, end in passage.verdict.regions)
    readings = [found]
    if has_escapes(found):
        readings.append(unescaped(Plain(found)).text)
    runs = (counted_runs(text.words, words(reading)) for reading in readings)
    for run in max(runs, key=lambda found: sum(run.size for run in found)):
        yield text_of(text.words[run.start : run.start + run.size])


def _hit_lists(context: TraceContext, texts: Texts) -> tuple[tuple[int, ...], ...]:
    """Give the scored hits of each search; stamps and rerankers repeat those of others."""
    searches = (each.rows for each in context.retrievals if each.retrieval.stage != "provenance")
    lists = (tuple(row for row in rows if row in texts) for rows in searches)
    return tuple(filter(None, lists)) or (tuple(texts),)


def _repeated(lists: Iterable[tuple[int, ...]], texts: Texts) -> tuple[Share, Share]:
    """Measure how many words, and how many whole hits, repeat earlier hits of their list."""
    repeated = total = whole = hits = 0
    for rows in lists:
        earlier = Earlier()
        seen: set[int] = set()
        for row in rows:
            text = texts[row]
            size = len(text.words)
            again = row in seen or earlier.resembled_by(text)
            repeated += size if again else earlier.repeated_by(text, least_run(size))
            total, hits, whole = total + size, hits + 1, whole + again
            if row not in seen:
                seen.add(row)
                earlier.add(text)
    return Share(repeated, total), Share(whole, hits)


def _rerank_gain(
    rerankers: tuple[Listed, ...], used: frozenset[int]
) -> tuple[Fraction | None, str]:
    """Measure by how many places used passages rose, or say why that is not to be told."""
    gains: list[int] = []
    why = ""
    for each in rerankers:
        ranks = {row: rank for rank, row in reversed(list(enumerate(each.input_rows)))}
        found = [(ranks[row], rank, row) for rank, row in enumerate(each.rows) if row in ranks]
        moved = [before - after for before, after, row in found if row in used]
        order = [before for before, _, _ in found]
        if not moved:
            why = why or NONE_USED
        elif order == sorted(order):
            why = why or UNCHANGED
        elif used >= ranks.keys() and len(set(order)) == len(ranks):
            why = why or ALL_USED
        else:
            gains += moved
    if not gains:
        return None, why
    gain = 50 + Fraction(25, 2) * Fraction(sum(gains), len(gains))
    return min(max(gain, Fraction(0)), Fraction(100)), ""


def _overall(scores: tuple[Fraction, ...]) -> int:
    weights = _WEIGHTS if len(scores) == len(_WEIGHTS) else _WEIGHTS_WITH_GAIN
    total = sum(score * weight for score, weight in zip(scores, weights, strict=True)) / 100
    return math.floor(total + Fraction(1, 2))
