"""Strands Agents, default telemetry: a tool's result stands in a ``gen_ai.choice`` event.

Everything else that Strands writes, in both its modes, is the GenAI conventions.
"""

from __future__ import annotations

from bijotel.dialects.model import Dialect, Reading
from bijotel.dialects.retrievals import tool_retrieval
from bijotel.model import SpanRecord
from bijotel.semconv import OPERATION_NAME
from bijotel.traces.model import LogRecord


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read a tool span whose result is an event."""
    if span.attributes.get(OPERATION_NAME) != "execute_tool":
        return None
    held = {event.name: event.attributes for event in span.events}
    query = held.get("gen_ai.tool.message", {}).get("content")
    return Reading("tool", tool_retrieval(span, held["gen_ai.choice"].get("message"), query))


DIALECT = Dialect("strands", (), read, events=("gen_ai.choice",))
