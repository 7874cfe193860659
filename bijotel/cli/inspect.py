"""``bijotel inspect``: show one entry, after saying whether it verifies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import click

from bijotel.canonical import encode
from bijotel.cli.analysis import prices, prices_option
from bijotel.cli.context import SpanContext, context_document, context_section, read_context
from bijotel.cli.findings import finding_line
from bijotel.cli.options import chain_option, db_option, json_option, key_option, ring_or_none
from bijotel.cli.output import Output
from bijotel.cli.sections import (
    CONTENT_UNKNOWN,
    Content,
    Section,
    body_section,
    metadata_section,
    provenance_section,
    status_section,
)
from bijotel.cli.session import COULD_NOT_CHECK, FINDINGS, FINE, Session
from bijotel.cli.text import escape, json_column
from bijotel.cost import Prices
from bijotel.dedup import SameKey, find_same
from bijotel.dialects.usage import usage_of
from bijotel.entries import Chain, EntryCheck, chains, check_entry, find_span, only_chain
from bijotel.errors import CanonicalizationError, ConfigurationError
from bijotel.keys import SECRET_VARIABLE, KeyRing
from bijotel.provenance import RecordedProvenance, read_provenance, summarize
from bijotel.spans.decode import decode_record
from bijotel.stores.base import ENTRY_COLUMNS, Snapshot
from bijotel.stores.open import open_store

_SPAN_ID: Final = re.compile(r"[0-9A-Fa-f]{16}")
_SEQ: Final = re.compile(r"[0-9]{1,19}")


@click.command(short_help="Show one entry and say whether it verifies.")
@db_option
@chain_option
@key_option
@prices_option
@json_option
@click.argument("which", metavar="SEQ_OR_SPAN_ID")
@click.pass_obj
def inspect(
    session: Session,
    *,
    location: str,
    chain: str | None,
    keys: tuple[str, ...],
    price_file: str | None,
    which: str,
) -> None:
    """Show one entry and say whether it verifies.

    SEQ_OR_SPAN_ID is the entry's number, or a span id (16 hex digits). Checked are the body's
    hash, the tag and the link to the entry before; the whole chain is checked by "verify".
    Without a key nothing can be verified, and that is said first. Where the chain holds the
    retrieval and the call of one trace, it is said which sources reached the prompt.

    Exit codes: 0 verified, or no key given; 1 the entry does not verify; 2 asked wrongly (no
    such entry); 3 could not check (for example sealed with a key that is not given).
    """
    ring = ring_or_none(keys)
    pricing = prices(price_file)
    with open_store(location).snapshot() as snapshot:
        place, seq = _find(snapshot, chain, which)
        check = check_entry(snapshot, place, seq, ring)
        content = _read_content(check, pricing)
        same = _find_same(snapshot, place, check)
        context = read_context(snapshot, place, check, ring) if content.record else None
    session.verdict = _exit_code(check, ring)
    if session.json:
        session.output.document(_document(place, check, content, context, same))
    else:
        output = session.output
        output.line(_headline(output, place, check, ring))
        _print(output, check, _sections(output, place, check, content, context=context, same=same))


def _find(snapshot: Snapshot, chain: str | None, which: str) -> tuple[Chain, int]:
    if _SPAN_ID.fullmatch(which):
        return find_span(snapshot, chains(snapshot, chain), bytes.fromhex(which))
    if _SEQ.fullmatch(which):
        return only_chain(snapshot, chain), int(which)
    raise ConfigurationError(
        f"{which!r}: expected the number of an entry or a span id of 16 hex digits"
    )


def _exit_code(check: EntryCheck, ring: KeyRing | None) -> int:
    if check.verdict == "false":
        return FINDINGS
    return COULD_NOT_CHECK if check.verdict == "not-verified" and ring else FINE


def _find_same(snapshot: Snapshot, chain: Chain, check: EntryCheck) -> SameKey | None:
    key = check.columns[ENTRY_COLUMNS.index("dedup_key")]
    return find_same(snapshot, chain.chain_id, key) if isinstance(key, bytes) else None


def _read_content(check: EntryCheck, pricing: Prices) -> Content:
    """Read the body of a span's entry, which may be anything."""
    columns = dict(zip(ENTRY_COLUMNS, check.columns, strict=True))
    if columns["kind"] != "span" or not isinstance(columns["body"], bytes):
        return CONTENT_UNKNOWN
    try:
        record = decode_record(columns["body"])
    except CanonicalizationError as error:
        return Content(problem=str(error))
    cost = pricing.cost(record, usage_of(record))
    return Content(record, summarize(record), read_provenance(record), cost)


def _sections(
    output: Output,
    chain: Chain,
    check: EntryCheck,
    content: Content,
    *,
    context: SpanContext | None,
    same: SameKey | None,
) -> Iterator[Section]:
    columns = dict(zip(ENTRY_COLUMNS, check.columns, strict=True))
    yield metadata_section(chain, columns, content)
    if content.summary:
        yield status_section(content.summary, content.cost, same)
        yield provenance_section(content.provenance, short=output.is_terminal)
    if context:
        yield context_section(context)
    yield body_section(columns["body"])


def _print(output: Output, check: EntryCheck, sections: Iterator[Section]) -> None:
    for finding in check.findings:
        output.line(f"  {finding_line(finding)}")
    for section in sections:
        output.line()
        output.line(output.styled(f"=== {section.title} ===", "heading"))
        for line in section.lines:
            output.line(line)


def _headline(output: Output, chain: Chain, check: EntryCheck, ring: KeyRing | None) -> str:
    seq = check.columns[ENTRY_COLUMNS.index("seq")]
    entry = f"entry {seq} of chain {escape(chain.name or chain.chain_id.hex())}"
    if check.verdict == "verified":
        key_id = check.columns[ENTRY_COLUMNS.index("key_id")].hex()
        link = f"the link to entry {seq - 1}" if seq else "the link of the first entry"
        word = output.styled("VERIFIED", "good")
        return f"{word}: {entry}: body hash, tag and {link} hold (key {key_id})"
    if check.verdict == "false":
        word = output.styled("DOES NOT VERIFY", "bad")
        return f"{word}: {entry}: what follows is shown as stored and is not to be trusted"
    word = output.styled("NOT VERIFIED", "doubtful")
    reason = "what follows is shown as stored"
    if ring is None:
        reason = f"no key given (--key, or {SECRET_VARIABLE}): {reason}"
    return f"{word}: {entry}: {reason}"


def _document(
    chain: Chain,
    check: EntryCheck,
    content: Content,
    context: SpanContext | None,
    same: SameKey | None,
) -> dict[str, Any]:
    columns = dict(zip(ENTRY_COLUMNS, check.columns, strict=True))
    body = columns.pop("body")
    summary = content.summary
    return {
        "chain": chain.chain_id.hex(),
        "chain_name": chain.name,
        "verification": {
            "verdict": check.verdict,
            "findings": [finding.as_dict() for finding in check.findings],
        },
        "entry": {name: json_column(name, value) for name, value in columns.items()},
        "status": summary.status if summary else None,
        "span_status": summary.span_status if summary else None,
        "model": encode(summary.model) if summary else None,
        "input_tokens": encode(summary.input_tokens) if summary else None,
        "output_tokens": encode(summary.output_tokens) if summary else None,
        "cost": content.cost.as_dict() if summary else None,
        "same_dedup_key": same.as_dict() if same else None,
        "provenance": _provenance(content.provenance),
        "context": context_document(context),
        "body": _body(body),
    }


def _provenance(provenance: RecordedProvenance | None) -> dict[str, Any] | None:
    if provenance is None:
        return None
    return {
        "source_count": encode(provenance.source_count),
        "retriever": encode(provenance.retriever),
        "embedding_model": encode(provenance.embedding_model),
        "context_tokens": encode(provenance.context_tokens),
        "sources": [encode(source.as_dict()) for source in provenance.sources],
        "unreadable": encode(provenance.unreadable),
        "notes": list(provenance.notes),
    }


def _body(body: Any) -> Any:
    """Give a body as its own text; one that is no text as octets, see the formats."""
    if not isinstance(body, bytes):
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return encode(body)
