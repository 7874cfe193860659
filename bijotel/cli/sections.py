"""The sections of one entry, as lines. Pure: what is in them was read and checked before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from bijotel.cli.text import column_text, escape, escape_json, shown, shown_id, shown_score
from bijotel.cost import Cost, money
from bijotel.dedup import SameKey
from bijotel.entries import Chain
from bijotel.model import SpanRecord
from bijotel.provenance import CallSummary, RecordedProvenance, RecordedSource

SOURCES_LISTED: Final = 5
NOT_RECORDED: Final = "not recorded"


class Content(NamedTuple):
    """What the body of an entry says, as far as it can be read."""

    record: SpanRecord | None = None
    summary: CallSummary | None = None
    provenance: RecordedProvenance | None = None
    cost: Cost = Cost(None)
    problem: str = ""
    """Why the body of a span's entry cannot be read."""


CONTENT_UNKNOWN: Final = Content()
"""The entry is no span, or has no body."""


class Section(NamedTuple):
    """A title and the lines under it."""

    title: str
    lines: tuple[str, ...]


def metadata_section(chain: Chain, columns: Mapping[str, Any], content: Content) -> Section:
    """List the stored columns and what else places the span."""
    rows = {name: column_text(name, columns[name]) for name in _FIRST_COLUMNS}
    rows["chain_id"] = f"{chain.chain_id.hex()} ({escape(chain.name) or 'no name'})"
    if columns["kind"] == "span":
        rows |= {name: column_text(name, columns[name]) for name in _SPAN_COLUMNS}
        if content.record and content.summary:
            rows |= _recorded(content.record, content.summary)
    rows |= {name: column_text(name, columns[name]) for name in _LAST_COLUMNS}
    if content.problem:
        rows["body"] = f"cannot be read: {escape(content.problem)}"
    title = "Span Metadata" if columns["kind"] == "span" else "Entry Metadata"
    return Section(
        title, tuple(f"{name + ':':<21}{value}".rstrip() for name, value in rows.items())
    )


_FIRST_COLUMNS: Final = ("seq", "chain_id", "kind", "fmt", "sealed_at_unix_nano", "epoch", "key_id")
_SPAN_COLUMNS: Final = ("trace_id", "span_id", "name", "start_unix_nano", "end_unix_nano")
_LAST_COLUMNS: Final = ("dedup_key", "body_hash", "prev_tag", "tag")


def _recorded(record: SpanRecord, summary: CallSummary) -> dict[str, str]:
    status = f"{record.status.code} {shown(record.status.description or '')}"
    rows: dict[str, Any] = {
        "parent_span_id": record.parent_span_id,
        "span_kind": record.kind,
        "span_status": status.rstrip(),
        "model": summary.model,
        "input_tokens": summary.input_tokens,
        "output_tokens": summary.output_tokens,
        "via": record.via or None,
        "withheld": record.withheld or None,
    }
    for what, count in record.dropped._asdict().items():
        rows[f"dropped_{what}"] = count or None
    return {name: shown(value) for name, value in rows.items() if value is not None}


def status_section(summary: CallSummary, cost: Cost, same: SameKey | None) -> Section:
    """Say what the policy layer decided, what the call cost, and whether it was made again."""
    spent = f"unknown ({escape(cost.reason)})" if cost.usd is None else money(cost.usd)
    lines = [f"Cost (real): {spent}"]
    if same is not None:
        times = f"{same.count} times, entries {same.first_seq} to {same.last_seq}, as stored"
        lines.append(f"Asked:       {'once' if same.count == 1 else times}")
    if summary.warning is not None:
        lines.append(f"Warning:     {shown(summary.warning)}")
    return Section(f"Status: {summary.status}", tuple(lines))


def provenance_section(provenance: RecordedProvenance | None, *, short: bool) -> Section:
    """List the sources that fed the call, the first five of them.

    Args:
        provenance: What the span records.
        short: Cut digests to their first digits.
    """
    title = "RAG Provenance"
    if provenance is None:
        return Section(title, ("none recorded: the span has no bijotel.rag.* attribute",))
    rows = {
        "source_count": provenance.source_count,
        "retriever": provenance.retriever,
        "embedding": provenance.embedding_model,
        "context_tokens": provenance.context_tokens,
    }
    lines = [
        f"{name + ':':<16}{NOT_RECORDED if value is None else shown(value)}".rstrip()
        for name, value in rows.items()
    ]
    lines += [f"{'note:':<16}{escape(note)}" for note in provenance.notes]
    if provenance.unreadable is not None:
        lines.append(f"{'sources:':<16}no list, as recorded: {shown(provenance.unreadable)}")
    lines += [
        f"  source {number}: {_source(source, short=short)}"
        for number, source in enumerate(provenance.sources[:SOURCES_LISTED], start=1)
    ]
    if len(provenance.sources) > SOURCES_LISTED:
        lines.append(f"  ... and {len(provenance.sources) - SOURCES_LISTED} more")
    return Section(title, tuple(lines))


def _source(source: RecordedSource, *, short: bool) -> str:
    if source.malformed:
        return escape_json(source.malformed)
    return "  ".join(
        (
            f"doc={shown_id(source.document_id, short=short)}",
            f"chunk={shown(source.chunk_index)}",
            f"retriever={shown(source.retriever)}",
            f"sim={shown_score(source.similarity_score)}",
        )
    )


def body_section(body: Any) -> Section:
    """Show the body in full, the very octets that were hashed."""
    title = "Canonical Body"
    if not isinstance(body, bytes):
        return Section(title, (f"not shown: the column holds {escape(str(body))}",))
    text = body.decode("utf-8", "backslashreplace")
    printed = escape_json(text)
    how = "as stored" if printed == text else "invisible characters as JSON escapes"
    return Section(f"{title} ({len(body)} bytes, {how})", (printed,))
