"""Langfuse SDK: observations with a type, an input and an output in JSON."""

from __future__ import annotations

from collections.abc import Mapping

from bijotel.dialects.calls import model_call
from bijotel.dialects.messages import said, spoken
from bijotel.dialects.model import Dialect, Kind, Reading
from bijotel.dialects.retrievals import retrieval, tool_retrieval
from bijotel.dialects.values import text
from bijotel.model import SpanRecord
from bijotel.traces.model import LogRecord

_TYPE = "langfuse.observation.type"
_KINDS: Mapping[str, Kind] = {
    "generation": "model",
    "retriever": "retriever",
    "embedding": "embedding",
    "tool": "tool",
    "agent": "agent",
    "evaluator": "evaluator",
    "guardrail": "guardrail",
}


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read a span by its ``langfuse.observation.type``."""
    attributes = span.attributes
    named = attributes[_TYPE]
    kind = _KINDS.get(text(named).lower(), "other")
    held_in = attributes.get("langfuse.observation.input")
    held_out = attributes.get("langfuse.observation.output")
    if kind == "model":
        return Reading(kind, call=model_call(span, spoken(held_in, "user"), said(held_out)))
    if kind == "retriever":
        return Reading(kind, retrieval(span, held_out, query=held_in))
    found = tool_retrieval(span, held_out, held_in) if kind == "tool" else None
    return Reading(kind, found, output=held_out)


DIALECT = Dialect("langfuse", (_TYPE,), read, states_kind=True)
