"""``bijotel match``: tell whether a text is what an entry was sealed with."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from bijotel.cli.findings import finding_line
from bijotel.cli.options import chain_option, db_option, json_option, key_option
from bijotel.cli.session import FINDINGS, FINE, Session
from bijotel.cli.text import escape
from bijotel.digest_match import candidates, places_of
from bijotel.entries import Chain, check_entry, only_chain
from bijotel.errors import (
    CanonicalizationError,
    ConfigurationError,
    UnavailableError,
    VerificationError,
)
from bijotel.keys import KeyRing
from bijotel.model import Entry, SpanRecord
from bijotel.seal import MAX_BODY_BYTES
from bijotel.spans.decode import decode_record
from bijotel.stores.base import Snapshot
from bijotel.stores.open import open_store

MAX_TEXT_BYTES: Final = MAX_BODY_BYTES
"""No value of an entry can be longer than its body."""


@click.command(short_help="Tell whether a text is what an entry was sealed with.")
@db_option
@chain_option
@key_option
@json_option
@click.argument("seq", type=click.IntRange(min=0), metavar="SEQ")
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@click.pass_obj
def match(
    session: Session,
    *,
    location: str,
    chain: str | None,
    keys: tuple[str, ...],
    seq: int,
    path: Path,
) -> None:
    """Tell whether the text in FILE is a value that entry SEQ was sealed with.

    For chains in digest mode, which prove what was said without holding it. FILE is UTF-8, or -
    for standard input; a newline at its end does not matter, and a value with structure is
    presented as JSON. The entry itself is verified first.

    Exit codes: 0 it is, and where; 1 it is not, or the entry does not verify; 2 asked wrongly;
    3 could not check.
    """
    ring = KeyRing(*keys)
    values = candidates(_read_text(path))
    with open_store(location).snapshot() as snapshot:
        place = only_chain(snapshot, chain)
        record = _verified_record(snapshot, place, seq, ring)
    found = places_of(record, values, (key.digest_key(place.chain_id) for key in ring))
    session.verdict = FINE if found else FINDINGS
    if session.json:
        document = {"chain": place.chain_id.hex(), "seq": seq, "matches": list(found)}
        session.output.document(document)
        return
    output = session.output
    for name in found:
        output.line(f"{output.styled('MATCH', 'good')}: entry {seq}: {escape(name)}")
    if not found:
        output.line(f"{output.styled('NO MATCH', 'bad')}: entry {seq}: no value is this text")


def _read_text(path: Path) -> str:
    try:
        with click.open_file(str(path), "rb") as file:
            octets: bytes = file.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be read: {error.strerror}") from None
    if len(octets) > MAX_TEXT_BYTES:
        raise ConfigurationError(f"{path}: more than {MAX_TEXT_BYTES} bytes, longer than any value")
    try:
        return octets.decode()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: expected UTF-8 text") from None


def _verified_record(snapshot: Snapshot, chain: Chain, seq: int, ring: KeyRing) -> SpanRecord:
    check = check_entry(snapshot, chain, seq, ring)
    if check.verdict != "verified":
        error = VerificationError if check.verdict == "false" else UnavailableError
        raise error("; ".join(finding_line(finding) for finding in check.findings))
    entry = Entry._make(check.columns)
    if entry.kind != "span":
        raise ConfigurationError(f"entry {seq}: is of kind {entry.kind}, expected a span")
    try:
        return decode_record(entry.body)
    except CanonicalizationError as error:
        raise VerificationError(f"entry {seq}: {error}") from None
