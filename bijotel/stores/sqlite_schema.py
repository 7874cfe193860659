"""The schema of the SQLite store and how a file comes to have it.

``entries`` and ``heads`` are ordinary tables: not STRICT, no CHECK, no trigger, and ``seq`` is
no INTEGER PRIMARY KEY, so that a tampered value is stored as it is and the verifier sees it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final

APPLICATION_ID: Final = 0x62696A6F
"""``bijo`` in the file's header: the file is one of ours."""

TABLES: Final = {
    "entries": (
        "CREATE TABLE entries (chain_id BLOB, seq INTEGER, epoch INTEGER, key_id BLOB, kind TEXT, "
        "sealed_at_unix_nano INTEGER, fmt TEXT, body_hash BLOB, prev_tag BLOB, trace_id BLOB, "
        "span_id BLOB, name TEXT, start_unix_nano INTEGER, end_unix_nano INTEGER, "
        "dedup_key BLOB, tag BLOB, body BLOB)"
    ),
    "heads": (
        "CREATE TABLE heads (chain_id BLOB, name TEXT, seq INTEGER, epoch INTEGER, key_id BLOB, "
        "tag BLOB, tree BLOB, mac BLOB)"
    ),
}
# Guards begin with the chain's id; in an index for searches it would only make every row longer,
# since most files hold one chain.
INDEXES: Final = {
    "entries_by_seq": "CREATE UNIQUE INDEX entries_by_seq ON entries (chain_id, seq)",
    "entries_by_prev_tag": (
        "CREATE UNIQUE INDEX entries_by_prev_tag ON entries (chain_id, prev_tag)"
    ),
    "entries_by_span": (
        "CREATE UNIQUE INDEX entries_by_span ON entries (chain_id, trace_id, span_id, body_hash) "
        "WHERE kind = 'span'"
    ),
    "entries_by_span_id": (
        "CREATE INDEX entries_by_span_id ON entries (span_id) WHERE kind = 'span'"
    ),
    "entries_by_start": (
        "CREATE INDEX entries_by_start ON entries (chain_id, start_unix_nano, seq) "
        "WHERE kind = 'span'"
    ),
    "entries_by_dedup_key": (
        "CREATE INDEX entries_by_dedup_key ON entries (dedup_key, seq) WHERE kind = 'span'"
    ),
    "heads_by_chain_id": "CREATE UNIQUE INDEX heads_by_chain_id ON heads (chain_id)",
    "heads_by_name": "CREATE UNIQUE INDEX heads_by_name ON heads (name)",
}


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in (*TABLES.values(), *INDEXES.values()):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


MIGRATIONS: Final[tuple[Callable[[sqlite3.Connection], None], ...]] = (_make_tables,)
"""Step ``n`` takes a file of schema version ``n`` to ``n + 1``. A step that was released is never
changed; entries are never touched by one."""

SCHEMA_VERSION: Final = len(MIGRATIONS)
"""Kept in ``user_version``."""


def migrate(connection: sqlite3.Connection) -> None:
    """Take a file to the current version, within the caller's write transaction."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    for number, step in enumerate(MIGRATIONS[version:], version + 1):
        step(connection)
        connection.execute(f"PRAGMA user_version = {number}")
