"""What ``ConsoleSpanExporter`` prints: the objects of ``ReadableSpan.to_json()``.

They have no scope and no dropped counts, their times are ISO 8601 with microseconds.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from bijotel.model import Event, Link, Resource, SpanRecord, Status
from bijotel.traces import ids
from bijotel.traces.otlp_values import bounded, dicts, text
from bijotel.traces.shapes import TEXT, a_list, an_object, first_fault

if TYPE_CHECKING:
    from collections.abc import Iterator

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_KINDS = frozenset({"INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"})
_ATTRIBUTES = an_object()
_SPAN = an_object(
    name=TEXT,
    kind=TEXT,
    context=an_object(span_id=TEXT),
    parent_id=TEXT,
    start_time=TEXT,
    end_time=TEXT,
    status=an_object(status_code=TEXT, description=TEXT),
    attributes=_ATTRIBUTES,
    events=a_list(an_object(name=TEXT, timestamp=TEXT, attributes=_ATTRIBUTES)),
    links=a_list(an_object(context=an_object(), attributes=_ATTRIBUTES)),
    resource=an_object(attributes=_ATTRIBUTES, schema_url=TEXT),
)


def recognises(value: dict[str, Any]) -> bool:
    """Tell whether an object is a printed span."""
    context = value.get("context")
    return isinstance(context, dict) and "trace_id" in context and "name" in value


def fault(value: dict[str, Any]) -> str:
    """Say where an object has a value of a wrong type; empty when it has none."""
    return first_fault(value, _SPAN)


def split(value: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Give the object under its trace id."""
    return {_trace_id(value["context"]): value}


def records(value: dict[str, Any]) -> Iterator[SpanRecord]:
    """Read the one span of an object."""
    kind = text(value.get("kind")).removeprefix("SpanKind.")
    resource = _object(value.get("resource"))
    yield SpanRecord(
        name=text(value.get("name")),
        kind=kind if kind in _KINDS else "INTERNAL",
        trace_id=_trace_id(value["context"]),
        span_id=_span_id(value["context"].get("span_id")),
        parent_span_id=_span_id(value.get("parent_id")) or None,
        start_time_unix_nano=_time(value.get("start_time")),
        end_time_unix_nano=_time(value.get("end_time")),
        status=_status(_object(value.get("status"))),
        attributes=_object(value.get("attributes")),
        events=tuple(map(_event, dicts(value.get("events")))),
        links=tuple(map(_link, dicts(value.get("links")))),
        resource=Resource(_object(resource.get("attributes")), text(resource.get("schema_url"))),
    )


def _object(value: Any) -> dict[str, Any]:
    return bounded(value) if isinstance(value, dict) else {}


def _trace_id(context: dict[str, Any]) -> str:
    return ids.trace_id(text(context.get("trace_id")).removeprefix("0x"))


def _span_id(value: Any) -> str:
    return ids.span_id(text(value).removeprefix("0x"))


def _time(value: Any) -> int | None:
    """Read an ISO 8601 time; nanoseconds without going through a float."""
    try:
        moment = datetime.fromisoformat(text(value).replace("Z", "+00:00"))
        since = moment - _EPOCH
    except (ValueError, TypeError, OverflowError):
        return None
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000


def _status(raw: dict[str, Any]) -> Status:
    code = text(raw.get("status_code"))
    description = raw.get("description")
    return Status(
        code if code in {"OK", "ERROR"} else "UNSET",
        description if isinstance(description, str) else None,
    )


def _event(raw: dict[str, Any]) -> Event:
    return Event(text(raw.get("name")), _time(raw.get("timestamp")), _object(raw.get("attributes")))


def _link(raw: dict[str, Any]) -> Link:
    context = _object(raw.get("context"))
    return Link(
        _trace_id(context),
        _span_id(context.get("span_id")),
        attributes=_object(raw.get("attributes")),
    )
