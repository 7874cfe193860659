"""All readings of a trace -> the retrievals and model calls that count.

Rules that need more than one span:

- Of nested spans of one model call the deepest that holds the prompt speaks; one without it
  above, below or, beside it, within the time of another says nothing.
- Nested spans of one search are one retrieval.
- A step that repeats documents counts where no other span holds any.
- Texts of the length at which the values of their resource end are not whole (see ``cuts``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from bijotel.dialects.cuts import Cuts, mark_call, mark_retrieval
from bijotel.dialects.model import ModelCall, Retrieval
from bijotel.dialects.registry import SpanReading, read_span
from bijotel.dialects.tree import Tree
from bijotel.traces.model import LogRecord, Trace

_ANSWER_ID = "gen_ai.response.id"
_APART = frozenset({"tool", "agent", "workflow", "retriever"})
"""A model call below such a span is another call than the one above it."""


@dataclass(frozen=True, slots=True, eq=False)
class CallReading:
    """A model call that counts. Two are equal only if identical."""

    call: ModelCall
    lineage: tuple[SpanReading, ...]
    """Its own span and what that lies in, from the inside out."""


@dataclass(frozen=True, slots=True)
class TraceReading:
    """What the dialects make of a trace."""

    spans: tuple[SpanReading, ...]
    """Every span, in the order of the input."""
    tree: Tree
    retrievals: tuple[Retrieval, ...]
    """Searches and stamps, in the order in which they began."""
    rerankers: tuple[Retrieval, ...]
    calls: tuple[CallReading, ...]
    """In the order in which they began."""


def read_trace(trace: Trace) -> TraceReading:
    """Read a trace with all dialects."""
    logs: dict[str, list[LogRecord]] = {}
    for log in trace.logs:
        logs.setdefault(log.span_id, []).append(log)
    cuts = Cuts(trace.spans)
    spans = tuple(
        _marked(read_span(span, tuple(logs.get(span.span_id, ()))), cuts) for span in trace.spans
    )
    tree = Tree(spans)
    in_time = sorted(spans, key=lambda reading: reading.span.start_time_unix_nano or 0)
    return TraceReading(
        spans=spans,
        tree=tree,
        retrievals=tuple(_retrievals(in_time, tree)),
        rerankers=tuple(
            reading.retrieval
            for reading in in_time
            if reading.retrieval is not None and reading.retrieval.stage == "reranker"
        ),
        calls=tuple(_calls(in_time, tree)),
    )


def _marked(reading: SpanReading, cuts: Cuts) -> SpanReading:
    """Mark what was cut in a reading."""
    length = cuts.length(reading.span)
    if length is None or (reading.call is None and reading.retrieval is None):
        return reading
    return replace(
        reading,
        call=mark_call(reading.call, length) if reading.call else None,
        retrieval=mark_retrieval(reading.retrieval, length) if reading.retrieval else None,
    )


def _calls(in_time: list[SpanReading], tree: Tree) -> Iterator[CallReading]:
    calls = [reading for reading in in_time if reading.call is not None]
    wrappers = {outer for inner in calls if _speaks(inner) for outer in _wrappers(inner, tree)}
    siblings: dict[str | None, list[SpanReading]] = {}
    for reading in calls:
        siblings.setdefault(reading.span.parent_span_id, []).append(reading)
    for reading in calls:
        if reading in wrappers:
            continue
        silent = not _speaks(reading)
        if silent and any(_wrappers(reading, tree)):
            continue
        beside = siblings[reading.span.parent_span_id]
        if any((silent or _same_answer(reading, o)) and _within(reading, o) for o in beside):
            continue
        if reading.call is not None:
            yield CallReading(reading.call, (reading, *tree.above(reading)))


def _speaks(reading: SpanReading) -> bool:
    return reading.call is not None and bool(reading.call.messages)


def _wrappers(inner: SpanReading, tree: Tree) -> Iterator[SpanReading]:
    """Give the call spans above a call span that are the same call."""
    for outer in tree.above(inner):
        if outer.call is not None:
            yield outer
        elif not _APART.isdisjoint(outer.kinds):
            return


def _same_answer(reading: SpanReading, other: SpanReading) -> bool:
    """Tell whether two spans name the same answer of a provider."""
    named = reading.span.attributes.get(_ANSWER_ID)
    return bool(named) and named == other.span.attributes.get(_ANSWER_ID)


def _within(inner: SpanReading, other: SpanReading) -> bool:
    """Tell whether a span lies within the time of one beside it, both of one resource."""
    a, b = inner.span, other.span
    times = (a.start_time_unix_nano, a.end_time_unix_nano)
    around = (b.start_time_unix_nano, b.end_time_unix_nano)
    if inner is other or times == around or a.resource != b.resource:
        return False
    start, end = times
    if start is None or end is None or around[0] is None or around[1] is None:
        return False
    return around[0] <= start and end <= around[1]


def _retrievals(in_time: list[SpanReading], tree: Tree) -> Iterator[Retrieval]:
    stages = {reading: reading.retrieval for reading in in_time if reading.retrieval is not None}
    searches = {
        reading: found
        for reading, found in stages.items()
        if found.stage not in {"echo", "reranker"}
    }
    if not any(
        found.passages or found.inputs for r, found in stages.items() if found.stage != "echo"
    ):
        searches = stages
    silent = set(_repeated(searches, tree))
    for reading in in_time:
        if reading.stamp is not None:
            yield reading.stamp
        if reading in searches and reading not in silent:
            yield searches[reading]


def _repeated(searches: Mapping[SpanReading, Retrieval], tree: Tree) -> Iterator[SpanReading]:
    """Give the spans that say nothing beside another span of the same search."""
    for inner, found in searches.items():
        for outer in tree.above(inner):
            if outer in searches:
                mine, theirs = _contents(found), _contents(searches[outer])
                if not mine or mine == theirs:
                    yield inner
                elif not theirs:
                    yield outer


def _contents(found: Retrieval) -> list[str]:
    return [f"#{p.id}" if p.text is None else p.text for p in found.passages]
