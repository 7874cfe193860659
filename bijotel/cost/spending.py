"""Tokens and money of the calls of a chain, by model, retriever, service or day. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bijotel.cost.model import Cost, CostTotal
from bijotel.cost.prices import Prices
from bijotel.dialects.groups import MOST_GROUPS, OTHERS, GroupBy, group_of
from bijotel.dialects.leafmost import Leafmost
from bijotel.dialects.model import Usage
from bijotel.dialects.span import Span
from bijotel.dialects.usage import usage_of


@dataclass(slots=True)
class Spent:
    """What the calls of one group spent; nested spans of one call are one call."""

    input_tokens: int = 0
    output_tokens: int = 0
    without_usage: int = 0
    """Calls that do not say how many tokens they took."""
    cost: CostTotal = field(default_factory=CostTotal)

    @property
    def calls(self) -> int:
        """How many there are."""
        return self.cost.calls

    def add(self, usage: Usage, cost: Cost) -> None:
        """Count one call."""
        self.input_tokens += usage.input_tokens or 0
        self.output_tokens += usage.output_tokens or 0
        self.without_usage += usage.input_tokens is None and usage.output_tokens is None
        self.cost.add(cost)

    def join(self, other: Spent) -> None:
        """Count the calls of another group."""
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.without_usage += other.without_usage
        self.cost.join(other.cost)

    def as_dict(self) -> dict[str, Any]:
        """Give the members that ``--json`` prints."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "calls_without_usage": self.without_usage,
            **self.cost.as_dict(),
        }


class _Call(NamedTuple):
    group: str
    usage: Usage
    cost: Cost


class Spending:
    """Takes the spans of a chain in order and counts what they spent."""

    def __init__(self, by: GroupBy, prices: Prices) -> None:
        """Begin without a call."""
        self._by = by
        self._prices = prices
        self._leafmost: Leafmost[_Call] = Leafmost()
        self._groups: dict[str, Spent] = {}

    def add(self, span: Span) -> None:
        """Take the next span."""
        counted = usage_of(span)
        call = _Call(group_of(span, self._by), counted.usage, self._prices.cost(span, counted))
        released = self._leafmost.add(span, counted.usage, call)
        if released is not None and released[1]:
            self._count(released[0])

    def finish(self) -> dict[str, Spent]:
        """Give what was spent by group, in the order of their names."""
        for earlier, counts in self._leafmost.rest():
            if counts:
                self._count(earlier)
        return dict(sorted(self._groups.items()))

    def _count(self, call: _Call) -> None:
        full = len(self._groups) >= MOST_GROUPS
        group = OTHERS if full and call.group not in self._groups else call.group
        self._groups.setdefault(group, Spent()).add(call.usage, call.cost)
