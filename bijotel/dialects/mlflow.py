"""MLflow tracing: span types, inputs and outputs, every value as JSON."""

from __future__ import annotations

from collections.abc import Mapping

from bijotel.dialects.calls import model_call
from bijotel.dialects.messages import said, spoken
from bijotel.dialects.model import Dialect, Kind, Reading
from bijotel.dialects.retrievals import retrieval, tool_retrieval
from bijotel.dialects.values import decoded, text
from bijotel.model import SpanRecord
from bijotel.traces.model import LogRecord

_TYPE = "mlflow.spanType"
_KINDS: Mapping[str, Kind] = {
    "LLM": "model",
    "CHAT_MODEL": "model",
    "RETRIEVER": "retriever",
    "RERANKER": "reranker",
    "EMBEDDING": "embedding",
    "TOOL": "tool",
    "AGENT": "agent",
    "WORKFLOW": "workflow",
    "EVALUATOR": "evaluator",
    "GUARDRAIL": "guardrail",
}


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read a span by its ``mlflow.spanType``."""
    attributes = span.attributes
    named = decoded(attributes[_TYPE])
    kind = _KINDS.get(text(named).upper(), "other")
    held_in, held_out = attributes.get("mlflow.spanInputs"), attributes.get("mlflow.spanOutputs")
    if kind == "model":
        return Reading(kind, call=model_call(span, spoken(held_in, "user"), said(held_out)))
    if kind == "retriever":
        return Reading(kind, retrieval(span, held_out, query=held_in))
    if kind == "reranker":
        return Reading(kind, retrieval(span, held_out, stage="reranker", inputs=held_in))
    found = tool_retrieval(span, held_out, held_in) if kind == "tool" else None
    return Reading(kind, found, output=held_out)


DIALECT = Dialect("mlflow", (_TYPE,), read, states_kind=True)
