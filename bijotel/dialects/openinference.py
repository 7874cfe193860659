"""OpenInference (Phoenix, Arize): lists in numbered keys, the kind set when the span ends.

CHAIN and PROMPT spans repeat passages and prompts and are read for neither.

Source: openinference-semantic-conventions 0.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bijotel.dialects.calls import model_call
from bijotel.dialects.documents import holds_documents
from bijotel.dialects.messages import Spoken, joined, said, spoken, told
from bijotel.dialects.model import Dialect, Kind, ModelCall, Reading, Retrieval
from bijotel.dialects.retrievals import retrieval, tool_retrieval
from bijotel.dialects.values import decoded, numbered, text
from bijotel.model import SpanRecord
from bijotel.traces.model import LogRecord

KIND = "openinference.span.kind"
KINDS: Mapping[str, Kind] = {
    "LLM": "model",
    "RETRIEVER": "retriever",
    "RERANKER": "reranker",
    "EMBEDDING": "embedding",
    "TOOL": "tool",
    "AGENT": "agent",
    "EVALUATOR": "evaluator",
    "GUARDRAIL": "guardrail",
}
_JUDGES = frozenset({"evaluator", "guardrail", "reranker"})


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read a span by its ``openinference.span.kind``."""
    kind = span.attributes[KIND]
    return reading(span, KINDS.get(text(kind).upper(), "other"))


def reading(
    span: SpanRecord,
    kind: Kind,
    *,
    incoming: str = "llm.input_messages.",
    outgoing: str = "llm.output_messages.",
) -> Reading:
    """Read a span of a kind whose lists stand in numbered keys.

    Args:
        span: The span.
        kind: What it says it is.
        incoming: Before the number of a message of the prompt.
        outgoing: Before the number of a message of the answer.
    """
    attributes = span.attributes
    call = None
    if kind == "model" or (kind in _JUDGES and any(key.startswith(incoming) for key in attributes)):
        call = _call(span, incoming, outgoing)
    return Reading(kind, _retrieval(span, kind), call, attributes.get("output.value"))


def _retrieval(span: SpanRecord, kind: Kind) -> Retrieval | None:
    attributes = span.attributes
    if kind == "reranker":
        return retrieval(
            span,
            numbered(attributes, "reranker.output_documents.") or None,
            query=attributes.get("reranker.query"),
            stage="reranker",
            inputs=numbered(attributes, "reranker.input_documents."),
        )
    if kind == "tool":
        return tool_retrieval(span, attributes.get("output.value"), attributes.get("input.value"))
    if kind != "retriever":
        return None
    held: Any = numbered(attributes, "retrieval.documents.")
    if not held and holds_documents(attributes.get("output.value")):
        held = attributes["output.value"]
    return retrieval(span, held or None, query=attributes.get("input.value"))


def _call(span: SpanRecord, incoming: str, outgoing: str) -> ModelCall:
    attributes = span.attributes
    prompt = joined(map(_spoken, numbered(attributes, incoming)))
    if not prompt.messages:
        whole = _completion_prompt(attributes)
        prompt = whole if whole.messages or whole.reason else prompt
    outputs: Any = [_plain(held) for held in numbered(attributes, outgoing)]
    outputs = outputs or attributes.get("output.value")
    return model_call(span, prompt, said(outputs))


def _spoken(held: Mapping[str, Any]) -> Spoken:
    plain = _plain(held)
    return told(plain["role"], plain["content"], plain)


def _plain(held: Mapping[str, Any]) -> dict[str, Any]:
    """Give one message of numbered keys the form that chat APIs use."""
    parts = [
        {key.removeprefix("message_content."): value for key, value in part.items()}
        for part in numbered(held, "message.contents.")
    ]
    calls = [
        {"arguments": call.get("tool_call.function.arguments")}
        for call in numbered(held, "message.tool_calls.")
    ]
    if "message.function_call_arguments_json" in held:
        calls.append({"arguments": held["message.function_call_arguments_json"]})
    return {
        "role": text(held.get("message.role")),
        "content": held.get("message.content", parts or None),
        "tool_calls": calls,
    }


def _completion_prompt(attributes: Mapping[str, Any]) -> Spoken:
    """Read the prompt of a completion, else the request as a whole."""
    prompts = attributes.get("llm.prompts")
    if prompts is None:
        prompts = [held.get("prompt.text") for held in numbered(attributes, "llm.prompts.")]
    elif isinstance(prompts, str):
        prompts = decoded(prompts)
    if isinstance(prompts, str):
        prompts = [prompts]
    texts = list(prompts) if isinstance(prompts, (list, tuple)) else []
    if texts:
        return joined(told("user", prompt, {}) for prompt in texts if isinstance(prompt, str))
    if "llm.prompt_template.template" in attributes:
        return Spoken()  # the input names the template's parts, not what the model saw
    return spoken(attributes.get("input.value"), "user")


DIALECT = Dialect("openinference", (KIND,), read, states_kind=True)
