"""Traceloop (OpenLLMetry) up to about 0.54: prompts and answers in numbered keys.

Its entity spans are those of the current generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bijotel.dialects.calls import model_call
from bijotel.dialects.messages import Spoken, joined, said, told
from bijotel.dialects.model import Dialect, Kind, Reading
from bijotel.dialects.values import numbered, text
from bijotel.model import SpanRecord
from bijotel.traces.model import LogRecord

_TYPE = "llm.request.type"
_KINDS: Mapping[str, Kind] = {
    "chat": "model",
    "completion": "model",
    "embedding": "embedding",
    "rerank": "reranker",
}


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read a span by its ``llm.request.type``."""
    attributes = span.attributes
    named = attributes[_TYPE]
    kind = _KINDS.get(text(named).lower(), "other")
    if kind != "model":
        return Reading(kind)
    prompt = joined(map(_spoken, numbered(attributes, "gen_ai.prompt.")))
    answer: Any = [_plain(held) for held in numbered(attributes, "gen_ai.completion.")]
    return Reading("model", call=model_call(span, prompt, said(answer)))


def _spoken(held: Mapping[str, Any]) -> Spoken:
    return told(held.get("role"), held.get("content"), _plain(held))


def _plain(held: Mapping[str, Any]) -> dict[str, Any]:
    """Give one message of numbered keys the form that chat APIs use."""
    calls = [{"arguments": call.get("arguments")} for call in numbered(held, "tool_calls.")]
    return {"role": held.get("role"), "content": held.get("content"), "tool_calls": calls}


DIALECT = Dialect("traceloop-legacy", (_TYPE,), read)
