"""Spans of model calls, made by hand."""

from __future__ import annotations

from typing import Any

from bijotel.model import Resource, Scope, SpanRecord, Status

START = 1_748_772_000_000_000_000
"""2025-06-01T10:00:00Z."""
SECOND = 10**9


def span(
    number: int = 1,
    *,
    parent: int | None = None,
    trace: int = 1,
    start: float = 0,
    end: float = 1,
    scope: str = "tests",
    service: str = "",
    status: str = "UNSET",
    inherited: dict[str, Any] | None = None,
    **attributes: Any,
) -> SpanRecord:
    """Make a span; seconds count from ``START``, and ``__`` in names stands for a dot."""
    return SpanRecord(
        name="chat",
        trace_id=f"{trace:032x}",
        span_id=f"{number:016x}",
        parent_span_id=None if parent is None else f"{parent:016x}",
        start_time_unix_nano=START + round(start * SECOND),
        end_time_unix_nano=START + round(end * SECOND),
        status=Status(status),
        scope=Scope(scope),
        resource=Resource({"service.name": service} if service else {}),
        attributes={name.replace("__", "."): value for name, value in attributes.items()},
        inherited=inherited or {},
    )


def chat(
    input_tokens: Any = 100, output_tokens: Any = 10, model: str = "gpt-4o", **rest: Any
) -> SpanRecord:
    """Make a model call in the words of the GenAI conventions."""
    counts = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    named = {f"gen_ai__usage__{name}": count for name, count in counts.items() if count is not None}
    return span(
        **{
            "gen_ai__operation__name": "chat",
            "gen_ai__response__model": model,
            **named,
            **rest,
        }
    )
