"""The one place where private text is taken out of a record before it is sealed. Pure.

Two ways, in this order: the application's own ``redact`` function, then digests for everything
that is not on the allow-list. What other exporters send is not touched: they have their own
copies of the span.

Source: docs/spec (digest mode), docs/explanation/threat-model.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final, TypeAlias

from bijotel import canonical
from bijotel.canonical import Digest
from bijotel.errors import CanonicalizationError
from bijotel.keys import DOMAIN
from bijotel.model import Draft, Event, Link, SpanRecord, Status
from bijotel.seal import length_prefixed
from bijotel.semconv import IN_CLEAR, NUMBERS_IN_CLEAR, PREFIXES_IN_CLEAR, RAG_SOURCES
from bijotel.spans.encode import encode_record, withhold

Redact: TypeAlias = "Callable[[SpanRecord], SpanRecord | None]"

_HASH: Final = "sha256:"
"""A document id that is a hash of the passage: whoever has a guess can confirm it."""

_SOURCE_FIELDS_IN_CLEAR: Final = frozenset(
    {"chunk_index", "retriever", "embedding_model", "similarity_score", "retrieved_at"}
)


def redacted(record: SpanRecord, redact: Redact) -> SpanRecord:
    """Apply an application's function to a copy of a record.

    When it raises, or returns no record, the content is withheld. Of its exception only the
    type's name is kept: the text may hold what it was to remove.
    """
    try:
        result = redact(_copy(record))
    except BaseException as error:  # noqa: BLE001 - the application's code, on our thread
        return withhold(record, f"redact:{type(error).__name__}")
    if not isinstance(result, SpanRecord):
        return withhold(record, f"redact:{type(result).__name__}")
    return result


def private_draft(
    record: SpanRecord, redact: Redact | None, digest_key: Callable[[], bytes] | None
) -> Draft:
    """Encode a record without what is private.

    Where that fails, the content is withheld: a record that the application's function made may
    hold anything, and a value may be too deep or too long to be digested.

    Args:
        record: As it was read.
        redact: The application's own function, or None.
        digest_key: Gives the key of this chain's digests; None keeps values as they are.
    """
    try:
        kept = record if redact is None else redacted(record, redact)
        if digest_key is not None:
            kept = digested(kept, digest_key())
        return encode_record(kept)
    except CanonicalizationError:
        return encode_record(withhold(record, "size"))
    except Exception as error:
        if redact is None:
            raise
        return encode_record(withhold(record, f"redact:{type(error).__name__}"))


def digested(record: SpanRecord, digest_key: bytes) -> SpanRecord:
    """Replace every value that is not on the allow-list by its keyed digest and length.

    Equal values under one name give equal digests within a chain, so that repeated calls are
    still found; whoever has the key can tell whether a text presented later is that one.
    """
    return replace(
        record,
        attributes=_digest_map(record.attributes, digest_key),
        inherited=_digest_map(record.inherited, digest_key),
        events=tuple(_digest_event(event, digest_key) for event in record.events),
        links=tuple(_digest_link(link, digest_key) for link in record.links),
        status=_digest_status(record.status, digest_key),
    )


def digest(name: str, value: Any, digest_key: bytes) -> Digest:
    """Make the digest that stands for a value.

    Args:
        name: The attribute's name.
        value: The value.
        digest_key: See :meth:`bijotel.keys.HmacKey.digest_key`.
    """
    octets = canonical.dumps(canonical.encode(value))
    (written,) = canonical.encode({name: None})
    message = DOMAIN + b"digest\0" + length_prefixed(written.encode(), octets)
    return Digest.of(len(octets), hmac.digest(digest_key, message, "sha256"))


def _digest_map(attributes: Mapping[str, Any], digest_key: bytes) -> dict[str, Any]:
    return {name: _digest_value(name, value, digest_key) for name, value in attributes.items()}


def _digest_value(name: str, value: Any, digest_key: bytes) -> Any:
    if name in IN_CLEAR or name.startswith(PREFIXES_IN_CLEAR):
        return value
    if name.endswith(NUMBERS_IN_CLEAR) and isinstance(value, (int, float)):
        return value
    if name == RAG_SOURCES and isinstance(value, str):
        return _digest_sources(value, digest_key)
    return digest(name, value, digest_key)


def _digest_sources(text: str, digest_key: bytes) -> Any:
    """Keep what names the retrieval; digest what may hold or give away a passage's text."""
    try:
        sources = json.loads(text)
        kept = [_digest_source(source, digest_key) for source in sources]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return digest(RAG_SOURCES, text, digest_key)
    return json.dumps(kept, sort_keys=True)


def _digest_source(source: Mapping[str, Any], digest_key: bytes) -> dict[str, Any]:
    kept = {}
    for field, value in source.items():
        is_hash = isinstance(value, str) and value.startswith(_HASH)
        private = is_hash if field == "document_id" else field not in _SOURCE_FIELDS_IN_CLEAR
        kept[field] = digest(RAG_SOURCES, value, digest_key) if private and value else value
    return kept


def _digest_event(event: Event, digest_key: bytes) -> Event:
    return replace(event, attributes=_digest_map(event.attributes, digest_key))


def _digest_link(link: Link, digest_key: bytes) -> Link:
    return replace(link, attributes=_digest_map(link.attributes, digest_key))


def _digest_status(status: Status, digest_key: bytes) -> Status:
    if not status.description:
        return status
    return Status(status.code, digest("status.description", status.description, digest_key))


def _copy(record: SpanRecord) -> SpanRecord:
    """Copy what an application's function could change in place."""
    return replace(
        record,
        attributes=_copy_map(record.attributes),
        inherited=_copy_map(record.inherited),
        events=tuple(
            replace(event, attributes=_copy_map(event.attributes)) for event in record.events
        ),
        links=tuple(replace(link, attributes=_copy_map(link.attributes)) for link in record.links),
        resource=replace(record.resource, attributes=_copy_map(record.resource.attributes)),
        scope=replace(record.scope, attributes=_copy_map(record.scope.attributes)),
    )


def _copy_map(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return deepcopy(dict(attributes))
