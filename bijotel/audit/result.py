"""What an audit says about one trace: the verdict, its scores, and what to do about them. Pure.

Not applicable is a state of its own, neither good nor bad: such a trace has a reason and no
score. The numbers come from :mod:`~bijotel.audit.score`; how they are printed is for others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from bijotel.audit.join import join_trace
from bijotel.audit.model import JudgedCall, JudgedPassage, Role, TraceContext, Verdict
from bijotel.audit.score import Measures, Scores, measure, scored_texts, why_not_applicable
from bijotel.traces.model import Trace

State: TypeAlias = Literal["PASS", "WARN", "FAIL", "NOT_APPLICABLE"]
Level: TypeAlias = Literal["good", "doubtful", "bad", "note"]

PASS_FROM = 75
"""The overall score, or a sub-score, that is good."""
WARN_FROM = 50
"""The lowest that is doubtful; below it is bad."""

_ADVISE_BELOW = 60
"""Precision, or efficiency, below which there is advice."""

_LONG_PROMPT = 8_000
"""Characters from which on the middle of a prompt is far from both its ends."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One thing that an audit found, on one line."""

    level: Level
    subject: str
    """A sub-score's name in words, or what else it is about."""
    text: str


@dataclass(frozen=True, slots=True)
class AuditedCall:
    """One model call and what its own prompt holds."""

    span_id: str
    """16 lower-case hex digits."""
    model: str
    """The one that answered, else the one that was asked for."""
    role: Role
    text: str
    """The decoded prompt into which regions point, empty when none was recorded."""
    verdicts: tuple[Verdict, ...]
    """One for each passage of the trace."""


@dataclass(frozen=True, slots=True)
class TraceAudit:
    """The audit of one trace."""

    trace_id: str
    """32 lower-case hex digits."""
    verdict: State
    """``PASS`` from 75, ``WARN`` from 50, else ``FAIL``; ``NOT_APPLICABLE`` without a score."""
    reason: str
    """Why it is not applicable, empty when it is."""
    overall: int | None
    """From 0 to 100, None when not applicable."""
    scores: Scores | None
    """The sub-scores, None when not applicable."""
    answer: int | None
    """Index of the call that answers, None when the trace holds none."""
    answer_certain: bool
    """False when several calls may be the one that answers and no output tells."""
    calls: tuple[AuditedCall, ...]
    """Every model call with its own verdict for each passage, in the order of their begin."""
    passages: tuple[JudgedPassage, ...]
    """Every distinct passage with its best verdict, in the order of retrieval."""
    findings: tuple[AuditFinding, ...] = ()
    recommendations: tuple[str, ...] = ()

    def count(self, status: str) -> int:
        """Count the passages of a status."""
        return sum(passage.verdict.status == status for passage in self.passages)


def audit_trace(trace: Trace) -> TraceAudit:
    """Find out which retrieved passages of a trace reached the answer, and score that.

    Args:
        trace: All spans and log records of one trace, of any instrumentation that is known.

    Returns:
        The verdict with its scores; ``NOT_APPLICABLE`` where the trace does not hold enough.

    Range:
        Scores are from 0 to 100.

    Undefined when:
        The trace holds no retrieval, no prompt or no passage text, half or more of its passages
        are unknown, or a span of the retrieval or of a contributing call lost attributes or
        events: scores None, ``reason``.

    Source:
        docs/reference/audit.md.

    Added in 0.1.
    """
    context = join_trace(trace)
    texts = scored_texts(context.passages)
    reason = why_not_applicable(context, texts)
    measures = None if reason else measure(context, texts)
    return TraceAudit(
        trace_id=context.trace_id,
        verdict=_state(measures.overall) if measures else "NOT_APPLICABLE",
        reason=reason,
        overall=measures.overall if measures else None,
        scores=measures.scores if measures else None,
        answer=context.answer,
        answer_certain=context.answer_certain,
        calls=tuple(map(_call, context.calls)),
        passages=context.passages,
        findings=tuple(_findings(context, measures)) if measures else (),
        recommendations=tuple(_recommendations(measures)) if measures else (),
    )


def _call(judged: JudgedCall) -> AuditedCall:
    call = judged.call
    return AuditedCall(call.span.span_id, call.model, judged.role, judged.text, judged.verdicts)


def level_of(score: float) -> Level:
    """Say how good a score is."""
    return "good" if score >= PASS_FROM else "doubtful" if score >= WARN_FROM else "bad"


def _state(overall: int) -> State:
    return "PASS" if overall >= PASS_FROM else "WARN" if overall >= WARN_FROM else "FAIL"


def _findings(context: TraceContext, measures: Measures) -> Iterator[AuditFinding]:
    scores, stage = measures.scores, _stage(measures)
    used, reached, carrying = measures.used, measures.reached, measures.carrying
    for subject, score, text in (
        ("precision", scores.precision, f"{used.part} of {used.whole} {stage} are in the prompt"),
        (
            "efficiency",
            scores.efficiency,
            f"{reached.part} of {reached.whole} retrieved words reached the prompt",
        ),
        ("uniqueness", scores.uniqueness, _repetition(measures)),
        (
            "coverage",
            scores.coverage,
            f"{carrying.part} of {carrying.whole} passages carry a score",
        ),
    ):
        yield AuditFinding(level_of(score), subject, text)
    if scores.rerank_gain is not None:
        places = (scores.rerank_gain - 50) / 12.5
        text = f"used passages rose by {places:.3g} places on average"
        yield AuditFinding(level_of(scores.rerank_gain), "rerank gain", text)
    elif measures.gain_left_out:
        yield AuditFinding("note", "rerank gain", f"left out: {measures.gain_left_out}")
    yield from _notes(context, measures)


def _stage(measures: Measures) -> str:
    if measures.stage == "reranker":
        return "passages that the reranker gave out"
    return "retrieved passages (no reranker is recorded)"


def _repetition(measures: Measures) -> str:
    repeated, repeats = measures.repeated, measures.repeats
    text = f"{repeated.part} of {repeated.whole} words of the hits repeat earlier hits"
    return f"{text}, {repeats.part} of {repeats.whole} hits whole" if repeats.part else text


def _notes(context: TraceContext, measures: Measures) -> Iterator[AuditFinding]:
    """Say what a reader should know beside the scores."""
    unknown = [passage.verdict.reason for passage in context.passages if _is_unknown(passage)]
    if unknown:
        reasons = ", ".join(dict.fromkeys(unknown))
        yield AuditFinding("note", "unknown", f"{len(unknown)} left out of the scores: {reasons}")
    for each in (*context.retrievals, *context.rerankers):
        if each.retrieval.incomplete:
            text = f"{each.retrieval.span.span_id} may not list all: {each.retrieval.incomplete}"
            yield AuditFinding("note", "retrieval", text)
    if not context.answer_certain:
        text = "several calls may be the one that answers; taken is the one that ended last"
        yield AuditFinding("note", "answer", text)
    if any(_is_in_the_middle(context, context.passages[row]) for row in measures.best):
        text = "the best-ranked passage stands in the middle of a long prompt"
        yield AuditFinding("note", "position", text)


def _is_unknown(passage: JudgedPassage) -> bool:
    return passage.verdict.status == "unknown"


def _is_in_the_middle(context: TraceContext, passage: JudgedPassage) -> bool:
    if passage.call is None or not passage.verdict.regions:
        return False
    size = len(context.calls[passage.call].text)
    return size >= _LONG_PROMPT and size < 3 * passage.verdict.regions[0][0] < 2 * size


def _recommendations(measures: Measures) -> Iterator[str]:
    used, reached, scores = measures.used, measures.reached, measures.scores
    if not used.part:
        yield f"none of the {used.whole} {_stage(measures)} is in the prompt: find out why"
    elif scores.precision < _ADVISE_BELOW and measures.stage == "retrieval":
        yield f"reduce top-k {used.whole} -> {used.part}"
    if used.part and scores.efficiency < _ADVISE_BELOW:
        wasted = reached.whole - reached.part
        yield f"{wasted} of {reached.whole} retrieved words are wasted: retrieve less, or pass more"
    if measures.repeats.part:
        yield (
            f"{measures.repeats.part} of {measures.repeats.whole} hits repeat an earlier one: "
            "remove duplicates from the index or the results"
        )
