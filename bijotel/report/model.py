"""What a report shows: frozen values, ready for a page. No behaviour beyond small views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from bijotel.findings import Finding, Report

Style: TypeAlias = Literal["good", "doubtful", "bad", "plain"]
"""How something is coloured; the words beside it say the same."""
Proof: TypeAlias = Literal["verified", "not verified", "false"]
"""What became of one entry."""

PROOF_STYLES: dict[Proof, Style] = {
    "verified": "good",
    "not verified": "doubtful",
    "false": "bad",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether one entry verifies, and why it does not."""

    proof: Proof
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One decision as a line of the list."""

    seq: int
    start_unix_nano: int
    title: str
    """The question, cut to one line."""
    model: str
    proof: Proof
    outcome: str
    """``ok``, ``error``, ``warning`` or ``blocked``."""
    passages: Mapping[str, int] = field(default_factory=dict)
    """How many there are of each word: included, partial, dropped, unknown."""


@dataclass(frozen=True, slots=True)
class Gap:
    """An entry that says that spans were lost."""

    seq: int
    reason: str
    count: str
    """A number, or a word where nobody can tell."""
    period: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of the timeline, in the units of the drawing."""

    x: float
    width: float
    parts: tuple[tuple[float, float, Style], ...]
    """Top, height and style, from the bottom up."""
    label: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """When calls began, drawn."""

    bars: tuple[Bar, ...]
    marks: tuple[tuple[float, str], ...]
    """Places of gaps and what they say."""
    first: str
    last: str
    highest: int
    """Calls of the highest bar."""
    summary: str


@dataclass(frozen=True, slots=True)
class Plot:
    """One series with what was found in it, drawn."""

    name: str
    unit: str
    verdict: str
    style: Style
    counts: str
    line: str
    """Points of a polyline."""
    outliers: tuple[tuple[float, float, str], ...]
    shifts: tuple[tuple[float, str], ...]
    low: str
    high: str
    words: tuple[str, ...]
    """What was found, for those who do not look at the drawing."""


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Repeated calls: the largest groups, and how many there are."""

    groups: tuple[tuple[str, ...], ...] = ()
    """Name, key, count, first and last entry, tokens and cost of the repeats."""
    total: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """All that stands on the page beside the details of each decision."""

    location: str
    chain: str
    name: str
    scope: str
    made_at: str
    report: Report | None
    """Of the verification; None when there was no key."""
    verdict: tuple[str, Style, str]
    """The word, its style and the rest of the sentence."""
    covered: tuple[str, ...]
    not_covered: tuple[str, ...]
    rows: tuple[Row, ...]
    counts: str
    """What was read, in words."""
    timeline: Timeline | None
    plots: tuple[Plot, ...]
    plot_doubts: tuple[str, ...]
    gaps: tuple[Gap, ...]
    duplicates: Duplicates
    checkpoint: str | None = None
    """The signed note that the proofs lead to."""
