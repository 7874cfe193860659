"""Calls that ask the same again: entries with the same dedup key, and what the repeats cost.

The key is a column, made at sealing from what was asked of which model with which retriever (see
docs/spec, body); the answer, the scores and the time are not in it. Where prompts were not
recorded, equal keys only say that the settings were equal.

Memory is bounded: the groups wait in a temporary SQLite file, which goes with the process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple

from bijotel.cost import Cost, CostTotal, Prices
from bijotel.dialects.leafmost import Leafmost
from bijotel.dialects.span import Span
from bijotel.dialects.usage import usage_of
from bijotel.errors import UnavailableError
from bijotel.model import Entry
from bijotel.stores.base import Snapshot

_SCHEMA: Final = (
    "PRAGMA journal_mode = OFF",
    "PRAGMA synchronous = OFF",
    # Tokens are text because a hostile count may be beyond any column.
    (
        "CREATE TABLE groups (key BLOB PRIMARY KEY, name TEXT, count INTEGER, first INTEGER, "
        "last INTEGER, tokens TEXT, usd TEXT, calls INTEGER, unpriced INTEGER) WITHOUT ROWID"
    ),
    "BEGIN",
)
_SEEN_AGAIN: Final = "UPDATE groups SET count = count + 1, last = ? WHERE key = ?"
_SEEN_FIRST: Final = "INSERT INTO groups VALUES (?, ?, 1, ?, ?, '0', '0', 0, 0)"
_SPENT: Final = "SELECT tokens, usd, calls, unpriced FROM groups WHERE key = ?"
_SPEND: Final = "UPDATE groups SET tokens = ?, usd = ?, calls = ?, unpriced = ? WHERE key = ?"
_GROUPS: Final = (
    "SELECT key, name, count, first, last, tokens, usd, calls, unpriced FROM groups "
    "WHERE count > 1 ORDER BY count DESC, first"
)


@dataclass(frozen=True, slots=True)
class Group:
    """Entries that ask the same."""

    key: bytes
    name: str
    """Of the first one's span."""
    count: int
    first_seq: int
    last_seq: int
    tokens: int
    """Input and output tokens of all but the first, as far as they are reported."""
    cost: CostTotal
    """The same in money."""

    def as_dict(self) -> dict[str, Any]:
        """Give the members that ``--json`` prints."""
        return {
            "dedup_key": self.key.hex(),
            "name": self.name,
            "count": self.count,
            "first_seq": self.first_seq,
            "last_seq": self.last_seq,
            "repeated_tokens": self.tokens,
            "repeated_cost_known": float(self.cost.known),
            "repeated_calls": self.cost.calls,
            "repeated_unpriced_calls": self.cost.unpriced,
        }


@dataclass(frozen=True, slots=True)
class SameKey:
    """The entries of a chain that have one dedup key, as they are stored."""

    count: int
    first_seq: int
    last_seq: int

    def as_dict(self) -> dict[str, Any]:
        """Give the members that ``--json`` prints."""
        return asdict(self)


def find_same(snapshot: Snapshot, chain_id: bytes, key: bytes) -> SameKey | None:
    """Find all entries with a dedup key; None when there is none, or no key."""
    if not key:
        return None
    found = [row.columns[1] for row in snapshot.select(chain_id, (("dedup_key", key),))]
    return SameKey(len(found), found[0], found[-1]) if found else None


class _Repeat(NamedTuple):
    key: bytes
    tokens: int
    cost: Cost


class Groups:
    """Takes the entries of a chain in order; for one thread, and to be closed."""

    def __init__(self, prices: Prices) -> None:
        """Begin without an entry."""
        self.entries = 0
        """How many have a dedup key."""
        self._prices = prices
        self._leafmost: Leafmost[_Repeat | None] = Leafmost()
        # An empty name is a temporary database: in memory while it is small, then in a file.
        self._database = sqlite3.connect("", isolation_level=None)
        for statement in _SCHEMA:
            self._database.execute(statement)

    def close(self) -> None:
        """Drop the groups."""
        self._database.close()

    def add(self, entry: Entry, record: Span) -> None:
        """Take the next entry of a span.

        Raises:
            UnavailableError: the temporary file cannot grow.
        """
        counted = usage_of(record)
        repeat = None
        if entry.dedup_key:
            self.entries += 1
            if self._is_repeated(entry):
                usage = counted.usage
                tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
                repeat = _Repeat(entry.dedup_key, tokens, self._prices.cost(record, counted))
        released = self._leafmost.add(record, counted.usage, repeat)
        if released is not None:
            self._spend(*released)

    def repeated(self) -> Iterator[Group]:
        """Give the groups of two and more after the last entry, the largest first.

        Raises:
            UnavailableError: the temporary file cannot grow.
        """
        for earlier, counts in self._leafmost.rest():
            self._spend(earlier, counts)
        for key, name, count, first, last, tokens, usd, calls, unpriced in self._execute(_GROUPS):
            cost = CostTotal(Decimal(usd), calls, unpriced)
            yield Group(key, name, count, first, last, int(tokens), cost)

    def _is_repeated(self, entry: Entry) -> bool:
        if self._execute(_SEEN_AGAIN, entry.seq, entry.dedup_key).rowcount:
            return True
        self._execute(_SEEN_FIRST, entry.dedup_key, entry.name, entry.seq, entry.seq)
        return False

    def _spend(self, repeat: _Repeat | None, counts: bool) -> None:
        if repeat is None or not counts:
            return
        ((tokens, usd, calls, unpriced),) = self._execute(_SPENT, repeat.key)
        total = CostTotal(Decimal(usd), calls, unpriced)
        total.add(repeat.cost)
        self._execute(
            _SPEND,
            str(int(tokens) + repeat.tokens),
            str(total.known),
            total.calls,
            total.unpriced,
            repeat.key,
        )

    def _execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise UnavailableError(f"the temporary file for groups: {error}") from None
