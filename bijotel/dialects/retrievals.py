"""What is the same for retrievals of every dialect: the list, or why there is none."""

from __future__ import annotations

from itertools import islice
from typing import Any

from bijotel.dialects.calls import dropped
from bijotel.dialects.documents import holds_documents, passages_of
from bijotel.dialects.model import Retrieval, Stage
from bijotel.dialects.values import decoded, is_broken, is_redacted, leaves
from bijotel.model import SpanRecord

NO_DOCUMENTS = "no documents recorded"


def retrieval(
    span: SpanRecord,
    held: Any,
    *,
    query: Any = None,
    stage: Stage = "retriever",
    inputs: Any = None,
) -> Retrieval:
    """Make a retrieval of the value that holds its documents.

    Args:
        span: Where it was read.
        held: Documents in any form; None when the span has none.
        query: What was sought: the text, or the arguments in which it is the only one.
        stage: Where the documents were seen; an echo holds them from its start on.
        inputs: What a reranker was given.
    """
    value, why = _readable(held)
    early = stage == "echo"
    return Retrieval(
        span=span,
        stage=stage,
        query=_asked(query),
        passages=passages_of(value),
        inputs=passages_of(_readable(inputs)[0]),
        incomplete=why or dropped(span),
        ended_unix_nano=span.start_time_unix_nano if early else span.end_time_unix_nano,
    )


def tool_retrieval(span: SpanRecord, result: Any, query: Any = None) -> Retrieval | None:
    """Read a tool's result as a retrieval if it is a list of documents."""
    if span.attributes.get("gen_ai.tool.type") != "datastore" and not holds_documents(result):
        return None
    return retrieval(span, result, query=query, stage="tool")


def _asked(held: Any) -> str | None:
    value = decoded(held)
    if isinstance(value, dict) and isinstance(value.get("query"), str):
        value = value["query"]
    texts = [] if is_broken(value) else list(islice(leaves(value), 2))
    return texts[0] if len(texts) == 1 and texts[0] and not is_redacted(texts[0]) else None


def _readable(held: Any) -> tuple[Any, str]:
    value = decoded(held)
    if value is None:
        return None, NO_DOCUMENTS
    if is_redacted(value):
        return None, "redacted"
    if is_broken(value):
        return None, "cut: the JSON does not parse"
    return value, ""
