"""What is known about one trace once its passages and prompts are joined: frozen values.

Scores are made of these values and of nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from bijotel.context_matching.model import Level, Region, Status
from bijotel.dialects.model import ModelCall, Retrieval

Role: TypeAlias = Literal["answer", "contributing", "other"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one passage in one prompt, or in the trace."""

    status: Status
    level: Level | None = None
    containment: float | None = None
    """Share of the passage's tokens found, 0 to 1; None when unknown."""
    regions: tuple[Region, ...] = ()
    """Places in the text of the prompt, in characters, end exclusive."""
    position: int | None = None
    """Rank from 0 among the passages found in that prompt."""
    covered_by: int | None = None
    """Index of the longer passage inside whose regions all regions of this one lie."""
    reason: str = ""
    """Why it is unknown, or why it is absent without a look at the text."""


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """One model call and what its own prompt holds."""

    call: ModelCall
    role: Role
    text: str
    """The decoded prompt into which regions point, empty when none was recorded."""
    verdicts: tuple[Verdict, ...]
    """One for each passage of the trace."""


@dataclass(frozen=True, slots=True)
class JudgedPassage:
    """One distinct passage that the trace retrieved."""

    id: str
    """The first id that is recorded for it, empty when none is."""
    text: str | None
    score: float | None
    """The first one that is recorded for it."""
    score_kind: str
    rank: int
    """From 1, in the list of the retrieval that found it first."""
    source_span_id: str
    """Of the retrieval that found it first."""
    verdict: Verdict
    """The best over the calls that contribute to the answer and began after its retrieval."""
    call: int | None = None
    """Index of the earliest call that gave this verdict; None when no call did."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One retrieval or reranker and which passages of the trace its hits are."""

    retrieval: Retrieval
    rows: tuple[int, ...]
    """For each of its passages the index of the distinct passage."""
    input_rows: tuple[int, ...] = ()
    """Of a reranker: the same for each of its inputs."""


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Which passages of a trace reached which of its prompts."""

    trace_id: str
    retrievals: tuple[Listed, ...]
    """Searches and stamps, in the order in which they began."""
    rerankers: tuple[Listed, ...]
    calls: tuple[JudgedCall, ...]
    """In the order in which they began."""
    passages: tuple[JudgedPassage, ...]
    """Distinct by text, else by id; in the order of retrieval."""
    answer: int | None
    """Index of the call that answers, None when the trace holds none."""
    answer_certain: bool
    """False when several calls may be the one that answers and no output tells."""
