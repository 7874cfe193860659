"""Finds the dialects and reads one span with all of them.

A dialect is any module of this package that has a ``DIALECT``.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from bijotel.dialects.model import Dialect, Kind, ModelCall, Reading, Retrieval
from bijotel.model import SpanRecord
from bijotel.semconv import RAG_SOURCES
from bijotel.traces.model import LogRecord

_REPEATING = frozenset({"other", "agent", "workflow", "tool", "retriever", "embedding"})
"""Kinds of span that repeat the prompts of others."""


@dataclass(frozen=True, slots=True, eq=False)
class SpanReading:
    """What all dialects together make of one span. Two readings are equal only if identical."""

    span: SpanRecord
    kinds: frozenset[Kind] = frozenset()
    retrieval: Retrieval | None = None
    stamp: Retrieval | None = None
    """The sources that bijotel's own attributes list."""
    call: ModelCall | None = None
    output: Any = None
    """The recorded output of a span that is no call, in any form."""


@cache
def dialects() -> tuple[Dialect, ...]:
    """Give every dialect of the package, those first that exclude others."""
    modules = (
        import_module(f"{__package__}.{module.name}")
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
    )
    found = [module.DIALECT for module in modules if hasattr(module, "DIALECT")]
    return tuple(sorted(found, key=lambda dialect: (not dialect.alone, dialect.name)))


def read_span(span: SpanRecord, logs: tuple[LogRecord, ...] = ()) -> SpanReading:
    """Read one span with its own log records.

    The same thing said in two vocabularies is one thing: of several prompts or lists of one
    span the one that holds most counts.
    """
    readings: list[Reading] = []
    repeats = False
    for dialect in _asked(span):
        reading = dialect.read(span, logs)
        if reading is not None:
            readings.append(reading)
            repeats = repeats or (dialect.states_kind and reading.kind in _REPEATING)
            if dialect.alone:
                break
    if not readings:
        return SpanReading(span)
    retrievals = [reading.retrieval for reading in readings if reading.retrieval is not None]
    return SpanReading(
        span=span,
        kinds=frozenset(reading.kind for reading in readings),
        retrieval=_fullest(found for found in retrievals if found.stage != "provenance"),
        stamp=next((found for found in retrievals if found.stage == "provenance"), None),
        call=None if repeats else _most_told(reading.call for reading in readings),
        output=next((r.output for r in readings if r.output is not None), None),
    )


def _asked(span: SpanRecord) -> list[Dialect]:
    """Give the dialects of which a span bears a mark, in their order."""
    by_attribute, by_event = _marks()
    found = {by_attribute[mark] for mark in by_attribute.keys() & span.attributes.keys()}
    if span.events:
        names = {event.name for event in span.events}
        found |= {by_event[mark] for mark in by_event.keys() & names}
    if RAG_SOURCES in span.inherited:
        found.add(by_attribute[RAG_SOURCES])
    if not found:
        return []
    numbers = frozenset[int]().union(*found)
    return [dialects()[number] for number in sorted(numbers)]


@cache
def _marks() -> tuple[dict[str, frozenset[int]], dict[str, frozenset[int]]]:
    """Give for each mark, of attributes and of events, the numbers of its dialects."""
    tables: tuple[dict[str, frozenset[int]], dict[str, frozenset[int]]] = ({}, {})
    for number, dialect in enumerate(dialects()):
        for table, marks in zip(tables, (dialect.marks, dialect.events), strict=True):
            for mark in marks:
                table[mark] = table.get(mark, frozenset()) | {number}
    return tables


def _fullest(retrievals: Iterable[Retrieval]) -> Retrieval | None:
    return max(
        retrievals,
        key=lambda found: (
            found.stage != "echo",
            sum(passage.text is not None for passage in found.passages),
            len(found.passages),
        ),
        default=None,
    )


def _most_told(calls: Iterable[ModelCall | None]) -> ModelCall | None:
    states = ("none", "incomplete", "whole")
    return max(
        (call for call in calls if call is not None),
        key=lambda call: (states.index(call.capture.state), bool(call.outputs)),
        default=None,
    )
