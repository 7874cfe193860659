"""Audits as lines for people: a block or a line for each trace, the summary of a session. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from bijotel.audit import Scores, TraceAudit
from bijotel.audit.model import JudgedPassage
from bijotel.audit.report import Summary
from bijotel.audit.result import State, level_of
from bijotel.cli.text import escape, shown_passage_id, shown_score

Dress: TypeAlias = Callable[[str, str], str]
"""Dresses text in a style where colour is wanted."""

_BAR: Final = 20
"""Characters of a full bar."""
_TEXT_SHOWN: Final = 48
"""Characters of a passage's text where it has no id."""
_STYLES: Final[Mapping[State, str]] = {
    "PASS": "good",
    "WARN": "doubtful",
    "FAIL": "bad",
    "NOT_APPLICABLE": "heading",
}
_LABELS: Final = (
    ("precision", "P"),
    ("efficiency", "E"),
    ("uniqueness", "U"),
    ("coverage", "C"),
    ("rerank gain", "R"),
)
"""The sub-scores in words and in one letter, in the order of the fields of ``Scores``."""


class Signs(NamedTuple):
    """The characters that make bars and symbols."""

    full: str
    empty: str
    good: str
    doubtful: str
    bad: str
    note: str
    advice: str


_DRAWN: Final = Signs("█", "░", "✓", "!", "✗", "·", "→")
_PLAIN: Final = Signs("#", "-", "+", "!", "x", "*", ">")


def signs_for(encoding: str | None) -> Signs:
    """Choose the signs that a stream of this encoding can write."""
    try:
        "".join(_DRAWN).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return _PLAIN
    return _DRAWN


def block(
    audit: TraceAudit, missed: tuple[str, ...], *, verbose: bool, signs: Signs, dress: Dress
) -> Iterator[str]:
    """Show one trace in full.

    Args:
        audit: The trace.
        missed: Thresholds that it misses, in words.
        verbose: Show what is good too, every passage and every call.
        signs: What to draw with.
        dress: How to colour.
    """
    yield _headline(audit, dress)
    if audit.scores:
        for (name, _), score in zip(_LABELS, _values(audit.scores), strict=True):
            if score is not None:
                yield f"  {name:<12} {_bar(score, signs, dress)} {score:5.1f}"
    yield f"  {'passages':<12} {_counts(audit)}"
    yield from (f"  {dress(signs.bad, 'bad')} {text}" for text in missed)
    for finding in audit.findings:
        if verbose or finding.level != "good":
            style = "heading" if finding.level == "note" else finding.level
            sign = dress(getattr(signs, finding.level), style)
            yield f"  {sign} {finding.subject}: {escape(finding.text)}"
    yield from (f"  {signs.advice} {escape(advice)}" for advice in audit.recommendations)
    if verbose:
        yield from _details(audit)
    yield ""


def compact(audit: TraceAudit, missed: tuple[str, ...], dress: Dress) -> str:
    """Show one trace on one line."""
    word = dress(f"{_word(audit.verdict):<4}", _STYLES[audit.verdict])
    if audit.scores is None:
        return f"{word}   -  {audit.trace_id}  {escape(audit.reason)}"
    cells = (
        f"{letter} {'    -' if score is None else f'{score:5.1f}'}"
        for (_, letter), score in zip(_LABELS, _values(audit.scores), strict=True)
    )
    tail = "".join(f"  {text}" for text in missed)
    return f"{word} {audit.overall:>3}  {audit.trace_id}  {'  '.join(cells)}{dress(tail, 'bad')}"


def summary_lines(summary: Summary, dress: Dress) -> Iterator[str]:
    """Show what a session came to."""
    counts = (
        dress(
            f"{summary.verdicts[state]} {state}",
            _STYLES[state] if summary.verdicts[state] else "heading",
        )
        for state in ("PASS", "WARN", "FAIL")
    )
    mean = "none" if summary.mean_overall is None else f"{summary.mean_overall:.1f}"
    yield dress("=== Session ===", "heading")
    yield f"{'traces:':<16}{summary.traces}"
    yield f"{'audited:':<16}{summary.audited} ({', '.join(counts)})"
    yield f"{'not applicable:':<16}{summary.verdicts['NOT_APPLICABLE']}"
    yield f"{'mean overall:':<16}{mean}"
    yield f"{'skipped lines:':<16}{summary.skipped_lines}"


def _word(state: State) -> str:
    return "N/A" if state == "NOT_APPLICABLE" else state


def _values(scores: Scores) -> tuple[float | None, ...]:
    return (
        scores.precision,
        scores.efficiency,
        scores.uniqueness,
        scores.coverage,
        scores.rerank_gain,
    )


def _headline(audit: TraceAudit, dress: Dress) -> str:
    style = _STYLES[audit.verdict]
    if audit.overall is None:
        word = dress("NOT APPLICABLE", style)
        return f"{word}  trace {audit.trace_id}: {escape(audit.reason)}"
    return f"{dress(f'{audit.verdict}  {audit.overall}/100', style)}  trace {audit.trace_id}"


def _bar(score: float, signs: Signs, dress: Dress) -> str:
    # A bar is full for a full score alone, and never empty for a score above zero.
    filled = _BAR if score >= 100 else min(max(round(score * _BAR / 100), score > 0), _BAR - 1)
    return dress(signs.full * filled, level_of(score)) + signs.empty * (_BAR - filled)


def _counts(audit: TraceAudit) -> str:
    counts = (
        (audit.count("included"), "in prompt"),
        (audit.count("absent"), "dropped"),
        (audit.count("partial"), "cut"),
        (audit.count("unknown"), "unknown"),
    )
    listed = ", ".join(f"{count} {what}" for count, what in counts)
    return f"{len(audit.passages)} retrieved: {listed}"


def _details(audit: TraceAudit) -> Iterator[str]:
    for number, passage in enumerate(audit.passages):
        yield f"  passage {number}: {_passage(passage)}"
    for call in audit.calls:
        yield f"  call {call.span_id}: {call.role}"


def _passage(passage: JudgedPassage) -> str:
    verdict = passage.verdict
    facts = [verdict.status, label(passage)]
    if verdict.status == "partial" and verdict.containment is not None:
        facts.append(f"containment {verdict.containment:.3f}")
    if verdict.position is not None:
        facts.append(f"place {verdict.position}")
    if passage.score is not None:
        facts.append(f"{passage.score_kind} {shown_score(passage.score)}")
    facts.append(f"rank {passage.rank}")
    if verdict.covered_by is not None:
        facts.append(f"inside passage {verdict.covered_by}")
    if verdict.reason:
        facts.append(escape(verdict.reason))
    return "  ".join(facts)


def label(passage: JudgedPassage) -> str:
    """Name a passage by its id, else by how its text begins."""
    if passage.id or not passage.text:
        return shown_passage_id(passage.id) or "(no id)"
    cut = "..." if len(passage.text) > _TEXT_SHOWN else ""
    return f'"{escape(passage.text[:_TEXT_SHOWN])}{cut}"'
