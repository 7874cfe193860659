"""Which spans of one decision are a data point, so that no decision is two of them. Pure.

What a decision retrieved is stamped on every span that is open or begins meanwhile: the route of
a web framework, the agent, the model call. Of the spans of a trace that carry the same
provenance the first counts, which is the innermost because that ends first. Time and success are
those of the model calls within which there is no other; what wraps them repeats both. A trace
without a model call has its spans themselves.

Which spans count for tokens is the business of :mod:`~bijotel.dialects.leafmost`, and so is the
order in which spans come: a span waits until as many more as ``HORIZON`` have come. Memory is
bounded: what is known is forgotten after ``REMEMBERED`` further ones, or twice as many.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from bijotel.dialects.model import NO_TOKENS
from bijotel.dialects.places import HORIZON, MOST_LEVELS, Place, Recent, place_of
from bijotel.dialects.span import Span
from bijotel.dialects.usage import usage_of
from bijotel.semconv import RAG_SOURCE_COUNT, RAG_SOURCES_SHA256
from bijotel.spans.select import is_model_call

Item = TypeVar("Item")

_BESIDE: Final = 64
"""So many calls of one parent are held against each other."""


class Provenances:
    """What was counted of each provenance of each trace."""

    def __init__(self) -> None:
        """Begin before the first span."""
        self._counted: Recent[tuple[str, str, int | None], set[str]] = Recent()

    def counted(self, span: Span) -> set[str]:
        """Give the dimensions counted of a span's provenance, to add to.

        Without the hash of its sources a provenance is like no other.
        """
        sha256 = _own_or_inherited(span, RAG_SOURCES_SHA256)
        if not isinstance(sha256, str):
            return set()
        count = _own_or_inherited(span, RAG_SOURCE_COUNT)
        key = span.trace_id, sha256, count if type(count) is int else None
        names = self._counted.get(key)
        if names is None:
            names = set()
            self._counted.put(key, names)
        return names


class Calls(Generic[Item]):
    """Lets items of spans through in their order, each with whether it is a call of its own."""

    def __init__(self) -> None:
        """Begin before the first span."""
        self._waiting: deque[tuple[Place, Item]] = deque()
        self._parents: Recent[str, str] = Recent()
        self._around: Recent[str, bool] = Recent()
        self._traces: Recent[str, bool] = Recent()
        self._beside: Recent[str, list[Place]] = Recent()

    def add(self, span: Span, item: Item) -> tuple[Item, bool] | None:
        """Take the next span of the chain.

        Returns:
            An item that waited long enough, and whether it counts.
        """
        is_call = bool(span.parent_span_id) and is_model_call(span.attributes)
        place = place_of(span, usage_of(span).usage if is_call else NO_TOKENS)
        self._parents.put(place.key, place.parent)
        if place.is_model:
            self._traces.put(place.trace, True)
        if place.parent and (place.is_model or place.key in self._around):
            self._mark(place.parent)
        if place.reports:
            self._put_beside(place)
        self._waiting.append((place, item))
        return self._release() if len(self._waiting) > HORIZON else None

    def rest(self) -> Iterator[tuple[Item, bool]]:
        """Let through what still waits, after the last span."""
        while self._waiting:
            yield self._release()

    def _release(self) -> tuple[Item, bool]:
        place, item = self._waiting.popleft()
        if not place.is_model:
            return item, place.trace not in self._traces
        if place.key in self._around:
            return item, False
        # A call that reports no tokens is like no other.
        beside = self._beside.get(place.parent) if place.reports else None
        return item, not any(map(place.repeats, beside or ()))

    def _mark(self, around: str) -> None:
        """Tell the spans around a model call that it is within them."""
        for _ in range(MOST_LEVELS):
            if not around or around in self._around:
                return
            self._around.put(around, True)
            around = self._parents.get(around) or ""

    def _put_beside(self, place: Place) -> None:
        calls = self._beside.get(place.parent) or []
        if len(calls) < _BESIDE:
            calls.append(place)
        self._beside.put(place.parent, calls)


def _own_or_inherited(span: Span, name: str) -> object:
    value = span.attributes.get(name)
    return span.inherited.get(name) if value is None else value
