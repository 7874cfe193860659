"""Frozen values that travel between rooms. No behaviour, no I/O.

Spans arrive from a live tracer, a trace file or a chain; each of the three is read into the
same :class:`SpanRecord`, and everything after that works on records alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

EMPTY: Mapping[str, Any] = MappingProxyType({})
"""The empty attribute map."""


def _empty() -> Mapping[str, Any]:
    return EMPTY


@dataclass(frozen=True, slots=True)
class Status:
    """How a span ended."""

    code: str = "UNSET"
    """``UNSET``, ``OK`` or ``ERROR``."""
    description: str | Mapping[str, Any] | None = None
    """Text; in digest mode the digest that stands for it."""


@dataclass(frozen=True, slots=True)
class Event:
    """A timed happening within a span."""

    name: str
    time_unix_nano: int | float | None = None
    attributes: Mapping[str, Any] = field(default_factory=_empty)
    dropped_attributes: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """A reference from a span to another span."""

    trace_id: str
    span_id: str
    trace_state: str = ""
    trace_flags: int = 0
    attributes: Mapping[str, Any] = field(default_factory=_empty)
    dropped_attributes: int = 0


@dataclass(frozen=True, slots=True)
class Resource:
    """Who emitted a span."""

    attributes: Mapping[str, Any] = field(default_factory=_empty)
    schema_url: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which instrumentation made a span."""

    name: str = ""
    version: str = ""
    schema_url: str = ""
    attributes: Mapping[str, Any] = field(default_factory=_empty)


class Dropped(NamedTuple):
    """How many items the tracer's limits removed before the span ended."""

    attributes: int = 0
    events: int = 0
    links: int = 0


NOTHING_DROPPED = Dropped()
"""All counts zero."""


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One ended span, whatever it was read from. Attribute values are plain Python values."""

    name: str
    kind: str = "INTERNAL"
    """``INTERNAL``, ``SERVER``, ``CLIENT``, ``PRODUCER`` or ``CONSUMER``."""
    trace_id: str = ""
    """32 lower-case hex digits."""
    span_id: str = ""
    """16 lower-case hex digits."""
    parent_span_id: str | None = None
    trace_state: str = ""
    """The W3C header string."""
    trace_flags: int = 0
    start_time_unix_nano: int | float | None = None
    end_time_unix_nano: int | float | None = None
    status: Status = field(default_factory=Status)
    attributes: Mapping[str, Any] = field(default_factory=_empty)
    events: tuple[Event, ...] = ()
    links: tuple[Link, ...] = ()
    resource: Resource = field(default_factory=Resource)
    scope: Scope = field(default_factory=Scope)
    dropped: Dropped = NOTHING_DROPPED
    inherited: Mapping[str, Any] = field(default_factory=_empty)
    """``bijotel.rag.*`` attributes that reached the call through the context only."""
    via: str = ""
    """``file`` when the span was sealed from a file, else empty."""
    withheld: str = ""
    """Why the content is not in the body, else empty."""


class Entry(NamedTuple):
    """One sealed entry: the columns of a row, in the order in which they are stored."""

    chain_id: bytes
    """16 bytes."""
    seq: int
    """From 0 without holes."""
    epoch: int
    key_id: bytes
    """8 bytes."""
    kind: str
    sealed_at_unix_nano: int
    fmt: str
    body_hash: bytes
    """32 bytes."""
    prev_tag: bytes
    """32 bytes, zero for entry 0."""
    trace_id: bytes
    """16 bytes, or empty when the entry is no span."""
    span_id: bytes
    """8 bytes, or empty."""
    name: str
    start_unix_nano: int
    end_unix_nano: int
    dedup_key: bytes
    """32 bytes, or empty."""
    tag: bytes
    """32 bytes. Stands before the body so that a row's head is read without it."""
    body: bytes
    """At most 16 MiB."""


class ChainHead(NamedTuple):
    """The position of a chain: its last entry and its Merkle tree's right edge."""

    chain_id: bytes
    name: str
    seq: int
    """Of the last entry; the chain holds ``seq + 1`` entries."""
    epoch: int
    key_id: bytes
    tag: bytes
    tree: bytes
    """Roots of the perfect subtrees, largest first, 32 bytes each."""
    mac: bytes


class Draft(NamedTuple):
    """What is sealed, before its place in the chain is known."""

    kind: str
    fmt: str
    trace_id: bytes
    span_id: bytes
    name: str
    start_unix_nano: int
    end_unix_nano: int
    dedup_key: bytes
    body: bytes
    body_hash: bytes
