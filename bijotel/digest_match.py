"""Does a text stand in a sealed span, though the chain holds only its keyed digest? Pure.

Asked with the key: without it a digest says nothing, not even to whoever knows the text.

Source: docs/spec (digest mode).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from bijotel import canonical
from bijotel.canonical import Digest
from bijotel.errors import CanonicalizationError
from bijotel.model import SpanRecord
from bijotel.privacy import digest
from bijotel.semconv import RAG_SOURCES

_DIGEST: Final = "$digest"


def candidates(text: str) -> tuple[Any, ...]:
    """Give the values that a text may stand for.

    A file often ends with a newline that the value did not have; a value with structure is
    presented as JSON.
    """
    found: list[Any] = [text, text.removesuffix("\n")]
    with suppress(ValueError, RecursionError, CanonicalizationError):
        value = json.loads(text)
        canonical.encode(value)  # what nests too deep stands in no entry
        found.append(value)
    unlike: list[Any] = []
    for value in found:
        if not any(type(value) is type(each) and value == each for each in unlike):
            unlike.append(value)
    return tuple(unlike)


def places_of(
    record: SpanRecord, values: Sequence[Any], digest_keys: Iterable[bytes]
) -> tuple[str, ...]:
    """Find where any of these values stands in a record, as a digest or as it is.

    Args:
        record: A span read from a chain.
        values: See :func:`candidates`.
        digest_keys: Of the chain, one for each key of the ring.
    """
    keys = tuple(digest_keys)
    return tuple(
        place
        for place, name, sealed in _sealed_values(record)
        if any(_is_sealed_as(value, name, sealed, keys) for value in values)
    )


def _is_sealed_as(value: Any, name: str, sealed: Any, keys: tuple[bytes, ...]) -> bool:
    if isinstance(sealed, Digest):
        return any(digest(name, value, key) == sealed for key in keys)
    return type(value) is type(sealed) and bool(value == sealed)


def _sealed_values(record: SpanRecord) -> Iterator[tuple[str, str, Any]]:
    """Give the place, the name that its digest covers and the value of all that is sealed."""
    yield from _of_map("attributes", record.attributes)
    yield from _of_map("inherited", record.inherited)
    for number, event in enumerate(record.events):
        yield from _of_map(f"events[{number}]", event.attributes)
    for number, link in enumerate(record.links):
        yield from _of_map(f"links[{number}]", link.attributes)
    yield "status description", "status.description", record.status.description


def _of_map(place: str, attributes: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for name, value in attributes.items():
        yield f"{place} {name}", name, value
        if name == RAG_SOURCES and isinstance(value, str):
            yield from _of_sources(f"{place} {name}", value)


def _of_sources(place: str, text: str) -> Iterator[tuple[str, str, Any]]:
    """In digest mode each private field of a source is a digest of its own."""
    try:
        sources = json.loads(text)
    except (ValueError, RecursionError):
        return
    for number, source in enumerate(sources if isinstance(sources, list) else ()):
        for field, value in source.items() if isinstance(source, dict) else ():
            is_digest = isinstance(value, dict) and list(value) == [_DIGEST]
            yield f"{place}[{number}].{field}", RAG_SOURCES, Digest(value) if is_digest else value
