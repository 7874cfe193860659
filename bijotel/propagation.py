"""How provenance reaches the model-call span that an instrumentation opens further inside.

``on_start`` sees the scope's provenance in the OpenTelemetry context; what the span will be is
often known only when it ends. So the provenance is remembered for every span that starts within
a scope, and at the end given to those that turned out to be model calls.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan, Span

from bijotel.model import EMPTY
from bijotel.rag.context import Provenance
from bijotel.semconv import RAG_IN_CONTEXT, RAG_IN_CONTEXT_COUNT
from bijotel.spans.select import is_model_call

# What one call got to see says nothing about another call.
_OF_ONE_CALL: Final = frozenset({RAG_IN_CONTEXT, RAG_IN_CONTEXT_COUNT})

_SpanKey = tuple[int, int]


class Remembered(NamedTuple):
    """What is kept of a span that started within a scope."""

    provenance: Provenance
    is_call: bool
    """It was known as a model call when it started."""


class ProvenanceMemory:
    """The provenance of the spans that are running, by trace id and span id.

    ``on_end`` gets another object than ``on_start``, so the object cannot be the key. A span
    that is dropped without being ended takes its entry with it.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[_SpanKey, tuple[Remembered, weakref.ref[Span]]] = {}

    def remember(self, span: Span, provenance: Provenance) -> None:
        """Keep a starting span's provenance, and stamp the span if it is a model call."""
        key = _key(span)
        if key is None:
            return
        entries = self._entries

        def forget(_: object) -> None:
            entries.pop(key, None)

        attributes = span.attributes
        is_call = bool(attributes) and is_model_call(attributes or EMPTY)
        entries[key] = (Remembered(provenance, is_call), weakref.ref(span, forget))
        if is_call:
            span.set_attributes(propagated(provenance))

    def recall(self, span: ReadableSpan) -> Remembered | None:
        """Hand over what was kept for a span that ended."""
        if not self._entries:
            return None
        key = _key(span)
        entry = self._entries.pop(key, None) if key else None
        return entry[0] if entry else None


def is_call_in_scope(attributes: Mapping[str, Any], remembered: Remembered | None) -> bool:
    """Tell whether an ended span is a model call within a scope.

    One that was known as such at its start still is when a limit of the tracer has pushed the
    attribute that says so out.
    """
    return remembered is not None and (remembered.is_call or is_model_call(attributes))


def inherited_attributes(
    attributes: Mapping[str, Any], provenance: Provenance
) -> Mapping[str, Any]:
    """Choose what the sealed body of a model call inherits from its scope.

    Nothing when the span has the scope's ``bijotel.rag.*`` as its own; else (never stamped,
    evicted or cut by the tracer's limits) all of them.
    """
    wanted = propagated(provenance)
    if all(attributes.get(key) == value for key, value in wanted.items()):
        return EMPTY
    return wanted


def propagated(provenance: Provenance) -> dict[str, Any]:
    """Take those attributes of a scope that hold for every model call in it."""
    return {key: value for key, value in provenance.attributes.items() if key not in _OF_ONE_CALL}


def _key(span: ReadableSpan) -> _SpanKey | None:
    context = span.context
    return (context.trace_id, context.span_id) if context is not None else None
