"""The memory store: chains that live as long as the object, for tests and notebooks.

A SQLite database without a file, so that the contract is kept by the same statements. Its
snapshots are copies.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from weakref import finalize

from bijotel.stores.sqlite import SqliteStore
from bijotel.stores.sqlite_snapshot import SqliteSnapshot


class MemoryStore(SqliteStore):
    """Chains in memory. See :class:`bijotel.stores.base.Store` for the contract.

    Nothing here survives the process, and the child of a fork gets a copy of its own.
    """

    def __init__(self) -> None:
        """Start without a chain."""
        super().__init__(":memory:")
        self.location = ":memory:"
        self.address: str | None = None
        self.spool_folder: Path | None = None

    @contextmanager
    def snapshot(self) -> Iterator[SqliteSnapshot]:
        """Copy the database as it is now."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
            with self._lock:
                self._connect().backup(copy)
            yield SqliteSnapshot(copy, self.location)

    def release(self) -> None:
        """Keep the connection: it is the store."""

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(
                ":memory:", isolation_level=None, check_same_thread=False
            )
            # Not at exit: what is still queued is sealed then.
            finalize(self, self._connection.close).atexit = False
        return self._connection
