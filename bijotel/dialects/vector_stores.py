"""Vector-store spans of Traceloop: one event a hit, or no hits at all.

Chroma and Pinecone write ``db.query.result`` events with an id and a distance or a score, Milvus
``db.query.result`` and ``db.search.result``; Qdrant and Weaviate write none. The event limit of the
SDK drops the oldest hits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bijotel.context_matching.literal import read_literal
from bijotel.dialects.model import Dialect, Reading
from bijotel.dialects.retrievals import retrieval
from bijotel.dialects.values import text
from bijotel.model import SpanRecord
from bijotel.traces.model import LogRecord

_RESULTS = {"db.query.result": "db.query.result.", "db.search.result": "db.search.result."}
_STORES = frozenset({"chroma", "chromadb", "qdrant", "pinecone", "milvus", "weaviate", "lancedb"})
_WANTED = ("db.vector.query.top_k", "db.chroma.query.n_results", "qdrant.search.collection_name")
_ASKING = ("query", "search", "get", "hybrid", "near", "fetch", "retrieve")


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read a span of a vector store that was asked for something."""
    attributes = span.attributes
    hits = [
        _hit(event.attributes, _RESULTS[event.name])
        for event in span.events
        if event.name in _RESULTS
    ]
    if not hits:
        system = text(attributes.get("db.system") or attributes.get("db.system.name"))
        if system.lower() not in _STORES or not _asks(attributes):
            return None
    return Reading("retriever", retrieval(span, hits or None))


def _asks(attributes: Mapping[str, Any]) -> bool:
    operation = text(attributes.get("db.operation") or attributes.get("db.operation.name"))
    return operation.lower().startswith(_ASKING) or any(key in attributes for key in _WANTED)


def _hit(attributes: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Give one hit the names that documents have elsewhere."""
    hit = {key.removeprefix(prefix): value for key, value in attributes.items()}
    for key in ("metadata", "entity"):
        # Some instrumentations write str(dict), which is no JSON.
        inner = read_literal(hit[key]) if isinstance(hit.get(key), str) else hit.get(key)
        if isinstance(inner, dict):
            hit = {**inner, **hit, "metadata": inner}
    return hit


DIALECT = Dialect("vector-stores", ("db.system", "db.system.name"), read, events=tuple(_RESULTS))
