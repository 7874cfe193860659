"""Span records for the tests of the dialect readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bijotel.dialects.registry import SpanReading, read_span
from bijotel.dialects.trace import TraceReading, read_trace
from bijotel.model import SpanRecord
from bijotel.traces.model import LogRecord, Trace

TRACE = "0af7651916cd43dd8448eb211c80319c"


def make_span(
    attributes: Mapping[str, Any] | None = None,
    *,
    number: int = 1,
    parent: int | None = None,
    start: int | None = 10,
    end: int | None = 20,
    **fields: Any,
) -> SpanRecord:
    """A span whose ids are numbers."""
    return SpanRecord(
        name=fields.pop("name", "step"),
        trace_id=TRACE,
        span_id=f"{number:016x}",
        parent_span_id=None if parent is None else f"{parent:016x}",
        start_time_unix_nano=start,
        end_time_unix_nano=end,
        attributes=attributes or {},
        **fields,
    )


@pytest.fixture
def span() -> Callable[..., SpanRecord]:
    """Makes a span."""
    return make_span


@pytest.fixture
def reading() -> Callable[..., SpanReading]:
    """Reads one span with these attributes with all dialects."""

    def read(attributes: Mapping[str, Any], *logs: LogRecord, **fields: Any) -> SpanReading:
        return read_span(make_span(attributes, **fields), logs)

    return read


@pytest.fixture
def tracing() -> Callable[..., TraceReading]:
    """Reads a trace of these spans."""

    def read(*spans: SpanRecord, logs: tuple[LogRecord, ...] = ()) -> TraceReading:
        return read_trace(Trace(TRACE, spans, logs))

    return read
