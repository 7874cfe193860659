"""OpenLIT: a vector-store span says how many rows came back, never which.

Its model calls are those of the GenAI conventions.
"""

from __future__ import annotations

from bijotel.dialects.model import Dialect, Reading
from bijotel.dialects.retrievals import retrieval
from bijotel.dialects.values import text
from bijotel.model import SpanRecord
from bijotel.semconv import OPERATION_NAME
from bijotel.traces.model import LogRecord

_READS = frozenset({"get", "query", "search", "select", "fetch", "retrieve"})


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read a vector-store span that asks."""
    attributes = span.attributes
    if attributes.get(OPERATION_NAME) != "vectordb":
        return None
    asks = text(attributes.get("db.operation.name")).lower() in _READS
    return Reading("retriever", retrieval(span, None)) if asks else Reading("other")


DIALECT = Dialect("openlit", (OPERATION_NAME,), read)
