"""What ``--deep`` adds: every body parsed and compared with its columns. Pure.

The tag already proves that a row is what was sealed. A holder of the key could still seal a
body that two readers read differently; this check leaves no such body.

Source: docs/spec (body), RFC 8785.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bijotel import canonical
from bijotel.errors import CanonicalizationError
from bijotel.model import Entry
from bijotel.spans.decode import record_from_body
from bijotel.spans.encode import NO_SPAN, SpanColumns, columns_of_body, encode_record

_MEMBERS: Final = {
    "genesis": ({"chain", "created_unix_nano", "key_id", "library"},),
    "gap": ({"count", "first_unix_nano", "last_unix_nano", "reason"},),
    "key": ({"new_key_id", "proof"},),
    "checkpoint": ({"note"},),
    "fleet": ({"chains"},),
    "import": ({"row", "source"}, {"last_hash", "rows", "source"}),
}


def deep_faults(entry: Entry) -> Iterator[tuple[str, str, str]]:
    """Yield code, column and message of what is wrong with an entry's body."""
    try:
        columns = _columns_of_body(entry.kind, entry.body)
    except CanonicalizationError as error:
        code = "limit-exceeded" if error.code == "too-deep" else "body-not-canonical"
        yield code, "body", str(error)
        return
    for column, value in zip(SpanColumns._fields, columns, strict=True):
        if getattr(entry, column) != value:
            yield "column-mismatch", column, f"the body says {column} {_shown(value)}"


def _columns_of_body(kind: str, octets: bytes) -> SpanColumns:
    body = canonical.loads(octets)
    if kind != "span":
        if not isinstance(body, dict) or set(body) not in _MEMBERS[kind]:
            raise CanonicalizationError(f"no body of kind {kind}")
        return NO_SPAN
    # Whatever a lenient reader made of the body, it must write the same octets again.
    if encode_record(record_from_body(body)).body != octets:
        raise CanonicalizationError("has other members or spellings than a span's body")
    return columns_of_body(body)


def _shown(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else repr(value)[:80]
