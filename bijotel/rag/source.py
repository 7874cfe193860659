"""``RAGSource``: the descriptor of one retrieved passage.

It makes its inputs plain at construction, so that everything after it may rely on eight fields
that JSON can carry. It says nothing about how passages were found (:mod:`bijotel.rag.hits`) nor
where the record goes (:mod:`bijotel.rag.context`). Rules kept: a missing score is null and never
zero; a value is never invented; a value that has no plain form is a ``TypeError`` with the
field's name; credentials do not get in; the passage's text does not get out.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from bijotel.rag.plain import (
    MAX_INT_BITS,
    NO_METADATA,
    ReadOnlyDict,
    bounded_text,
    plain_metadata,
    scalar,
    thaw,
    time_text,
    type_name,
)
from bijotel.rag.redact import redact_address

if TYPE_CHECKING:
    from typing import SupportsFloat, SupportsIndex

Identifier: TypeAlias = "str | int | UUID | os.PathLike[str]"
"""What a retriever may call a document."""

MAX_TEXT = 4_096
"""Characters of one text field; a longer one is cut and says so."""

RECORDED = (
    "document_id",
    "chunk_index",
    "source_uri",
    "retriever",
    "embedding_model",
    "similarity_score",
    "retrieved_at",
    "metadata",
)
"""The fields that are recorded, in order."""

_set = object.__setattr__


@dataclass(frozen=True, slots=True, init=False)
class RAGSource:
    """Describe one retrieved passage.

    Immutable, hashable, comparable, picklable. ``dataclasses.replace`` makes a changed copy.

    Args:
        document_id: What the retriever calls the document or hit: text, int (kept an int), UUID
            or path.
        chunk_index: The passage's number within its document: an int, a numpy int, or a float
            that is a whole number.
        source_uri: Where the document is: text, path or URL object.
        retriever: Name of the retriever, such as ``"qdrant"``.
        embedding_model: Name of the embedding model.
        similarity_score: Higher is better, in the retriever's own scale; any real number,
            ``Decimal`` or numpy scalar. ``None`` when there is none. NaN and infinities become
            ``None`` and ``metadata["similarity_score_reason"]`` says ``"non-finite"``. A distance
            is no similarity; it belongs into the metadata.
        retrieved_at: RFC 3339 text, kept as given; or a ``datetime``: in UTC with ``Z`` if it is
            aware, else without offset. The paths of naive datetimes are listed in
            ``metadata["naive_datetimes"]``.
        metadata: Anything; made plain by the table in :mod:`bijotel.rag.plain`, at most 16,384
            characters.
        content: The passage's text. Used for context matching, never recorded.

    Credentials in addresses, parameters and under telling metadata keys are replaced by
    ``REDACTED``. Text fields longer than 4,096 characters are cut, and say so.

    Raises:
        TypeError: A field cannot be made plain. The message begins with the field's name.

    Added in 0.1.
    """

    document_id: str | int
    chunk_index: int
    source_uri: str
    retriever: str
    embedding_model: str
    similarity_score: float | None
    retrieved_at: str
    metadata: Mapping[str, Any] = field(hash=False)
    content: str | None = field(repr=False)

    def __init__(  # noqa: PLR0917 - the positions are part of the interface
        self,
        document_id: Identifier,
        chunk_index: SupportsIndex | float,
        source_uri: str | os.PathLike[str] | None = "",
        retriever: str | None = "",
        embedding_model: str | None = "",
        similarity_score: SupportsFloat | None = None,
        retrieved_at: str | date | None = "",
        metadata: Mapping[str, Any] | None = NO_METADATA,
        content: str | None = None,
    ) -> None:
        _set(self, "document_id", _identifier(document_id))
        _set(self, "chunk_index", whole_number("chunk_index", chunk_index))
        _set(self, "source_uri", _text("source_uri", source_uri))
        _set(self, "retriever", _text("retriever", retriever))
        _set(self, "embedding_model", _text("embedding_model", embedding_model))
        score = _score(similarity_score)
        made, naive = _metadata(metadata)
        if isinstance(retrieved_at, datetime) and retrieved_at.tzinfo is None:
            naive = ("retrieved_at", *naive)
        if isinstance(retrieved_at, date):
            retrieved_at = time_text(retrieved_at)
        marks: dict[str, Any] = {"naive_datetimes": naive} if naive else {}
        if score is None and similarity_score is not None:
            marks["similarity_score_reason"] = "non-finite"
        _set(self, "similarity_score", score)
        _set(self, "retrieved_at", _text("retrieved_at", retrieved_at))
        _set(self, "metadata", ReadOnlyDict({**made, **marks}) if marks else made)
        _set(self, "content", _content(content))

    def to_dict(self) -> dict[str, Any]:
        """Return the eight recorded fields, in order, as fresh JSON values."""
        return {name: thaw(getattr(self, name)) for name in RECORDED}


def whole_number(name: str, value: Any) -> int:
    """Return a whole number as an int.

    Raises:
        TypeError: ``value`` is none, or is not below 2**4096. The message begins with ``name``.
    """
    value = scalar(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool):
        raise _wrong(name, "a whole number", value)
    try:
        number = operator.index(value)
    except Exception:  # noqa: BLE001 - a foreign number may raise anything
        raise _wrong(name, "a whole number", value) from None
    if number.bit_length() > MAX_INT_BITS:
        raise TypeError(f"{name}: expected a whole number below 2**{MAX_INT_BITS}")
    return number


def _identifier(value: Any) -> str | int:
    if isinstance(value, UUID):
        return str(value)
    value = scalar(value.value if isinstance(value, Enum) else value)
    if isinstance(value, int) and not isinstance(value, bool):
        return whole_number("document_id", value)
    if value is None:
        raise _wrong("document_id", "text, an int, a UUID or a path", value)
    return _text("document_id", value, expected="text, an int, a UUID or a path")


def _text(name: str, value: Any, expected: str = "text") -> str:
    if value is None:
        return ""
    try:
        text = value if type(value) is str else _as_text(value)
    except Exception:  # noqa: BLE001 - a foreign path or address may raise anything
        text = None
    if text is None:
        raise _wrong(name, expected, value)
    return bounded_text(text, MAX_TEXT, redact_address)


def _as_text(value: Any) -> str | None:
    value = value.value if isinstance(value, Enum) else value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    # URL objects of pydantic, httpx and yarl; their text is the address in full.
    is_url = hasattr(type(value), "scheme") and hasattr(type(value), "host")
    return str(value) if is_url else None


def _score(value: Any) -> float | None:
    """Return a score as a float, or None if it is missing or not finite."""
    value = scalar(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        raise _wrong("similarity_score", "a real number or None", value)
    try:
        number = float(value)
    except Exception:  # noqa: BLE001 - beyond a double, a signalling NaN, a foreign number
        return None
    return number if math.isfinite(number) else None


def _metadata(value: Any) -> tuple[ReadOnlyDict, tuple[str, ...]]:
    made, naive = plain_metadata(NO_METADATA if value is None else value)
    if not isinstance(made, ReadOnlyDict) or isinstance(value, (bytes, bytearray, memoryview)):
        raise _wrong("metadata", "a mapping", value)
    return made, naive


def _content(value: Any) -> str | None:
    if value is None or type(value) is str:
        return value
    if not isinstance(value, str):
        raise _wrong("content", "text or None", value)
    return str.__str__(value)


def _wrong(name: str, expected: str, value: object) -> TypeError:
    return TypeError(f"{name}: expected {expected}, got {type_name(value)}")
