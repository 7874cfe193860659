"""A prompt as it was recorded -> the one text that passages are sought in.

Gathers the text parts of messages in order and leaves out what the model wrote itself, pictures,
sounds and encoded bytes. Strings that hold a message list as JSON or Python literal are decoded
first, on every level. Reading a literal is left to ``literal``, the shapes are those of the
conventions and SDKs that instrumentations record.

Every rule ends in text that is there or is not there: an unknown shape gives less text, no error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bijotel.context_matching.literal import read_literal

MAX_DEPTH = 64
"""Nesting beyond which structured prompts are not searched."""

_LEVELS = 16
"""How often one string may be encoded in itself."""

_MODEL_ROLES = frozenset({"assistant", "ai", "model"})
_TOOL_ROLES = frozenset({"tool", "function"})
_MESSAGE_TYPES = frozenset(
    {"human", "ai", "system", "tool", "function", "chat", "message", "developer"}
)
_TEXT = ("text", "content", "parts")
_RESULT_KEYS = ("toolResult", "functionResponse", "function_response")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "text": _TEXT,
    "input_text": _TEXT,
    "output_text": _TEXT,
    "document": ("title", "context", "source"),
    "search_result": ("title", "content"),
}
_RESULTS: Mapping[str, tuple[str, ...]] = {
    "tool_result": ("content",),
    "tool_call_response": ("response", "result"),
    "server_tool_call_response": ("server_tool_call_response", "response", "result"),
    "function_call_output": ("output",),
}
_MEDIA = frozenset(
    {"image", "image_url", "input_image", "audio", "audio_url", "input_audio", "video", "media"}
)
_SILENT = _MEDIA | {
    "blob", "file", "input_file", "uri",
    "thinking", "redacted_thinking", "reasoning", "compaction",
    "tool_use", "server_tool_use", "tool_call", "server_tool_call", "function_call",
}  # fmt: skip


def decode_prompt(prompt: object, *, truncated: bool = False) -> str:
    """Decode a recorded prompt.

    Args:
        prompt: A string, a list of messages (or of strings), one message, or None.
        truncated: The end of the prompt may be missing; a literal is then read as far as it goes.

    Returns:
        The text parts joined by newlines; a string that is no message list as it is; an empty
        text when there is nothing to read.
    """
    return "\n".join(_texts(prompt, 0, cut=truncated, result=False))


def _texts(node: object, depth: int, *, cut: bool, result: bool) -> Iterator[str]:
    """Walk one node; ``result`` says that it lies in what a tool gave back."""
    if depth > MAX_DEPTH:
        return
    if isinstance(node, str):
        yield from _string(node, depth, cut=cut, result=result)
    elif isinstance(node, Mapping):
        yield from _mapping(node, depth, cut=cut, result=result)
    elif isinstance(node, (list, tuple)):
        for item in node:
            yield from _texts(item, depth + 1, cut=cut, result=result)


def _string(text: str, depth: int, *, cut: bool, result: bool) -> Iterator[str]:
    value: Any = text
    for _ in range(_LEVELS):
        value = read_literal(value, cut=cut)
        if not isinstance(value, str):
            break
    if isinstance(value, (list, tuple)) and _is_conversation(value, cut=cut):
        yield from _texts(value, depth + 1, cut=cut, result=result)
    elif result and isinstance(value, (Mapping, list)):
        yield from _texts(value, depth + 1, cut=cut, result=True)
    else:
        yield text


def _mapping(node: Mapping[str, Any], depth: int, *, cut: bool, result: bool) -> Iterator[str]:
    role, kind = _word(node, "role"), _word(node, "type")
    speaks = _speaks(node)
    if speaks and (role in _MODEL_ROLES or (not role and kind == "ai")):
        return
    if not role and (kind in _MEDIA or (kind in _SILENT and not result)):
        return
    if result and (not speaks or (kind in _SILENT and not role)):
        for value in node.values():
            yield from _texts(value, depth + 1, cut=cut, result=True)
        return
    result = result or (role or kind) in _TOOL_ROLES
    for key in () if role else _RESULTS.get(kind, _RESULT_KEYS):
        yield from _texts(node.get(key), depth + 1, cut=cut, result=True)
    for key in _fields(node, "" if role else kind):
        value = node.get(key)
        if key == "source":
            value = _document(value)
        yield from _texts(value, depth + 1, cut=cut, result=result)


def _word(node: Mapping[str, Any], key: str) -> str:
    value = node.get(key)
    return value.lower() if isinstance(value, str) else ""


def _fields(node: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    """Name the keys that hold the text of a message or part."""
    if kind in _RESULTS:
        return ()
    fields = _FIELDS.get(kind, _TEXT)
    return ("text", "parts") if fields is _TEXT and node.get("text") is not None else fields


def _document(source: object) -> object:
    """Take the text out of a document block's source; an address or bytes give none."""
    if not isinstance(source, Mapping):
        return None
    return source.get({"text": "data", "content": "content"}.get(_word(source, "type"), ""))


def _is_conversation(items: list[Any] | tuple[Any, ...], *, cut: bool, depth: int = 0) -> bool:
    """Tell a list of messages, parts or strings from other data that reads as a list."""
    for item in items:
        if isinstance(item, str):
            continue
        if (
            isinstance(item, list)
            and depth < 2
            and _is_conversation(item, cut=cut, depth=depth + 1)
        ):
            continue
        if isinstance(item, Mapping) and (
            _speaks(item) or (cut and item is items[-1] and _begun(item))
        ):
            continue
        return False
    return True


def _begun(item: Mapping[str, Any]) -> bool:
    """Tell the stump of a message that was cut before its text."""
    return all(key in ("role", "type", "id", "name") for key in item)


def _speaks(node: Mapping[str, Any]) -> bool:
    """Tell a message or part from other mappings."""
    role, kind = _word(node, "role"), _word(node, "type")
    if role:
        return any(key in node for key in ("content", "parts", "tool_calls", "function_call"))
    if kind in _MESSAGE_TYPES:
        return "content" in node
    if kind in _SILENT:
        return True
    if kind:
        return any(key in node for key in (*_RESULTS.get(kind, ()), *_FIELDS.get(kind, ())))
    return bool(node) and all(key in (*_TEXT, *_RESULT_KEYS) for key in node)
