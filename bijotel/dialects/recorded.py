"""The list of sources that bijotel's own attributes hold, as it was recorded. Pure.

What :mod:`~bijotel.dialects.provenance` makes of it for matching is another question; here each
member is handed on as it is, of any type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from bijotel.dialects.span import Span
from bijotel.semconv import RAG_SOURCES


def recorded_sources(span: Span) -> Sequence[Any]:
    """Give the sources of a span; those that it inherited where its own list was cut."""
    for held in (span.attributes, span.inherited):
        value = held.get(RAG_SOURCES)
        if isinstance(value, str):
            try:
                value = orjson.loads(value)
            except ValueError:
                continue
        if isinstance(value, (list, tuple)):
            return value
    return ()
