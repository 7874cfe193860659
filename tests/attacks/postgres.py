"""A chain in a PostgreSQL database to attack, by whoever owns its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg

from bijotel.findings import Report
from bijotel.model import Entry
from bijotel.seal import Batch
from bijotel.stores.postgres import PostgresStore
from bijotel.stores.postgres_schema import COLUMNS, statements
from bijotel.verify import verify_chain
from tests.attacks.evidence import KEY, Evidence, Writer
from tests.postgres_server import new_database

_TABLES = re.compile(r"\b(FROM|INTO|UPDATE|TABLE|ON) (entries|heads)\b")


class Alone(PostgresStore):
    """A store that no other process can open, so that workers' ranges are read in this one."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.address = None


class RefusedError(Exception):
    """The engine's types cannot hold a value."""

    def __init__(self, table: str, column: str, value: Any, where: str) -> None:
        super().__init__(f"{table}.{column}: {value!r}")
        self.table, self.column, self.value, self.where = table, column, value, where


class PostgresEvidence(Evidence):
    """A database under attack, by whoever owns its tables."""

    def __init__(self, url: str) -> None:
        self.path = url  # type: ignore[assignment]
        self._connection = psycopg.connect(url, autocommit=True)  # type: ignore[assignment]

    def set(self, seq: int, /, **columns: Any) -> None:
        self.put_values("entries", f"seq = '{seq}'", columns)

    def set_head(self, **columns: Any) -> None:
        self.put_values("heads", "true", columns)

    def put_values(self, table: str, where: str, columns: dict[str, Any]) -> None:
        """Change columns, and make sure that the very values are stored."""
        names = ", ".join(f"{name} = ?" for name in columns)
        back = ", ".join(f"{table}.{name}" for name in columns)
        try:
            with self._connection.transaction():  # type: ignore[attr-defined]
                found = self.sql(
                    f"UPDATE {table} SET {names} WHERE {where} RETURNING {back}", *columns.values()
                )
                if any([*map(repr, row)] != [*map(repr, columns.values())] for row in found):
                    raise psycopg.DataError("something else was stored")
        except (psycopg.DataError, psycopg.errors.DatatypeMismatch, psycopg.IntegrityError):
            ((name, value),) = columns.items()
            raise RefusedError(table, name, value, where) from None

    def insert(self, *entries: Entry) -> None:
        for entry in entries:
            if type(entry.seq) is not int:
                self.put_values("entries", "seq = '50'", {"seq": entry.seq})
        super().insert(*entries)

    def drop_indexes(self) -> None:
        """Drop what would refuse a value of another type or length in the tables' place."""
        for (name,) in self.sql("SELECT indexname FROM pg_indexes WHERE schemaname = 'bijotel'"):
            self.sql(f"DROP INDEX {name}")

    def force(self, refused: RefusedError) -> None:
        """Store what was refused in a column whose type is altered so that it can be."""
        table, name, run = f"bijotel.{refused.table}", refused.column, self._connection.execute
        is_text = COLUMNS[refused.table][name] == "text"
        kind, using = ("bytea", f"{name}::bytea") if is_text else ("text", f"{name}::text")
        value = repr(refused.value).encode() if is_text else repr(refused.value)
        run(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {kind} USING {using}")
        run(f"UPDATE {table} SET {name} = %s WHERE {refused.where}", (value,))

    def restore(self) -> None:
        """Put the honest chain's tables in place, as they were."""
        for statement in ("DROP SCHEMA IF EXISTS bijotel CASCADE", *statements()):
            self._connection.execute(statement)
        for table in COLUMNS:
            self._connection.execute(f"INSERT INTO bijotel.{table} TABLE honest.{table}")

    def settle(self) -> None:
        """Nothing is beside the tables."""

    def sql(self, statement: str, *values: Any) -> list[Any]:
        statement = _TABLES.sub(r"\1 bijotel.\2", statement.replace("?", "%s"))
        statement = statement.replace(" NOT INDEXED", "").replace("rowid", "ctid")
        statement = re.sub(r"DROP INDEX (IF EXISTS )?", r"\g<0>bijotel.", statement)
        cursor = self._connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else []

    def verify(self, *keys: Any, **options: Any) -> Report:
        """Verify with one, two and seven ranges, and expect one report."""
        ring = keys[0] if keys else KEY
        alone = Alone(str(self.path))
        first = verify_chain(alone, ring, **options)
        for workers in (2, 7):
            assert verify_chain(alone, ring, workers=workers, **options) == first
        return first


def keep(url: str, writer: Writer) -> None:
    """Append a writer's chain, and keep a copy of the tables."""
    kept = PostgresStore(url)
    kept.append(writer.head.name, lambda _: Batch(tuple(writer.entries), writer.head))
    kept.release()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA honest")
        for table in COLUMNS:
            connection.execute(f"CREATE TABLE honest.{table} AS TABLE bijotel.{table}")


def database(server: str, writer: Writer) -> Iterator[str]:
    with new_database(server) as url:
        keep(url, writer)
        yield url
