"""What a sealed span says about its call: status, model, tokens, sources. Pure.

Everything is given as it was recorded, of whatever type it is: nothing is corrected, guessed or
left out, because a reader of evidence wants to see what stands there. What the instrumentations
mean by it is the dialect readers' business, how it is shown that of ``cli``.

Rules kept: attributes outweigh what the call inherited; an absent value stays None.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from bijotel import canonical
from bijotel.errors import CanonicalizationError
from bijotel.model import SpanRecord
from bijotel.semconv import (
    BLOCKED,
    NAMES_OF_INPUT_TOKENS,
    NAMES_OF_OUTPUT_TOKENS,
    POLICY_WARNING,
    RAG_EMBEDDING_MODEL,
    RAG_PREFIX,
    RAG_RETRIEVER_ID,
    RAG_SOURCE_COUNT,
    RAG_SOURCES,
    RAG_SOURCES_SHA256,
    RAG_SOURCES_TOTAL,
    RAG_TOTAL_CONTEXT_TOKENS,
    REQUEST_MODEL,
    RESPONSE_MODEL,
)

PolicyStatus: TypeAlias = Literal["ALLOWED", "WARN", "BLOCKED"]

_MODELS: Final = (RESPONSE_MODEL, REQUEST_MODEL, "llm.model_name")


@dataclass(frozen=True, slots=True)
class CallSummary:
    """One span in a few values; each is as recorded, None when it is not."""

    status: PolicyStatus
    """What the policy layer said: ``BLOCKED`` when ``bijotel.blocked`` is true, ``WARN`` when
    ``bijotel.policy.warning`` is there, else ``ALLOWED``."""
    span_status: str
    """``UNSET``, ``OK`` or ``ERROR``."""
    model: Any = None
    """The one that answered, else the one that was asked for."""
    input_tokens: Any = None
    output_tokens: Any = None
    source_count: Any = None
    """None: the span is no RAG call. 0: the retrieval found nothing."""
    warning: Any = None
    """What the policy layer warned of."""


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """One member of the recorded list of sources. Each field is of any type."""

    document_id: Any = None
    chunk_index: Any = None
    source_uri: Any = None
    retriever: Any = None
    embedding_model: Any = None
    similarity_score: Any = None
    retrieved_at: Any = None
    metadata: Any = None
    malformed: str = ""
    """The member as JSON when it is no object; then the fields are None."""

    def as_dict(self) -> dict[str, Any]:
        """Give the fields that the member has room for, or its JSON when it is no object."""
        if self.malformed:
            return {"malformed": self.malformed}
        return {name: getattr(self, name) for name in RECORDED_FIELDS}


RECORDED_FIELDS: Final = tuple(field.name for field in fields(RecordedSource))[:-1]
"""The eight fields of a recorded source."""


@dataclass(frozen=True, slots=True)
class RecordedProvenance:
    """The ``bijotel.rag.*`` attributes of one span, as recorded."""

    source_count: Any = None
    retriever: Any = None
    embedding_model: Any = None
    context_tokens: Any = None
    sources: tuple[RecordedSource, ...] = ()
    unreadable: Any = None
    """The recorded list when it is no list of sources, for example cut by the tracer."""
    notes: tuple[str, ...] = ()
    """What a reader must know about the list, in words."""


def summarize(record: SpanRecord) -> CallSummary:
    """Give the few values of a span that a list shows."""
    attributes = record.attributes
    status: PolicyStatus = "ALLOWED"
    if attributes.get(BLOCKED) is True:
        status = "BLOCKED"
    elif POLICY_WARNING in attributes:
        status = "WARN"
    return CallSummary(
        status=status,
        span_status=record.status.code,
        model=_first(attributes, _MODELS),
        input_tokens=_first(attributes, NAMES_OF_INPUT_TOKENS),
        output_tokens=_first(attributes, NAMES_OF_OUTPUT_TOKENS),
        source_count=attributes.get(RAG_SOURCE_COUNT, record.inherited.get(RAG_SOURCE_COUNT)),
        warning=attributes.get(POLICY_WARNING),
    )


def read_provenance(record: SpanRecord) -> RecordedProvenance | None:
    """Give the sources that a span records; None when it has no ``bijotel.rag.*`` attribute."""
    inherited = {key: value for key, value in record.inherited.items() if _is_rag(key)}
    own = {key: value for key, value in record.attributes.items() if _is_rag(key)}
    merged = {**inherited, **own}
    if not merged:
        return None
    notes = []
    if inherited.keys() - own.keys():
        notes.append("carried to this call from the scope around it (inherited)")
    value = merged.get(RAG_SOURCES)
    sources = _parse(value)
    if sources is None and RAG_SOURCES in own and RAG_SOURCES in inherited:
        # The tracer's limit cut the span's own copy; the context carried the whole list.
        whole = _parse(inherited[RAG_SOURCES])
        if whole is not None:
            value, sources = inherited[RAG_SOURCES], whole
            notes.append("the span's own list is cut; this is the inherited one")
    if _differs(value, merged.get(RAG_SOURCES_SHA256)):
        notes.append("the list does not have its recorded SHA-256: it was cut or changed")
    total = merged.get(RAG_SOURCES_TOTAL)
    if total is not None:
        notes.append(f"the list was bounded when it was recorded: {len(sources or ())} of {total}")
    return RecordedProvenance(
        source_count=merged.get(RAG_SOURCE_COUNT),
        retriever=merged.get(RAG_RETRIEVER_ID),
        embedding_model=merged.get(RAG_EMBEDDING_MODEL),
        context_tokens=merged.get(RAG_TOTAL_CONTEXT_TOKENS),
        sources=sources or (),
        unreadable=value if sources is None else None,
        notes=tuple(notes),
    )


def _is_rag(key: str) -> bool:
    return key.startswith(RAG_PREFIX)


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def _parse(value: Any) -> tuple[RecordedSource, ...] | None:
    """Read a list of sources, given as JSON or as a list; None when it is neither."""
    try:
        value = json.loads(value) if isinstance(value, str) else value
        canonical.encode(value)  # nests no deeper than what can be shown
    except (ValueError, RecursionError, CanonicalizationError):
        return None
    if not isinstance(value, (list, tuple)):
        return None
    return tuple(_source(item) for item in value)


def _source(item: Any) -> RecordedSource:
    if not isinstance(item, Mapping):
        return RecordedSource(malformed=json.dumps(canonical.encode(item), ensure_ascii=False))
    return RecordedSource(
        document_id=item.get("document_id"),
        chunk_index=item.get("chunk_index"),
        source_uri=item.get("source_uri"),
        retriever=item.get("retriever"),
        embedding_model=item.get("embedding_model"),
        similarity_score=item.get("similarity_score"),
        retrieved_at=item.get("retrieved_at"),
        metadata=item.get("metadata"),
    )


def _differs(value: Any, digest: Any) -> bool:
    """Tell whether a list is not the very text that was recorded first."""
    if not isinstance(value, str) or not isinstance(digest, str):
        return False
    return sha256(value.encode("utf-8", "surrogatepass")).hexdigest() != digest
