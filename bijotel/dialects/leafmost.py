"""Spans that report tokens -> those of them that count, so that no call counts twice. Pure.

An agent's span repeats the sum of its model calls, a wrapper that of the client's span within.
Of such spans the innermost model call counts; one further out counts only for calls that
nothing within it reports. A model call that reports nothing, and that nothing around it or
within it reports for, is a call all the same: its tokens are not known.

Entries come in the order of the chain, where what is within ends first and so comes first; some
exporters send the outermost span first, so a span waits until as many more as ``HORIZON`` have
come. What comes later than that is taken for another call.

Memory is bounded: what is known about a span is forgotten after ``REMEMBERED`` further ones, or
twice as many.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from bijotel.dialects.model import Usage
from bijotel.dialects.places import HORIZON, MOST_LEVELS, Place, Recent, place_of
from bijotel.dialects.span import Span

Item = TypeVar("Item")

_CALLS_OF_A_TRACE: Final = 64

# What is within a span: nothing, a model call that reports nothing, one that reports other tokens
# (of an agent, through a tool), or, model call directly within model call, the very same one.
_NOTHING, _SILENT, _OTHERS, _SAME = range(4)


class Leafmost(Generic[Item]):
    """Lets items of spans through in their order, each with whether its span counts."""

    def __init__(self) -> None:
        """Begin before the first span."""
        self._waiting: deque[tuple[Place, Item]] = deque()
        self._places: Recent[str, Place] = Recent()
        self._within: Recent[str, int] = Recent()
        self._calls: Recent[str, list[Place]] = Recent()

    def add(self, span: Span, usage: Usage, item: Item) -> tuple[Item, bool] | None:
        """Take the next span of the chain, whether it reports tokens or not.

        Returns:
            An item that waited long enough, and whether it counts. Only items of spans that
            report tokens and of model calls ever come.
        """
        place = place_of(span, usage)
        self._places.put(place.key, place)
        if place.parent:
            self._pass_on(place, self._within.get(place.key) or _NOTHING)
        if not place.reports and not place.is_model:
            return None
        if place.reports and place.is_model and place.parent:
            calls = self._calls.get(place.trace)
            if calls is None:
                self._calls.put(place.trace, [place])
            elif len(calls) < _CALLS_OF_A_TRACE:
                calls.append(place)
        self._waiting.append((place, item))
        return self._release() if len(self._waiting) > HORIZON else None

    def rest(self) -> Iterator[tuple[Item, bool]]:
        """Let through what still waits, after the last span."""
        while self._waiting:
            yield self._release()

    def _release(self) -> tuple[Item, bool]:
        place, item = self._waiting.popleft()
        within = self._within.get(place.key) or _NOTHING
        if not place.reports:
            return item, within == _NOTHING and not self._is_reported_around(place)
        calls = self._calls.get(place.trace)
        if place.is_model:
            return item, within != _SAME and not (calls and any(map(place.repeats, calls)))
        around = calls and any(call.lies_within(place) for call in calls)
        return item, within <= _SILENT and not around

    def _is_reported_around(self, place: Place) -> bool:
        for _ in range(MOST_LEVELS):
            around = self._places.get(place.parent)
            if around is None:
                return False
            if around.reports:
                return True
            place = around
        return False

    def _pass_on(self, place: Place, within: int) -> None:
        """Tell the spans around one what it and those within it report."""
        for _ in range(MOST_LEVELS):
            told = min(within, _OTHERS)
            if place.is_model:
                told = _SAME if place.reports else max(within, _SILENT)
            if not place.parent or told <= (self._within.get(place.parent) or _NOTHING):
                return
            self._within.put(place.parent, told)
            around = self._places.get(place.parent)
            if around is None:
                return
            place, within = around, told
