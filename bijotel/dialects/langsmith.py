"""LangSmith's OpenTelemetry export: everything in ``gen_ai.prompt`` and ``gen_ai.completion``.

Its ``gen_ai.operation.name`` says ``embeddings`` for a retriever and ``chat`` for a prompt
template, so no other dialect may read its spans.
"""

from __future__ import annotations

from collections.abc import Mapping

from bijotel.dialects.calls import model_call
from bijotel.dialects.messages import said, spoken
from bijotel.dialects.model import Dialect, Kind, Reading
from bijotel.dialects.retrievals import retrieval, tool_retrieval
from bijotel.dialects.values import text
from bijotel.model import SpanRecord
from bijotel.traces.model import LogRecord

_KIND = "langsmith.span.kind"
_KINDS: Mapping[str, Kind] = {
    "llm": "model",
    "retriever": "retriever",
    "embedding": "embedding",
    "tool": "tool",
}


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read a span by its ``langsmith.span.kind``."""
    attributes = span.attributes
    named = attributes[_KIND]
    kind = _KINDS.get(text(named).lower(), "other")
    held_in, held_out = attributes.get("gen_ai.prompt"), attributes.get("gen_ai.completion")
    if kind == "model":
        return Reading(kind, call=model_call(span, spoken(held_in, "user"), said(held_out)))
    if kind == "retriever":
        return Reading(kind, retrieval(span, held_out, query=held_in))
    found = tool_retrieval(span, held_out, held_in) if kind == "tool" else None
    return Reading(kind, found, output=held_out)


DIALECT = Dialect("langsmith", (_KIND,), read, alone=True)
