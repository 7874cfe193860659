"""The numbers of one span. Pure.

A span that lacks a dimension has no number there: absent is never zero. What stands where a
number belongs and is none (negative, NaN, a text) is left out and said.

Source: docs/reference (dimensions); attribute names in ``semconv`` and the dialect readers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from bijotel.dialects.recorded import recorded_sources
from bijotel.dialects.span import Span
from bijotel.dialects.usage import NOTHING, Counted, shown, usage_of
from bijotel.errors import ConfigurationError
from bijotel.regression.model import LARGEST
from bijotel.semconv import (
    RAG_IN_CONTEXT,
    RAG_IN_CONTEXT_COUNT,
    RAG_SOURCE_COUNT,
    RAG_TOTAL_CONTEXT_TOKENS,
)

Price: TypeAlias = Callable[[Span, Counted], "Decimal | None"]
"""Gives the US dollars of a span's tokens, None when that is not known."""
Kind: TypeAlias = Literal["retrieval", "usage", "call"]
"""What a number is about, which says which of the spans of one decision has it."""

_SECOND: Final = 10**9
_FIRST_TOKEN: Final = ("gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token")
# Its second attribute is in milliseconds, against the convention of the same name.
_IN_MILLISECONDS: Final = "strands.telemetry.tracer"


class Measured(NamedTuple):
    """The numbers of one span."""

    values: dict[str, float]
    """By dimension; without those that the span lacks."""
    faults: tuple[str, ...]
    """What is no number, in words."""


class Dimension(NamedTuple):
    """One number that calls have."""

    name: str
    unit: str
    read: Callable[[_Reading], float | None]
    kind: Kind
    is_rate: bool = False
    """Each value is 0 or 1, so that a single one means nothing."""


class _Reading:
    """One span while its numbers are read."""

    __slots__ = ("_scores", "counted", "faults", "price", "record")

    def __init__(self, record: Span, counted: Counted, price: Price | None) -> None:
        self.record = record
        self.counted = counted
        self.price = price
        self.faults: list[str] = []
        self._scores: list[float] | None = None

    def get(self, name: str) -> Any:
        """Give an attribute; the span's own outweighs the inherited one."""
        value = self.record.attributes.get(name)
        return self.record.inherited.get(name) if value is None else value

    def number(self, *names: str) -> float | None:
        """Give the first of some attributes that is there, when it is a number from 0 on."""
        for name in names:
            value = self.get(name)
            if value is not None:
                if _is_number(value) and value >= 0:
                    return float(value)
                self.faults.append(f"{name} is {shown(value)}, expected a number from 0 on")
        return None

    def scores(self) -> list[float]:
        """Give the similarity scores of the recorded sources; a distance is none."""
        if self._scores is None:
            self._scores = list(_scores(recorded_sources(self.record)))
        return self._scores


def measure(
    record: Span,
    dimensions: Sequence[Dimension],
    *,
    counted: Counted | None = None,
    price: Price | None = None,
) -> Measured:
    """Read the numbers of one span.

    Args:
        record: The span.
        dimensions: Which ones.
        counted: Its tokens, when they were read before.
        price: Makes the dimension ``cost``; without it no span has that.
    """
    if counted is None:
        of_usage = any(dimension.kind == "usage" for dimension in dimensions)
        counted = usage_of(record) if of_usage else NOTHING
    reading = _Reading(record, counted, price)
    values = {
        dimension.name: value
        for dimension in dimensions
        if (value := dimension.read(reading)) is not None
    }
    return Measured(values, (*reading.counted.faults, *reading.faults))


def find_dimensions(names: Iterable[str]) -> tuple[Dimension, ...]:
    """Find dimensions by name; all of them when none is named.

    Raises:
        ConfigurationError: one of them does not exist.
    """
    wanted = tuple(dict.fromkeys(names)) or tuple(DIMENSIONS)
    for name in wanted:
        if name not in DIMENSIONS:
            raise ConfigurationError(
                f"dimension {name!r}: not known; expected one of {', '.join(DIMENSIONS)}"
            )
    return tuple(DIMENSIONS[name] for name in wanted)


def _attribute(name: str) -> Callable[[_Reading], float | None]:
    return lambda reading: reading.number(name)


def _input_tokens(reading: _Reading) -> float | None:
    return _optional(reading.counted.usage.input_tokens)


def _output_tokens(reading: _Reading) -> float | None:
    return _optional(reading.counted.usage.output_tokens)


def _cost(reading: _Reading) -> float | None:
    if reading.price is None:
        return None
    return _optional(reading.price(reading.record, reading.counted))


def _cache_ratio(reading: _Reading) -> float | None:
    usage = reading.counted.usage
    return _share(reading, "cached", usage.cache_read_tokens, "input", usage.input_tokens)


def _reasoning_ratio(reading: _Reading) -> float | None:
    usage = reading.counted.usage
    return _share(reading, "reasoning", usage.reasoning_tokens, "output", usage.output_tokens)


def _in_context_ratio(reading: _Reading) -> float | None:
    statuses = reading.get(RAG_IN_CONTEXT)
    if not isinstance(statuses, (list, tuple)):
        return None
    known = sum(status != "unknown" for status in statuses)
    count = reading.number(RAG_IN_CONTEXT_COUNT)
    return _share(reading, "found", count, "known", known)


def _top_score(reading: _Reading) -> float | None:
    return max(reading.scores(), default=None)


def _mean_score(reading: _Reading) -> float | None:
    scores = reading.scores()
    return math.fsum(scores) / len(scores) if scores else None


def _time_to_first_token(reading: _Reading) -> float | None:
    seconds = reading.number(*_FIRST_TOKEN)
    if seconds is not None and reading.record.scope.name == _IN_MILLISECONDS:
        return seconds / 1000
    return seconds


def _duration(reading: _Reading) -> float | None:
    start, end = reading.record.start_time_unix_nano, reading.record.end_time_unix_nano
    if start is None or end is None:
        return None
    if end < start:
        reading.faults.append("the span ends before it starts")
        return None
    return _optional((end - start) / _SECOND)


def _failed(reading: _Reading) -> float:
    return float(reading.record.status.code == "ERROR")


DIMENSIONS: Final = {
    dimension.name: dimension
    for dimension in (
        Dimension("rag_source_count", "sources", _attribute(RAG_SOURCE_COUNT), "retrieval"),
        Dimension("rag_in_context_ratio", "share", _in_context_ratio, "retrieval"),
        Dimension("rag_top_score", "score", _top_score, "retrieval"),
        Dimension("rag_mean_score", "score", _mean_score, "retrieval"),
        Dimension("context_tokens", "tokens", _attribute(RAG_TOTAL_CONTEXT_TOKENS), "retrieval"),
        Dimension("input_tokens", "tokens", _input_tokens, "usage"),
        Dimension("output_tokens", "tokens", _output_tokens, "usage"),
        Dimension("cost", "USD", _cost, "usage"),
        Dimension("cache_ratio", "share", _cache_ratio, "usage"),
        Dimension("reasoning_ratio", "share", _reasoning_ratio, "usage"),
        Dimension("time_to_first_token", "s", _time_to_first_token, "call"),
        Dimension("duration", "s", _duration, "call"),
        Dimension("error_rate", "share", _failed, "call", is_rate=True),
    )
}
"""Every dimension by name, in the order in which they are shown."""


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -LARGEST <= value <= LARGEST


def _optional(value: float | Decimal | None) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if -LARGEST <= number <= LARGEST else None


def _share(
    reading: _Reading, what: str, part: float | None, of: str, whole: float | None
) -> float | None:
    if part is None or not whole:
        return None
    if part > whole:
        reading.faults.append(f"{part:g} {what} of {whole:g} {of}: more than there are")
        return None
    return part / whole


def _scores(sources: Sequence[Any]) -> Iterator[float]:
    for source in sources:
        score: Any = source.get("similarity_score") if isinstance(source, dict) else None
        if _is_number(score):
            metadata = source.get("metadata")
            if not isinstance(metadata, dict) or metadata.get("score_kind") != "distance":
                yield float(score)
