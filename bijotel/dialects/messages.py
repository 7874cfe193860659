"""Prompts and answers in the forms of SDKs and frameworks -> messages by role.

What an instrumentation records is the request or the answer of an SDK, whole or in part. This
module finds the messages in it and their roles, and leaves what a message says as it stands:
which parts of a content are text is known to :mod:`bijotel.context_matching`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bijotel.context_matching.decode import decode_prompt
from bijotel.dialects.model import Message
from bijotel.dialects.parts import (
    CALL_TYPES,
    MESSAGE_TYPES,
    arguments,
    is_part,
    is_result,
    result,
    unreadable,
)
from bijotel.dialects.values import MAX_DEPTH, decoded, is_broken, is_redacted, leaves, text

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system"}
_BEFORE = ("system", "system_instruction", "systemInstruction", "instructions")
_WITHIN = ("config", "kwargs", "args")
_LISTS = (
    "messages",
    "contents",
    "message",
    "inputs",
    "prompts",
    "prompt",
    "input",
    "choices",
    "generations",
    "replies",
    "candidates",
    "output",
    "outputs",
    "response",
    "text",
)


class Spoken(NamedTuple):
    """Messages, and what is known against their being all that was said."""

    messages: tuple[Message, ...] = ()
    reason: str = ""


def spoken(value: Any, role: str = "") -> Spoken:
    """Read the messages of a recorded request or answer.

    Args:
        value: JSON text, plain text, a message, a list of messages, or an SDK's whole request.
        role: The role of what states none.
    """
    if value is None or value in ("", "{}", "[]") or value in ({}, []):
        return Spoken()
    if is_redacted(value):
        return Spoken(reason="redacted")
    inner = decoded(value)
    if is_broken(inner):
        return Spoken((Message(role, inner),), "cut: the JSON does not parse")
    return _checked(_messages(inner, role, 0))


def told(role: Any, content: Any, source: Mapping[str, Any]) -> Spoken:
    """Read one message.

    Args:
        role: Any value; what is no text is no role.
        content: Text, JSON of parts, or parts.
        source: The mapping that the message was, for tool calls beside the content.
    """
    return _checked(_message(role, content, source))


def joined(parts: Iterable[Spoken]) -> Spoken:
    """Put together what several attributes hold of one prompt."""
    messages: list[Message] = []
    reasons = []
    for part in parts:
        messages += part.messages
        reasons.append(part.reason)
    return Spoken(tuple(messages), next(filter(None, reasons), ""))


def _checked(messages: Iterable[Message]) -> Spoken:
    """Leave out what was hidden, and say why the rest may not be all."""
    found = tuple(messages)
    kept = tuple(one for one in found if not is_redacted(one.content))
    reasons = ["redacted"] if len(kept) < len(found) else []
    for one in kept:
        if isinstance(one.content, list):
            reasons += filter(None, map(unreadable, one.content))
    return Spoken(kept, reasons[0] if reasons else "")


def said(value: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read an answer: the texts of it, one a choice, and the arguments of its tool calls."""
    messages = spoken(value, "assistant").messages
    texts = tuple(filter(None, (decode_prompt(message.content) for message in messages)))
    return texts, tuple(call for message in messages for call in message.tool_calls)


def _message(role: Any, content: Any, source: Mapping[str, Any] | None = None) -> Iterator[Message]:
    """Make one message, with its tool calls; results that a provider's own tool gave follow it."""
    name = role.lower() if isinstance(role, str) else ""
    name = _ROLES.get(name, name)
    if isinstance(content, list):
        content = [result(part) for part in content]
    inner = decoded(content)
    parts = inner if isinstance(inner, list) else []
    yield Message(name, content, tuple(arguments([source or {}, *parts])))
    results = [part for part in parts if name == "assistant" and is_result(part)]
    if results:
        yield Message("tool", results)


def _messages(value: Any, role: str, depth: int) -> Iterator[Message]:
    if depth > MAX_DEPTH or value is None:
        return
    if isinstance(value, (list, tuple)):
        if value and all(map(is_part, value)):
            yield from _message(role, list(value))
        else:
            for item in value:
                yield from _messages(decoded(item), role, depth + 1)
    elif not isinstance(value, dict):
        yield from _message(role, str(value))
    elif text(value.get("type")) in CALL_TYPES:
        yield from _message("assistant", None, value)
    elif value.get("type") == "function_call_output":
        yield from _message("tool", [value])
    elif _is_message(value):
        yield from _one(value, role)
    elif value.get("type") != "reasoning":
        yield from _request(value, role, depth)


def _is_message(value: Mapping[str, Any]) -> bool:
    if value.get("type") == "constructor" or text(value.get("type")) in MESSAGE_TYPES:
        return True
    return "role" in value and not {"content", "parts", "tool_calls", "text"}.isdisjoint(value)


def _one(value: Mapping[str, Any], role: str) -> Iterator[Message]:
    """Read one message: of a chat API, a GenAI convention, or LangChain's own object."""
    names = value.get("id")
    inner = value.get("kwargs", value.get("data"))
    if isinstance(inner, dict):
        named = names[-1] if isinstance(names, list) and names else ""
        spoken_by = str(named).removesuffix("Chunk").removesuffix("Message").lower()
        role = inner.get("role") or inner.get("type") or value.get("type") or role
        yield from _message(spoken_by or role, inner.get("content"), inner)
        return
    role = value.get("role") or (
        value["type"] if text(value.get("type")) in MESSAGE_TYPES else role
    )
    for key in ("parts", "content", "text"):
        if value.get(key) is not None:
            yield from _message(role, value[key], value)
            return
    yield from _message(role, None, value)


def _request(value: Mapping[str, Any], role: str, depth: int) -> Iterator[Message]:
    """Read an SDK's request or answer; of an unknown one, all its texts."""
    found: list[Message] = []
    for key in _BEFORE:
        if key in value:
            found += _messages(decoded(value[key]), "system", depth + 1)
    for key in _WITHIN:
        if key in value:
            inner = decoded(value[key])
            if inner and isinstance(inner, (dict, list)):
                found += _messages(inner, role, depth + 1)
    for key in _LISTS:
        if value.get(key):
            found += _messages(decoded(value[key]), role, depth + 1)
            break
    content = value.get("content", value.get("parts"))
    if not found and isinstance(content, dict):
        found += _messages(content, role, depth + 1)
    if not found:
        content = list(leaves(value)) if content is None else content
        found += _message(role, content, value) if content else ()
    yield from found
