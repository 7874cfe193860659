"""Amounts and sums of amounts, exact, and how they are shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple

from bijotel.dialects.model import Usage

EXACT: Final = Context(prec=200)
"""Wide enough that no product or sum of counts and prices is ever rounded."""
MILLION: Final = 1_000_000
MOST_REASONS: Final = 100
"""So many are told apart, so that hostile model names cannot fill the memory."""


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars for a million tokens of one model."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    """None: as much as any other input."""
    cache_write: Decimal | None = None
    request: Decimal = Decimal(0)
    """US dollars for each call, whatever its tokens are."""

    def cost(self, usage: Usage) -> Decimal:
        """Price tokens, of which input and output are known and the cached are part of input."""
        million_fold = EXACT.multiply(usage.output_tokens or 0, self.output)
        uncached = usage.input_tokens or 0
        if usage.cache_read_tokens or usage.cache_write_tokens:
            for count, rate in (
                (usage.cache_read_tokens, self.cache_read),
                (usage.cache_write_tokens, self.cache_write),
            ):
                if count and rate is not None:
                    uncached -= count
                    million_fold = EXACT.fma(count, rate, million_fold)
        million_fold = EXACT.fma(uncached, self.input, million_fold)
        return EXACT.add(self.request, EXACT.divide(million_fold, MILLION))


class Cost(NamedTuple):
    """What one call cost."""

    usd: Decimal | None
    """US dollars; None when that is not known."""
    reason: str = ""
    """Why it is not known."""

    def as_dict(self) -> dict[str, Any]:
        """Give the members that ``--json`` prints; the amount is the nearest double."""
        return {
            "usd": None if self.usd is None else float(self.usd),
            "reason": self.reason or None,
        }


@dataclass(slots=True)
class CostTotal:
    """A sum over calls, some of which may be unpriced."""

    known: Decimal = Decimal(0)
    """US dollars of the priced calls."""
    calls: int = 0
    unpriced: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """How many calls are unpriced for which reason."""

    def add(self, cost: Cost) -> None:
        """Count one call."""
        self.calls += 1
        if cost.usd is not None:
            self.known = EXACT.add(self.known, cost.usd)
            return
        self.unpriced += 1
        self._note(cost.reason, 1)

    def join(self, other: CostTotal) -> None:
        """Count the calls of another sum."""
        self.known = EXACT.add(self.known, other.known)
        self.calls += other.calls
        self.unpriced += other.unpriced
        for reason, count in other.reasons.items():
            self._note(reason, count)

    def _note(self, reason: str, count: int) -> None:
        listed = reason in self.reasons or len(self.reasons) < MOST_REASONS
        self.reasons[reason if listed else "other reasons"] += count

    def __str__(self) -> str:
        if not self.unpriced:
            return money(self.known)
        return f"at least {money(self.known)}, {self.unpriced} of {self.calls} calls unpriced"

    def as_dict(self) -> dict[str, Any]:
        """Give the members that ``--json`` prints; the amount is the nearest double."""
        return {
            "cost_known": float(self.known),
            "calls": self.calls,
            "unpriced_calls": self.unpriced,
            "unpriced_reasons": dict(self.reasons),
        }


def money(usd: Decimal) -> str:
    """Show an amount with all of its digits, at least two after the point."""
    whole, _, digits = f"{usd:f}".partition(".")
    return f"${whole}.{digits.rstrip('0').ljust(2, '0')}"
