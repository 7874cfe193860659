"""Traces of real spans whose passages are made of so many different words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bijotel.model import SpanRecord
from bijotel.traces.model import Trace

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


def text(name: str, size: int = 20) -> str:
    """A passage of so many words, none of which another name has."""
    return " ".join(f"{name}{number}" for number in range(size))


def span(number: int, name: str, attributes: Mapping[str, Any], **fields: Any) -> SpanRecord:
    """A span that begins at ten times its number and lasts five."""
    return SpanRecord(
        name=name,
        trace_id=fields.pop("trace_id", TRACE_ID),
        span_id=f"{number:016x}",
        start_time_unix_nano=number * 10,
        end_time_unix_nano=number * 10 + 5,
        attributes=attributes,
        **fields,
    )


def documents(prefix: str, passages: Sequence[str | None], scores: Sequence[Any]) -> dict[str, Any]:
    """Documents in OpenInference's numbered keys."""
    listed: dict[str, Any] = {}
    for number, (content, score) in enumerate(zip(passages, scores, strict=True)):
        listed[f"{prefix}.{number}.document.id"] = f"d{number}"
        if content is not None:
            # An id names one text, also where the list is another one.
            listed[f"{prefix}.{number}.document.id"] = f"d-{content[:24]}-{len(content)}"
            listed[f"{prefix}.{number}.document.content"] = content
        if score is not None:
            listed[f"{prefix}.{number}.document.score"] = score
    return listed


def search(
    number: int, *passages: str | None, scores: Sequence[Any] | None = None, **fields: Any
) -> SpanRecord:
    """An OpenInference retriever."""
    given = [0.5] * len(passages) if scores is None else scores
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "What is sought?",
        **documents("retrieval.documents", passages, given),
    }
    return span(number, "retrieve", attributes, **fields)


def rerank(number: int, given: Sequence[str], returned: Sequence[str], **fields: Any) -> SpanRecord:
    """An OpenInference reranker."""
    attributes = {
        "openinference.span.kind": "RERANKER",
        **documents("reranker.input_documents", given, [None] * len(given)),
        **documents("reranker.output_documents", returned, [0.9] * len(returned)),
    }
    return span(number, "rerank", attributes, **fields)


def call(
    number: int, *prompt: str, answer: str = "So it is.", role: str = "user", **fields: Any
) -> SpanRecord:
    """An OpenInference model call; without a prompt none is recorded."""
    attributes = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-test"}
    if prompt:
        attributes |= {
            "llm.input_messages.0.message.role": role,
            "llm.input_messages.0.message.content": "\n\n".join(prompt),
        }
    attributes |= {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
    }
    return span(number, "chat", attributes, **fields)


def genai_search(
    number: int, *passages: str | None, scores: Sequence[Any] | None = None, **fields: Any
) -> SpanRecord:
    """A retriever in the OpenTelemetry GenAI conventions."""
    given = [0.5] * len(passages) if scores is None else scores
    listed = [
        {"id": f"d{n}", "content": passage, "score": score}
        for n, (passage, score) in enumerate(zip(passages, given, strict=True))
    ]
    attributes = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": json.dumps(listed),
    }
    return span(number, "retrieval", attributes, **fields)


def genai_call(number: int, *prompt: str, **fields: Any) -> SpanRecord:
    """A model call in the OpenTelemetry GenAI conventions."""
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": _messages("assistant", "So it is."),
    }
    if prompt:
        attributes["gen_ai.input.messages"] = _messages("user", "\n\n".join(prompt))
    return span(number, "chat", attributes, **fields)


def _messages(role: str, content: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": content}]}])


def trace(*spans: SpanRecord) -> Trace:
    """The trace of these spans."""
    return Trace(spans[0].trace_id, spans)


def otlp_line(*spans: SpanRecord) -> str:
    """The same spans as one line of OTLP/JSON."""
    listed = [
        {
            "traceId": each.trace_id,
            "spanId": each.span_id,
            "name": each.name,
            "startTimeUnixNano": str(each.start_time_unix_nano),
            "endTimeUnixNano": str(each.end_time_unix_nano),
            "droppedAttributesCount": each.dropped.attributes,
            "attributes": list(_attributes(each.attributes.items())),
        }
        for each in spans
    ]
    return json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": listed}]}]})


def _attributes(items: Iterable[tuple[str, Any]]) -> Iterable[dict[str, Any]]:
    for key, value in items:
        kind = "doubleValue" if isinstance(value, float) else "stringValue"
        yield {"key": key, "value": {kind: value}}
