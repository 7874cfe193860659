"""The PostgreSQL store: many hosts, many chains. Writing; reading is ``postgres_snapshot``.

Needs of a server that speaks its protocol: transactions that read what was committed,
``SELECT ... FOR UPDATE`` that waits for the row, unique (also partial) indexes, ``bytea``,
``COPY ... FROM STDIN`` in binary form, advisory locks for the first entry of a chain, and
repeatable read for verifying. A writer's role needs SELECT and INSERT on ``bijotel.entries``
and SELECT, INSERT and UPDATE on ``bijotel.heads``; where the tables are there it makes none.

Source: docs/spec (entry, head), docs/how-to/postgresql.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, cast

from bijotel.errors import UnavailableError
from bijotel.model import ChainHead
from bijotel.seal import Batch
from bijotel.stores.base import (
    ENTRY_COLUMNS,
    HEAD_COLUMNS,
    AlreadySealedError,
    MakeBatch,
    SpanIdentity,
    StoreBusyError,
)
from bijotel.stores.postgres_connection import (
    ANSWER_SECONDS,
    Connection,
    connect,
    name_of,
    one_line,
    psycopg,
)
from bijotel.stores.postgres_schema import COLUMNS, ENTRIES, HEADS, SETUP_LOCK, statements
from bijotel.stores.postgres_snapshot import PostgresSnapshot

LOCK_MILLIS: Final = 250
"""How long one attempt waits for another writer; a fork has to wait as long."""
STATEMENT_MILLIS: Final = 30_000
"""When the server itself gives a statement up."""

# Set within the transaction: a pooler may run the next one in another session. First the path,
# so that no function of the same name is taken for the catalogue's.
_BEGIN: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
    "SET LOCAL search_path = pg_catalog; "
    f"SET LOCAL lock_timeout = {LOCK_MILLIS}; "
    f"SET LOCAL statement_timeout = {STATEMENT_MILLIS}; "
    # A commit is on the disk when it returns, also where the server's default is another.
    "SELECT set_config('synchronous_commit', 'on', true) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)
# The fastest way in for rows of this size, and the cheapest for the application's process.
_COPY: Final = f"COPY {ENTRIES} ({', '.join(ENTRY_COLUMNS)}) FROM STDIN (FORMAT binary)"
_COPY_TYPES: Final = [COLUMNS["entries"][column] for column in ENTRY_COLUMNS]
_HAS_TABLES: Final = "SELECT to_regclass(%s) IS NOT NULL AND to_regclass(%s) IS NOT NULL"
_SELECT_HEAD: Final = f"SELECT {', '.join(HEAD_COLUMNS)} FROM {HEADS} WHERE name = %s FOR UPDATE"  # noqa: S608
_PUT_HEAD: Final = (
    f"INSERT INTO {HEADS} ({', '.join(HEAD_COLUMNS)}) "  # noqa: S608
    f"VALUES ({', '.join(['%s'] * len(HEAD_COLUMNS))}) ON CONFLICT (chain_id) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in HEAD_COLUMNS[2:])
)
# One step into the index for each chain, however many entries there are.
_HEADLESS: Final = (
    "WITH RECURSIVE chains(chain_id) AS ("  # noqa: S608 - names of our own
    f"SELECT min(chain_id) FROM {ENTRIES} UNION ALL "
    f"SELECT (SELECT min(chain_id) FROM {ENTRIES} e WHERE e.chain_id > c.chain_id) "
    "FROM chains c WHERE c.chain_id IS NOT NULL) "
    "SELECT 1 FROM chains c WHERE c.chain_id IS NOT NULL "
    f"AND NOT EXISTS (SELECT 1 FROM {HEADS} h WHERE h.chain_id = c.chain_id) LIMIT 1"
)
_SELECT_KEY_ENTRY: Final = (
    f"SELECT {', '.join(ENTRY_COLUMNS)} FROM {ENTRIES} "  # noqa: S608
    "WHERE chain_id = %s AND seq = %s AND kind = 'key'"
)
_SEALED: Final = (
    f"SELECT trace_id, span_id, body_hash FROM {ENTRIES} "  # noqa: S608
    "WHERE kind = 'span' AND chain_id = %s AND trace_id = ANY(%s)"
)

# Connections that came through a fork. They belong to the parent, whose session a close here
# would end.
_inherited: Final[list[Any]] = []


class PostgresStore:
    """Chains in a PostgreSQL database. See :class:`bijotel.stores.base.Store`."""

    def __init__(self, url: str) -> None:
        """Name the database; it is connected by the first call that needs it.

        Args:
            url: ``postgresql://user:password@host:port/database``, or as libpq takes it.

        Raises:
            ConfigurationError: libpq cannot read it.
        """
        self._url = url
        self.address: str | None = url
        self.location = name_of(url)
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._has_tables = False
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"PostgresStore({self.location!r})"

    @property
    def spool_folder(self) -> Path | None:
        """A folder of the user's state directory, which is made when it is missing.

        None for a user who has no home and names none: then there is no spool.
        """
        name = hashlib.sha256(self.location.encode()).hexdigest()[:16]
        try:
            state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        except RuntimeError:
            return None
        with suppress(OSError):  # then the spool cannot be opened either, which is reported
            state.mkdir(mode=0o700, parents=True, exist_ok=True)
        return state / f"bijotel-{name}-spool"

    def append(self, chain: str, make: MakeBatch) -> ChainHead:
        """Append to a chain; see the contract."""
        with self._lock, self._translated():
            connection = self._connect()
            connection.execute(_BEGIN)
            try:
                batch = make(self._lock_head(connection, chain))
                _insert(connection, batch)
                connection.commit()
            except BaseException:
                # On a lost connection this fails as well; the server rolls back by itself.
                with suppress(psycopg.Error):
                    connection.rollback()
                raise
            return batch.head

    def sealed(self, chain_id: bytes, spans: Iterable[SpanIdentity]) -> set[SpanIdentity]:
        """Find out which of these spans the chain holds."""
        wanted = set(spans)
        with self._lock, self._translated():
            traces = list({trace_id for trace_id, _, _ in wanted})
            rows = self._connect().execute(_SEALED, (chain_id, traces)).fetchall()
        return wanted & {(bytes(row[0]), bytes(row[1]), bytes(row[2])) for row in rows}

    def key_entry(self, chain_id: bytes, seq: int) -> tuple[Any, ...] | None:
        """Read an entry of kind ``key``; see the contract."""
        with self._lock, self._translated():
            row: tuple[Any, ...] | None = (
                self._connect().execute(_SELECT_KEY_ENTRY, (chain_id, seq)).fetchone()
            )
        return row

    @contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        """Open a read-only view of the database at one moment, on a connection of its own."""
        try:
            connection = connect(self._url)
        except psycopg.Error as error:
            raise UnavailableError(f"{self.location}: {one_line(error)}") from None
        with connection:
            yield PostgresSnapshot(connection, self.location)

    def release(self) -> None:
        """Close the connection, if this process opened it."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            if self._pid != os.getpid():
                _inherited.append(connection)
                return
            with suppress(psycopg.Error):
                connection.close()

    def _connect(self) -> Connection:
        if self._connection is not None and self._pid != os.getpid():
            self.release()
        if self._connection is None or self._connection.closed:
            self._pid = os.getpid()
            self._connection = connect(self._url)
            self._connection.answer_seconds = ANSWER_SECONDS
            self._has_tables = False
        return self._connection

    def _lock_head(self, connection: Connection, chain: str) -> ChainHead | None:
        """Read the head under its lock; before the first entry there may be no table yet."""
        self._ensure_tables(connection)
        row = connection.execute(_SELECT_HEAD, (chain,)).fetchone()
        if row:
            return ChainHead(*row)
        # There is no row to lock yet: who begins a chain holds this one instead.
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (SETUP_LOCK,))
        row = connection.execute(_SELECT_HEAD, (chain,)).fetchone()
        if row:
            return ChainHead(*row)
        if connection.execute(_HEADLESS).fetchone():
            raise UnavailableError(
                f"{self.location}: holds entries of a chain without a head record; "
                "nothing is appended to it"
            )
        return None

    def _ensure_tables(self, connection: Connection) -> None:
        """Make the tables, unless they are there: a writer's role may not be allowed to."""
        if self._has_tables:
            return
        answer = connection.execute(_HAS_TABLES, (ENTRIES, HEADS)).fetchone()
        if not cast("tuple[bool]", answer)[0]:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (SETUP_LOCK,))
            for statement in statements():
                connection.execute(statement)
        # Forgotten with the connection: a transaction that made them may still be rolled back,
        # and then every later statement fails until there is a new one.
        self._has_tables = True

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.errors.UniqueViolation as error:
            raise AlreadySealedError(f"{self.location}: {one_line(error)}") from None
        except (
            psycopg.errors.LockNotAvailable,
            psycopg.errors.DeadlockDetected,
            psycopg.errors.SerializationFailure,
        ) as error:
            raise StoreBusyError(f"{self.location}: {one_line(error)}") from None
        except psycopg.Error as error:
            self.release()
            raise UnavailableError(f"{self.location}: {one_line(error)}") from None


def _insert(connection: Connection, batch: Batch) -> None:
    with connection.cursor() as cursor:
        if batch.entries:
            with cursor.copy(_COPY) as copy:
                copy.set_types(_COPY_TYPES)
                for entry in batch.entries:
                    copy.write_row(entry)
        cursor.execute(_PUT_HEAD, batch.head)
