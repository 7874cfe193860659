"""Where the passages of a trace stand in one prompt, cut into pieces that a page can mark. Pure.

A region of context matching counts characters as Python does, a browser counts otherwise; so
the prompt travels in pieces, each with the numbers of the passages that lie there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bijotel.audit.model import JudgedPassage, Verdict
from bijotel.dialects.provenance import passage_id
from bijotel.provenance import RecordedProvenance, RecordedSource
from bijotel.report.text import cut, shown

MOST_PROMPT: Final = 100_000
"""Characters of a prompt that are shown; the entry itself holds all of it."""
MOST_PASSAGES: Final = 200
MOST_TEXT: Final = 4_000
"""Characters of a passage, or of a field of a source, that are shown."""

WORDS: Final[Mapping[str, str]] = {
    "included": "included",
    "partial": "partial",
    "absent": "dropped",
    "unknown": "unknown",
}
"""What a reader is told for each status of context matching."""


def pieces(text: str, verdicts: Sequence[Verdict]) -> list[list[Any]]:
    """Cut a prompt where regions begin and end.

    Returns:
        Pairs of a text and the numbers, from 1, of the passages that lie there.
    """
    text = text[:MOST_PROMPT]
    edges: dict[int, list[tuple[int, int]]] = {}
    for number, verdict in enumerate(verdicts[:MOST_PASSAGES], 1):
        for start, end in verdict.regions:
            if start < end and start < len(text):
                edges.setdefault(start, []).append((number, 1))
                edges.setdefault(min(end, len(text)), []).append((number, -1))
    depth: dict[int, int] = {}
    found, place = [], 0
    for edge in sorted({*edges, len(text)}):
        if edge > place:
            found.append([text[place:edge], sorted(n for n, deep in depth.items() if deep)])
        for number, step in edges.get(edge, ()):
            depth[number] = depth.get(number, 0) + step
        place = edge
    return found


def sources(
    passages: Sequence[JudgedPassage],
    verdicts: Sequence[Verdict],
    recorded: RecordedProvenance | None,
) -> list[dict[str, Any]]:
    """List the passages of a trace with what became of each in one prompt."""
    described = {
        passage_id(source.document_id, source.chunk_index): source
        for source in (recorded.sources if recorded else ())
    }
    pairs = list(zip(passages, verdicts, strict=True))[:MOST_PASSAGES]
    return [
        _source(number, passage, verdict, described.get(passage.id))
        for number, (passage, verdict) in enumerate(pairs, 1)
    ]


def count_words(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Count the passages of each word, in the order in which these are shown."""
    statuses = [verdict.status for verdict in verdicts]
    return {word: statuses.count(status) for status, word in WORDS.items() if status in statuses}


def _source(
    number: int, passage: JudgedPassage, verdict: Verdict, described: RecordedSource | None
) -> dict[str, Any]:
    described = described or RecordedSource()
    score = "" if passage.score is None else f"{passage.score:.4g}"
    return {
        "number": number,
        "id": cut(passage.id, MOST_TEXT),
        "word": WORDS[verdict.status],
        "how": _how(verdict),
        "uri": cut(shown(described.source_uri), MOST_TEXT),
        "retriever": cut(shown(described.retriever), MOST_TEXT),
        "retrieved": cut(shown(described.retrieved_at), MOST_TEXT),
        "metadata": cut(shown(described.metadata), MOST_TEXT) if described.metadata else "",
        "score": f"{score} (distance)" if passage.score_kind == "distance" else score,
        "rank": passage.rank,
        "text": None if passage.text is None else cut(passage.text, MOST_TEXT),
        "placed": bool(verdict.regions),
    }


def _how(verdict: Verdict) -> str:
    """Say in words what a verdict says beside its status."""
    parts = []
    if verdict.status == "partial" and verdict.containment is not None:
        parts.append(f"{verdict.containment:.0%} of its words")
    if verdict.level == "normalized":
        parts.append("in another spelling")
    if verdict.position is not None:
        parts.append(f"place {verdict.position + 1} in the prompt")
    if verdict.covered_by is not None:
        parts.append(f"within passage {verdict.covered_by + 1}")
    if verdict.reason:
        parts.append(verdict.reason)
    return ", ".join(parts)
