"""Records -> lines of OTLP/JSON, as the Collector's ``otlpjsonfile`` receiver reads them. Pure.

Each line is a whole ``TracesData`` message with one span. Attribute values keep their types: what
``AnyValue`` has no place for (integers beyond 64 bits, text with lone surrogates, digests) is
written as the object that stands for it in a sealed body, and keys that start with ``$`` get one
more; ``canonical.decode`` undoes both. What reached a call through the context only stands among
its attributes.

Source: opentelemetry-proto 1.x, "JSON Protobuf Encoding"; RFC 4648 (base64).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from bijotel import canonical
from bijotel.model import Event, Link, SpanRecord, Status

_KINDS: Final = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_STATUS: Final = {"UNSET": 0, "OK": 1, "ERROR": 2}
_MAX_COUNT: Final = 2**32 - 1
_MAX_TIME: Final = 2**64 - 1
_INT64: Final = range(-(2**63), 2**63)
_NATIVE: Final = {"$float": "doubleValue", "$bytes": "bytesValue"}
"""What JSON cannot carry and OTLP/JSON can."""
_HEX: Final = re.compile("[0-9a-f]*")


def otlp_line(record: SpanRecord) -> bytes:
    """Write a span as one line, without the newline."""
    resource, scope = record.resource, record.scope
    message = {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource.attributes)},
                "scopeSpans": [
                    {
                        "scope": {
                            "name": _text(scope.name),
                            "version": _text(scope.version),
                            "attributes": _attributes(scope.attributes),
                        },
                        "spans": [_span(record)],
                        "schemaUrl": _text(scope.schema_url),
                    }
                ],
                "schemaUrl": _text(resource.schema_url),
            }
        ]
    }
    return orjson.dumps(message)


def _span(record: SpanRecord) -> dict[str, Any]:
    span = {
        "traceId": _id(record.trace_id, 32),
        "spanId": _id(record.span_id, 16),
        "traceState": _text(record.trace_state),
        "flags": _count(record.trace_flags),
        "name": _text(record.name),
        "kind": _KINDS.get(record.kind, 0),
        "startTimeUnixNano": _time(record.start_time_unix_nano),
        "endTimeUnixNano": _time(record.end_time_unix_nano),
        "attributes": _attributes({**record.inherited, **record.attributes, **_own(record)}),
        "droppedAttributesCount": _count(record.dropped.attributes),
        "events": [_event(event) for event in record.events],
        "droppedEventsCount": _count(record.dropped.events),
        "links": [_link(link) for link in record.links],
        "droppedLinksCount": _count(record.dropped.links),
        "status": _status(record.status),
    }
    if record.parent_span_id:
        span["parentSpanId"] = _id(record.parent_span_id, 16)
    return span


def _own(record: SpanRecord) -> dict[str, str]:
    """Say as attributes what OTLP has no place for."""
    said = {"bijotel.via": record.via, "bijotel.withheld": record.withheld}
    return {name: value for name, value in said.items() if value}


def _event(event: Event) -> dict[str, Any]:
    return {
        "timeUnixNano": _time(event.time_unix_nano),
        "name": _text(event.name),
        "attributes": _attributes(event.attributes),
        "droppedAttributesCount": _count(event.dropped_attributes),
    }


def _link(link: Link) -> dict[str, Any]:
    return {
        "traceId": _id(link.trace_id, 32),
        "spanId": _id(link.span_id, 16),
        "traceState": _text(link.trace_state),
        "attributes": _attributes(link.attributes),
        "droppedAttributesCount": _count(link.dropped_attributes),
        "flags": _count(link.trace_flags),
    }


def _status(status: Status) -> dict[str, Any]:
    code, description = _STATUS.get(status.code, 0), status.description
    if description is None:
        return {"code": code}
    shown = description if isinstance(description, str) else _json(description)
    return {"code": code, "message": _text(shown)}


def _json(value: Any) -> str:
    return canonical.dumps(canonical.encode(value)).decode()


def _attributes(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return _key_values(canonical.encode(dict(attributes)))


def _key_values(encoded: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any_value(item)} for key, item in encoded.items()]


def _any_value(encoded: Any) -> dict[str, Any]:
    """Write a value as a sealed body has it."""
    if encoded is None:
        return {}
    if isinstance(encoded, str):
        return {"stringValue": encoded}
    if isinstance(encoded, bool):
        return {"boolValue": encoded}
    if isinstance(encoded, int):
        return {"intValue": str(encoded)}
    if isinstance(encoded, float):
        return {"doubleValue": encoded}
    if isinstance(encoded, list):
        return {"arrayValue": {"values": [_any_value(item) for item in encoded]}}
    if len(encoded) == 1:
        ((key, item),) = encoded.items()
        if key == "$int" and int(item) in _INT64:
            return {"intValue": item}
        if key in _NATIVE:
            return {_NATIVE[key]: item}
    return {"kvlistValue": {"values": _key_values(encoded)}}


def _time(value: Any) -> str:
    """Write a time; 0, which means unknown, where it is no whole number of 64 bits."""
    return str(value) if isinstance(value, int) and 0 <= value <= _MAX_TIME else "0"


def _count(value: int) -> int:
    return min(max(value, 0), _MAX_COUNT)


def _id(value: str, digits: int) -> str:
    return value if len(value) == digits and _HEX.fullmatch(value) else ""


def _text(value: str) -> str:
    """Replace what UTF-8 cannot carry: outside of attributes there is no other spelling."""
    return value.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
