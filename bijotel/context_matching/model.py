"""The result of context matching: frozen values, no behaviour.

What the fields mean and which combinations occur is decided in ``match``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["included", "partial", "absent", "unknown"]
Level: TypeAlias = Literal["verbatim", "normalized"]
Reason: TypeAlias = Literal["no-content", "no-prompt", "too-short", "prompt-truncated", "too-large"]
Region: TypeAlias = tuple[int, int]
"""``(start, end)`` in characters of the decoded prompt, end exclusive."""


@dataclass(frozen=True, slots=True)
class PassageMatch:
    """What became of one retrieved passage."""

    status: Status
    """``included`` (whole), ``partial``, ``absent``, or ``unknown`` (cannot be decided)."""
    level: Level | None = None
    """How an included passage stands there; None for every other status."""
    containment: float | None = None
    """Share of the passage's tokens found in the prompt, 0 to 1; None when unknown."""
    regions: tuple[Region, ...] = ()
    """Places in the decoded prompt, in order; at most 1,000."""
    position: int | None = None
    """Rank from 0 among included and partial passages by the start of the first region."""
    duplicate_of: int | None = None
    """Index of the first earlier passage with the same tokens."""
    covered_by: int | None = None
    """Index of the longer included passage inside whose regions all regions of this one lie."""
    reason: Reason | None = None
    """Why the status is ``unknown``; None for every other status."""


class ContextMatches(tuple[PassageMatch, ...]):  # noqa: SLOT001 - a tuple takes no slots
    """One :class:`PassageMatch` for each passage, in order.

    Attributes:
        text: The decoded prompt that all regions point into; empty when there is none.
    """

    text: str

    def __new__(  # noqa: PYI034 - Self is younger than Python 3.10
        cls, matches: Iterable[PassageMatch] = (), text: str = ""
    ) -> ContextMatches:
        """Make the tuple and attach the decoded prompt."""
        self = super().__new__(cls, matches)
        self.text = text
        return self
