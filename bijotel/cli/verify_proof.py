"""``bijotel verify-proof``: check the proof of one entry, and show the entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bijotel.cli.evidence import pubkey_option
from bijotel.cli.options import json_option
from bijotel.cli.output import Output
from bijotel.cli.sections import (
    CONTENT_UNKNOWN,
    Content,
    body_section,
    metadata_section,
    provenance_section,
)
from bijotel.cli.session import Session
from bijotel.cli.text import escape, json_column
from bijotel.entries import Chain
from bijotel.errors import CanonicalizationError
from bijotel.evidence_files import read_evidence
from bijotel.model import Entry
from bijotel.proof import MAX_PROOF_BYTES, ProvenEntry, verify_proof
from bijotel.provenance import read_provenance, summarize
from bijotel.seal import KNOWN_FORMATS
from bijotel.signing import load_verifier_key
from bijotel.spans.decode import decode_record
from bijotel.verifier_key import VerifierKey

_NOT_CHECKED = ("that what was sealed is true", "any other entry of the log")


@click.command("verify-proof", short_help="Check the proof of one entry.")
@pubkey_option
@json_option
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_obj
def verify_proof_command(session: Session, pubkeys: tuple[str, ...], file: Path) -> None:
    """Check that a checkpoint signed by these keys covers the one entry in FILE, and show it.

    Needs no database, no secret and no network.

    Exit codes: 0 the proof holds; 1 it does not; 2 asked wrongly (no key, for example); 3 could
    not check.
    """
    keys = tuple(load_verifier_key(source) for source in pubkeys)
    proven = verify_proof(read_evidence(file, MAX_PROOF_BYTES), keys)
    if session.json:
        session.output.document(_document(proven, keys))
    else:
        _print(session.output, proven, keys)


def _print(output: Output, proven: ProvenEntry, keys: tuple[VerifierKey, ...]) -> None:
    entry, checkpoint = proven.entry, proven.checkpoint
    signers = ", ".join(_key_name(key) for key in keys)
    output.line(
        f"{output.styled('OK', 'good')}: entry {entry.seq} of {escape(checkpoint.origin)}: covered "
        f"by the checkpoint of size {checkpoint.size} that {escape(signers)} signed"
    )
    for subject in _NOT_CHECKED:
        output.line(f"not checked: {subject}")
    if KNOWN_FORMATS.get(entry.kind) != entry.fmt:
        output.line(f"notice: kind {escape(entry.kind)}, format {escape(entry.fmt)}: not known")
    content = _read_content(entry)
    sections = [metadata_section(Chain(entry.chain_id, "", None), entry._asdict(), content)]
    if content.record:
        sections.append(provenance_section(content.provenance, short=output.is_terminal))
    for section in (*sections, body_section(entry.body)):
        output.line()
        output.line(output.styled(f"=== {section.title} ===", "heading"))
        for line in section.lines:
            output.line(line)


def _read_content(entry: Entry) -> Content:
    if entry.kind != "span":
        return CONTENT_UNKNOWN
    try:
        record = decode_record(entry.body)
    except CanonicalizationError as error:
        return Content(problem=str(error))
    return Content(record, summarize(record), read_provenance(record))


def _document(proven: ProvenEntry, keys: tuple[VerifierKey, ...]) -> dict[str, Any]:
    entry, checkpoint = proven.entry, proven.checkpoint
    columns = {name: json_column(name, value) for name, value in entry._asdict().items()}
    return {
        "ok": True,
        "entry": {**columns, "body": entry.body.decode()},
        "checkpoint": {
            "origin": checkpoint.origin,
            "size": checkpoint.size,
            "root_hash": checkpoint.root_hash.hex(),
        },
        "keys": [_key_name(key) for key in keys],
        "not_checked": list(_NOT_CHECKED),
    }


def _key_name(key: VerifierKey) -> str:
    return f"{key.name}+{key.key_hash.hex()}"
