"""A SQLite store at one moment, for reading. Opening the file is ``sqlite_open``'s duty.

What is verified is read by rowid and never through an index that was not compared with the rows,
because whoever can write the file can edit an index so that it hides a row. A search goes through
indexes: it is quick, and finds no more than they name. Values are handed on as
SQLite has them, of any type; only a value over a limit is not read into memory.

Source: https://sqlite.org/lang_indexedby.html, https://sqlite.org/limits.html.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from bijotel.errors import UnavailableError
from bijotel.findings import Finding, Notice
from bijotel.seal import MAX_BODY_BYTES
from bijotel.stores.base import ENTRY_COLUMNS, HEAD_COLUMNS, RawRow
from bijotel.stores.sqlite_schema import APPLICATION_ID, INDEXES, TABLES

# Decodes a TEXT value, which an attacker may have filled with any octets.
decode_text: Final = partial(str, encoding="utf-8", errors="surrogateescape")

# A body is read only when it is a blob within the limit; the other columns come as they are.
_READ: Final = {
    "entries": (
        *ENTRY_COLUMNS[:-1],
        (
            "CASE WHEN typeof(body) <> 'blob' THEN typeof(body) "
            f"WHEN length(body) > {MAX_BODY_BYTES} THEN length(body) ELSE body END"
        ),
    ),
    "heads": HEAD_COLUMNS,
}
_COLUMNS: Final = f"rowid, {', '.join(_READ['entries'])}"
# Written so that a value which cannot be one of these is never read, however long it is.
_IS_ID: Final = "typeof(chain_id) = 'blob' AND length(chain_id) = 16"
_OF_CHAIN: Final = f"CASE WHEN {_IS_ID} THEN chain_id = ? END"
_IS_SEQ: Final = "CASE WHEN typeof(seq) = 'integer' THEN seq >= 0 ELSE 0 END"
_ORDER: Final = "ORDER BY CASE WHEN typeof(seq) = 'integer' THEN seq END, rowid"
_ROWS: Final = f"SELECT {_COLUMNS} FROM entries NOT INDEXED"  # noqa: S608 - names of our own
_CONDITIONS: Final = {
    "chain_id": "chain_id = ?",
    "seq": "seq = ?",
    "seq_from": "seq >= ?",
    "seq_to": "seq <= ?",
    "trace_id": "trace_id = ?",
    "span_id": "span_id = ?",
    "kind": "kind = ?",
    "dedup_key": "dedup_key = ?",
    "start_from": "start_unix_nano >= ?",
    "start_to": "start_unix_nano <= ?",
}

# A search by one of these goes through its index, in which only spans are.
_SEARCHED: Final = (
    ("span_id", "entries_by_span_id"),
    ("trace_id", "entries_by_span"),
    ("dedup_key", "entries_by_dedup_key"),
    ("start_from", "entries_by_start"),
    ("start_to", "entries_by_start"),
)

# So many entries, from where a search for a time begins, are looked through before all are sorted.
_STRETCH: Final = 4096


class SqliteSnapshot:
    """See :class:`bijotel.stores.base.Snapshot`."""

    def __init__(self, connection: sqlite3.Connection, location: str) -> None:
        """Take an open connection within a read transaction."""
        connection.text_factory = decode_text
        self._connection = connection
        self._location = location

    def faults(self) -> tuple[list[Finding], list[Notice]]:
        """Compare tables, indexes, triggers and views with the schema."""
        objects = {
            name: (kind, sql)
            for kind, name, sql in self._query("SELECT type, name, sql FROM sqlite_master")
        }
        findings: list[Finding] = []
        for table, wanted in TABLES.items():
            findings += self._table_faults(table, wanted, *objects.get(table, (None, None)))
        if findings:
            return findings, []
        notices = [
            Notice("index-missing", f"{self._location}: index {name} is missing")
            for name in INDEXES
            if name not in objects
        ]
        application = self._pragma("application_id")
        if application == 0:  # what a dump that was loaded again has
            what = f"{self._location}: the file does not carry the mark of a bijotel store"
            notices.append(Notice("application-id-missing", what))
        elif application != APPLICATION_ID:
            findings.append(_schema_mismatch("application_id", "is not that of a bijotel store"))
        for name, (kind, sql) in objects.items():
            if kind == "trigger":
                findings.append(_schema_mismatch(name, "is a trigger; the schema has none"))
            elif sql != INDEXES.get(name, sql):
                findings.append(_schema_mismatch(name, "is not defined as the schema says"))
        return findings, notices

    def head_rows(self) -> list[tuple[Any, ...]]:
        """Read all head records."""
        rowids = list(self._query("SELECT rowid FROM heads NOT INDEXED ORDER BY name, rowid"))
        return [self._row("heads", rowid) for (rowid,) in rowids]

    def places(self) -> tuple[int, int] | None:
        """Find the first and the last rowid."""
        # Two queries in one: min and max together would make SQLite visit every row.
        first, last = next(
            self._query(
                "SELECT (SELECT min(rowid) FROM entries NOT INDEXED), "
                "(SELECT max(rowid) FROM entries NOT INDEXED)"
            )
        )
        return None if first is None else (first, last)

    def scan(self, first: int, last: int) -> Iterator[RawRow]:
        """Read rows by rowid; from a row that cannot be read at once on, one by one."""
        place = first - 1
        # SQLite's own decoding takes a third of ours, but raises where text is no UTF-8.
        self._connection.text_factory = str
        try:
            rows = self._connection.execute(
                f"{_ROWS} WHERE rowid BETWEEN ? AND ? ORDER BY rowid", (first, last)
            )
            for row in rows:
                place = row[0]
                yield RawRow(place, row[1:])
        except sqlite3.Error:
            self._connection.text_factory = decode_text
            rowids = self._query(
                "SELECT rowid FROM entries NOT INDEXED WHERE rowid > ? AND rowid <= ? "
                "ORDER BY rowid",
                (place, last),
            )
            for (rowid,) in rowids:
                yield RawRow(rowid, self._row("entries", rowid))
        finally:
            self._connection.text_factory = decode_text

    def ordered(self, chain_id: bytes) -> Iterator[RawRow]:
        """Sort rowids by ``seq``, then read row by row: the bodies are never sorted."""
        order = self._query(
            f"SELECT rowid FROM entries NOT INDEXED WHERE {_OF_CHAIN} AND {_IS_SEQ} {_ORDER}",  # noqa: S608
            (chain_id,),
        )
        for (rowid,) in order:
            yield RawRow(rowid, self._row("entries", rowid))

    def misplaced(self, chain_id: bytes) -> list[Any]:
        """Find the values of ``seq`` that are no integer from 0 on."""
        rowids = self._query(
            f"SELECT rowid FROM entries NOT INDEXED WHERE {_OF_CHAIN} AND NOT {_IS_SEQ} "  # noqa: S608
            "ORDER BY rowid",
            (chain_id,),
        )
        return [self._short("seq", rowid) for (rowid,) in rowids]

    def strangers(self, chain_ids: Sequence[bytes]) -> Iterator[tuple[Any, Any]]:
        """Read chain id and ``seq`` of the rows of none of these chains."""
        marks = ", ".join("?" * len(chain_ids))
        rowids = self._query(
            f"SELECT rowid FROM entries NOT INDEXED WHERE "  # noqa: S608
            f"CASE WHEN {_IS_ID} THEN chain_id NOT IN ({marks}) ELSE 1 END {_ORDER}",
            chain_ids,
        )
        for (rowid,) in rowids:
            yield self._short("chain_id", rowid), self._short("seq", rowid)

    def unlisted(self, chain_id: bytes) -> int | None:
        """Walk the index by ``seq`` alone and hold it against the head's ``seq``.

        Asked only when rows and head agree; then the head says how many rows there are.
        """
        if not self._has_index("entries_by_seq"):
            return None
        listed = self._query(
            "SELECT seq FROM entries INDEXED BY entries_by_seq WHERE chain_id = ? ORDER BY seq",
            (chain_id,),
        )
        expected = 0
        for (seq,) in listed:
            if seq != expected:
                return expected
            expected += 1
        last = self._query("SELECT seq FROM heads NOT INDEXED WHERE chain_id = ?", (chain_id,))
        return None if next(last, None) == (expected - 1,) else expected

    def select(
        self,
        chain_id: bytes,
        conditions: Sequence[tuple[str, Any]] = (),
        *,
        limit: int | None = None,
        newest: bool = False,
    ) -> Iterator[RawRow]:
        """Read the rows of a chain that meet all conditions."""
        index = self._search_index(conditions)
        if index:
            # Its entries are those of spans; to look that up in the rows would read all of them.
            conditions = [each for each in conditions if each != ("kind", "span")]
        where, values = _where(("chain_id", chain_id), *conditions)
        end = f"ORDER BY seq {'DESC' if newest else 'ASC'} LIMIT ?"
        values = (*values, -1 if limit is None else limit)
        has_seq = self._has_index("entries_by_seq")
        if index:
            near: list[Any] = []
            if limit is not None and index == "entries_by_start" and has_seq:
                near = self._where_it_begins(chain_id, conditions, end, limit)
            found = f"SELECT rowid FROM entries INDEXED BY {index} WHERE kind = 'span' AND {where} {end}"  # noqa: E501, S608
            for (rowid,) in near if len(near) == limit else self._query(found, values):
                yield RawRow(rowid, self._row("entries", rowid))
            return
        by_seq = "INDEXED BY entries_by_seq" if has_seq else "NOT INDEXED"
        query = f"SELECT {_COLUMNS} FROM entries {by_seq} WHERE {where} {end}"  # noqa: S608
        for row in self._query(query, values):
            yield RawRow(row[0], row[1:])

    def _where_it_begins(
        self, chain_id: bytes, conditions: Sequence[tuple[str, Any]], end: str, limit: int
    ) -> list[Any]:
        """Look for spans of a time where the search begins: most of them stand together."""
        of_time = [each for each in conditions if each[0].startswith("start_")]
        places, first = _where(
            ("chain_id", chain_id), *(each for each in conditions if each not in of_time)
        )
        times, second = _where(*of_time)
        stretch = f"SELECT rowid AS place, seq, kind, start_unix_nano FROM entries INDEXED BY entries_by_seq WHERE {places} {end}"  # noqa: E501, S608
        found = f"SELECT place FROM ({stretch}) WHERE kind = 'span' AND {times} {end}"  # noqa: S608
        return list(self._query(found, (*first, _STRETCH, *second, limit)))

    def _search_index(self, conditions: Sequence[tuple[str, Any]]) -> str | None:
        """Choose the index that serves a search; None when there is none."""
        asked = {name for name, _ in conditions}
        return next(
            (index for name, index in _SEARCHED if name in asked and self._has_index(index)),
            None,
        )

    def _row(self, table: str, rowid: int) -> tuple[Any, ...]:
        """Read one row; None stands in place of a value that is over SQLite's limit."""
        columns = _READ[table]
        query = f"SELECT {', '.join(columns)} FROM {table} NOT INDEXED WHERE rowid = ?"  # noqa: S608
        try:
            row: tuple[Any, ...] = self._connection.execute(query, (rowid,)).fetchone()
        except sqlite3.DataError:
            return tuple(self._value(table, column, rowid) for column in columns)
        except sqlite3.Error as error:
            raise self._unreadable(error) from None
        return row

    def _value(self, table: str, column: str, rowid: int) -> Any:
        query = f"SELECT {column} FROM {table} NOT INDEXED WHERE rowid = ?"  # noqa: S608
        try:
            return self._connection.execute(query, (rowid,)).fetchone()[0]
        except sqlite3.DataError:
            return None
        except sqlite3.Error as error:
            raise self._unreadable(error) from None

    def _short(self, column: str, rowid: int) -> Any:
        value = self._value("entries", column, rowid)
        return value[:64] if isinstance(value, (str, bytes)) else value

    def _has_index(self, name: str) -> bool:
        """Tell whether an index is there and is the one of the schema."""
        found = self._query("SELECT sql FROM sqlite_master WHERE name = ?", (name,))
        return list(found) == [(INDEXES[name],)]

    def _query(self, query: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        try:
            # Not "yield from": a reader that stops early may be collected after the connection.
            for row in self._connection.execute(query, values):  # noqa: UP028
                yield row
        except sqlite3.Error as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: sqlite3.Error) -> UnavailableError:
        return UnavailableError(f"{self._location}: cannot be read: {error}")

    def _pragma(self, name: str) -> Any:
        return next(self._query(f"PRAGMA {name}"))[0]

    def _table_faults(
        self, table: str, wanted: str, kind: str | None, sql: str | None
    ) -> Iterator[Finding]:
        if kind is None:
            yield Finding("schema-missing", f"table {table} is missing", column=table)
        elif kind != "table":
            yield _schema_mismatch(table, f"is a {kind}, expected a table")
        elif sql != wanted:
            known = {*ENTRY_COLUMNS, *HEAD_COLUMNS}
            columns = [row[1] for row in self._query(f"PRAGMA table_xinfo({table})")]
            for column in columns:
                if column not in known:
                    yield _schema_mismatch(f"{table}.{column}", "is a column the schema lacks")
            # Columns added behind ours do no harm to the reading of ours.
            if not str(sql).startswith(f"{wanted[:-1]}, ") or not self._is_readable(table):
                yield _schema_mismatch(table, "is not defined as the schema says")

    def _is_readable(self, table: str) -> bool:
        query = f"SELECT rowid, {', '.join(_READ[table])} FROM {table} NOT INDEXED LIMIT 0"  # noqa: S608
        try:
            self._connection.execute(query)
        except sqlite3.Error:
            return False
        return True


def _where(*conditions: tuple[str, Any]) -> tuple[str, tuple[Any, ...]]:
    return (
        " AND ".join(_CONDITIONS[name] for name, _ in conditions),
        tuple(value for _, value in conditions),
    )


def _schema_mismatch(name: str, what: str) -> Finding:
    return Finding("schema-mismatch", f"{name} {what}", column=name)
