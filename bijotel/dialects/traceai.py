"""traceAI (Future AGI): OpenInference's numbered keys under GenAI names.

The kind stands in ``gen_ai.span.kind`` or ``fi.span.kind``, messages under
``gen_ai.input.messages.N``.
"""

from __future__ import annotations

from bijotel.dialects.model import Dialect, Reading
from bijotel.dialects.openinference import KINDS, reading
from bijotel.dialects.values import text
from bijotel.model import SpanRecord
from bijotel.traces.model import LogRecord

_KINDS = ("gen_ai.span.kind", "fi.span.kind")


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read a span by its span kind."""
    kind = next(span.attributes[key] for key in _KINDS if key in span.attributes)
    return reading(
        span,
        KINDS.get(text(kind).upper(), "other"),
        incoming="gen_ai.input.messages.",
        outgoing="gen_ai.output.messages.",
    )


DIALECT = Dialect("traceai", _KINDS, read, states_kind=True)
