"""An entry as one line of JSON, as exports and proofs carry it. Pure.

The line holds every column but the chain's id, which the checkpoint's origin states, and the
body's hash, which is computed. There is one spelling: a line that is not what its own parse
would be written as is refused.

Source: docs/spec (export), RFC 8785.
"""

from __future__ import annotations

from typing import Final

import orjson

from bijotel.model import Entry
from bijotel.note import EvidenceError
from bijotel.quoting import quoted
from bijotel.seal import MAX_BODY_BYTES, body_hash
from bijotel.verify.rows import RowFault, check_columns

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""Escaping doubles a body at most, and a long name stands in it and beside it."""


def format_entry_line(entry: Entry) -> bytes:
    """Write an entry of sound columns as its line, without the newline.

    Raises:
        EvidenceError: ``body-not-canonical``: the body is not UTF-8.
    """
    try:
        body = entry.body.decode()
    except UnicodeDecodeError:
        raise EvidenceError(
            f"entry {entry.seq}: the body is not UTF-8", "body-not-canonical", "body"
        ) from None
    # Strings and integers only, keys in order: here orjson writes what RFC 8785 demands.
    return orjson.dumps(
        {
            "body": body,
            "dedup_key": entry.dedup_key.hex(),
            "end_unix_nano": str(entry.end_unix_nano),
            "epoch": entry.epoch,
            "fmt": entry.fmt,
            "key_id": entry.key_id.hex(),
            "kind": entry.kind,
            "name": entry.name,
            "prev_tag": entry.prev_tag.hex(),
            "sealed_at_unix_nano": str(entry.sealed_at_unix_nano),
            "seq": entry.seq,
            "span_id": entry.span_id.hex(),
            "start_unix_nano": str(entry.start_unix_nano),
            "tag": entry.tag.hex(),
            "trace_id": entry.trace_id.hex(),
        }
    )


def parse_entry_line(line: bytes, chain_id: bytes) -> Entry:
    """Read an entry's line.

    Args:
        line: Without the newline, at most ``MAX_LINE_BYTES``.
        chain_id: Becomes the entry's.

    Returns:
        An entry of sound types and lengths; its tag and its place are not checked.

    Raises:
        EvidenceError: ``malformed-entry`` for any other spelling, ``type-mismatch`` or
            ``limit-exceeded`` for a column that no row can have.
    """
    try:
        entry = _read(orjson.loads(line), chain_id)
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError):
        raise EvidenceError(
            f"entry line: expected the columns of an entry, got {quoted(line)}",
            "malformed-entry",
            "line",
        ) from None
    if len(entry.body) > MAX_BODY_BYTES:
        what = f"entry {entry.seq}: body: expected at most {MAX_BODY_BYTES} bytes, found "
        raise EvidenceError(f"{what}{len(entry.body)}", "limit-exceeded", "body")
    checked = check_columns(entry)
    if isinstance(checked, RowFault):
        what = f"{checked.column}: expected {checked.expected}, found {checked.found}"
        raise EvidenceError(f"entry line: {what}", checked.code, checked.column)
    if format_entry_line(checked) != line:
        raise EvidenceError(
            f"entry {checked.seq}: the line is not in canonical form", "malformed-entry", "line"
        )
    return checked


def _read(members: dict[str, str], chain_id: bytes) -> Entry:
    """Take the members as loosely as they come: writing them again decides."""
    body = members["body"].encode()
    return Entry(
        chain_id,
        members["seq"],  # type: ignore[arg-type]  # checked with the other columns
        members["epoch"],  # type: ignore[arg-type]
        bytes.fromhex(members["key_id"]),
        members["kind"],
        int(members["sealed_at_unix_nano"]),
        members["fmt"],
        body_hash(body),
        bytes.fromhex(members["prev_tag"]),
        bytes.fromhex(members["trace_id"]),
        bytes.fromhex(members["span_id"]),
        members["name"],
        int(members["start_unix_nano"]),
        int(members["end_unix_nano"]),
        bytes.fromhex(members["dedup_key"]),
        bytes.fromhex(members["tag"]),
        body,
    )
