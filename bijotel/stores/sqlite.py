"""The SQLite store: one file, many processes. Writing; reading is ``sqlite_snapshot``.

Every choice of a PRAGMA is written down where it is made. The schema has no constraint and no
trigger: they prove nothing against whoever holds the file, and hide what a verifier must see.
The unique indexes are guards against our own mistakes only.

Source: docs/spec (entry, head), https://sqlite.org/wal.html, https://sqlite.org/pragma.html.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

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
from bijotel.stores.filesystems import refuse_network_file_system
from bijotel.stores.sqlite_open import check_place, open_snapshot
from bijotel.stores.sqlite_schema import APPLICATION_ID, SCHEMA_VERSION, migrate
from bijotel.stores.sqlite_snapshot import SqliteSnapshot

BUSY_SECONDS: Final = 0.25
"""How long one attempt waits for another writer before it is reported as busy. Short, because a
fork has to wait for the running attempt; ``stores.retry`` adds the patience."""

_LONG_LOG: Final = 16 * 1024 * 1024
_SHORT_LOG: Final = 4 * 1024 * 1024
"""Bytes of the write-ahead log after which it is copied back, see ``_bound_log``."""
_MANY: Final = 16
"""So many entries in one transaction are many."""

_INSERT_ENTRY: Final = (
    f"INSERT INTO entries ({', '.join(ENTRY_COLUMNS)}) "  # noqa: S608 - names of our own
    f"VALUES ({', '.join('?' * len(ENTRY_COLUMNS))})"
)
_SELECT_HEAD: Final = f"SELECT {', '.join(HEAD_COLUMNS)} FROM heads WHERE name = ?"  # noqa: S608
_PUT_HEAD: Final = (
    f"INSERT INTO heads ({', '.join(HEAD_COLUMNS)}) "  # noqa: S608
    f"VALUES ({', '.join('?' * len(HEAD_COLUMNS))}) ON CONFLICT (chain_id) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in HEAD_COLUMNS[2:])
)

# One step into the index for each chain, however many entries there are.
_SELECT_KEY_ENTRY: Final = (
    f"SELECT {', '.join(ENTRY_COLUMNS)} FROM entries "  # noqa: S608
    "WHERE chain_id = ? AND seq = ? AND kind = 'key'"
)
_HEADLESS: Final = (
    "WITH RECURSIVE chains(chain_id) AS (SELECT min(chain_id) FROM entries UNION ALL "
    "SELECT (SELECT min(e.chain_id) FROM entries e WHERE e.chain_id > c.chain_id) "
    "FROM chains c WHERE c.chain_id IS NOT NULL) "
    "SELECT 1 FROM chains c WHERE c.chain_id IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM heads h WHERE h.chain_id = c.chain_id) LIMIT 1"
)

# Connections that came through a fork. They belong to the parent: closing one here, as the
# garbage collector would, drops the parent's file locks
# (https://sqlite.org/howtocorrupt.html section 2.7).
_inherited: Final[list[sqlite3.Connection]] = []


class SqliteStore:
    """Chains in one SQLite file. See :class:`bijotel.stores.base.Store` for the contract."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Name the file; it is opened, and made, by the first call that needs it."""
        self._path = Path(path).absolute()
        self.location = str(self._path)
        self.address: str | None = self.location
        self.spool_folder: Path | None = Path(f"{self._path}-spool")
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._files: tuple[int, ...] = ()
        self._log_bytes = 0
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"SqliteStore({self.location!r})"

    def append(self, chain: str, make: MakeBatch) -> ChainHead:
        """Append to a chain; see the contract."""
        with self._lock, self._translated():
            connection = self._connect()
            self._begin(connection)
            try:
                head = self._read_head(connection, chain)
                batch = make(head)
                _insert(connection, batch)
                self._bound_log(connection, len(batch.entries))
                connection.execute("COMMIT")
            except BaseException:
                # After an error SQLite may have rolled back already; then this one fails.
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            return batch.head

    def sealed(self, chain_id: bytes, spans: Iterable[SpanIdentity]) -> set[SpanIdentity]:
        """Find out which of these spans the chain holds."""
        query = (
            "SELECT 1 FROM entries WHERE kind = 'span' AND chain_id = ? AND trace_id = ? "
            "AND span_id = ? AND body_hash = ?"
        )
        with self._lock, self._translated():
            connection = self._connect()
            return {
                span for span in spans if connection.execute(query, (chain_id, *span)).fetchone()
            }

    def key_entry(self, chain_id: bytes, seq: int) -> tuple[Any, ...] | None:
        """Read an entry of kind ``key``; see the contract."""
        with self._lock, self._translated():
            row: tuple[Any, ...] | None = (
                self._connect().execute(_SELECT_KEY_ENTRY, (chain_id, seq)).fetchone()
            )
        return row

    @contextmanager
    def snapshot(self) -> Iterator[SqliteSnapshot]:
        """Open a read-only view of the file at one moment, on a connection of its own."""
        with open_snapshot(self._path) as snapshot:
            yield snapshot

    def release(self) -> None:
        """Close the connection, if this process opened it."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            if self._pid != os.getpid():
                _inherited.append(connection)
                return
            with suppress(sqlite3.Error):
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        """Give the connection to the file that is there now."""
        # A file, or a log, that was deleted or replaced would go on to take commits that nobody
        # can read.
        if self._connection is not None and (
            self._pid != os.getpid() or self._files != _identities(self._path)
        ):
            self.release()
        if self._connection is not None:
            return self._connection
        self._pid = os.getpid()
        check_place(self._path)
        refuse_network_file_system(self._path)
        connection = sqlite3.connect(
            self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._log_bytes = connection, 0
        self._files = _identities(self._path)
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check whose file this is before anything is changed, then set it up."""
        check_ownership(connection, self.location)
        # The body of a usual span fills two pages of 8 KiB; of SQLite's usual 4 KiB there are more
        # to write and to read. A file that is there already keeps the size it was made with.
        connection.execute("PRAGMA page_size = 8192")
        _set_wal(connection)
        # FULL: a commit is on the disk when it returns; NORMAL would lose the last ones with
        # the power, and a lost tail is what nobody could prove.
        connection.execute("PRAGMA synchronous = FULL")
        # 8 MiB hold the pages of the largest usual transaction; with SQLite's default of 2 MiB
        # it would write some of them more than once.
        connection.execute("PRAGMA cache_size = -8192")
        # The first look into the file in this mode opens the log, whose identity is kept.
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()

    def _bound_log(self, connection: sqlite3.Connection, entries: int) -> None:
        """Choose how long the write-ahead log grows before it is copied back.

        For a steady writer of many entries at once to about 16 MiB: fewer, longer copies cost
        less. For one of few at once to 4 MiB: to write over the log costs less than to make it
        longer, and it is written over sooner.
        """
        wanted = _LONG_LOG if entries >= _MANY else _SHORT_LOG
        if wanted != self._log_bytes:
            pages = wanted // connection.execute("PRAGMA page_size").fetchone()[0]
            connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            self._log_bytes = wanted

    def _begin(self, connection: sqlite3.Connection) -> None:
        # IMMEDIATE takes the write lock before the head is read; a deferred transaction would
        # read first and could then fail, or fork the chain, when it comes to write.
        connection.execute("BEGIN IMMEDIATE")

    def _read_head(self, connection: sqlite3.Connection, chain: str) -> ChainHead | None:
        migrate(connection)
        row = connection.execute(_SELECT_HEAD, (chain,)).fetchone()
        if row:
            return ChainHead(*row)
        if connection.execute(_HEADLESS).fetchone():
            raise UnavailableError(
                f"{self.location}: holds entries of a chain without a head record; "
                "nothing is appended to it"
            )
        return None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise AlreadySealedError(f"{self.location}: {error}") from None
        except sqlite3.Error as error:
            # "database is locked", "database table is locked": the codes need Python 3.11.
            if "locked" in str(error):
                raise StoreBusyError(f"{self.location}: {error}") from None
            self.release()
            raise UnavailableError(f"{self.location}: {error}") from None


def check_ownership(connection: sqlite3.Connection, location: str) -> None:
    """Refuse another application's database or one of a newer schema; accept an empty one.

    Raises:
        UnavailableError: the file is not ours to write or to read.
    """
    # In one transaction: another process may be making its tables at this very moment.
    connection.execute("BEGIN")
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    objects = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    connection.execute("COMMIT")
    if application != APPLICATION_ID and (application or version or objects):
        raise UnavailableError(
            f"{location}: another application's database (application_id {application}, "
            f"expected {APPLICATION_ID})"
        )
    if version > SCHEMA_VERSION:
        raise UnavailableError(
            f"{location}: schema version {version} is newer than this library's {SCHEMA_VERSION}"
        )


def _identities(path: Path) -> tuple[int, ...]:
    """Device and inode of the file at a path and of its log; zeros where there is none."""
    found: list[int] = []
    for name in (path, f"{path}-wal"):
        try:
            status = os.stat(name)  # noqa: PTH116 - at every commit
        except OSError:
            found += (0, 0)
        else:
            found += (status.st_dev, status.st_ino)
    return tuple(found)


def _set_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, in which readers and the writer never wait for each other.

    This one statement ignores the busy timeout, so that processes that start together can fail;
    it is tried again with jitter.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        else:
            if mode in {"wal", "memory"}:
                return
            raise UnavailableError(f"journal mode is {mode}, expected wal")
        time.sleep(random.uniform(0.001, 0.02))  # noqa: S311 - jitter, not a secret


def _insert(connection: sqlite3.Connection, batch: Batch) -> None:
    # Values of a plain tuple are bound a little faster than those of a named one.
    connection.executemany(_INSERT_ENTRY, map(tuple, batch.entries))
    connection.execute(_PUT_HEAD, batch.head)
