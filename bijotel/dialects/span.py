"""What the reading of numbers needs of a span, and a light value that has just that.

Making a whole record takes longer than everything that is then read out of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from bijotel.model import Resource, Scope, SpanRecord, Status


class SkimmedSpan(NamedTuple):
    """A span without its name, kind, events and links; the members are those of a record."""

    trace_id: str
    span_id: str
    parent_span_id: str | None
    start_time_unix_nano: int | float | None
    end_time_unix_nano: int | float | None
    status: Status
    attributes: Mapping[str, Any]
    resource: Resource
    scope: Scope
    inherited: Mapping[str, Any]


Span: TypeAlias = SpanRecord | SkimmedSpan
