"""What one model call got to see of the passages in its scope, for its sealed body. Pure.

Runs on the writer's thread, never on the application's. Needs the passages' texts, which only the
scope has, and the recorded prompt; without either nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bijotel.context_matching import match_context
from bijotel.dialects.registry import read_span
from bijotel.model import EMPTY, SpanRecord
from bijotel.rag.context import Provenance
from bijotel.semconv import RAG_IN_CONTEXT, RAG_IN_CONTEXT_COUNT, RAG_SOURCES


def with_context(record: SpanRecord, provenance: Provenance) -> SpanRecord:
    """Add to what a model call inherits which passages stand in its prompt.

    Args:
        record: An ended model call within the scope, whose sources it has.
        provenance: The scope's.

    Returns:
        The record with ``bijotel.rag.in_context`` and its count in ``inherited``; unchanged when
        the sources have no text, the prompt is not recorded, or the span states them itself.
    """
    attributes = _context_attributes(record, provenance)
    if not attributes:
        return record
    return replace(record, inherited={**record.inherited, **attributes})


def _context_attributes(record: SpanRecord, provenance: Provenance) -> Mapping[str, Any]:
    stated = {**record.inherited, **record.attributes}
    if RAG_IN_CONTEXT in stated or stated.get(RAG_SOURCES) != provenance.attributes[RAG_SOURCES]:
        return EMPTY
    call = read_span(record).call
    if call is None or not call.messages:
        return EMPTY
    is_cut = call.capture.state == "incomplete"
    matches = match_context(provenance.contents, call.prompt, prompt_truncated=is_cut)
    statuses = [match.status for match in matches]
    return {
        RAG_IN_CONTEXT: statuses,
        RAG_IN_CONTEXT_COUNT: sum(status in {"included", "partial"} for status in statuses),
    }
