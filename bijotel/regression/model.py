"""What a detection works on and what it finds: frozen values."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Verdict: TypeAlias = Literal["ANOMALY", "NO_ANOMALY", "INSUFFICIENT_DATA"]

FEWEST_EARLIER: Final = 5
"""Earlier values that an outlier is judged by, at least."""
FEWEST_FOR_SHIFTS: Final = 20
"""Data points among which a shift is looked for, at least; also the smallest window."""
LARGEST_WINDOW: Final = 10**9
"""Larger than any memory; who wants more wants all."""
FEWEST_IN_SLOT: Final = 3
"""Other values of its season's slot that a value is judged by, at least."""
LARGEST: Final = 1e100
"""A larger number measures nothing, and its square would not be finite."""


class Point(NamedTuple):
    """One value of a series and where it comes from."""

    seq: int
    """Of its entry, or its place in a plain series."""
    value: float
    """At most ``LARGEST`` on either side of zero."""
    slot: Hashable = None
    """Its slot of the season, such as the hour of the day; None without a season."""


class Shortage(NamedTuple):
    """Why a layer did not judge."""

    found: int
    needed: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """One value held against the values before it."""

    seq: int
    value: float
    z: float | None
    """Distance from the mean in sample deviations; None when these are zero. Decides nothing."""
    robust_z: float | None
    """Distance from the median in robust spreads; None when the spread is zero."""
    fences: tuple[float, float]
    """Tukey's: 1.5 interquartile ranges beyond the quartiles. Decide nothing."""
    is_outlier: bool


@dataclass(frozen=True, slots=True)
class Shift:
    """One move of the level."""

    first_seq: int
    """Of the first value at the new level."""
    before: float
    """Median of the values up to the shift before; the mean where only means differ.

    With a season: of what is left of the values without it, and the median of all values.
    """
    after: float
    """The same for the values from ``first_seq`` to the next shift."""
    p_value: float
    """Share of random orders of the same values that look at least as shifted."""


@dataclass(frozen=True, slots=True)
class Detection:
    """What both layers found in one series."""

    used: int
    """Data points judged: those of the window that the season allows."""
    skipped: int
    """Values that are no data points: missing, not finite, or in a slot with too few others."""
    judged: tuple[Judgement, ...]
    """The newest values with their figures; empty when they were not judged."""
    shifts: tuple[Shift, ...]
    """In the order of the series."""
    outlier_shortage: Shortage | None
    """Earlier values, when they are too few."""
    shift_shortage: Shortage | None
    """Data points, when they are too few."""
    unjudged: int = 0
    """Values that were to be judged, but for which the window is too small."""

    @property
    def outliers(self) -> tuple[Judgement, ...]:
        """Those of the newest values that are outliers."""
        return tuple(judgement for judgement in self.judged if judgement.is_outlier)

    @property
    def needed(self) -> int | None:
        """Data points that the layers need which did not judge; None when both did."""
        shortages = (self.outlier_shortage, self.shift_shortage)
        return max((shortage.needed for shortage in shortages if shortage), default=None)

    @property
    def verdict(self) -> Verdict:
        """``NO_ANOMALY`` only when both layers judged all that they were to judge."""
        if self.outliers or self.shifts:
            return "ANOMALY"
        judged = self.needed is None and not self.unjudged
        return "NO_ANOMALY" if judged else "INSUFFICIENT_DATA"

    def as_dict(self) -> dict[str, Any]:
        """Give the members that ``--json`` prints; every number in it is finite."""
        return {
            "used": self.used,
            "skipped": self.skipped,
            "verdict": self.verdict,
            "needed": self.needed,
            "unjudged": self.unjudged,
            "outliers": [
                {name: getattr(each, name) for name in ("seq", "value", "z", "robust_z")}
                for each in self.outliers
            ],
            "shifts": [
                {name: getattr(each, name) for name in ("first_seq", "before", "after", "p_value")}
                for each in self.shifts
            ],
        }
