"""A chain -> all that a report shows, in two passes over its entries.

The first pass counts and measures, the second joins each trace and makes its decisions. What is
long, the details of each decision, waits in a temporary file, so that memory holds one trace
and the lines of the list.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import IO, Any, Final

from bijotel import canonical
from bijotel.cost import Prices
from bijotel.dedup import Groups
from bijotel.dimensions import DIMENSIONS, Collector, Selection
from bijotel.errors import CanonicalizationError, ConfigurationError
from bijotel.model import Entry, SpanRecord
from bijotel.report.decisions import Decision, SealedSpan, decisions_of
from bijotel.report.model import Duplicates, Gap, Plot, Row
from bijotel.report.plots import draw_plot
from bijotel.report.proofs import Prover
from bijotel.report.reading import ChainReading
from bijotel.report.text import cut, moment, shown
from bijotel.spans.decode import decode_record

MOST_DECISIONS: Final = 20_000
"""More than a person reads and a browser holds; who has more chooses."""
MOST_JOINED: Final = 2_000
"""Spans of a trace; those of a longer one are looked at one by one."""
MOST_GROUPS: Final = 200
_TIME: Final = re.compile(r"[0-9]{1,19}")
_IN_MEMORY: Final = 8 * 1024 * 1024


@dataclass(slots=True)
class Overview:
    """What the first pass gave."""

    kinds: Counter[str] = field(default_factory=Counter)
    traces: dict[bytes, list[int]] = field(default_factory=dict)
    """All entries of each trace of which one is shown."""
    shown: set[int] = field(default_factory=set)
    """Which of these entries are."""
    gaps: list[Gap] = field(default_factory=list)
    gap_times: list[tuple[int, str]] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)
    """Entries of spans whose body cannot be read."""
    plots: tuple[Plot, ...] = ()
    doubts: tuple[str, ...] = ()
    duplicates: Duplicates = field(default_factory=Duplicates)


class Decisions:
    """The decisions of a report: lines at hand, details in a temporary file. To be closed."""

    def __init__(self) -> None:
        """Begin without one."""
        self.rows: list[Row] = []
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by close

    def close(self) -> None:
        """Drop the details."""
        self._file.close()

    def add(self, decision: Decision, proof: dict[str, Any]) -> None:
        """Take one more.

        Raises:
            ConfigurationError: there are too many for one page.
        """
        if len(self.rows) >= MOST_DECISIONS:
            raise ConfigurationError(
                f"more than {MOST_DECISIONS:,} decisions: too many for one page; choose with "
                "--from and --to, or --trace"
            )
        self.rows.append(decision.row)
        block = {"seq": decision.row.seq, **decision.details, "proof": proof}
        # What is no Unicode stands in JSON by its number, which is just what this makes of it.
        text = json.dumps(block, ensure_ascii=False, separators=(",", ":"))
        self._file.write(text.encode("utf-8", "backslashreplace") + b"\n")

    def details(self) -> Iterator[str]:
        """Give the details of each decision as JSON, in the order in which they came."""
        self._file.seek(0)
        for line in self._file:
            yield line.decode()[:-1]


def survey(
    reading: ChainReading, conditions: Sequence[tuple[str, Any]], prices: Prices, *, whole: bool
) -> Overview:
    """Read the entries that are shown for the first time.

    Args:
        reading: The chain.
        conditions: Which entries, in the words of a store.
        prices: Prices each call.
        whole: Also measure what only a history shows: series, and repeated calls.
    """
    found = Overview()
    collector = Collector(
        tuple(DIMENSIONS.values()),
        Selection(),
        lambda record, counted: prices.cost(record, counted).usd,
    )
    with closing(Groups(prices)) as groups:
        for entry in reading.entries(conditions):
            found.kinds[entry.kind] += 1
            if entry.kind == "gap":
                _add_gap(found, entry)
            elif entry.kind == "span":
                record = _record(entry)
                if record is None:
                    found.unreadable.append(entry.seq)
                    continue
                found.traces.setdefault(entry.trace_id, []).append(entry.seq)
                found.shown.add(entry.seq)
                if whole:
                    collector.add(entry.seq, record)
                    groups.add(entry, record)
        if whole:
            series = collector.finish()
            drawn = (draw_plot(each, each.judge(Selection())) for each in series)
            found.plots = tuple(plot for plot in drawn if plot is not None)
            found.doubts = tuple(
                f"no number, in {count} spans: {words}" for words, count in collector.faults.items()
            )
            found.duplicates = _duplicates(groups)
    if any(name.startswith("seq_") for name, _ in conditions):
        _add_beyond(found, reading)
    return found


def _add_beyond(found: Overview, reading: ChainReading) -> None:
    """Add what of the shown traces lies beyond the ends: a passage may have been found there."""
    for entry in reading.entries((("kind", "span"),)):
        numbers = found.traces.get(entry.trace_id)
        if numbers is not None and entry.seq not in found.shown:
            numbers.append(entry.seq)


def decide(
    reading: ChainReading,
    overview: Overview,
    prices: Prices,
    prover: Prover | None,
    decisions: Decisions,
) -> None:
    """Read every trace and make its decisions.

    Raises:
        ConfigurationError: there are too many of them.
    """
    for trace_id, numbers in overview.traces.items():
        for part in _parts(reading, trace_id, sorted(numbers)):
            for decision in decisions_of(part, prices):
                if decision.row.seq in overview.shown:
                    decisions.add(decision, _prove(prover, decision.entry))
    decisions.rows.sort(key=lambda row: row.seq)


def _prove(prover: Prover | None, entry: Entry) -> dict[str, Any]:
    if prover is None:
        return {"why": "no checkpoint was given (--checkpoint): only the HMAC key checks it"}
    return prover.prove(entry)


def _parts(
    reading: ChainReading, trace_id: bytes, numbers: Sequence[int]
) -> Iterator[list[SealedSpan]]:
    """Give the spans of a trace together; one by one where they are too many, or of no trace."""
    spans = (
        SealedSpan(entry, record, reading.standing(entry.seq))
        for seq in numbers
        for entry in reading.entries((("seq", seq),))
        if (record := _record(entry)) is not None
    )
    if trace_id and len(numbers) <= MOST_JOINED:
        yield list(spans)
    else:
        yield from ([span] for span in spans)


def _record(entry: Entry) -> SpanRecord | None:
    try:
        return decode_record(entry.body)
    except CanonicalizationError:
        return None


def _add_gap(found: Overview, entry: Entry) -> None:
    try:
        body = canonical.loads(entry.body)
        members = body if isinstance(body, dict) else {}
    except CanonicalizationError:
        members = {}
    times = [_time(members.get(name)) for name in ("first_unix_nano", "last_unix_nano")]
    count = members.get("count")
    words = "nobody can tell how many" if count is None else cut(shown(count), 40)
    reason = cut(shown(members.get("reason")), 200)
    period = " to ".join(dict.fromkeys(moment(time) for time in times if time))
    found.gaps.append(Gap(entry.seq, reason, words, period))
    found.gap_times.append((times[0] or entry.sealed_at_unix_nano, f"gap: {words}, {reason}"))


def _time(value: Any) -> int:
    """Read a time of a gap; what is none is 0."""
    return int(value) if isinstance(value, str) and _TIME.fullmatch(value) else 0


def _duplicates(groups: Groups) -> Duplicates:
    listed, total = [], 0
    for group in groups.repeated():
        total += 1
        if total <= MOST_GROUPS:
            numbers = (group.count, group.first_seq, group.last_seq, group.tokens)
            texts = (cut(group.name, 160), group.key.hex()[:12], *map(str, numbers))
            listed.append((*texts, str(group.cost) if group.cost.calls else ""))
    return Duplicates(tuple(listed), total)
