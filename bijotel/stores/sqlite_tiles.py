"""The tiles of a chain in a table of the SQLite store itself, on a connection of their own.

The table is derived and may be dropped at any time; ``verify`` does not look at it. Values are
handed on when they have the shape of a tile, and whoever uses them checks the result
(``tiles``). A file that cannot be written, or is locked, keeps no tiles; that is no error.

Source: https://sqlite.org/wal.html, https://sqlite.org/withoutrowid.html (not used: the hashes
are long).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from bijotel.merkle import HASH_BYTES
from bijotel.stores.base import Store
from bijotel.stores.sqlite import SqliteStore
from bijotel.stores.tiles import NO_CACHE, TILE_WIDTH, Tile, TileCache

TABLE: Final = (
    (
        "CREATE TABLE IF NOT EXISTS tiles "
        "(chain_id BLOB, level INTEGER, position INTEGER, hashes BLOB)"
    ),
    "CREATE UNIQUE INDEX IF NOT EXISTS tiles_by_position ON tiles (chain_id, level, position)",
)
BUSY_SECONDS: Final = 0.25
"""How long a cache may wait for a writer."""

_READ: Final = (
    "SELECT hashes FROM tiles WHERE chain_id = ? AND level = ? AND position = ? "
    "AND typeof(hashes) = 'blob' AND length(hashes) <= ?"
)
_WRITE: Final = (
    "INSERT INTO tiles (chain_id, level, position, hashes) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (chain_id, level, position) DO UPDATE SET hashes = excluded.hashes"
)


class SqliteTiles:
    """See :class:`bijotel.stores.tiles.TileCache`."""

    def __init__(self, connection: sqlite3.Connection, chain_id: bytes) -> None:
        """Take an open connection, in autocommit mode."""
        self._connection = connection
        self._chain_id = chain_id

    def read(self, level: int, position: int) -> bytes:
        """Read a tile's hashes; empty when there are none of that shape."""
        longest = TILE_WIDTH * HASH_BYTES
        try:
            row = self._connection.execute(
                _READ, (self._chain_id, level, position, longest)
            ).fetchone()
        except sqlite3.Error:
            return b""
        return row[0] if row and len(row[0]) % HASH_BYTES == 0 else b""

    def write(self, tiles: Sequence[Tile]) -> None:
        """Keep tiles in one short transaction, or none of them."""
        if tiles:
            rows = [(_WRITE, (self._chain_id, *tile)) for tile in tiles]
            self._change([*((definition, ()) for definition in TABLE), *rows])

    def clear(self) -> None:
        """Forget the chain's tiles."""
        self._change([("DELETE FROM tiles WHERE chain_id = ?", (self._chain_id,))])

    def _change(self, statements: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        connection = self._connection
        with suppress(sqlite3.Error):
            connection.execute("BEGIN IMMEDIATE")
            try:
                for statement, values in statements:
                    connection.execute(statement, values)
                connection.execute("COMMIT")
            except sqlite3.Error:
                connection.execute("ROLLBACK")


@contextmanager
def open_tiles(store: Store, chain_id: bytes) -> Iterator[TileCache]:
    """Open the tiles of a chain; a store of another engine keeps none.

    Args:
        store: The store that holds the chain.
        chain_id: The chain.
    """
    if not isinstance(store, SqliteStore):
        yield NO_CACHE
        return
    try:
        # Never made here: without the file there is no chain to speak of.
        connection = sqlite3.connect(
            f"{Path(store.location).resolve().as_uri()}?mode=rw",
            timeout=BUSY_SECONDS,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.Error:
        yield NO_CACHE
        return
    with closing(connection):
        yield SqliteTiles(connection, chain_id)
