"""The parts of a message: which are text, which call a tool, which cannot be read.

A part is what an SDK puts into a message's content. Its text is for
:mod:`bijotel.context_matching`; here stands what that leaves out, the arguments of tool calls and
the signs that a part holds more than it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from bijotel.dialects.values import decoded, is_redacted, leaves, text

MESSAGE_TYPES = frozenset({"human", "ai", "system", "tool", "function", "chat"})
"""What LangChain calls the kinds of message."""

_CALLS = ("tool_calls", "function_call", "toolUse", "functionCall", "tool_call")
_ARGUMENTS = ("arguments", "args", "input", "function", "tool_call")
CALL_TYPES = frozenset({"tool_call", "tool_use", "function_call", "server_tool_call"})
_UNREADABLE_KEYS = frozenset({"inline_data", "inlineData", "file_data", "fileData", "image"})
_PART = frozenset(
    {
        "type",
        "text",
        "toolUse",
        "toolResult",
        "function_call",
        "function_response",
        "tool_call",
        "tool_call_result",
        *_UNREADABLE_KEYS,
    }
)
"""Keys, one of which a part has; a message has one of the next."""
_NO_PART = frozenset({"role", "message"})
_NO_PART_TYPES = MESSAGE_TYPES | {"constructor", "message", "function_call", "function_call_output"}
_UNREADABLE = frozenset(
    {
        "blob",
        "file",
        "uri",
        "input_file",
        "image",
        "image_url",
        "input_image",
        "audio",
        "audio_url",
        "input_audio",
        "video",
        "media",
    }
)


def unreadable(part: Any) -> str:
    """Say why a part does not show all that it holds, or give the empty text."""
    if not isinstance(part, dict):
        return "redacted" if is_redacted(part) else ""
    kind, source = text(part.get("type")), part.get("source")
    closed = isinstance(source, dict) and text(source.get("type")) not in {"text", "content"}
    if kind in _UNREADABLE or closed or not _UNREADABLE_KEYS.isdisjoint(part):
        return f"a part of type {kind or 'file'} cannot be read"
    if kind == "compaction":
        return "earlier turns are there in summary only"
    return "redacted" if any(map(is_redacted, part.values())) else ""


def is_part(item: Any) -> bool:
    """Tell a part of a message from a message."""
    if not isinstance(item, dict) or not _NO_PART.isdisjoint(item) or _PART.isdisjoint(item):
        return False
    return text(item.get("type")) not in _NO_PART_TYPES


def is_result(part: Any) -> bool:
    """Tell whether a part is what a tool gave back."""
    return isinstance(part, dict) and str(part.get("type", "")).endswith("tool_call_response")


def result(part: Any) -> Any:
    """Give a tool result of Haystack the name that it has elsewhere."""
    if isinstance(part, dict) and isinstance(part.get("tool_call_result"), dict):
        return {"type": "tool_result", "content": part["tool_call_result"].get("result")}
    return part


def arguments(holders: Iterable[Any]) -> Iterator[str]:
    """Give the arguments of the tool calls in messages and parts, as JSON with sorted keys."""
    for holder in holders:
        if not isinstance(holder, dict):
            continue
        if text(holder.get("type")) in CALL_TYPES:
            yield from _argument(holder)
        for key in _CALLS:
            if key in holder:
                inner = decoded(holder[key])
                for call in inner if isinstance(inner, list) else [inner]:
                    yield from _argument(call)


def _argument(call: Any) -> Iterator[str]:
    for key in _ARGUMENTS if isinstance(call, dict) else ():
        value = decoded(call.get(key))
        if isinstance(value, dict) and key in {"function", "tool_call"}:
            yield from _argument(value)
            return
        if value is not None:
            yield _json(value)
            return


def _json(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # a lone surrogate
        return "\n".join(leaves(value))
