"""A retriever's hits to sources, recognised by shape. Imports no framework, calls no retriever.

===================================  ===========================================================
LangChain                            ``Document`` and ``(Document, score)``
LlamaIndex                           ``NodeWithScore``, nodes, a response's ``source_nodes``
Haystack                             ``Document``, a retriever's ``{"documents": [...]}``
Chroma                               the column-wise result of ``query`` and ``get``
Qdrant                               ``ScoredPoint``, ``Record``, a response's ``points``
anything                             dicts, ``(text, score)`` and strings
===================================  ===========================================================

Each may also come as the dict that its ``to_dict``/``model_dump`` gives. Nothing is invented: a
score that is not there stays null, and a distance is kept as ``metadata["distance"]`` with
``metadata["score_kind"] = "distance"``. Where a shape leaves open which of the two a score is,
such as LangChain's ``(Document, score)``, it is taken as the score and no kind is stated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

from bijotel.rag.plain import NO_METADATA, scalar, type_name
from bijotel.rag.source import RAGSource

if TYPE_CHECKING:
    from datetime import date

_TEXT = ("page_content", "content", "text", "document")
_ID = ("id", "id_", "node_id", "document_id", "doc_id", "_id", "uuid")
_SCORE = ("score", "similarity_score", "similarity", "relevance_score", "_score")
_DISTANCE = ("distance", "_distance")
_RERANK_SCORE = ("relevance_score", "similarity_score")
_METADATA = ("metadata", "meta", "payload")
_CHUNK = ("chunk_index", "chunk", "chunk_id", "chunk_number", "split_id")
_URI = ("source_uri", "source", "uri", "url", "link", "file_path", "path", "file_name", "filename")
# Names under which a hit's metadata holds its id; "id_" and "uuid" there may be anything's.
_METADATA_ID = ("document_id", "doc_id", "id", "_id")
_COLUMNS = ("documents", "distances", "metadatas", "uris")
_LISTS = ("documents", "points", "source_nodes")
_NODE_JSON = "_node_content"


class _Hit(NamedTuple):
    """What one hit says, whatever its shape."""

    text: str | None = None
    identifier: Any = None
    score: Any = None
    metadata: Mapping[Any, Any] = NO_METADATA
    uri: Any = None
    rank: int | None = None


def sources_from(
    hits: Any,
    *,
    retriever: str = "",
    embedding_model: str = "",
    retrieved_at: str | date | None = None,
) -> tuple[RAGSource, ...]:
    """Make sources out of what a retriever returned.

    Every hit becomes one source, in order, with its text as ``content``. ``document_id`` is the
    hit's id, else the ``document_id``, ``doc_id``, ``id`` or ``_id`` of its metadata, else
    ``sha256:`` and the hex digest of its text in UTF-8. ``chunk_index`` is a whole number from
    the metadata (``chunk_index``, ``chunk``, ``chunk_id``, ``chunk_number`` or ``split_id``), else
    the hit's rank, from 0. ``source_uri`` is the first text or path among the metadata's
    ``source_uri``, ``source``, ``uri``, ``url``, ``link``, ``file_path``, ``path``, ``file_name``
    and ``filename``. The metadata is taken as it is, without the text.

    Args:
        hits: One hit or an iterable of hits, of the shapes listed in :mod:`bijotel.rag.hits`.
        retriever: Recorded with every source.
        embedding_model: Recorded with every source.
        retrieved_at: Recorded with every source; ``""`` when not given, since no clock is read.

    Raises:
        TypeError: A hit has none of the shapes, or neither id nor text. The message names its
            position and type.

    Added in 0.1.
    """
    common = {
        "retriever": retriever,
        "embedding_model": embedding_model,
        "retrieved_at": retrieved_at,
    }
    return tuple(_source(hit, place, common) for place, hit in enumerate(_read_all(hits)))


def _read_all(hits: Any) -> Iterator[_Hit]:
    if isinstance(hits, (list, tuple)):
        return _read_each(hits)
    if isinstance(hits, Mapping) and isinstance(hits.get("ids"), (list, tuple)):
        return _columns(hits)
    # Before iterating: a LangChain Document can be iterated as well, over its fields.
    if (single := _read(hits)) is not None:
        return iter((single,))
    for name in _LISTS:
        listed = _get(hits, name)
        if isinstance(listed, (list, tuple)):
            return _read_each(listed)
    if isinstance(hits, (bytes, Mapping)) or not isinstance(hits, Iterable):
        raise TypeError(f"hits: no known shape: {_describe(hits)}")
    return _read_each(hits)


def _read_each(hits: Iterable[Any]) -> Iterator[_Hit]:
    for position, hit in enumerate(hits):
        found = _read(hit)
        if found is None:
            raise TypeError(f"hits[{position}]: no known shape: {_describe(hit)}")
        yield found


def _read(hit: Any) -> _Hit | None:
    if isinstance(hit, str):
        return _Hit(text=hit)
    if isinstance(hit, (tuple, list)):
        if len(hit) != 2 or not (hit[1] is None or _is_number(hit[1])):
            return None
        inner = _read(hit[0])
        return None if inner is None else inner._replace(score=hit[1])
    node = _get(hit, "node")
    inner = None if node is None else _record(node)
    if inner is None:
        return _record(hit)
    return inner._replace(score=_get(hit, _find(hit, _SCORE, _is_number)))


def _record(hit: Any) -> _Hit | None:
    """Read an object or dict by the names that retrievers use."""
    names = {
        "text": _find(hit, _TEXT, _is_text),
        "id": _find(hit, _ID, _is_given),
        "score": _find(hit, _SCORE, _is_number),
        "distance": _find(hit, _DISTANCE, _is_number),
        "metadata": _find(hit, _METADATA, _is_mapping),
    }
    if not _is_hit(hit, names):
        return None
    found = {part: _get(hit, name) for part, name in names.items()}
    metadata = _unused(hit, set(names.values())) | dict(found["metadata"] or {})
    text = _node_text(hit) if names["text"] is None else found["text"]
    if text is None:
        text, metadata = _text_within(metadata)
    score = found["score"]
    if score is None:
        score = _get(metadata, _find(metadata, _RERANK_SCORE, _is_number))
    if found["distance"] is not None:
        kind = {"score_kind": "distance"} if score is None else {}
        metadata = {**metadata, "distance": found["distance"], **kind}
    return _Hit(text, found["id"], score, metadata)


def _is_hit(hit: Any, names: Mapping[str, str | None]) -> bool:
    """Tell a hit from messages, web responses and whatever else has a text or an id."""
    if names["text"] is not None and (isinstance(hit, Mapping) or names["text"] == _TEXT[0]):
        return True
    beside = any(names[part] is not None for part in ("score", "distance", "metadata"))
    return beside and (names["text"] is not None or names["id"] is not None)


def _unused(hit: Any, used: set[str | None]) -> dict[Any, Any]:
    """Return what stands in a dict beside the parts that were recognised."""
    if not isinstance(hit, Mapping):
        return {}
    return {key: item for key, item in hit.items() if key not in used and item is not None}


def _node_text(hit: Any) -> str | None:
    """Return the text of a LlamaIndex node that has it behind a method only."""
    if not hasattr(type(hit), "get_content"):
        return None
    try:
        text = hit.get_content()
    except Exception:  # noqa: BLE001 - nodes of images have no text, and say so in many ways
        return None
    return text if isinstance(text, str) else None


def _text_within(metadata: dict[Any, Any]) -> tuple[str | None, dict[Any, Any]]:
    """Take the text out of a payload, where vector stores keep it among the metadata."""
    rest = dict(metadata)
    node = rest.pop(_NODE_JSON, None)
    name = _find(rest, _TEXT, _is_text)
    if name is not None:
        text = rest.pop(name)
        inner = rest.pop("metadata", None)
        return text, {**rest, **inner} if isinstance(inner, Mapping) else rest
    if isinstance(node, str):  # LlamaIndex keeps the whole node as JSON
        try:
            text = json.loads(node)["text"]
        except (ValueError, KeyError, TypeError):
            text = None
        return (text if isinstance(text, str) else None), rest
    return None, rest


def _columns(result: Mapping[str, Any]) -> Iterator[_Hit]:
    """Read Chroma's columns: one list for each query, or bare lists from ``get``."""
    ids, columns = result["ids"], _sized(result["ids"], result)
    if not all(isinstance(each, (list, tuple)) for each in ids):
        yield from _rows(ids, columns)
        return
    for query, row_ids in enumerate(ids):
        rows = {name: column[query] for name, column in columns.items()}
        yield from _rows(row_ids, _sized(row_ids, rows))


def _sized(ids: Sequence[Any], result: Mapping[str, Any]) -> dict[str, Any]:
    columns = {name: result[name] for name in _COLUMNS if result.get(name) is not None}
    for name, column in columns.items():
        if len(column) != len(ids):
            raise TypeError(f"hits: expected {len(ids)} {name} as there are ids, got {len(column)}")
    return columns


def _rows(ids: Sequence[Any], columns: Mapping[str, Any]) -> Iterator[_Hit]:
    for rank, identifier in enumerate(ids):
        row = {name: column[rank] for name, column in columns.items()}
        metadata = dict(row.get("metadatas") or {})
        if "distances" in row:
            metadata |= {"distance": row["distances"], "score_kind": "distance"}
        yield _Hit(row.get("documents"), identifier, None, metadata, row.get("uris"), rank)


def _source(hit: _Hit, position: int, common: Mapping[str, Any]) -> RAGSource:
    metadata, score = hit.metadata, hit.score
    if score is not None and metadata.get("score_kind") == "distance":
        metadata, score = {**metadata, "distance": score}, None
    chunk = _get(metadata, _find(metadata, _CHUNK, _is_whole))
    rank = position if hit.rank is None else hit.rank
    try:
        return RAGSource(
            _identifier(hit),
            rank if chunk is None else chunk,
            source_uri=_get(metadata, _find(metadata, _URI, _is_uri)) or hit.uri,
            similarity_score=score,
            metadata=metadata,
            content=hit.text,
            **common,
        )
    except TypeError as error:
        raise TypeError(f"hits[{position}]: {error}") from error


def _identifier(hit: _Hit) -> Any:
    if hit.identifier is not None:
        return hit.identifier
    given = _find(hit.metadata, _METADATA_ID, _is_given)
    if given is not None:
        return hit.metadata[given]
    if hit.text is None:
        raise TypeError("expected an id or a text, got neither")
    return "sha256:" + sha256(hit.text.encode("utf-8", "surrogatepass")).hexdigest()


def _get(hit: Any, name: str | None) -> Any:
    if name is None:
        return None
    if type(hit) is dict or isinstance(hit, Mapping):
        return hit.get(name)
    try:
        return getattr(hit, name, None)
    except Exception:  # noqa: BLE001 - a property of a foreign object may raise anything
        return None


def _find(hit: Any, names: Iterable[str], fits: Callable[[Any], bool]) -> str | None:
    for name in names:
        value = _get(hit, name)
        if value is not None and fits(value):
            return name
    return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_given(value: Any) -> bool:
    return not isinstance(value, str) or value != ""


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(scalar(value), (Real, Decimal))


def _is_whole(value: Any) -> bool:
    value = scalar(value)
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return is_whole and not isinstance(value, bool)


def _is_uri(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and value != ""


def _describe(hit: Any) -> str:
    if isinstance(hit, Mapping):
        return f"dict with keys {sorted(map(str, hit))[:10]}"
    if isinstance(hit, (tuple, list)):
        return f"{type_name(hit)} of {[type_name(item) for item in hit[:5]]}"
    return type_name(hit)
