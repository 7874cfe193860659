"""Where spans stand in their trace, and a bounded memory of that. Pure."""

from __future__ import annotations

from typing import Final, Generic, NamedTuple, TypeVar

from bijotel.dialects.model import Usage
from bijotel.dialects.span import Span
from bijotel.spans.select import is_model_call

Key = TypeVar("Key")
Value = TypeVar("Value")

HORIZON: Final = 1024
"""A span waits until as many more have come: some exporters send the outermost span first."""
REMEMBERED: Final = 8192
MOST_LEVELS: Final = 256


class Place(NamedTuple):
    """Where a span stands and what it reports. Flat, so that the garbage collector skips it."""

    trace: str
    key: str
    """Trace and span id in one."""
    parent: str
    """The same of the parent; empty for a root."""
    is_model: bool
    reports: bool
    start: float
    end: float
    scope: str
    input_tokens: int | None
    output_tokens: int | None

    def lies_within(self, other: Place) -> bool:
        """Tell whether a span begins and ends while another one lasts."""
        return other.start <= self.start and self.end <= other.end

    def repeats(self, other: Place) -> bool:
        """Tell whether a span beside another one is the same call, instrumented twice."""
        return (
            self.scope != other.scope
            and self.parent == other.parent
            and self.input_tokens == other.input_tokens
            and self.output_tokens == other.output_tokens
            and self.lies_within(other)
            and (self.start, self.end) != (other.start, other.end)
        )


class Recent(Generic[Key, Value]):
    """A mapping that forgets what was put in ``REMEMBERED`` others ago, or twice as many.

    Two generations, of which the older one is dropped.
    """

    __slots__ = ("_new", "_old")

    def __init__(self) -> None:
        """Begin empty."""
        self._new: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def __contains__(self, key: Key) -> bool:
        """Tell whether a key is remembered."""
        return key in self._new or key in self._old

    def get(self, key: Key) -> Value | None:
        """Give what is remembered of a key."""
        found = self._new.get(key)
        return self._old.get(key) if found is None else found

    def put(self, key: Key, value: Value) -> None:
        """Remember something, and forget what is old."""
        if len(self._new) >= REMEMBERED:
            self._old, self._new = self._new, {}
        self._new[key] = value


def place_of(span: Span, usage: Usage) -> Place:
    """Say where a span stands.

    Args:
        span: The span.
        usage: The tokens that it reports.
    """
    trace, parent = span.trace_id, span.parent_span_id
    start, end = span.start_time_unix_nano, span.end_time_unix_nano
    return Place(
        trace,
        trace + span.span_id,
        trace + parent if parent else "",
        is_model_call(span.attributes),
        usage.input_tokens is not None or usage.output_tokens is not None,
        0 if start is None else start,
        0 if end is None else end,
        span.scope.name,
        usage.input_tokens,
        usage.output_tokens,
    )
