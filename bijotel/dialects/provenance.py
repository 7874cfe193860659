"""bijotel's own stamps: what ``rag_context`` left on a call, or the context carried to it.

A stamped span is a retrieval that ended before the span's own call began. The texts are not in
it; the statuses are, where the application gave its prompt (attributes) or the call was matched
when it was sealed (inherited). Attributes outweigh what the call inherited.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bijotel.dialects.calls import dropped
from bijotel.dialects.documents import passage
from bijotel.dialects.model import Dialect, Passage, Reading, Retrieval
from bijotel.dialects.values import decoded, text
from bijotel.model import SpanRecord
from bijotel.semconv import RAG_IN_CONTEXT, RAG_SOURCES, RAG_SOURCES_TOTAL
from bijotel.traces.model import LogRecord

_STATUSES = frozenset({"included", "partial", "absent", "unknown"})


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read the sources that a span is stamped with."""
    sources = _own(span, RAG_SOURCES)
    listed = decoded(sources)
    items = listed if isinstance(listed, list) else []
    total = _own(span, RAG_SOURCES_TOTAL)
    cut = not isinstance(listed, list) or (isinstance(total, int) and total > len(items))
    retrieval = Retrieval(
        span=span,
        stage="provenance",
        passages=_passages(items, _own(span, RAG_IN_CONTEXT)),
        incomplete="cut: not all sources are listed" if cut else dropped(span),
        ended_unix_nano=span.start_time_unix_nano,
        sealed=RAG_IN_CONTEXT in span.inherited and RAG_IN_CONTEXT not in span.attributes,
    )
    return Reading("other", retrieval)


def _own(span: SpanRecord, key: str) -> Any:
    return span.attributes.get(key, span.inherited.get(key))


def _passages(items: list[Any], statuses: Any) -> tuple[Passage, ...]:
    given = decoded(statuses)
    if not isinstance(given, (list, tuple)) or len(given) != len(items):
        given = [""] * len(items)
    return tuple(
        replace(_passage(item, rank), status=status if status in _STATUSES else "")
        for rank, (item, status) in enumerate(zip(items, map(text, given), strict=True), start=1)
    )


def _passage(item: Any, rank: int) -> Passage:
    source = item if isinstance(item, dict) else {}
    name = passage_id(source.get("document_id"), source.get("chunk_index"))
    return passage(name, None, source.get("similarity_score"), rank)


def passage_id(document_id: Any, chunk_index: Any) -> str:
    """Name the passage of a stamped source; a keyed digest by all its digits."""
    match document_id:
        case {"$digest": {"bytes": int(length), "hmac": str(digits)}}:
            document_id = f"digest:{digits} ({length} bytes)"
    return "#".join("" if part is None else str(part) for part in (document_id, chunk_index))


DIALECT = Dialect("bijotel", (RAG_SOURCES,), read)
