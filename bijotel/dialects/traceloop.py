"""Traceloop (OpenLLMetry), current generation, and what both generations share: entity spans.

Model calls of instrumented clients are the GenAI conventions. A ``task`` is a retrieval when its
output is a list of documents and its input is none (else it filters or reranks); a step that is
given documents repeats them, which matters where nothing else recorded them. A model of
llama-index without an instrumentation of its own is a task too, known by its answer's shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bijotel.dialects.calls import model_call
from bijotel.dialects.documents import holds_documents
from bijotel.dialects.messages import Spoken, said, spoken
from bijotel.dialects.model import Dialect, Kind, Reading, Retrieval
from bijotel.dialects.retrievals import retrieval
from bijotel.dialects.values import decoded, text
from bijotel.model import SpanRecord
from bijotel.semconv import INPUT_MESSAGES, OPERATION_NAME
from bijotel.traces.model import LogRecord

_KIND = "traceloop.span.kind"
_KINDS: Mapping[str, Kind] = {"workflow": "workflow", "agent": "agent", "tool": "tool"}
_INPUT = "traceloop.entity.input"
_OUTPUT = "traceloop.entity.output"
_LLAMA_ANSWER = frozenset({"additional_kwargs", "raw", "logprobs", "delta"})


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read a span by its ``traceloop.span.kind``."""
    attributes = span.attributes
    named = attributes[_KIND]
    kind = _KINDS.get(text(named), "other")
    held_out = attributes.get(_OUTPUT)
    if kind in {"workflow", "agent"}:
        return Reading(kind, output=held_out)
    held_in = decoded(attributes.get(_INPUT))
    if INPUT_MESSAGES not in attributes:
        answer = decoded(held_out)
        if isinstance(answer, dict) and len(_LLAMA_ANSWER.intersection(answer)) > 1:
            prompt = spoken(held_in, "user") if held_in else Spoken()
            return Reading("model", call=model_call(span, prompt, said(answer)))
    found = _retrieval(span, held_in, held_out)
    return Reading("retriever" if found else kind, found, output=held_out)


def _retrieval(span: SpanRecord, held_in: Any, held_out: Any) -> Retrieval | None:
    if span.attributes.get(OPERATION_NAME) == "vector_db_retrieve":
        return retrieval(span, held_out, query=held_in)
    given = holds_documents(held_in)
    if given:
        return retrieval(span, held_in, stage="echo")
    if holds_documents(held_out):
        return retrieval(span, held_out, query=held_in)
    return None


DIALECT = Dialect("traceloop", (_KIND,), read)
