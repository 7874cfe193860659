"""``bijotel stats``: count what a store holds, in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import orjson

from bijotel.cli.analysis import prices_option, unverified_option
from bijotel.cli.options import chain_option, db_option, json_option, key_option
from bijotel.cli.output import Output
from bijotel.cli.session import COULD_NOT_CHECK, Session
from bijotel.cli.spending import print_spending
from bijotel.cli.text import escape, shown, time_text
from bijotel.dialects.groups import GroupBy
from bijotel.entries import Chain, chains
from bijotel.errors import CanonicalizationError, UnavailableError
from bijotel.model import Entry
from bijotel.provenance import summarize
from bijotel.spans.decode import decode_record
from bijotel.stores.base import Snapshot
from bijotel.stores.open import open_store
from bijotel.verify.rows import RowFault, check_columns
from bijotel.waiting import Waiting, read_waiting

_LONGEST_WORD: Final = 200
"""Of a model's name or a gap's reason, so that hostile ones cannot fill the memory."""


@dataclass(slots=True)
class Gaps:
    """Spans that were lost for one reason, as the chain's gap entries say."""

    entries: int = 0
    spans: int = 0
    """Lost spans, as far as their number is known."""
    unknown: int = 0
    """Gap entries whose number is not known."""


@dataclass(slots=True)
class Tally:
    """The counts of one chain."""

    entries: int = 0
    malformed: int = 0
    """Rows whose columns are not those of an entry."""
    unreadable: int = 0
    """Entries of spans whose body cannot be read."""
    first_unix_nano: int | None = None
    last_unix_nano: int | None = None
    kinds: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    span_statuses: Counter[str] = field(default_factory=Counter)
    gaps: dict[str, Gaps] = field(default_factory=dict)

    def add(self, entry: Entry | RowFault) -> None:
        """Count one row."""
        self.entries += 1
        if isinstance(entry, RowFault):
            self.malformed += 1
            return
        times = (self.first_unix_nano, entry.sealed_at_unix_nano, self.last_unix_nano)
        known = [each for each in times if each is not None]
        self.first_unix_nano, self.last_unix_nano = min(known), max(known)
        self.kinds[entry.kind] += 1
        if entry.kind == "span":
            self._add_span(entry)
        elif entry.kind == "gap":
            self._add_gap(entry)

    def _add_span(self, entry: Entry) -> None:
        try:
            summary = summarize(decode_record(entry.body))
        except CanonicalizationError:
            self.unreadable += 1
            return
        self.statuses[summary.status] += 1
        self.span_statuses[summary.span_status[:_LONGEST_WORD]] += 1
        if summary.model is not None:
            self.models[shown(summary.model)[:_LONGEST_WORD]] += 1

    def _add_gap(self, entry: Entry) -> None:
        try:
            body = orjson.loads(entry.body)
            reason, count = body["reason"], body["count"]
        except (ValueError, TypeError, KeyError):
            self.unreadable += 1
            return
        gaps = self.gaps.setdefault(shown(reason)[:_LONGEST_WORD], Gaps())
        gaps.entries += 1
        if type(count) is int:
            gaps.spans += count
        else:
            gaps.unknown += 1


@click.command(short_help="Count what a store holds, or what its calls spent.")
@db_option
@chain_option
@click.option(
    "--by",
    type=click.Choice(("model", "day", "service", "retriever")),
    help="Count calls, tokens and cost of one verified chain by this instead.",
)
@key_option
@prices_option
@unverified_option
@json_option
@click.pass_obj
def stats(
    session: Session,
    *,
    location: str,
    chain: str | None,
    by: GroupBy | None,
    keys: tuple[str, ...],
    price_file: str | None,
    unverified: bool,
) -> None:
    """Count what a store holds: entries, kinds, models, statuses, gaps, size.

    The times are those of sealing. Entries are counted as stored: whether they are sound is
    for "verify" to say. What waits in the store's own spool folder is counted too: spools that
    are not sealed yet, and spans that a process took and could not settle before it ended.
    A folder that cannot be read is exit code 3.

    With --by: what the calls of a chain spent. It is verified first, so that a key is needed;
    nested spans of one call count once, and a call without a known price makes the cost a lower
    bound. Days are those of the start, in UTC.
    """
    if by is not None:
        print_spending(
            session, location, chain, keys, by=by, price_file=price_file, unverified=unverified
        )
        return
    store = open_store(location)
    with store.snapshot() as snapshot:
        tallies = [(place, _tally(snapshot, place)) for place in chains(snapshot, chain)]
    sizes = _sizes(store.location)
    names = {place.name for place, _ in tallies if place.name}
    waiting = _look(session, store.spool_folder, names)
    if session.json:
        session.output.document(
            {
                "store": store.location,
                "bytes": sizes,
                "spool": asdict(waiting) if waiting else None,
                "chains": [_document(place, tally) for place, tally in tallies],
            }
        )
        return
    for place, tally in tallies:
        _print(session.output, place, tally)
    for what, size in sizes.items():
        session.output.line(f"{what}: {size} bytes")
    for label, value in _waiting(waiting or Waiting()):
        session.output.line(f"{label + ':':<16}{value}")


def _tally(snapshot: Snapshot, chain: Chain) -> Tally:
    tally = Tally()
    for row in snapshot.select(chain.chain_id):
        tally.add(check_columns(row.columns))
    return tally


def _sizes(location: str) -> dict[str, int]:
    """Measure the files of a store; a store that is no file has none."""
    sizes = {}
    for what, path in (("database", location), ("write-ahead log", f"{location}-wal")):
        with suppress(OSError, ValueError):
            sizes[what] = Path(path).stat().st_size
    return {what: size for what, size in sizes.items() if size}


def _waiting(waiting: Waiting) -> Iterator[tuple[str, str]]:
    if waiting.files:
        spools = f"{waiting.files:,} spool{'' if waiting.files == 1 else 's'}"
        yield "waiting", f"{spools}, {waiting.bytes:,} bytes, not sealed yet"
    if waiting.unsettled:
        yield "unsettled", f"{waiting.unsettled:,} spans, taken by processes that have ended"


def _look(session: Session, folder: Path | None, names: Iterable[str]) -> Waiting | None:
    """Look into the spool folder, which fewer people may read than the store."""
    try:
        return read_waiting(folder, names) if folder else None
    except UnavailableError as error:
        session.verdict = COULD_NOT_CHECK
        session.messages.line(f"error: {escape(str(error))}")
        return None


def _document(chain: Chain, tally: Tally) -> dict[str, Any]:
    return {
        "chain": chain.chain_id.hex(),
        "name": chain.name,
        "entries": tally.entries,
        "malformed": tally.malformed,
        "unreadable": tally.unreadable,
        "first_sealed_at_unix_nano": _optional_text(tally.first_unix_nano),
        "last_sealed_at_unix_nano": _optional_text(tally.last_unix_nano),
        "kinds": dict(tally.kinds),
        "models": dict(tally.models),
        "status": dict(tally.statuses),
        "span_status": dict(tally.span_statuses),
        "gaps": [
            {
                "reason": reason,
                "entries": gaps.entries,
                "spans": gaps.spans,
                "unknown": gaps.unknown,
            }
            for reason, gaps in tally.gaps.items()
        ],
    }


def _optional_text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _print(output: Output, chain: Chain, tally: Tally) -> None:
    name = f"chain {escape(chain.name) or '(no name)'} ({chain.chain_id.hex()})"
    output.line(output.styled(name, "heading"))
    rows = [("entries", str(tally.entries))]
    if tally.first_unix_nano is not None and tally.last_unix_nano is not None:
        rows += [
            ("first sealed", time_text(tally.first_unix_nano)),
            ("last sealed", time_text(tally.last_unix_nano)),
        ]
    rows += [
        ("kinds", _counts(tally.kinds)),
        ("models", _counts(tally.models)),
        ("status", _counts(tally.statuses)),
        ("span status", _counts(tally.span_statuses)),
    ]
    rows += [(f"gap {reason}", _gaps(gaps)) for reason, gaps in tally.gaps.items()]
    if tally.malformed:
        rows.append(("malformed", f"{tally.malformed} rows"))
    if tally.unreadable:
        rows.append(("unreadable", f"{tally.unreadable} bodies"))
    for label, value in rows:
        output.line(f"  {label + ':':<20}{value or 'none'}")


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {escape(word)}" for word, count in counter.most_common())


def _gaps(gaps: Gaps) -> str:
    unknown = f", {gaps.unknown} of unknown size" if gaps.unknown else ""
    return f"{gaps.spans} spans lost ({gaps.entries} gap entries{unknown})"
