"""Jaeger JSON, as ``/api/traces`` and "Download JSON" give it.

The Collector's translator makes text of lists and maps, keeps the scope, the kind and the status
in tags, and counts in microseconds. Ids may have lost leading zeros.

Source: opentelemetry-collector-contrib, ``pkg/translator/jaeger``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bijotel.model import Event, Resource, Scope, SpanRecord, Status
from bijotel.traces import ids
from bijotel.traces.otlp_values import bounded, dicts, octets, text
from bijotel.traces.shapes import NUMBER, TEXT, a_list, an_object, first_fault

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS = frozenset({"INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"})
_OWN_TAGS = frozenset(
    {
        "otel.scope.name",
        "otel.scope.version",
        "otel.library.name",
        "otel.library.version",
        "otel.status_code",
        "otel.status_description",
        "span.kind",
        "error",
        "w3c.tracestate",
    }
)

_NO_RESOURCE = Resource()

_TAGS = a_list(an_object(key=TEXT))
_REFERENCES = a_list(an_object(refType=TEXT, traceID=TEXT, spanID=TEXT))
_SPAN = an_object(
    operationName=TEXT,
    processID=TEXT,
    spanID=TEXT,
    parentSpanID=TEXT,
    startTime=NUMBER,
    duration=NUMBER,
    tags=_TAGS,
    logs=a_list(an_object(timestamp=NUMBER, fields=_TAGS)),
    references=_REFERENCES,
)
_PROCESS = an_object(serviceName=TEXT, tags=_TAGS)
_TRACE = an_object(spans=a_list(_SPAN), processes=an_object())
_ANSWER = an_object(data=a_list(_TRACE))


def recognises(value: dict[str, Any]) -> bool:
    """Tell whether an object is a Jaeger answer or one trace of it."""
    return any("traceID" in trace and "spans" in trace for trace in _traces(value))


def fault(value: dict[str, Any]) -> str:
    """Say where an object has a value of a wrong type; empty when it has none."""
    if found := first_fault(value, _ANSWER if "data" in value else _TRACE):
        return found
    return next(filter(None, map(_fault_of_processes, _traces(value))), "")


def split(value: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Divide an object by trace id; spans without a usable id are under the empty one."""
    parts: dict[str, dict[str, Any]] = {}
    for trace in _traces(value):
        by_trace: dict[str, list[dict[str, Any]]] = {}
        for span in dicts(trace.get("spans")):
            by_trace.setdefault(_trace_id(span, trace), []).append(span)
        for trace_id, spans in by_trace.items():
            parts.setdefault(trace_id, {"data": []})["data"].append({**trace, "spans": spans})
    return parts


def records(value: dict[str, Any]) -> Iterator[SpanRecord]:
    """Read the spans of an object."""
    for trace in _traces(value):
        processes = trace.get("processes")
        if not isinstance(processes, dict):
            processes = {}
        resources = {key: _resource(process) for key, process in processes.items()}
        for span in dicts(trace.get("spans")):
            resource = resources.get(text(span.get("processID")), _NO_RESOURCE)
            yield _span(span, _trace_id(span, trace), resource)


def _traces(value: dict[str, Any]) -> list[dict[str, Any]]:
    return list(dicts(value.get("data"))) if "data" in value else [value]


def _fault_of_processes(trace: dict[str, Any]) -> str:
    processes = trace.get("processes") or {}
    return first_fault(processes, an_object(**dict.fromkeys(processes, _PROCESS)))


def _trace_id(span: dict[str, Any], trace: dict[str, Any]) -> str:
    return ids.padded(span.get("traceID") or trace.get("traceID"), 32)


def _resource(process: Any) -> Resource:
    if not isinstance(process, dict):
        return Resource()
    found = _tags(process.get("tags"))
    return Resource({"service.name": text(process.get("serviceName")), **found})


def _span(raw: dict[str, Any], trace_id: str, resource: Resource) -> SpanRecord:
    tags = _tags(raw.get("tags"))
    kind = text(tags.get("span.kind")).upper()
    start = raw.get("startTime")
    start_micros = start if isinstance(start, int) else None
    duration = raw.get("duration")
    return SpanRecord(
        name=text(raw.get("operationName")),
        kind=kind if kind in _KINDS else "INTERNAL",
        trace_id=trace_id,
        span_id=ids.padded(raw.get("spanID"), 16),
        parent_span_id=_parent(raw, trace_id),
        trace_state=text(tags.get("w3c.tracestate")),
        start_time_unix_nano=None if start_micros is None else start_micros * 1000,
        end_time_unix_nano=(
            (start_micros + duration) * 1000
            if start_micros is not None and isinstance(duration, int)
            else None
        ),
        status=_status(tags),
        attributes={key: item for key, item in tags.items() if key not in _OWN_TAGS},
        events=tuple(map(_event, dicts(raw.get("logs")))),
        resource=resource,
        scope=Scope(
            text(tags.get("otel.scope.name") or tags.get("otel.library.name")),
            text(tags.get("otel.scope.version") or tags.get("otel.library.version")),
        ),
    )


def _parent(raw: dict[str, Any], trace_id: str) -> str | None:
    for reference in dicts(raw.get("references")):
        same = ids.padded(reference.get("traceID"), 32) == trace_id
        if same and reference.get("refType") == "CHILD_OF":
            return ids.padded(reference.get("spanID"), 16) or None
    return ids.padded(raw.get("parentSpanID"), 16) or None


def _status(tags: dict[str, Any]) -> Status:
    description = tags.get("otel.status_description")
    code = text(tags.get("otel.status_code")).upper()
    if code not in {"OK", "ERROR"}:
        code = "ERROR" if str(tags.get("error")).lower() == "true" else "UNSET"
    return Status(code, description if isinstance(description, str) else None)


def _event(raw: dict[str, Any]) -> Event:
    fields = _tags(raw.get("fields"))
    name = fields.pop("event", None) or fields.pop("message", None)
    stamp = raw.get("timestamp")
    return Event(text(name), stamp * 1000 if isinstance(stamp, int) else None, fields)


def _tags(items: Any) -> dict[str, Any]:
    return {item["key"]: _value(item) for item in dicts(items) if isinstance(item.get("key"), str)}


def _value(item: dict[str, Any]) -> Any:
    value = item.get("value")
    return octets(value) if item.get("type") == "binary" else bounded(value)
