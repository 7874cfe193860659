"""Read a database of bijotel 2.x. Values come as they are, of any type.

Source: the schema of the published package bijotel 2.17.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from bijotel.errors import UnavailableError
from bijotel.seal import MAX_BODY_BYTES
from bijotel.stores.sqlite_open import open_readonly
from bijotel.stores.sqlite_schema import APPLICATION_ID
from bijotel.stores.sqlite_snapshot import decode_text


class LegacyRow(NamedTuple):
    """One row of the table ``chain``, column by column."""

    seq: Any
    timestamp_ns: Any
    trace_id: Any
    span_id: Any
    span_name: Any
    span_kind: Any
    canonical_body: Any
    canonical_hash: Any
    prev_hash: Any
    hmac_hash: Any
    semantic_body_hash: Any


COLUMNS: Final = LegacyRow._fields

_OUR_MARK: Final = APPLICATION_ID.to_bytes(4, "big")
"""Where a database's header has the id of its application."""
_BODY: Final = (
    f"CASE WHEN length(canonical_body) > {4 * MAX_BODY_BYTES} THEN length(canonical_body) "
    "ELSE canonical_body END"
)
_ROWS: Final = (
    f"SELECT {', '.join(_BODY if name == 'canonical_body' else name for name in COLUMNS)} "  # noqa: S608
    "FROM chain NOT INDEXED ORDER BY seq"
)


def is_legacy_database(path: Path) -> bool:
    """Tell whether a file is a database with a table of bijotel 2.x."""
    try:
        with path.open("rb") as file:
            if file.read(72)[68:] == _OUR_MARK:  # most are, and need not be opened
                return False
        with ExitStack() as stack:
            connection = _connect(path, stack)
            names = [row[1] for row in connection.execute("PRAGMA table_info(chain)")]
    except (sqlite3.Error, OSError, ValueError):
        return False
    return set(COLUMNS) <= set(names)


@contextmanager
def open_database(path: Path) -> Iterator[Iterator[LegacyRow]]:
    """Open a database for reading; gives its rows by ``seq``, one after the other.

    Raises:
        UnavailableError: there is no such database, or it cannot be read.
    """
    with ExitStack() as stack:
        try:
            connection = _connect(path, stack)
        except (sqlite3.Error, OSError, ValueError) as error:
            raise _unreadable(path, error) from None
        yield _rows(connection, path)


def _rows(connection: sqlite3.Connection, path: Path) -> Iterator[LegacyRow]:
    try:
        for row in connection.execute(_ROWS):
            yield LegacyRow._make(row)
    except sqlite3.Error as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> UnavailableError:
    reason = getattr(error, "strerror", None) or error  # without the name a second time
    return UnavailableError(f"{path}: cannot be read: {reason}")


def _connect(path: Path, stack: ExitStack) -> sqlite3.Connection:
    connection = open_readonly(path.resolve(strict=True), stack)
    connection.text_factory = decode_text
    return connection
