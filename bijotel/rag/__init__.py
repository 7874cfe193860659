"""Provenance: which retrieved passages fed a call.

What an application says about its retrieval, made into span attributes and handed on to the
model calls within. Loads the OpenTelemetry API, never its SDK; reads no clock and does no I/O.
The modules, from the bottom: ``redact`` and ``plain`` (values), ``source``, ``hits``, ``context``
(attributes), ``scope`` (spans and OpenTelemetry contexts), ``drive``, ``decorator``, ``manager``.
"""

from bijotel.rag.context import MAX_SOURCES, MAX_SOURCES_BYTES, Provenance, rag_context
from bijotel.rag.decorator import with_rag_provenance
from bijotel.rag.hits import sources_from
from bijotel.rag.manager import rag_provenance
from bijotel.rag.scope import current_provenance
from bijotel.rag.source import RAGSource

__all__ = [
    "MAX_SOURCES",
    "MAX_SOURCES_BYTES",
    "Provenance",
    "RAGSource",
    "current_provenance",
    "rag_context",
    "rag_provenance",
    "sources_from",
    "with_rag_provenance",
]
