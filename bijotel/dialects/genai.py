"""OpenTelemetry GenAI conventions, old names and new, wherever they put the content.

Content stands in attributes (JSON text or structured), in span events or in log records. Spans
of agents and workflows repeat the messages of the whole run and are never read for prompts.

Source: GenAI conventions 0.1.0 (development) and the general conventions 1.27 to 1.41.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bijotel.dialects.calls import model_call
from bijotel.dialects.messages import Spoken, joined, said, spoken, told
from bijotel.dialects.model import Dialect, Kind, ModelCall, Reading, Retrieval
from bijotel.dialects.retrievals import retrieval, tool_retrieval
from bijotel.dialects.values import decoded, text
from bijotel.model import SpanRecord
from bijotel.semconv import INPUT_MESSAGES, OPERATION_NAME, OUTPUT_MESSAGES, SYSTEM_INSTRUCTIONS
from bijotel.traces.model import LogRecord

DOCUMENTS = "gen_ai.retrieval.documents"
RECORDS = "gen_ai.memory.records"
TOOL_RESULT = "gen_ai.tool.call.result"
_PROMPT = "gen_ai.prompt"
_DETAILS = "gen_ai.client.inference.operation.details"
_ANSWERS = frozenset({"gen_ai.choice", "gen_ai.content.completion"})
_EVENTS: Mapping[str, str] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.content.prompt": "user",
    **dict.fromkeys(_ANSWERS, "assistant"),
}
"""Events of the conventions up to 1.36, each one message, and whose it is."""

KINDS: Mapping[str, Kind] = {
    "chat": "model",
    "generate_content": "model",
    "text_completion": "model",
    "completion": "model",
    "responses": "model",
    "retrieval": "retriever",
    "search_memory": "retriever",
    "rerank": "reranker",
    "embeddings": "embedding",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "create_agent": "agent",
    "invoke_workflow": "workflow",
    "evaluate": "evaluator",
    "evaluation": "evaluator",
    "guardrail": "guardrail",
    "apply_guardrail": "guardrail",
}
"""What an operation is; every other one is a step that repeats the messages of others."""


def read(span: SpanRecord, logs: tuple[LogRecord, ...]) -> Reading:
    """Read a span by its ``gen_ai.operation.name`` and content attributes."""
    attributes = span.attributes
    operation = attributes.get(OPERATION_NAME)
    if operation is not None:
        kind: Kind = KINDS.get(text(operation), "other")
    elif DOCUMENTS in attributes or RECORDS in attributes:
        kind = "retriever"
    else:
        kind = "model"
    if kind == "model":
        return Reading(kind, call=call_of(span, logs))
    return Reading(kind, retrieval_of(span, kind), output=output_of(span))


def retrieval_of(span: SpanRecord, kind: Kind) -> Retrieval | None:
    """Read the documents of a retrieval, a memory search or a tool."""
    attributes = span.attributes
    if kind == "tool":
        query = attributes.get("gen_ai.tool.call.arguments")
        return tool_retrieval(span, attributes.get(TOOL_RESULT), query)
    if RECORDS in attributes and kind == "retriever":
        query = attributes.get("gen_ai.memory.query.text")
        return retrieval(span, attributes[RECORDS], query=query, stage="memory")
    if kind == "retriever" or DOCUMENTS in attributes:
        query = attributes.get("gen_ai.retrieval.query.text")
        return retrieval(span, attributes.get(DOCUMENTS), query=query)
    return None


def call_of(span: SpanRecord, logs: tuple[LogRecord, ...] = ()) -> ModelCall:
    """Read a model call from its attributes, else its events, else its log records."""
    prompt = Spoken()
    for holders in _holders(span, logs):
        prompt = _prompt(holders)
        if prompt.messages or prompt.reason:
            break
    else:
        prompt = joined(_turn(name, held) for name, held in _turns(span, logs))
        if not prompt.messages and _PROMPT in span.attributes:
            prompt = spoken(span.attributes[_PROMPT], "user")
    return model_call(span, prompt, said(output_of(span, logs)))


def output_of(span: SpanRecord, logs: tuple[LogRecord, ...] = ()) -> Any:
    """Give the recorded output of a call or an agent in the form in which it stands."""
    outputs = [
        holder[OUTPUT_MESSAGES]
        for holders in _holders(span, logs)
        for holder in holders
        if OUTPUT_MESSAGES in holder
    ]
    outputs += [
        held.get("message", held.get("gen_ai.completion", held))
        for name, held in _turns(span, logs)
        if name in _ANSWERS
    ]
    return outputs[0] if outputs else span.attributes.get("gen_ai.completion")


def _holders(
    span: SpanRecord, logs: tuple[LogRecord, ...]
) -> tuple[tuple[Mapping[str, Any], ...], ...]:
    """Give what holds the message attributes: the span, its events, its log records."""
    return (
        (span.attributes,),
        tuple(event.attributes for event in span.events if event.name == _DETAILS),
        tuple(log.attributes for log in logs if log.event_name == _DETAILS),
    )


def _prompt(holders: tuple[Mapping[str, Any], ...]) -> Spoken:
    prompt = joined(
        spoken(holder.get(key), role)
        for key, role in ((SYSTEM_INSTRUCTIONS, "system"), (INPUT_MESSAGES, "user"))
        for holder in holders
    )
    if prompt.messages and not any(INPUT_MESSAGES in holder for holder in holders):
        return prompt._replace(reason=prompt.reason or f"{INPUT_MESSAGES} is missing")
    return prompt


def _turns(
    span: SpanRecord, logs: tuple[LogRecord, ...]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give the events of conventions up to 1.36 that are one message each."""
    for event in span.events:
        if event.name in _EVENTS:
            content = decoded(event.attributes.get("gen_ai.event.content"))
            yield event.name, content if isinstance(content, dict) else event.attributes
    for log in logs:
        if log.event_name in _EVENTS:
            body = decoded(log.body)
            yield log.event_name, body if isinstance(body, dict) else {"content": body}


def _turn(name: str, held: Mapping[str, Any]) -> Spoken:
    if name == "gen_ai.content.prompt":
        return spoken(held.get(_PROMPT), "user")
    if name in _ANSWERS:
        return Spoken()
    turn = told(held.get("role") or _EVENTS[name], held.get("content"), held)
    heard = any(one.content or one.tool_calls for one in turn.messages)
    return turn if heard or turn.reason else Spoken()


_MARKS = (OPERATION_NAME, INPUT_MESSAGES, OUTPUT_MESSAGES, DOCUMENTS, RECORDS)

DIALECT = Dialect("gen_ai", _MARKS, read, events=(_DETAILS, *_EVENTS))
