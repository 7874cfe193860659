"""The traces of a chain, of entries that verify alone.

Every entry is walked as ``verify`` walks it, and an entry is let through when nothing is found
about it. What is read later are the very octets that were checked, from a temporary file, so
that memory holds one trace at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from bijotel.entries import Chain, chains
from bijotel.errors import CanonicalizationError
from bijotel.findings import Finding
from bijotel.keys import KeyRing
from bijotel.model import Entry, SpanRecord
from bijotel.spans.decode import decode_record
from bijotel.stores.base import Snapshot
from bijotel.stores.open import open_store
from bijotel.traces.grouping import Gathering, Part
from bijotel.traces.model import Trace
from bijotel.traces.reader import group_records
from bijotel.verify.rows import check_columns
from bijotel.verify.walk import ChainWalk


class Gathered(NamedTuple):
    """What was let through, in entries of spans and others."""

    entries: int
    sound: int
    """Those that verify; without a ring, those that are entries at all."""


def gather(
    location: str, chain: str | None, ring: KeyRing | None, gathering: Gathering
) -> Gathered:
    """Gather the spans of a store's chains.

    Args:
        location: The store.
        chain: Only the chain of this name or id.
        ring: The keys; None to take entries as they are stored.
        gathering: Receives the body of each span.
    """
    entries = sound = 0
    with open_store(location).snapshot() as snapshot:
        for place in chains(snapshot, chain):
            for columns, holds in _rows(snapshot, place, ring):
                entries += 1
                entry = check_columns(columns) if holds else None
                if isinstance(entry, Entry):
                    sound += 1
                    if entry.kind == "span" and entry.trace_id:
                        gathering.add(Part(entry.trace_id, 0, entry.body))
    return Gathered(entries, sound)


def traces_of(gathering: Gathering) -> Iterator[Trace]:
    """Give the gathered traces in the order of their first entry; unreadable bodies hold none."""
    for parts in gathering.traces():
        yield from group_records(_records(part.octets for part in parts))


def _records(bodies: Iterable[bytes]) -> Iterator[SpanRecord]:
    for body in bodies:
        try:
            yield decode_record(body)
        except CanonicalizationError:
            continue


def _rows(
    snapshot: Snapshot, place: Chain, ring: KeyRing | None
) -> Iterator[tuple[tuple[Any, ...], bool]]:
    """Give every row and whether it holds; what is wrong with one may show at the next one."""
    rows = snapshot.ordered(place.chain_id)
    if ring is None:
        for row in rows:
            yield row.columns, True
        return
    walk = ChainWalk(place.chain_id, ring, lambda _first, _last: iter(()))
    found = walk.result.findings
    held: tuple[tuple[Any, ...], bool] | None = None
    for row in rows:
        walk.feed(row.columns)
        if held is not None:
            yield held[0], held[1] and not _concern(found, held[0][1])
        held = row.columns, not _concern(found, row.columns[1])
        found.clear()
    walk.end(None)
    if held is not None:
        yield held[0], held[1] and not _concern(found, held[0][1])


def _concern(findings: list[Finding], seq: int) -> bool:
    return any(finding.concerns(seq) for finding in findings)
