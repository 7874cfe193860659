"""Which column of an entry lies, when its tag does not hold. Pure; runs for failures only.

The header covers all columns with one tag, so a wrong tag says that something in the row was
changed but not what. What the rest of the chain still proves narrows it down: the successor's
``prev_tag`` confirms or denies the stored tag, the body repeats the span's columns, and a
column with few possible values can be tried.

Source: docs/spec (verifying).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from bijotel.errors import CanonicalizationError
from bijotel.keys import KeyRing
from bijotel.model import Entry
from bijotel.seal import KNOWN_FORMATS, entry_header, entry_tag
from bijotel.spans.encode import NO_SPAN, SpanColumns, columns_of_body


class Diagnosis(NamedTuple):
    """What is wrong with an entry whose tag does not hold."""

    code: str
    column: str | None
    reason: str


def holds(entry: Entry, keys: KeyRing) -> bool:
    """Tell whether an entry's tag is the one that its own key makes for it."""
    key = keys.get(entry.key_id)
    if key is None or entry.epoch:
        return False
    return entry_tag(entry_header(entry), key.chain_key(entry.chain_id)) == entry.tag


def diagnose(
    entry: Entry,
    keys: KeyRing,
    successor_says: bytes | None,
    sealed_between: tuple[int, int],
) -> Iterable[Diagnosis]:
    """Find the column that lies.

    Args:
        entry: Its tag does not hold, all checks before it do.
        keys: The ring; the entry's key is in it.
        successor_says: What the next entry, or the head, states as this entry's tag, when that
            statement itself is proven.
        sealed_between: ``sealed_at_unix_nano`` of the two neighbours.
    """
    recomputed = _recompute(entry, keys)
    if successor_says is not None and (successor_says == recomputed or successor_says != entry.tag):
        confirms = "recomputed" if successor_says == recomputed else "stored"
        reason = (
            "the successor confirms the recomputed tag"
            if confirms == "recomputed"
            else "the successor states another tag"
        )
        return [Diagnosis("tag-mismatch", "tag", reason)]
    differing = dict(columns_against_body(entry))
    if differing:
        if holds(entry._replace(**differing), keys):
            return [
                Diagnosis("column-mismatch", column, "the column contradicts the sealed body")
                for column in differing
            ]
        return [Diagnosis("tag-mismatch", "body", "the body was changed and hashed again")]
    for column, value in _known_values(keys):
        if holds(entry._replace(**{column: value}), keys):
            return [Diagnosis("tag-mismatch", column, f"the tag holds with {_shown(value)}")]
    earliest, latest = sealed_between
    if not earliest <= entry.sealed_at_unix_nano <= latest:
        reason = "the time of sealing lies outside that of its neighbours"
        return [Diagnosis("tag-mismatch", "sealed_at_unix_nano", reason)]
    return [Diagnosis("tag-mismatch", None, "body with its hash, or the time of sealing")]


def columns_against_body(entry: Entry) -> Iterator[tuple[str, Any]]:
    """Yield each column that the body contradicts, with the value that the body gives it."""
    expected = _columns_of_body(entry.body)
    for column, value in zip(SpanColumns._fields, expected or (), strict=False):
        if getattr(entry, column) != value:
            yield column, value


def _columns_of_body(octets: bytes) -> SpanColumns | None:
    """Derive a row's columns from its body; None when the body does not have that shape."""
    try:
        body = orjson.loads(octets)
        if not isinstance(body, dict):
            return None
        return columns_of_body(body) if "span_id" in body else NO_SPAN
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, CanonicalizationError):
        return None


def _recompute(entry: Entry, keys: KeyRing) -> bytes | None:
    key = keys.get(entry.key_id)
    if key is None:
        return None
    return entry_tag(entry_header(entry), key.chain_key(entry.chain_id))


def _known_values(keys: KeyRing) -> Iterator[tuple[str, Any]]:
    for kind, fmt in KNOWN_FORMATS.items():
        yield "kind", kind
        yield "fmt", fmt
    yield "epoch", 0
    for key in keys:
        yield "key_id", key.key_id


def _shown(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else repr(value)
