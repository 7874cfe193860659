"""Which sources reached the prompt, as far as the entries of one trace in a chain tell.

The entries are read one by one and each is checked; one that does not verify is left out, and
that is said. Who reads a single entry gets an answer in bounded time: a trace of very many
entries is not joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from bijotel.audit.join import join_trace
from bijotel.audit.model import JudgedPassage, TraceContext, Verdict
from bijotel.cli.audit_blocks import label
from bijotel.cli.sections import Section
from bijotel.cli.text import escape
from bijotel.entries import Chain, EntryCheck, check_entry
from bijotel.errors import CanonicalizationError
from bijotel.keys import KeyRing
from bijotel.model import SpanRecord
from bijotel.spans.decode import decode_record
from bijotel.stores.base import ENTRY_COLUMNS, Snapshot
from bijotel.traces.model import Trace

_MOST_ENTRIES: Final = 1_000
_MOST_BYTES: Final = 64 * 1024 * 1024
_SEQ, _KIND, _TRACE_ID, _SPAN_ID, _BODY = map(
    ENTRY_COLUMNS.index, ("seq", "kind", "trace_id", "span_id", "body")
)


@dataclass(frozen=True, slots=True)
class SpanContext:
    """What became of the sources of one span."""

    of_call: bool
    """The span is a model call, and the verdicts are those for its own prompt; else it
    retrieved the sources, and they are for all calls that feed the answer."""
    sources: tuple[tuple[JudgedPassage, Verdict], ...]
    left_out: int
    """Entries of the trace that do not verify."""


def read_context(
    snapshot: Snapshot, chain: Chain, entry: EntryCheck, ring: KeyRing | None
) -> SpanContext | None:
    """Join the entries of a trace; None when they do not tell about the sources of one span.

    Args:
        snapshot: The store.
        chain: The chain.
        entry: The span's own entry.
        ring: The keys; without any, entries are taken as they are stored.
    """
    trace_id, span_id = entry.columns[_TRACE_ID], entry.columns[_SPAN_ID]
    if entry.verdict != ("verified" if ring else "not-verified") or not trace_id:
        return None
    read = _trace(snapshot, chain, trace_id, ring)
    if read is None:
        return None
    trace, left_out = read
    context = join_trace(trace)
    if not _tells(context):
        return None
    for call in context.calls:
        if call.call.span.span_id == span_id.hex():
            pairs = zip(context.passages, call.verdicts, strict=True)
            return SpanContext(True, tuple(pairs), left_out)
    rows = dict.fromkeys(
        row
        for each in (*context.retrievals, *context.rerankers)
        if each.retrieval.span.span_id == span_id.hex()
        for row in each.rows
    )
    found = tuple((context.passages[row], context.passages[row].verdict) for row in rows)
    return SpanContext(False, found, left_out) if found else None


def context_section(context: SpanContext) -> Section:
    """Show which sources reached the prompt."""
    verdicts = [verdict for _, verdict in context.sources]
    reached = sum(verdict.status in {"included", "partial"} for verdict in verdicts)
    unknown = sum(verdict.status == "unknown" for verdict in verdicts)
    where = "the prompt of this call" if context.of_call else "the prompt of a call for the answer"
    line = f"{reached} of {len(verdicts)} sources reached {where}"
    lines = [f"{line}, {unknown} unknown" if unknown else line]
    if context.left_out:
        lines.append(f"left out: {context.left_out} entries of the trace that do not verify")
    lines += (
        f"  {verdict.status:<8}  {_facts(passage, verdict)}" for passage, verdict in context.sources
    )
    return Section("Context", tuple(lines))


def context_document(context: SpanContext | None) -> dict[str, Any] | None:
    """Give the same as JSON."""
    if context is None:
        return None
    return {
        "of": "call" if context.of_call else "retrieval",
        "left_out": context.left_out,
        "sources": [
            {
                "id": passage.id or None,
                "status": verdict.status,
                "containment": verdict.containment,
                "position": verdict.position,
                "reason": verdict.reason or None,
            }
            for passage, verdict in context.sources
        ],
    }


def _facts(passage: JudgedPassage, verdict: Verdict) -> str:
    facts = [label(passage)]
    if verdict.status == "partial" and verdict.containment is not None:
        facts.append(f"containment {verdict.containment:.3f}")
    if verdict.position is not None:
        facts.append(f"place {verdict.position}")
    if verdict.reason:
        facts.append(f"({escape(verdict.reason)})")
    return "  ".join(facts)


def _tells(context: TraceContext) -> bool:
    """Tell whether the trace holds a retrieval and a call, or a stamp that knows the prompt."""
    stamps = [each for each in context.retrievals if each.retrieval.stage == "provenance"]
    if any(hit.status for each in stamps for hit in each.retrieval.passages):
        return True
    searches = len(context.retrievals) - len(stamps) + len(context.rerankers)
    return bool(searches and context.calls)


def _trace(
    snapshot: Snapshot, chain: Chain, trace_id: bytes, ring: KeyRing | None
) -> tuple[Trace, int] | None:
    """Read the spans of a trace that verify and count the others; None when it is too long."""
    rows = snapshot.select(chain.chain_id, (("trace_id", trace_id),), limit=_MOST_ENTRIES + 1)
    numbers = [row.columns[_SEQ] for row in rows]
    if len(numbers) > _MOST_ENTRIES:
        return None
    records: list[SpanRecord] = []
    left_out = size = 0
    for seq in numbers:
        check = check_entry(snapshot, chain, seq, ring) if type(seq) is int else None
        if check is None or check.verdict != ("verified" if ring else "not-verified"):
            left_out += 1
            continue
        size += len(check.columns[_BODY])
        if size > _MOST_BYTES:
            return None
        records.extend(_record(check.columns))
    return Trace(trace_id.hex(), tuple(records)), left_out


def _record(columns: tuple[Any, ...]) -> Iterator[SpanRecord]:
    if columns[_KIND] == "span":
        with suppress(CanonicalizationError):
            yield decode_record(columns[_BODY])
