"""Haystack's own tracer: one span a component, told apart by the type of the component.

Filters, rankers, joiners and prompt builders repeat documents; only retrievers are retrievals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bijotel.dialects.calls import model_call
from bijotel.dialects.messages import said, spoken
from bijotel.dialects.model import Dialect, Kind, Reading
from bijotel.dialects.retrievals import retrieval
from bijotel.dialects.values import decoded, text
from bijotel.model import SpanRecord
from bijotel.traces.model import LogRecord

_TYPE = "haystack.component.type"
_OUTPUT_DATA = "haystack.pipeline.output_data"
_ENDINGS: tuple[tuple[str, Kind], ...] = (
    ("Retriever", "retriever"),
    ("Ranker", "reranker"),
    ("Generator", "model"),
    ("Embedder", "embedding"),
    ("Evaluator", "evaluator"),
    ("Agent", "agent"),
)


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read a span by its ``haystack.component.type``."""
    attributes = span.attributes
    if _TYPE not in attributes:
        return Reading("workflow", output=attributes[_OUTPUT_DATA])
    named = text(attributes[_TYPE])
    kind: Kind = next((kind for end, kind in _ENDINGS if named.endswith(end)), "other")
    held_in = attributes.get("haystack.component.input")
    held_out = attributes.get("haystack.component.output")
    if kind == "model":
        call = model_call(span, spoken(_prompt(held_in), "user"), said(held_out))
        return Reading(kind, call=replace(call, model=_model(held_out)))
    if kind == "retriever":
        return Reading(kind, retrieval(span, held_out, query=_field(held_in, "query")))
    if kind == "reranker":
        return Reading(kind, retrieval(span, held_out, stage="reranker", inputs=held_in))
    return Reading(kind, output=held_out)


def _field(held: Any, key: str) -> Any:
    value = decoded(held)
    return value.get(key) if isinstance(value, dict) else None


def _prompt(held: Any) -> Any:
    """Take the prompt out of a generator's arguments, the other ones left out."""
    value = decoded(held)
    if isinstance(value, dict):
        for key in ("messages", "prompt"):
            if key in value:
                return value[key]
    return value


def _model(held: Any) -> str:
    """Give the model that wrote the first reply."""
    replies = _field(held, "replies")
    first = replies[0] if isinstance(replies, list) and replies else None
    meta = first.get("meta") if isinstance(first, dict) else None
    return text(meta.get("model")) if isinstance(meta, dict) else ""


DIALECT = Dialect("haystack", (_TYPE, _OUTPUT_DATA), read, states_kind=True)
