"""Read and judge an export of bijotel 2.x, one JSON document.

``chain_signature = HMAC(secret, "chain:HEAD:COUNT")`` stands beside the entries. Version 2 adds an
Ed25519 signature over the digits of ``chain_signature`` alone, so that it ties nothing to the
entries for whoever lacks the secret.

Source: the formats ``bijotel-chain-v1`` and ``-v2`` of the published package bijotel 2.17.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from bijotel.errors import ConfigurationError
from bijotel.findings import Finding, Report
from bijotel.keys import KeyRing
from bijotel.legacy.check import GENESIS, RowCheck, legacy_mac
from bijotel.legacy.rows import COLUMNS, LegacyRow
from bijotel.note import EvidenceError
from bijotel.verify.rows import describe

MAX_EXPORT_BYTES: Final = 1 << 30
"""The document has to be read whole."""
FORMATS: Final = ("bijotel-chain-v1", "bijotel-chain-v2")


@dataclass(frozen=True, slots=True)
class LegacyExport:
    """The parts of an export."""

    format: str
    rows: tuple[LegacyRow, ...]
    entries_count: Any
    head_hash: Any
    chain_signature: Any
    signature: Any
    """The member ``ed25519_signature`` of version 2, else None."""
    segment: Any
    """The member ``segment`` of an export of part of a chain, else None."""


def is_legacy_export(octets: bytes) -> bool:
    """Tell from its beginning whether a file claims to be an export of bijotel 2.x."""
    return octets.lstrip().startswith(b"{") and b'"bijotel-chain-v' in octets[:1024]


def parse_export(octets: bytes) -> LegacyExport:
    """Take an export apart. Nothing is verified.

    Raises:
        EvidenceError: ``malformed-export``.
    """
    if len(octets) > MAX_EXPORT_BYTES:
        raise _malformed(f"{len(octets)} bytes: expected at most {MAX_EXPORT_BYTES}")
    try:
        document = json.loads(octets, object_pairs_hook=_unique)
        rows = tuple(_row(entry) for entry in document["entries"])
        return LegacyExport(
            document["format"],
            rows,
            document["entries_count"],
            document["head_hash"],
            document["chain_signature"],
            document.get("ed25519_signature"),
            document.get("segment"),
        )
    except EvidenceError:
        raise
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        raise _malformed("expected a document of bijotel-chain-v1 or -v2") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _malformed("a member stands twice in one object")
    return members


def _row(entry: dict[str, Any]) -> LegacyRow:
    try:
        body = base64.b64decode(entry["canonical_body_b64"], validate=True)
    except (binascii.Error, ValueError):
        raise _malformed("canonical_body_b64 is not valid base64") from None
    values = {**entry, "canonical_body": body}
    return LegacyRow(**{name: values[name] for name in COLUMNS})


def _malformed(what: str) -> EvidenceError:
    return EvidenceError(f"export of bijotel 2.x: {what}", "malformed-export", "file")


def verify_export(
    octets: bytes, ring: KeyRing | None = None, public_key: bytes | None = None
) -> Report:
    """Verify an export of bijotel 2.x.

    Args:
        octets: The file.
        ring: Holds the secret. Without it nothing can be trusted, and the report says so.
        public_key: The Ed25519 key of a version 2 export, 32 bytes.
    """
    try:
        export = parse_export(octets)
    except EvidenceError as error:
        return Report((), (Finding(error.code, str(error), column=error.where),))
    first = export.rows[0] if export.rows else None
    partial = export.segment is not None and first is not None and type(first.seq) is int
    start = first.seq if partial and first else 1
    check = RowCheck(ring, start, first.prev_hash if partial and first else GENESIS)
    for row in export.rows:
        check.feed(row)
    check.findings += _header_findings(export, check)
    check.findings += _signature_findings(export, public_key)
    not_checked = ["members of the export beside its entries, head, count and signatures"]
    if partial:
        not_checked.append(f"entries before {start} and behind {check.last_seq}: this is a segment")
    if export.signature is not None and public_key is None:
        not_checked.append("who signed the export: its public key is its own claim")
    return check.report(str(export.format), not_checked)


def load_public_key(octets: bytes) -> bytes:
    """Read the raw Ed25519 key of a PEM file, as that version wrote it.

    Raises:
        ConfigurationError: no Ed25519 public key.
    """
    try:
        key = load_pem_public_key(octets)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigurationError("public key: expected an Ed25519 key in PEM")
    return key.public_bytes_raw()


def _header_findings(export: LegacyExport, check: RowCheck) -> Iterable[Finding]:
    if export.format not in FORMATS:
        yield Finding(
            "malformed-export", f"format: found {describe(export.format)}", column="format"
        )
    if export.entries_count != check.entries:
        what = (
            f"the export says {describe(export.entries_count)} entries, {check.entries} are there"
        )
        yield Finding("truncated", what, column="entries_count")
    if export.head_hash != check.head_hash:
        what = "head_hash is not the hmac_hash of the last entry"
        yield Finding("head-mismatch", what, column="head_hash")
    if check.key is not None:
        message = f"chain:{export.head_hash}:{export.entries_count}"
        if legacy_mac(check.key, message) != export.chain_signature:
            what = "chain_signature is not that of head and count"
            yield Finding("head-mismatch", what, column="chain_signature")


def _signature_findings(export: LegacyExport, public_key: bytes | None) -> Iterable[Finding]:
    if public_key is None:
        return
    try:
        claimed = base64.b64decode(export.signature["public_key"], validate=True)
        signature = base64.b64decode(export.signature["signature"], validate=True)
        key = Ed25519PublicKey.from_public_bytes(public_key)
        key.verify(signature, str(export.chain_signature).encode())
        holds = claimed == public_key
    except (InvalidSignature, ValueError, TypeError, LookupError):
        holds = False
    if not holds:
        what = "the Ed25519 signature is not this key's, or there is none"
        yield Finding("checkpoint-signature", what, column="ed25519_signature")
