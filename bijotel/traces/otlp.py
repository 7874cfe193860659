"""OTLP/JSON: the Collector's ``file`` exporter, the SDKs' JSON exporters, Jaeger v2 and Tempo.

One object holds resources, these hold scopes, these hold spans or log records. Keys may be
written in camel or snake case, ids in hex or base64, enumerations as numbers or names. An object
with metrics alone is known and holds nothing for us.

Source: opentelemetry-proto 1.x, ``trace.proto``, ``logs.proto``, "JSON Protobuf Encoding".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bijotel.model import Dropped, Event, Link, Resource, Scope, SpanRecord, Status
from bijotel.traces import ids
from bijotel.traces.model import LogRecord
from bijotel.traces.otlp_values import any_value, attributes, dicts, integer, text
from bijotel.traces.shapes import NUMBER, TEXT, a_list, an_object, camel, first_fault

if TYPE_CHECKING:
    from collections.abc import Iterator

_RESOURCES = ("resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs")
_METRICS = ("resourceMetrics", "resource_metrics")
_SCOPES = (
    "scopeSpans",
    "scope_spans",
    "instrumentationLibrarySpans",
    "instrumentation_library_spans",
    "scopeLogs",
    "scope_logs",
)
_LEAVES = ("spans", "logRecords", "log_records")
_KINDS = ("INTERNAL", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_DROPPED = ("droppedAttributesCount", "droppedEventsCount", "droppedLinksCount")
_NONE_DROPPED = Dropped()
_STATUS = ("UNSET", "OK", "ERROR")

_ATTRIBUTES = a_list(an_object(key=TEXT))
_EVENT = an_object(name=TEXT, time_unix_nano=NUMBER, attributes=_ATTRIBUTES)
_LINK = an_object(trace_id=TEXT, span_id=TEXT, trace_state=TEXT, attributes=_ATTRIBUTES)
_SPAN = an_object(
    name=TEXT,
    kind=NUMBER,
    span_id=TEXT,
    parent_span_id=TEXT,
    trace_state=TEXT,
    start_time_unix_nano=NUMBER,
    end_time_unix_nano=NUMBER,
    status=an_object(message=TEXT, code=NUMBER),
    attributes=_ATTRIBUTES,
    events=a_list(_EVENT),
    links=a_list(_LINK),
)
_LOG = an_object(
    event_name=TEXT,
    span_id=TEXT,
    time_unix_nano=NUMBER,
    observed_time_unix_nano=NUMBER,
    attributes=_ATTRIBUTES,
)
_SCOPE = an_object(name=TEXT, version=TEXT, attributes=_ATTRIBUTES)
_SCOPED = an_object(
    scope=_SCOPE,
    instrumentation_library=_SCOPE,
    schema_url=TEXT,
    spans=a_list(_SPAN),
    log_records=a_list(_LOG),
)
_RESOURCE = an_object(
    resource=an_object(attributes=_ATTRIBUTES),
    schema_url=TEXT,
    **dict.fromkeys(_SCOPES, a_list(_SCOPED)),
)
_REQUEST = an_object(**dict.fromkeys(_RESOURCES, a_list(_RESOURCE)))


def recognises(value: dict[str, Any]) -> bool:
    """Tell whether an object is OTLP/JSON."""
    return any(key in _request(value) for key in (*_RESOURCES, *_METRICS))


def fault(value: dict[str, Any]) -> str:
    """Say where an object has a value of a wrong type; empty when it has none."""
    return first_fault(_request(value), _REQUEST)


def split(value: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Divide an object by trace id; what has no usable id is under the empty one."""
    parts: dict[str, dict[str, Any]] = {}
    for resource_key, resource, scope_key, scope, leaf_key, leaf in _walk(value):
        by_trace: dict[str, list[dict[str, Any]]] = {}
        for item in leaf:
            by_trace.setdefault(_trace_id(item), []).append(item)
        if leaf_key != "spans":
            by_trace.pop("", None)  # a log record outside any trace is not ours
        for trace_id, items in by_trace.items():
            shell = {**scope, leaf_key: items}
            part = parts.setdefault(trace_id, {})
            part.setdefault(resource_key, []).append({**resource, scope_key: [shell]})
    return parts


def records(value: dict[str, Any]) -> Iterator[SpanRecord | LogRecord]:
    """Read the spans and log records of an object."""
    previous: Any = None
    resource = Resource()
    for _, raw_resource, _, raw_scope, leaf_key, leaf in _walk(value):
        if raw_resource is not previous:
            previous, resource = raw_resource, _resource(raw_resource)
        if leaf_key == "spans":
            scope = _scope(raw_scope)
            for item in leaf:
                yield _span(item, resource, scope)
        else:
            for item in leaf:
                yield _log(item)


def _walk(
    value: dict[str, Any],
) -> Iterator[tuple[str, dict[str, Any], str, dict[str, Any], str, list[dict[str, Any]]]]:
    """Give each list of spans or log records with its scope and resource, both without it."""
    value = _request(value)
    for resource_key in _RESOURCES:
        for resource in dicts(value.get(resource_key)):
            outer = {key: item for key, item in resource.items() if key not in _SCOPES}
            for scope_key in _SCOPES:
                for scope in dicts(resource.get(scope_key)):
                    shell = {key: item for key, item in scope.items() if key not in _LEAVES}
                    for leaf_key in _LEAVES:
                        leaf = dicts(scope.get(leaf_key))
                        if leaf:
                            yield resource_key, outer, scope_key, shell, leaf_key, list(leaf)


def _request(value: dict[str, Any]) -> dict[str, Any]:
    """Take off what answers of an API are wrapped in."""
    inner = value.get("result")
    return inner if isinstance(inner, dict) else value


def _trace_id(item: dict[str, Any]) -> str:
    return ids.trace_id(item.get("traceId") or item.get("trace_id"))


def _resource(raw: dict[str, Any]) -> Resource:
    inner = raw.get("resource")
    found = attributes(inner.get("attributes")) if isinstance(inner, dict) else {}
    return Resource(found, text(raw.get("schemaUrl") or raw.get("schema_url")))


def _scope(raw: dict[str, Any]) -> Scope:
    inner = raw.get("scope") or raw.get("instrumentationLibrary")
    if not isinstance(inner, dict):
        inner = {}
    return Scope(
        text(inner.get("name")),
        text(inner.get("version")),
        text(raw.get("schemaUrl") or raw.get("schema_url")),
        attributes(inner.get("attributes")),
    )


def _in_camel_case(raw: dict[str, Any]) -> dict[str, Any]:
    """Rename the snake-case keys of one object."""
    return {camel(key): item for key, item in raw.items()}


def _span(raw: dict[str, Any], resource: Resource, scope: Scope) -> SpanRecord:
    if "trace_id" in raw:
        raw = _in_camel_case(raw)
    get = raw.get
    return SpanRecord(
        name=text(get("name")),
        kind=_enum(get("kind"), _KINDS, "SPAN_KIND_"),
        trace_id=_trace_id(raw),
        span_id=ids.span_id(get("spanId")),
        parent_span_id=ids.span_id(get("parentSpanId")) or None,
        trace_state=text(get("traceState")),
        trace_flags=(integer(get("flags")) or 0) & 0xFF,
        start_time_unix_nano=integer(get("startTimeUnixNano")),
        end_time_unix_nano=integer(get("endTimeUnixNano")) or None,
        status=_status(get("status")),
        attributes=attributes(get("attributes")),
        events=tuple(map(_event, dicts(raw["events"]))) if "events" in raw else (),
        links=tuple(map(_link, dicts(raw["links"]))) if "links" in raw else (),
        resource=resource,
        scope=scope,
        dropped=_dropped(raw),
    )


def _dropped(raw: dict[str, Any]) -> Dropped:
    counts = [integer(raw.get(key)) or 0 for key in _DROPPED]
    return Dropped(*counts) if any(counts) else _NONE_DROPPED


def _enum(value: Any, names: tuple[str, ...], prefix: str) -> str:
    if isinstance(value, str):
        name = value.upper().removeprefix(prefix)
        return name if name in names else names[0]
    number = integer(value)
    return names[number] if number is not None and 0 <= number < len(names) else names[0]


def _status(raw: Any) -> Status:
    if not isinstance(raw, dict) or not raw:
        return Status()
    message = raw.get("message")
    code = _enum(raw.get("code"), _STATUS, "STATUS_CODE_")
    return Status(code, message if isinstance(message, str) else None)


def _event(raw: dict[str, Any]) -> Event:
    if "time_unix_nano" in raw:
        raw = _in_camel_case(raw)
    return Event(
        text(raw.get("name")),
        integer(raw.get("timeUnixNano")),
        attributes(raw.get("attributes")),
        integer(raw.get("droppedAttributesCount")) or 0,
    )


def _link(raw: dict[str, Any]) -> Link:
    if "trace_id" in raw:
        raw = _in_camel_case(raw)
    return Link(
        _trace_id(raw),
        ids.span_id(raw.get("spanId")),
        text(raw.get("traceState")),
        (integer(raw.get("flags")) or 0) & 0xFF,
        attributes(raw.get("attributes")),
        integer(raw.get("droppedAttributesCount")) or 0,
    )


def _log(raw: dict[str, Any]) -> LogRecord:
    if "trace_id" in raw:
        raw = _in_camel_case(raw)
    found = attributes(raw.get("attributes"))
    name = raw.get("eventName") or found.get("event.name")
    when = integer(raw.get("timeUnixNano")) or integer(raw.get("observedTimeUnixNano"))
    return LogRecord(
        text(name),
        _trace_id(raw),
        ids.span_id(raw.get("spanId")),
        when,
        any_value(raw.get("body")),
        found,
    )
