"""Frozen values of the room: a trace, a log record, and what was skipped on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bijotel.model import SpanRecord


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One log record that belongs to a span. Values are plain Python values."""

    event_name: str = ""
    """From the field, or from the attribute ``event.name`` of older writers."""
    trace_id: str = ""
    """32 lower-case hex digits."""
    span_id: str = ""
    """16 lower-case hex digits."""
    time_unix_nano: int | float | None = None
    """When it happened, or when it was observed if the writer left that at 0."""
    body: Any = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trace:
    """All records of one trace that the input holds."""

    trace_id: str
    """32 lower-case hex digits."""
    spans: tuple[SpanRecord, ...] = ()
    """In the order of the input; a span that was exported twice is there once."""
    logs: tuple[LogRecord, ...] = ()
    """In the order of time."""


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """A line, or a part of it, that could not be read."""

    file: str
    line: int
    """From 1. In a length-prefixed file: the number of the message."""
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: line {self.line}: {self.reason}"
