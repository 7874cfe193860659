"""A store -> a report: verify, read, and put together what the page shows.

Asking is the business of ``cli``, markup that of ``page``. Neither a clock nor the page's
engine is used here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from bijotel.cost import Prices
from bijotel.entries import Chain, only_chain
from bijotel.errors import ConfigurationError
from bijotel.keys import KeyRing
from bijotel.note import EvidenceError
from bijotel.report.collect import Decisions, Overview, decide, survey
from bijotel.report.coverage import covered, not_covered, verdict
from bijotel.report.model import Page
from bijotel.report.proofs import Prover
from bijotel.report.reading import ChainReading, Outside, verify_for_reading
from bijotel.report.text import counted
from bijotel.report.timeline import draw_timeline
from bijotel.stores.base import Snapshot
from bijotel.stores.open import open_store


class Bound(NamedTuple):
    """An end of what is wanted."""

    number: int
    is_time: bool
    """It is nanoseconds since 1970, not the number of an entry."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a report is wanted about."""

    location: str
    chain: str | None = None
    ring: KeyRing | None = None
    """None: no key is configured, and nothing is verified."""
    trace_id: bytes | None = None
    """Only this trace."""
    first: Bound | None = None
    """From this entry on, or from that of the first span that began then."""
    last: Bound | None = None
    """Up to this entry, or to that of the last span that began before."""
    scope: str = "All entries"
    """What is wanted, in words."""
    outside: Outside | None = None
    made_at: str = ""
    prices: Prices | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A report before it is written."""

    page: Page
    decisions: Decisions


@contextmanager
def make_report(request: Request) -> Iterator[Made]:
    """Make a report; the store is open, and the details are there, until the end of the block.

    Raises:
        ConfigurationError: no such chain, no entry to show, or too many decisions.
        VerificationError: the store holds no chain that could be named.
        UnavailableError: the store cannot be read.
    """
    store = open_store(request.location)
    with store.snapshot() as snapshot, closing(Decisions()) as decisions:
        place = only_chain(snapshot, request.chain)
        reading = verify_for_reading(
            snapshot,
            place,
            request.ring,
            location=store.location,
            outside=request.outside,
        )
        prices = request.prices or Prices()
        conditions = _conditions(request, snapshot, place)
        overview = survey(reading, conditions, prices, whole=request.trace_id is None)
        if not overview.kinds:
            raise _nothing(request)
        prover = _prover(snapshot, place, request.outside)
        decide(reading, overview, prices, prover, decisions)
        yield Made(_page(request, reading, overview, prover, decisions), decisions)


def _conditions(request: Request, snapshot: Snapshot, place: Chain) -> list[tuple[str, Any]]:
    """Say which entries are wanted, in the words of a store.

    A time becomes the number of an entry, so that what lies between two spans is there too.
    """
    if request.trace_id is not None:
        return [("trace_id", request.trace_id), ("kind", "span")]
    found: list[tuple[str, Any]] = []
    for bound, by_seq, by_time in (
        (request.first, "seq_from", "start_from"),
        (request.last, "seq_to", "start_to"),
    ):
        if bound is not None and bound.is_time:
            asked = [(by_time, bound.number), ("kind", "span")]
            newest = bound is request.last
            rows = snapshot.select(place.chain_id, asked, limit=1, newest=newest)
            row = next(rows, None)
            if row is None or type(row.columns[1]) is not int:
                raise _nothing(request)
            found.append((by_seq, row.columns[1]))
        elif bound is not None:
            found.append((by_seq, bound.number))
    return found


def _nothing(request: Request) -> ConfigurationError:
    return ConfigurationError(f"{request.scope}: there is no such entry to report on")


def _prover(snapshot: Snapshot, place: Chain, outside: Outside | None) -> Prover | None:
    """Make what proves entries; with a checkpoint that is no good there is none."""
    if outside is None:
        return None
    try:
        return Prover(snapshot, place.chain_id, *outside)
    except EvidenceError:
        return None  # the verification says why


def _page(
    request: Request,
    reading: ChainReading,
    overview: Overview,
    prover: Prover | None,
    decisions: Decisions,
) -> Page:
    report, place, rows = reading.report, reading.place, tuple(decisions.rows)
    signers = ", ".join(key.name for key in request.outside.keys) if request.outside else ""
    checkpoint = prover.checkpoint if prover else None
    unreadable = reading.unreadable + len(overview.unreadable)
    return Page(
        location=reading.location,
        chain=place.chain_id.hex(),
        name=place.name,
        scope=request.scope,
        made_at=request.made_at,
        report=report,
        verdict=verdict(report),
        covered=tuple(covered(report, request.ring, checkpoint, signers)),
        not_covered=tuple(not_covered(report, unreadable)),
        rows=rows,
        counts=_counts(overview, len(rows)),
        timeline=draw_timeline(rows, overview.gap_times),
        plots=overview.plots,
        plot_doubts=overview.doubts,
        gaps=tuple(overview.gaps),
        duplicates=overview.duplicates,
        checkpoint=prover.note.decode() if prover else None,
    )


def _counts(overview: Overview, decisions: int) -> str:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(overview.kinds.items()))
    entries = counted(overview.kinds.total(), "entry", "entries")
    return f"{counted(decisions, 'decision')} out of {entries} ({kinds})"
