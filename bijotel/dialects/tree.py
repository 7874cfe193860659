"""Which span of a trace lies in which. Broken and circular parents end a walk, they never loop."""

from __future__ import annotations

from collections.abc import Iterator

from bijotel.dialects.registry import SpanReading

_MAX_DEPTH = 256


class Tree:
    """The spans of one trace by parent."""

    __slots__ = ("_by_id",)

    def __init__(self, readings: tuple[SpanReading, ...]) -> None:
        self._by_id: dict[str, SpanReading] = {}
        for reading in readings:
            if reading.span.span_id:
                self._by_id.setdefault(reading.span.span_id, reading)

    def above(self, reading: SpanReading) -> Iterator[SpanReading]:
        """Give what a span lies in, from the inside out, at most 256 levels."""
        start = reading
        for _ in range(_MAX_DEPTH):
            parent = self._by_id.get(reading.span.parent_span_id or "")
            if parent is None or parent is start:
                return
            yield parent
            reading = parent

    def is_root(self, reading: SpanReading) -> bool:
        """Tell whether the trace holds nothing that a span lies in."""
        return (reading.span.parent_span_id or "") not in self._by_id
