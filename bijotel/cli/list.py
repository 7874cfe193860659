"""``bijotel list``: one line for each entry, as stored."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from itertools import islice
from typing import Any, Final, NamedTuple

import click
from rich.cells import cell_len, set_cell_size

from bijotel.canonical import encode
from bijotel.cli.analysis import prices, prices_option
from bijotel.cli.options import chain_option, db_option, json_option, parse_id
from bijotel.cli.output import Output
from bijotel.cli.session import Session
from bijotel.cli.text import escape, shown, time_text
from bijotel.cost import Cost, Prices, money
from bijotel.dialects.usage import usage_of
from bijotel.entries import Chain, chains
from bijotel.errors import CanonicalizationError
from bijotel.model import Entry, SpanRecord
from bijotel.provenance import CallSummary, summarize
from bijotel.search import Search, parse_time
from bijotel.spans.decode import decode_record
from bijotel.stores.base import RawRow, Snapshot
from bijotel.stores.open import open_store
from bijotel.verify.rows import MAX_INTEGER, RowFault, check_columns

_MOST_ENTRIES: Final = 10**9
_STATUSES: Final = ("OK", "ERROR", "UNSET", "ALLOWED", "WARN", "BLOCKED")
_COLUMNS: Final = (
    ("seq", ">8"),
    ("time", "<24"),
    ("kind", "<10"),
    ("status", "<7"),
    ("sources", ">7"),
    ("in", ">7"),
    ("out", ">7"),
    ("cost", ">11"),
    ("model", "<20"),
    ("name", ""),
)


class Query(NamedTuple):
    """Which entries to list, and in what order."""

    search: Search
    start: int | None
    limit: int | None
    newest: bool

    def conditions(self) -> list[tuple[str, Any]]:
        """Say the same in the words of a store."""
        conditions = self.search.conditions()
        if self.start is not None:
            conditions.append(("seq_to" if self.newest else "seq_from", self.start))
        return conditions


class Item(NamedTuple):
    """One listed row: an entry, or the fault that makes it none, and what its span says."""

    seq: Any
    entry: Entry | None
    record: SpanRecord | None = None
    summary: CallSummary | None = None
    cost: Cost = Cost(None)
    fault: str = ""


@click.command("list", short_help="List or search entries, one a line.")
@db_option
@chain_option
@click.option("--trace", metavar="ID", help="Only entries of this trace (32 hex digits).")
@click.option("--span", metavar="ID", help="Only entries of this span (16 hex digits).")
@click.option("--since", metavar="TIME", help="Only spans that began at this time or later.")
@click.option("--until", metavar="TIME", help="Only spans that began before this time.")
@click.option("--service", metavar="NAME", help="Only spans of this service.")
@click.option("--model", metavar="NAME", help="Only calls that this model answered, or was to.")
@click.option(
    "--status",
    type=click.Choice(_STATUSES, case_sensitive=False),
    help="Only spans that ended so, or of which a policy decided so.",
)
@click.option(
    "--document",
    metavar="ID",
    help="Only spans with this document as a source or a retrieved passage.",
)
@click.option("--source-uri", metavar="URI", help="Only calls with a source from this address.")
@click.option(
    "--from",
    "start",
    type=click.IntRange(min=0),
    metavar="SEQ",
    help="Begin with this entry.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, _MOST_ENTRIES),
    metavar="N",
    help="At most N entries a chain.",
)
@click.option("--newest/--oldest", default=False, help="Which end comes first.  [default: oldest]")
@prices_option
@json_option
@click.pass_obj
def list_entries(
    session: Session,
    /,
    *,
    location: str,
    chain: str | None,
    start: int | None,
    limit: int | None,
    newest: bool,
    price_file: str | None,
    **wanted: str | None,
) -> None:
    """List the entries of a store's chains, one a line, or those that are looked for.

    The time is the start of a span, else the time of sealing. Entries are listed as stored:
    whether they are sound is for "verify" to say. With --json the document is an array with
    one entry on each line. TIME is a date (UTC), or RFC 3339 with an offset.

    A row is one span. An agent's span that repeats the tokens of the calls within it is shown with
    them, and so is what they cost: the columns do not add up. "bijotel stats --by" and "bijotel
    dedup" count each call once.
    """
    first = None if start is None else min(start, MAX_INTEGER)
    query = Query(_search(wanted), first, limit, newest)
    pricing = prices(price_file)
    with open_store(location).snapshot() as snapshot:
        listed = chains(snapshot, chain)
        if session.json:
            with session.output.array() as add:
                for place in listed:
                    with closing(_items(snapshot, place, query, pricing)) as items:
                        for item in items:
                            add(_document(place, item))
        else:
            _print(session.output, snapshot, listed, query, pricing)


def _search(wanted: Mapping[str, str | None]) -> Search:
    since, until = wanted["since"], wanted["until"]
    return Search(
        since_unix_nano=None if since is None else parse_time(since),
        until_unix_nano=None if until is None else parse_time(until),
        trace_id=parse_id("--trace", wanted["trace"]),
        span_id=parse_id("--span", wanted["span"], 16),
        service=wanted["service"],
        model=wanted["model"],
        status=wanted["status"],
        document=wanted["document"],
        source_uri=wanted["source_uri"],
    )


def _items(
    snapshot: Snapshot, chain: Chain, query: Query, pricing: Prices
) -> Generator[Item, None, None]:
    """Read the entries that are looked for; to be closed before the snapshot is."""
    search = query.search
    rows = snapshot.select(
        chain.chain_id,
        query.conditions(),
        limit=None if search.reads_bodies else query.limit,
        newest=query.newest,
    )
    items = (
        item for row in rows if _may_fit(search, row) and _fits(search, item := _item(row, pricing))
    )
    yield from islice(items, query.limit)


def _may_fit(search: Search, row: RawRow) -> bool:
    body = row.columns[-1]
    return not isinstance(body, bytes) or search.may_fit(body)


def _fits(search: Search, item: Item) -> bool:
    if not search.reads_bodies:
        return True
    summary = item.summary
    return (
        item.record is not None
        and summary is not None
        and search.fits(item.record, {summary.status, summary.span_status})
    )


def _item(row: RawRow, pricing: Prices) -> Item:
    entry = check_columns(row.columns)
    if isinstance(entry, RowFault):
        fault = f"{entry.column}: expected {entry.expected}, found {entry.found}"
        return Item(row.columns[1], None, fault=fault)
    if entry.kind != "span":
        return Item(entry.seq, entry)
    try:
        record = decode_record(entry.body)
    except CanonicalizationError as error:
        return Item(entry.seq, entry, fault=str(error))
    return Item(entry.seq, entry, record, summarize(record), pricing.cost(record, usage_of(record)))


def _document(chain: Chain, item: Item) -> dict[str, Any]:
    document: dict[str, Any] = {"chain": chain.chain_id.hex(), "seq": encode(item.seq)}
    if item.entry:
        document |= {
            "kind": item.entry.kind,
            "sealed_at_unix_nano": str(item.entry.sealed_at_unix_nano),
            "trace_id": item.entry.trace_id.hex(),
            "span_id": item.entry.span_id.hex(),
            "name": item.entry.name,
            "start_unix_nano": str(item.entry.start_unix_nano),
            "end_unix_nano": str(item.entry.end_unix_nano),
        }
    if item.summary:
        document |= {
            "model": encode(item.summary.model),
            "source_count": encode(item.summary.source_count),
            "input_tokens": encode(item.summary.input_tokens),
            "output_tokens": encode(item.summary.output_tokens),
            "status": item.summary.status,
            "span_status": item.summary.span_status,
            "cost": item.cost.as_dict(),
        }
    if item.fault:
        document["fault"] = item.fault
    return document


def _print(
    output: Output,
    snapshot: Snapshot,
    listed: tuple[Chain, ...],
    query: Query,
    pricing: Prices,
) -> None:
    for chain in listed:
        if len(listed) > 1:
            output.line(output.styled(f"chain {escape(chain.name)}", "heading"))
        output.line(_line(output, tuple(name for name, _ in _COLUMNS)))
        count = 0
        page = query._replace(limit=_one_more(query.limit))
        with closing(_items(snapshot, chain, page, pricing)) as items:
            for item in islice(items, query.limit):
                output.line(_line(output, _cells(item)))
                count += 1
            following = next(items, None)
        more = f"; more from --from {following.seq} on" if following else ""
        output.line(f'{count} listed as stored, not verified (see "bijotel verify"){more}')


def _one_more(limit: int | None) -> int | None:
    """Look for one entry beyond the page, to know whether there is another page."""
    return None if limit is None else limit + 1


def _cells(item: Item) -> tuple[str, ...]:
    if item.entry is None:
        return (shown(item.seq), "", "", "", "", "", "", "", "", f"malformed: {escape(item.fault)}")
    entry, summary = item.entry, item.summary
    recorded: tuple[str, ...] = ("",) * 6
    if summary:
        recorded = (
            summary.status,
            *(
                "-" if value is None else shown(value)
                for value in (
                    summary.source_count,
                    summary.input_tokens,
                    summary.output_tokens,
                )
            ),
            "-" if item.cost.usd is None else money(item.cost.usd),
            "-" if summary.model is None else shown(summary.model),
        )
    moment = time_text(entry.start_unix_nano or entry.sealed_at_unix_nano, 3)
    fault = f"unreadable body: {escape(item.fault)}" if item.fault else ""
    name = "  ".join(part for part in (escape(entry.name), fault) if part)
    return (str(entry.seq), moment, escape(entry.kind), *recorded, name)


def _line(output: Output, cells: tuple[str, ...]) -> str:
    padded = (f"{cell:{width}}" for cell, (_, width) in zip(cells, _COLUMNS, strict=True))
    line = "  ".join(padded).rstrip()
    if output.width is not None and cell_len(line) > output.width:
        return f"{set_cell_size(line, max(0, output.width - 3))}..."
    return line
