"""Raw columns -> entry, or the first column that is no such thing. Pure.

A row is hostile until its types and lengths are known; after this check it can be put into a
header without surprises.

Source: docs/spec (entry).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from bijotel.model import Entry
from bijotel.seal import MAX_BODY_BYTES
from bijotel.stores.base import ENTRY_COLUMNS

MAX_INTEGER: Final = 2**63 - 1
MAX_EPOCH: Final = 2**32 - 1
MAX_WORD_CHARACTERS: Final = 64
"""The longest ``kind`` and ``fmt``."""


class RowFault(NamedTuple):
    """The first column of a row whose type or size is wrong."""

    code: str
    column: str
    expected: str
    found: Any


def check_columns(columns: tuple[Any, ...]) -> Entry | RowFault:
    """Check types and limits of one row, in the order of its columns."""
    (
        chain_id,
        seq,
        epoch,
        key_id,
        kind,
        sealed_at,
        fmt,
        body_hash,
        prev_tag,
        trace_id,
        span_id,
        name,
        start,
        end,
        dedup_key,
        tag,
        body,
    ) = columns
    # One expression, because this runs for every row of every verification.
    if (
        type(seq) is int
        and type(body) is bytes
        and type(tag) is bytes
        and type(prev_tag) is bytes
        and type(body_hash) is bytes
        and type(chain_id) is bytes
        and type(key_id) is bytes
        and type(trace_id) is bytes
        and type(span_id) is bytes
        and type(dedup_key) is bytes
        and len(tag) == len(prev_tag) == len(body_hash) == 32
        and len(chain_id) == 16
        and len(key_id) == 8
        and (len(trace_id) == 16 or not trace_id)
        and (len(span_id) == 8 or not span_id)
        and (len(dedup_key) == 32 or not dedup_key)
        and 0 <= seq <= MAX_INTEGER
        and type(epoch) is int
        and 0 <= epoch <= MAX_EPOCH
        and type(sealed_at) is int
        and 0 <= sealed_at <= MAX_INTEGER
        and type(start) is int
        and 0 <= start <= MAX_INTEGER
        and type(end) is int
        and 0 <= end <= MAX_INTEGER
        and type(kind) is str
        and len(kind) <= MAX_WORD_CHARACTERS
        and kind.isascii()
        and type(fmt) is str
        and len(fmt) <= MAX_WORD_CHARACTERS
        and fmt.isascii()
        and type(name) is str
        and (name.isascii() or _is_text(name))
    ):
        return Entry._make(columns)
    return _first_fault(columns)


def _first_fault(columns: tuple[Any, ...]) -> RowFault:
    faults = (_fault(column, value) for column, value in zip(ENTRY_COLUMNS, columns, strict=True))
    return next(fault for fault in faults if fault)


def _fault(column: str, value: Any) -> RowFault | None:
    if column in _LENGTHS:
        return _bytes_fault(column, value)
    if column in _LARGEST:
        return _integer_fault(column, value, _LARGEST[column])
    if column == "body":
        return _body_fault(value)
    return _text_fault(column, value)


_LENGTHS: Final = {
    "chain_id": (16,),
    "key_id": (8,),
    "body_hash": (32,),
    "prev_tag": (32,),
    "trace_id": (16, 0),
    "span_id": (8, 0),
    "dedup_key": (32, 0),
    "tag": (32,),
}
_LARGEST: Final = {
    "seq": MAX_INTEGER,
    "epoch": MAX_EPOCH,
    "sealed_at_unix_nano": MAX_INTEGER,
    "start_unix_nano": MAX_INTEGER,
    "end_unix_nano": MAX_INTEGER,
}


def _bytes_fault(column: str, value: Any) -> RowFault | None:
    lengths = _LENGTHS[column]
    expected = " or ".join(str(length) for length in lengths) + " bytes"
    if not isinstance(value, bytes) or len(value) not in lengths:
        return RowFault("type-mismatch", column, expected, describe(value))
    return None


def _integer_fault(column: str, value: Any, largest: int) -> RowFault | None:
    if type(value) is not int or not 0 <= value <= largest:
        expected = f"an integer from 0 to {largest}"
        return RowFault("type-mismatch", column, expected, describe(value))
    return None


def _body_fault(value: Any) -> RowFault:
    """Say what a store put in place of a body; it is the last column, so that it is at fault."""
    if type(value) is int:
        expected = f"at most {MAX_BODY_BYTES} bytes"
        return RowFault("limit-exceeded", "body", expected, f"{value} bytes")
    return RowFault("type-mismatch", "body", "bytes", value)


def _text_fault(column: str, value: Any) -> RowFault | None:
    if type(value) is not str or not _is_text(value):
        return RowFault("type-mismatch", column, "text", describe(value))
    if column == "name":
        return None
    if len(value) > MAX_WORD_CHARACTERS or not value.isascii():
        expected = f"at most {MAX_WORD_CHARACTERS} ASCII characters"
        return RowFault("type-mismatch", column, expected, describe(value))
    return None


def describe(value: Any) -> Any:
    """Show a value of a wrong type or size within one line."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, str):
        return f"text {value[:32]!r}"
    return value


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
