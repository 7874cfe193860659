"""A PostgreSQL store at one moment, for reading, in one repeatable-read transaction.

Rows are read by ``seq``, chain by chain. An index that hides a row shows as a hole; a row whose
``seq`` is no number from 0 on is read first, so that it cannot stay unseen. A value over the
limit of a body is not fetched; one that is no body reads as NULL, which no column of ours holds.

Source: https://www.postgresql.org/docs/current/ddl-rowsecurity.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from bijotel.errors import UnavailableError
from bijotel.findings import Finding, Notice
from bijotel.seal import MAX_BODY_BYTES
from bijotel.stores.base import ENTRY_COLUMNS, HEAD_COLUMNS, RawRow
from bijotel.stores.postgres_connection import one_line, psycopg
from bijotel.stores.postgres_schema import COLUMNS, ENTRIES, HEADS, INDEXES, SCHEMA_NAME

_ROWS_AT_ONCE: Final = 64
"""Bodies of a megabyte take 64 MB then; more at once is no faster on a socket."""
# First the path, so that no function of the same name is taken for the catalogue's; the last
# statement fixes the moment. Reading may take its time, waiting for a lock may not.
_BEGIN: Final = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = pg_catalog; "
    "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '10s'; "
    "SELECT count(*) FROM pg_catalog.pg_class WHERE false"
)
_LONGEST_CHAIN_ID: Final = 64  # bytes; a longer one is not sorted and not sent, only reported


def _within_the_limit(table: str, names: Sequence[str]) -> str:
    return ", ".join(
        name
        if COLUMNS[table][name] == "bigint"
        else f"CASE WHEN octet_length({name}) <= {MAX_BODY_BYTES} THEN {name} END"
        for name in names
    )


_COLUMNS: Final = f"{_within_the_limit('entries', ENTRY_COLUMNS)}, octet_length(body)"
_HEAD_COLUMNS: Final = _within_the_limit("heads", HEAD_COLUMNS)
_ROWS: Final = f"SELECT {_COLUMNS} FROM {ENTRIES}"  # noqa: S608 - names of our own
_CONDITIONS: Final = {
    "seq": "seq = %s",
    "seq_from": "seq >= %s",
    "seq_to": "seq <= %s",
    "trace_id": "trace_id = %s",
    "span_id": "span_id = %s",
    "kind": "kind = %s",
    "dedup_key": "dedup_key = %s",
    "start_from": "start_unix_nano >= %s",
    "start_to": "start_unix_nano <= %s",
}
_RELATIONS: Final = (
    "SELECT c.oid, c.relname, c.relkind, c.relrowsecurity OR c.relforcerowsecurity "
    "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = %s"
)
_ATTRIBUTES: Final = (
    "SELECT attname, pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute "
    "WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped"
)
_TRIGGERS: Final = (
    "SELECT tgname FROM pg_catalog.pg_trigger WHERE tgrelid = %s AND NOT tgisinternal "
    "UNION ALL SELECT rulename FROM pg_catalog.pg_rewrite WHERE ev_class = %s"
)


class PostgresSnapshot:
    """See :class:`bijotel.stores.base.Snapshot`. A row's place is its ``seq``."""

    def __init__(self, connection: psycopg.Connection[Any], location: str) -> None:
        """Take an open connection and begin the transaction that fixes the moment.

        Raises:
            UnavailableError: the server does not let us read.
        """
        self._connection = connection
        self._location = location
        try:
            connection.execute(_BEGIN)
        except psycopg.Error as error:
            raise UnavailableError(f"{location}: cannot be read: {one_line(error)}") from None

    def faults(self) -> tuple[list[Finding], list[Notice]]:
        """Compare tables, columns, indexes, triggers, rules and policies with the schema."""
        relations = {row[1]: row for row in self._query(_RELATIONS, (SCHEMA_NAME,))}
        findings: list[Finding] = []
        for table in COLUMNS:
            findings += self._table_faults(table, relations.get(table))
        notices = [
            Notice("index-missing", f"{self._location}: index {name} is missing")
            for name in INDEXES
            if name not in relations and not findings
        ]
        return findings, notices

    def head_rows(self) -> list[tuple[Any, ...]]:
        """Read all head records."""
        return list(self._query(f"SELECT {_HEAD_COLUMNS} FROM {HEADS} ORDER BY name"))  # noqa: S608

    def places(self) -> tuple[int, int] | None:
        """Find the lowest and the highest ``seq``; rows without a sound one count as 0."""
        query = f"SELECT count(*), least(min(seq), 0), greatest(max(seq), 0) FROM {ENTRIES}"  # noqa: S608
        count, first, last = next(self._query(query))
        return (first or 0, last or 0) if count else None

    def scan(self, first: int, last: int) -> Iterator[RawRow]:
        """Read rows of all chains, chain by chain, by ``seq``."""
        if first <= 0:
            yield from self._rows(
                f"{_ROWS} WHERE coalesce(octet_length(chain_id) > {_LONGEST_CHAIN_ID}, true) "
                "OR seq IS NULL OR seq < 0 ORDER BY ctid",
                (),
            )
        in_order = f"{_ROWS} WHERE chain_id = %s AND seq BETWEEN %s AND %s ORDER BY seq"
        for chain_id in self._chain_ids():
            yield from self._rows(in_order, (chain_id, max(first, 0), last))

    def ordered(self, chain_id: bytes) -> Iterator[RawRow]:
        """Read a chain by ``seq``, and by age where it repeats."""
        query = f"{_ROWS} WHERE chain_id = %s AND seq >= 0 ORDER BY seq, ctid"
        return self._rows(query, (chain_id,))

    def misplaced(self, chain_id: bytes) -> list[Any]:
        """Find the values of ``seq`` that are no number from 0 on."""
        query = f"SELECT seq FROM {ENTRIES} WHERE chain_id = %s AND (seq IS NULL OR seq < 0)"  # noqa: S608
        return [seq for (seq,) in self._query(query, (chain_id,))]

    def strangers(self, chain_ids: Sequence[bytes]) -> Iterator[tuple[Any, Any]]:
        """Read chain id and ``seq`` of the rows of none of these chains."""
        query = (
            f"SELECT substring(chain_id FROM 1 FOR 64), seq FROM {ENTRIES} "  # noqa: S608
            "WHERE chain_id IS NULL OR NOT chain_id = ANY(%s) ORDER BY seq, ctid"
        )
        return self._stream(query, (list(chain_ids),))

    def unlisted(self, chain_id: bytes) -> int | None:  # noqa: ARG002
        """Nothing to compare: rows were read through the index, where a hole shows."""
        return None

    def select(
        self,
        chain_id: bytes,
        conditions: Sequence[tuple[str, Any]] = (),
        *,
        limit: int | None = None,
        newest: bool = False,
    ) -> Iterator[RawRow]:
        """Read the rows of a chain that meet all conditions."""
        where = " AND ".join(("chain_id = %s", *(_CONDITIONS[name] for name, _ in conditions)))
        query = f"{_ROWS} WHERE {where} ORDER BY seq {'DESC' if newest else 'ASC'} LIMIT %s"
        return self._rows(query, (chain_id, *(value for _, value in conditions), limit))

    def _chain_ids(self) -> list[Any]:
        query = (
            f"SELECT DISTINCT chain_id FROM {ENTRIES} "  # noqa: S608
            f"WHERE octet_length(chain_id) <= {_LONGEST_CHAIN_ID}"
        )
        return [chain_id for (chain_id,) in self._query(query)]

    def _rows(self, query: str, values: Sequence[Any]) -> Iterator[RawRow]:
        for *columns, body, length in self._stream(query, values):
            if body is None:
                body = "null" if length is None else length  # noqa: PLW2901
            yield RawRow(columns[1] or 0, (*columns, body))

    def _query(self, query: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        try:
            yield from self._connection.execute(query, values).fetchall()
        except psycopg.Error as error:
            raise UnavailableError(f"{self._location}: cannot be read: {one_line(error)}") from None

    def _stream(self, query: str, values: Sequence[Any]) -> Iterator[Any]:
        """Read with a cursor on the server, so that a long answer takes little memory."""
        try:
            with self._connection.cursor("bijotel_rows", scrollable=False) as cursor:
                cursor.itersize = _ROWS_AT_ONCE
                cursor.execute(query, values, binary=True)
                yield from cursor
        except psycopg.Error as error:
            raise UnavailableError(f"{self._location}: cannot be read: {one_line(error)}") from None

    def _table_faults(self, table: str, relation: tuple[Any, ...] | None) -> Iterator[Finding]:
        if relation is None:
            yield Finding("schema-missing", f"table {table} is missing", column=table)
            return
        oid, _, kind, has_row_security = relation
        if kind != "r":
            yield _mismatch(table, f"is a relation of kind {kind}, expected a table")
            return
        if has_row_security:
            message = f"{table} has row security: policies may hide rows from this role"
            yield Finding("row-security", message, column=table)
        found = dict(self._query(_ATTRIBUTES, (oid,)))
        wanted, readable = COLUMNS[table], True
        for column in sorted(found.keys() | wanted.keys()):
            if column not in wanted:
                yield _mismatch(f"{table}.{column}", "is a column that the schema lacks")
            elif found.get(column) != wanted[column]:
                what = f"is {found.get(column, 'missing')}, expected {wanted[column]}"
                yield _mismatch(f"{table}.{column}", what)
                readable = False
        if not readable:
            yield _mismatch(table, "cannot be read while columns are not of their types")
        for (name,) in self._query(_TRIGGERS, (oid, oid)):
            yield _mismatch(name, "is a trigger or a rule; the schema has none")


def _mismatch(name: str, what: str) -> Finding:
    return Finding("schema-mismatch", f"{name} {what}", column=name)
