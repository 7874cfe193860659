"""Sources to span attributes. Pure.

Knows what is recorded and how much of it; where it is put and when is the duty of
:mod:`bijotel.rag.scope`. A record is a handful of attributes, because tracers drop the oldest
beyond 128; all sources stand in one of them, with a digest in another, because tracers cut long
values without a sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from json import JSONEncoder
from typing import Any, TypeAlias

from bijotel import semconv
from bijotel.rag.plain import type_name
from bijotel.rag.source import RECORDED, RAGSource, whole_number

Prompt: TypeAlias = "str | Sequence[Mapping[str, Any]]"
"""What a model gets to see: text, or messages as the provider takes them."""

MAX_SOURCES = 1_000
"""Sources in one record."""

MAX_SOURCES_BYTES = 262_144
"""Of the sources' JSON in one record."""

# Not via json.dumps: a list is encoded source by source, up to the bound.
_encode = JSONEncoder(sort_keys=True, allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a scope knows about its sources, as it travels in the OpenTelemetry context."""

    attributes: Mapping[str, Any]
    """The ``bijotel.rag.*`` attributes of any call made in the scope. What one prompt says about
    its passages (``in_context``) is not among them: it holds for that prompt alone."""

    contents: tuple[str | None, ...]
    """The passages' texts, one for each recorded source."""


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one call."""

    provenance: Provenance
    """For every model call in the scope."""

    stamp: Mapping[str, Any]
    """For the span of the call itself: the same attributes and what holds for it alone."""


def rag_context(
    sources: Iterable[RAGSource],
    *,
    total_context_tokens: int | None = None,
    prompt: Prompt | None = None,
) -> dict[str, Any]:
    """Build the attributes that record the sources of one call.

    At most 1,000 sources and 262,144 bytes of JSON are listed, the first ones. If that leaves
    any out, ``bijotel.rag.sources_total`` holds how many there were, and everything that goes by
    source (``in_context``, ``in_context_count``) is about the listed ones.
    ``bijotel.rag.source_count`` is always the true number.

    Args:
        sources: In the retriever's order; empty for a retrieval that found nothing.
        total_context_tokens: Tokens of the whole context, if known.
        prompt: What the model gets to see. With it the attributes say which of the passages
            (``RAGSource.content``) stand in it.

    Returns:
        Attributes for ``span.set_attributes``. ``bijotel.rag.sources_sha256`` is the digest of
        the very text in ``bijotel.rag.sources``.

    Raises:
        TypeError: An item is not a ``RAGSource``, or ``total_context_tokens`` no whole number.

    Added in 0.1.
    """
    return {**record_of(provenance_of(sources, total_context_tokens), prompt).stamp}


def provenance_of(sources: Iterable[RAGSource], total_context_tokens: int | None) -> Provenance:
    """Build what holds for every call of a scope; as :func:`rag_context` without a prompt."""
    given = _checked(sources)
    listed = _listed(given)
    text = f"[{', '.join(listed)}]"
    first = given[0] if given else None
    attributes: dict[str, Any] = {
        semconv.RAG_SOURCE_COUNT: len(given),
        semconv.RAG_SOURCES: text,
        semconv.RAG_RETRIEVER_ID: first.retriever if first else "",
        semconv.RAG_EMBEDDING_MODEL: first.embedding_model if first else "",
        semconv.RAG_SOURCES_SHA256: sha256(text.encode("ascii")).hexdigest(),
    }
    if len(listed) < len(given):
        attributes[semconv.RAG_SOURCES_TOTAL] = len(given)
    if total_context_tokens is not None:
        attributes[semconv.RAG_TOTAL_CONTEXT_TOKENS] = whole_number(
            "total_context_tokens", total_context_tokens
        )
    return Provenance(attributes, tuple(source.content for source in given[: len(listed)]))


def record_of(provenance: Provenance, prompt: Prompt | None) -> Record:
    """Add what a prompt says about the passages; nothing without one."""
    if prompt is None:
        return Record(provenance, provenance.attributes)
    from bijotel.context_matching import match_context  # noqa: PLC0415 - only who asks pays

    statuses = [match.status for match in match_context(provenance.contents, prompt)]
    stated = {
        semconv.RAG_IN_CONTEXT: statuses,
        semconv.RAG_IN_CONTEXT_COUNT: sum(each in {"included", "partial"} for each in statuses),
    }
    return Record(provenance, {**provenance.attributes, **stated})


def _checked(sources: Iterable[RAGSource]) -> tuple[RAGSource, ...]:
    if isinstance(sources, (str, bytes, Mapping, RAGSource)) or not isinstance(sources, Iterable):
        raise TypeError(f"sources: expected a sequence of RAGSource, got {type_name(sources)}")
    given = tuple(sources)
    for position, source in enumerate(given):
        if not isinstance(source, RAGSource):
            raise TypeError(
                f"sources[{position}]: expected RAGSource, got {type_name(source)}; "
                "sources_from() makes sources out of a retriever's hits"
            )
    return given


def _listed(sources: tuple[RAGSource, ...]) -> list[str]:
    """Encode the sources that a record has room for."""
    listed: list[str] = []
    room = MAX_SOURCES_BYTES - len("[]")
    for source in sources[:MAX_SOURCES]:
        text = _encode({name: getattr(source, name) for name in RECORDED})
        room -= len(text) + len(", ")
        if room < 0:
            break
        listed.append(text)
    return listed
