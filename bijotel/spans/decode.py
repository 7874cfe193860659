"""Canonical body -> record: the inverse of :mod:`bijotel.spans.encode`. Pure.

A body comes from a store or a file and is hostile until checked: every member is looked at
before it is used.

Source: docs/spec (body).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bijotel import canonical
from bijotel.errors import CanonicalizationError
from bijotel.model import Dropped, Event, Link, Resource, Scope, SpanRecord, Status


def decode_record(octets: bytes) -> SpanRecord:
    """Read a body of format ``span/1``.

    Raises:
        CanonicalizationError: not canonical, or not the shape of a span body.
    """
    return record_from_body(canonical.loads(octets))


def record_from_body(body: Any) -> SpanRecord:
    """Read a parsed body of format ``span/1``.

    Raises:
        CanonicalizationError: not the shape of a span body.
    """
    try:
        return _record(body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CanonicalizationError(
            f"no span body: {type(error).__name__} at {error.args[0] if error.args else '?'!r}"
        ) from None


def _record(body: Mapping[str, Any]) -> SpanRecord:
    status, resource, scope, dropped = (
        body[name] for name in ("status", "resource", "scope", "dropped")
    )
    return SpanRecord(
        name=_text(body["name"]),
        kind=_text(body["kind"]),
        trace_id=_text(body["trace_id"]),
        span_id=_text(body["span_id"]),
        parent_span_id=_optional_text(body["parent_span_id"]),
        trace_state=_text(body["trace_state"]),
        trace_flags=int(body["trace_flags"]),
        start_time_unix_nano=_time(body["start_time_unix_nano"]),
        end_time_unix_nano=_time(body["end_time_unix_nano"]),
        status=Status(_text(status["code"]), _description(status["description"])),
        attributes=_attributes(body["attributes"]),
        events=tuple(_event(event) for event in body["events"]),
        links=tuple(_link(link) for link in body["links"]),
        resource=Resource(_attributes(resource["attributes"]), _text(resource["schema_url"])),
        scope=Scope(
            _text(scope["name"]),
            _text(scope["version"]),
            _text(scope["schema_url"]),
            _attributes(scope["attributes"]),
        ),
        dropped=Dropped(int(dropped["attributes"]), int(dropped["events"]), int(dropped["links"])),
        inherited=_attributes(body.get("inherited", {})),
        via=_text(body.get("via", "")),
        withheld=_text(body.get("withheld", "")),
    )


def _event(event: Mapping[str, Any]) -> Event:
    return Event(
        name=_text(event["name"]),
        time_unix_nano=_time(event["time_unix_nano"]),
        attributes=_attributes(event["attributes"]),
        dropped_attributes=int(event["dropped_attributes"]),
    )


def _link(link: Mapping[str, Any]) -> Link:
    return Link(
        trace_id=_text(link["trace_id"]),
        span_id=_text(link["span_id"]),
        trace_state=_text(link["trace_state"]),
        trace_flags=int(link["trace_flags"]),
        attributes=_attributes(link["attributes"]),
        dropped_attributes=int(link["dropped_attributes"]),
    )


def _text(value: Any) -> str:
    text = canonical.decode(value)
    if not isinstance(text, str):
        raise TypeError("text")
    return text


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _description(value: Any) -> str | canonical.Digest | None:
    description = canonical.decode(value)
    if description is None or isinstance(description, (str, canonical.Digest)):
        return description
    raise TypeError("description")


def _time(value: Any) -> int | float | None:
    if value is None:
        return None
    text = _text(value)
    return float(text) if "." in text or "e" in text or "n" in text else int(text)


def _attributes(value: Any) -> Mapping[str, Any]:
    attributes = canonical.decode(value)
    if type(attributes) is not dict:
        raise TypeError("attributes")
    return attributes
