"""Joins what was retrieved with what the model calls were given: which passage reached what.

Pure: the dialects read the spans, context matching compares the texts, this decides what may be
compared with what. A passage cannot be in the prompt of a call that began before its retrieval
ended. Where the trace does not hold enough to tell, the verdict is ``unknown`` and says why; it
is never ``absent``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from bijotel.audit.model import JudgedCall, JudgedPassage, Listed, Role, TraceContext, Verdict
from bijotel.audit.roles import Roles, comes_after, roles
from bijotel.audit.rows import Row, Rows
from bijotel.context_matching import ContextMatches, PassageMatch, match_context
from bijotel.context_matching.decode import decode_prompt
from bijotel.context_matching.tokens import words
from bijotel.dialects.calls import NO_PROMPT
from bijotel.dialects.model import ModelCall, Retrieval
from bijotel.dialects.trace import CallReading, read_trace
from bijotel.traces.model import Trace

_ORDER = ("included", "partial", "unknown", "absent")
_WHO_SAYS: Mapping[bool, str] = {
    False: "as the application stated",
    True: "matched when it was sealed",
}
"""Who says what a stamp says, by whether bijotel matched the texts itself."""

_STATED: Mapping[str, Verdict] = {
    "included": Verdict("included", containment=1.0),
    "partial": Verdict("partial"),
    "absent": Verdict("absent", containment=0.0),
    "unknown": Verdict("unknown"),
}
"""For a stamp, which does not say how much of a passage is there."""

_RUN = 8
"""Words of a run that counts; in a passage of fewer than 16, half of the passage's words."""

_LATE = Verdict("absent", containment=0.0, reason="retrieved after the call began")
_WITHHELD = "the content of a span of this trace is not in the chain"


def _no_text(_identifier: str) -> None:
    return None


def join_trace(trace: Trace, text_of: Callable[[str], str | None] = _no_text) -> TraceContext:
    """Find out which passages of a trace reached which of its prompts.

    Args:
        trace: All spans and log records of one trace.
        text_of: Gives the text of a passage by its id where the trace does not hold it, or None.

    Returns:
        Every distinct passage and every model call, with a verdict for each pair of them.
    """
    reading = read_trace(trace)
    parts = roles(reading)
    table = Rows(reading, text_of)
    calls = tuple(_judged(one, table.rows, parts) for one in reading.calls)
    withheld = any(span.withheld for span in trace.spans)
    return TraceContext(
        trace_id=trace.trace_id,
        retrievals=tuple(map(Listed, reading.retrievals, table.retrievals)),
        rerankers=tuple(
            Listed(found, *numbers)
            for found, numbers in zip(reading.rerankers, table.rerankers, strict=True)
        ),
        calls=calls,
        passages=tuple(
            _passage(number, row, calls, withheld=withheld) for number, row in enumerate(table.rows)
        ),
        answer=next((n for n, call in enumerate(calls) if call.role == "answer"), None),
        answer_certain=parts.certain,
    )


def _judged(one: CallReading, rows: list[Row], parts: Roles) -> JudgedCall:
    """Judge every passage by the prompt of one call."""
    role: Role = "other"
    if one in parts.contributing:
        role = "answer" if one is parts.answer else "contributing"
    at_hand = [row if _was_at_hand(row, one.call) else None for row in rows]
    matches = _matches(one.call, at_hand)
    lineage = {id(reading.span) for reading in one.lineage}
    verdicts = (
        _LATE if row is None else _verdict(one.call, row, match, lineage)
        for row, match in zip(at_hand, matches, strict=True)
    )
    return JudgedCall(one.call, role, matches.text, tuple(verdicts))


def _was_at_hand(row: Row, call: ModelCall) -> bool:
    """Tell whether a passage had been retrieved when a call began."""
    found = [source for source, _ in row.sources if source.stage != "provenance"]
    return any(
        comes_after(call.span, call.span.start_time_unix_nano, source.span, source.ended_unix_nano)
        for source in found or [source for source, _ in row.sources]
    )


def _matches(call: ModelCall, rows: list[Row | None]) -> ContextMatches:
    """Match the texts of passages, None for one that is not to be looked for."""
    if not call.messages:
        return ContextMatches([PassageMatch("unknown", reason="no-prompt")] * len(rows), "")
    texts = [row.text if row else None for row in rows]
    prompt = call.prompt
    if not any(texts):
        unseen = PassageMatch("unknown", reason="no-content")
        return ContextMatches([unseen] * len(rows), decode_prompt(prompt))
    cut = call.capture.state == "incomplete"
    matches = match_context(texts, prompt, prompt_truncated=cut)
    answers = list(matches)
    for query, numbers in _queries(rows).items():
        asked = match_context(texts, prompt, query=query, prompt_truncated=cut)
        for number in numbers:
            answers[number] = asked[number]
    return ContextMatches(answers, matches.text)


def _queries(rows: list[Row | None]) -> dict[str, list[int]]:
    """Give the queries that hold a run of what they found, and whose passages these are.

    A query matters where a run of a passage lies wholly inside it (rule R5). Without such a run
    a look at the prompt with the query in mind comes to the same end.
    """
    found: dict[str, list[int]] = {}
    held: dict[str, frozenset[str]] = {}
    for number, row in enumerate(rows):
        query = row.sources[0][0].query if row is not None and row.text else None
        if row is not None and query:
            if query not in held:
                held[query] = frozenset(words(query))
            if _has_run(row.words, held[query]):
                found.setdefault(query, []).append(number)
    return found


def _has_run(passage: Sequence[str], query: frozenset[str]) -> bool:
    """Tell whether so many neighbouring words of a passage as count are all words of a query."""
    least = min(_RUN, (len(passage) + 1) // 2)
    size = 0
    for word in passage:
        size = size + 1 if word in query else 0
        if size >= least:
            return True
    return not passage


def _verdict(call: ModelCall, row: Row, match: PassageMatch, lineage: set[int]) -> Verdict:
    if row.text is None:
        stamps = (pair for pair in row.stamps if id(pair[0].span) in lineage)
        stated = _best(_stated(row, *pair) for pair in stamps)
        return stated or Verdict("unknown", reason=row.reason)
    if match.status == "unknown":
        told = match.reason in {"no-prompt", "prompt-truncated"} and call.capture.reason
        return Verdict("unknown", reason=told or match.reason or "")
    if match.status == "absent" and row.reason:
        return Verdict("unknown", reason=row.reason)
    return Verdict(
        match.status,
        match.level,
        match.containment,
        match.regions,
        match.position,
        match.covered_by,
    )


def _stated(row: Row, found: Retrieval, status: str) -> Verdict:
    """Give the verdict of a stamp about a passage whose text is not there."""
    why = row.reason if status == "unknown" else _WHO_SAYS[found.sealed]
    return replace(_STATED[status], reason=why)


def _best(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Give the best verdict, of equal ones the first."""
    return min(
        verdicts,
        key=lambda verdict: (_ORDER.index(verdict.status), -(verdict.containment or 0)),
        default=None,
    )


def _passage(
    number: int, row: Row, calls: tuple[JudgedCall, ...], *, withheld: bool
) -> JudgedPassage:
    """Judge one passage by all calls that work on the answer."""
    feeding = {n: call.verdicts[number] for n, call in enumerate(calls) if call.role != "other"}
    beside = {id(call.call.span) for call in calls if call.role == "other"}
    stated = [_stated(row, *pair) for pair in row.stamps if id(pair[0].span) not in beside]
    looked = [verdict for verdict in feeding.values() if verdict is not _LATE]
    verdict = _best(stated if stated and row.text is None else looked)
    giver = next((n for n, given in feeding.items() if given is verdict), None)
    if verdict is None:
        seen = any(calls[n].call.messages for n in feeding)
        verdict = _LATE if seen else Verdict("unknown", reason=NO_PROMPT)
    if withheld and verdict.status == "absent":
        verdict = Verdict("unknown", reason=_WITHHELD)
    found = next((pair for pair in row.sources if pair[0].stage != "provenance"), row.sources[0])
    return JudgedPassage(
        id=row.id,
        text=row.text,
        score=row.score,
        score_kind=row.score_kind,
        rank=found[1],
        source_span_id=found[0].span.span_id,
        verdict=verdict,
        call=giver,
    )
