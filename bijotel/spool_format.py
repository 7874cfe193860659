"""The octets of a spool file: drafts that wait for a store, each chained by a MAC. Pure.

A spool lies on a disk that others may write to. Whoever has not the key can remove its end
without a sign (that is part of the unsealed window), and nothing else.

Source: docs/spec (spool).
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from bijotel.errors import VerificationError
from bijotel.keys import DOMAIN
from bijotel.model import Draft
from bijotel.seal import KNOWN_FORMATS, MAX_BODY_BYTES, body_hash, length_prefixed

MAGIC: Final = b"bijotel-spool/1\n"
MAC_BYTES: Final = 32
FIRST_MAC: Final = bytes(MAC_BYTES)
"""What the first record's MAC follows."""
MAX_PAYLOAD_BYTES: Final = 2 * MAX_BODY_BYTES + 4096
"""A body, a name that is as long, and the small items."""

_LENGTH = Struct(">I")


class Record(NamedTuple):
    """One record of a spool file."""

    draft: Draft | None
    """None when the record does not verify."""
    mac: bytes
    """As stored; the next record's MAC follows it."""
    size: int
    """Bytes in the file."""


def write_header(chain: str, spool_id: bytes) -> bytes:
    """Write the start of a spool file."""
    return MAGIC + length_prefixed(chain.encode(), spool_id)


def read_header(octets: bytes) -> tuple[str, bytes, int]:
    """Read the start of a spool file.

    Returns:
        The chain's name, the spool's id, and how many bytes the header takes.

    Raises:
        VerificationError: it is no spool file.
    """
    items, size = _read_items(octets[len(MAGIC) :], 2)
    if not octets.startswith(MAGIC) or items is None or len(items[1]) != 16:
        raise VerificationError("no spool file: expected the header bijotel-spool/1")
    try:
        chain = items[0].decode()
    except UnicodeDecodeError:
        raise VerificationError("spool file: the chain's name is not UTF-8") from None
    return chain, items[1], len(MAGIC) + size


def write_record(draft: Draft, header: bytes, previous_mac: bytes, key: bytes) -> bytes:
    """Write one record; its MAC is its last 32 bytes.

    Args:
        draft: What waits.
        header: The file's header.
        previous_mac: Of the record before, ``FIRST_MAC`` for the first.
        key: See :meth:`bijotel.keys.HmacKey.spool_key`.
    """
    payload = length_prefixed(
        draft.kind.encode(),
        draft.fmt.encode(),
        draft.trace_id,
        draft.span_id,
        draft.name.encode(),
        draft.start_unix_nano.to_bytes(8, "big"),
        draft.end_unix_nano.to_bytes(8, "big"),
        draft.dedup_key,
        draft.body,
    )
    return _LENGTH.pack(len(payload)) + payload + _mac(payload, header, previous_mac, key)


def read_records(octets: bytes, header: bytes, previous_mac: bytes, key: bytes) -> Iterator[Record]:
    """Read whole records from the front of ``octets``; what is left over is not yielded.

    A record that does not verify is yielded without its draft, and reading goes on with its
    stored MAC, so that one edited record costs no other.
    """
    at = 0
    while at + _LENGTH.size <= len(octets):
        (length,) = _LENGTH.unpack_from(octets, at)
        end = at + _LENGTH.size + length + MAC_BYTES
        if length > MAX_PAYLOAD_BYTES or end > len(octets):
            return
        payload = octets[at + _LENGTH.size : end - MAC_BYTES]
        mac = octets[end - MAC_BYTES : end]
        genuine = hmac.compare_digest(_mac(payload, header, previous_mac, key), mac)
        yield Record(_read_draft(payload) if genuine else None, mac, end - at)
        previous_mac, at = mac, end


def _mac(payload: bytes, header: bytes, previous_mac: bytes, key: bytes) -> bytes:
    named = header[len(MAGIC) :]  # the chain's name and the spool's id, length-prefixed already
    message = named + length_prefixed(previous_mac, payload)
    return hmac.digest(key, DOMAIN + b"spool\0" + message, "sha256")


def _read_draft(payload: bytes) -> Draft | None:
    items, size = _read_items(payload, 9)
    if items is None or size != len(payload):
        return None
    kind, fmt, trace_id, span_id, name, start, end, dedup_key, body = items
    try:
        draft = Draft(
            kind.decode("ascii"),
            fmt.decode("ascii"),
            trace_id,
            span_id,
            name.decode(),
            int.from_bytes(start, "big"),
            int.from_bytes(end, "big"),
            dedup_key,
            body,
            body_hash(body),
        )
    except UnicodeDecodeError:
        return None
    return draft if KNOWN_FORMATS.get(draft.kind) == draft.fmt else None


def _read_items(octets: bytes, count: int) -> tuple[list[bytes] | None, int]:
    items, at = [], 0
    for _ in range(count):
        if at + _LENGTH.size > len(octets):
            return None, at
        (length,) = _LENGTH.unpack_from(octets, at)
        at += _LENGTH.size
        if at + length > len(octets):
            return None, at
        items.append(octets[at : at + length])
        at += length
    return items, at
