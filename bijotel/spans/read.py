"""A live span of the SDK -> record. Nothing is interpreted, nothing is dropped.

The processor hands over the span with a copy of its attributes, because ``span.attributes`` is a
view that later processors may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.attributes import BoundedAttributes

from bijotel.model import EMPTY, Dropped, Event, Link, Resource, Scope, SpanRecord, Status
from bijotel.spans.per_object import PerObject

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource as SdkResource
    from opentelemetry.sdk.trace import Event as SdkEvent
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link as SdkLink
    from opentelemetry.trace import Status as SdkStatus


def read_span(
    span: ReadableSpan,
    attributes: Mapping[str, Any],
    dropped: Dropped,
    inherited: Mapping[str, Any] = EMPTY,
) -> SpanRecord:
    """Read an ended span into a record.

    Args:
        span: The span; its ``attributes`` and dropped counts are not used.
        attributes: The attributes at the moment of ending.
        dropped: The counts at that moment.
        inherited: Provenance that reached the span through the context only.
    """
    context = span.context
    parent = span.parent
    return SpanRecord(
        name=span.name,
        kind=span.kind.name,
        trace_id=format(context.trace_id, "032x") if context else "",
        span_id=format(context.span_id, "016x") if context else "",
        parent_span_id=format(parent.span_id, "016x") if parent else None,
        trace_state=context.trace_state.to_header() if context and context.trace_state else "",
        trace_flags=int(context.trace_flags) if context else 0,
        start_time_unix_nano=span.start_time,
        end_time_unix_nano=span.end_time,
        status=_read_status(span),
        attributes=attributes,
        events=tuple(_read_event(event) for event in span.events or ()),
        links=tuple(_read_link(link) for link in span.links or ()),
        resource=_read_resource(span),
        scope=_read_scope(span),
        dropped=dropped,
        inherited=inherited,
    )


def _read_status(span: ReadableSpan) -> Status:
    status: SdkStatus | None = span.status  # a hand-made span may have none
    return Status(status.status_code.name, status.description) if status is not None else Status()


def _read_event(event: SdkEvent) -> Event:
    attributes = event.attributes
    return Event(
        name=event.name,
        time_unix_nano=event.timestamp,
        attributes=attributes or EMPTY,
        dropped_attributes=getattr(attributes, "dropped", 0),
    )


def _read_link(link: SdkLink) -> Link:
    context = link.context
    attributes = link.attributes
    return Link(
        trace_id=format(context.trace_id, "032x"),
        span_id=format(context.span_id, "016x"),
        trace_state=context.trace_state.to_header() if context.trace_state else "",
        trace_flags=int(context.trace_flags),
        attributes=attributes or EMPTY,
        dropped_attributes=getattr(attributes, "dropped", 0),
    )


def _read_resource(span: ReadableSpan) -> Resource:
    resource: SdkResource | None = span.resource
    if resource is None:
        return Resource()
    return (_known_resource if _is_fixed(resource) else _resource)(resource)


def _read_scope(span: ReadableSpan) -> Scope:
    scope = span.instrumentation_scope
    if scope is None:
        return Scope()
    return (_known_scope if _is_fixed(scope) else _scope)(scope)


def _is_fixed(owner: SdkResource | InstrumentationScope) -> bool:
    """Tell whether attributes are the SDK's own, which nobody changes; a span may be hand-made."""
    return type(owner.attributes) is BoundedAttributes


def _resource(resource: SdkResource) -> Resource:
    return Resource(resource.attributes, resource.schema_url)


def _scope(scope: InstrumentationScope) -> Scope:
    return Scope(scope.name, scope.version or "", scope.schema_url or "", scope.attributes or EMPTY)


_known_resource: Final = PerObject(_resource)
_known_scope: Final = PerObject(_scope)
