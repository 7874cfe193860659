"""Lists of documents in any of their shapes -> passages.

Text stands under ``page_content``, ``content``, ``text`` or ``document.content``, the id under
``id``, ``id_``, ``document.id`` or in the metadata; wrappers of LangChain (``kwargs``), llama-index
(``node``) and of tools (``documents``, ``[{"text": "<JSON>"}]``) are taken off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from bijotel.dialects.model import Passage
from bijotel.dialects.values import MAX_DEPTH, decoded, is_redacted, text

_CONTAINERS = (
    "documents",
    "docs",
    "nodes",
    "results",
    "result",
    "matches",
    "hits",
    "chunks",
    "passages",
    "records",
    "source_nodes",
    "inputs",
    "input",
    "output",
    "outputs",
    "content",
)
_TEXTS = ("page_content", "content", "text", "document.content", "document")
_IDS = ("id", "id_", "document.id", "document_id", "doc_id", "chunk_id")
_METADATA_IDS = ("chunk_id", "doc_id", "document_id", "id")
_SCORES = ("score", "document.score", "similarity_score", "relevance_score", "similarity")
_EVIDENCE = frozenset(
    {
        *_IDS,
        *_SCORES,
        "distance",
        "source",
        "metadata",
        "page_content",
    }
)
_MESSAGE_TYPES = frozenset({"ai", "human", "system", "tool", "function", "message", "chat"})


def passages_of(value: Any) -> tuple[Passage, ...]:
    """Read what a retriever gave: objects of any shape, or plain texts."""
    return tuple(_passage(item, rank) for rank, item in enumerate(_items(value), start=1))


def holds_documents(value: Any) -> bool:
    """Tell whether a value that may be anything is a list of documents throughout.

    A document has a text and an id, a score, a source or metadata, and is no message.
    """
    none = True
    for item in _items(value):
        if not _is_document(item):
            return False
        none = False
    return not none


def _items(value: Any, depth: int = 0) -> Iterator[Any]:
    """Give the members of a list of documents, however it is wrapped."""
    value = decoded(value)
    if depth > MAX_DEPTH or value is None or value == "":
        return
    if isinstance(value, list):
        for item in value:
            inner = _only_text(item)
            if isinstance(inner, (list, dict)):
                yield from _items(inner, depth + 1)
            else:
                member = decoded(item)
                if member is not None:
                    yield _unwrapped(member) if isinstance(member, dict) else member
    elif isinstance(value, dict):
        for key in _CONTAINERS:
            if key in value:
                inner = decoded(value[key])
                if isinstance(inner, (list, dict)):
                    yield from _items(inner, depth + 1)
                    return
        yield _unwrapped(value)
    else:
        yield value


def _only_text(item: Any) -> Any:
    """Take the JSON out of ``{"text": "<JSON>"}``, the form of a tool's content blocks."""
    if isinstance(item, dict) and "text" in item and item.keys() <= {"text", "type"}:
        return decoded(item["text"])
    return None


def _unwrapped(item: dict[str, Any]) -> dict[str, Any]:
    key = "kwargs" if "lc" in item else "node" if "node" in item else "document"
    inner = decoded(item.get(key))
    if isinstance(inner, dict) and inner:
        return {**{name: item[name] for name in _SCORES if name in item}, **inner}
    return item


def _is_document(item: Any) -> bool:
    if not isinstance(item, dict) or "role" in item or text(item.get("type")) in _MESSAGE_TYPES:
        return False
    return _text(item) is not None and not _EVIDENCE.isdisjoint(item)


def _text(item: Mapping[str, Any]) -> str | None:
    for key in _TEXTS:
        if key in item and isinstance(item[key], str):
            found: str = item[key]
            return found
    for key in ("text_resource", "content"):
        nested = item.get(key)
        if isinstance(nested, dict) and isinstance(nested.get("text"), str):
            inner: str = nested["text"]
            return inner
    return None


def _passage(item: Any, rank: int) -> Passage:
    if not isinstance(item, dict):
        return passage("", item, None, rank)
    metadata = decoded(item.get("metadata", item.get("document.metadata", item.get("meta"))))
    if not isinstance(metadata, dict):
        metadata = {}
    identifier = _first(item, _IDS)
    if identifier == "":  # an id of 0 is one
        identifier = _first(metadata, _METADATA_IDS)
    distance = item.get("distance", metadata.get("distance"))
    score = _first_number(item, metadata)
    if score is None and number(distance) is not None:
        return passage(identifier, _text(item), distance, rank, distance=True)
    return passage(identifier, _text(item), score, rank)


def passage(
    identifier: Any, content: Any, score: Any, rank: int, *, distance: bool = False
) -> Passage:
    """Make a passage of values of any type."""
    hidden = is_redacted(content)
    known = isinstance(content, str) and not hidden
    value = number(score)
    return Passage(
        id=str(identifier) if isinstance(identifier, (str, int)) else "",
        text=content if known else None,
        score=value,
        score_kind="" if value is None else "distance" if distance else "score",
        rank=rank,
        reason="redacted" if hidden else "" if known else "no text recorded",
    )


def _first(item: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        if key in item:
            value = item[key]
            if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
                return value
    return ""


def _first_number(item: Mapping[str, Any], metadata: Mapping[str, Any]) -> float | None:
    for place in (item, metadata):
        for key in _SCORES:
            if key in place:
                found = number(place[key])
                if found is not None:
                    return found
    return None


def number(value: Any) -> float | None:
    """Read a finite number, which may be written as a text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None
