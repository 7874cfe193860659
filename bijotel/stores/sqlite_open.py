"""Open a SQLite file for reading without touching it.

The file is opened with ``mode=ro`` and read in one transaction. Where that is impossible (a
read-only medium on which SQLite can make no shared-memory file, a journal that would have to be
rolled back) it is opened as ``immutable`` when no log with content lies beside it, else a copy
of file and log is read.

Source: https://sqlite.org/wal.html#read_only_databases, https://sqlite.org/uri.html.
"""

from __future__ import annotations

import shutil
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bijotel.errors import UnavailableError
from bijotel.seal import MAX_BODY_BYTES
from bijotel.stores.sqlite_schema import APPLICATION_ID, SCHEMA_VERSION, TABLES
from bijotel.stores.sqlite_snapshot import SqliteSnapshot

BUSY_SECONDS: Final = 5.0
"""How long reading waits where somebody has locked the whole file."""


@contextmanager
def open_snapshot(path: Path) -> Iterator[SqliteSnapshot]:
    """Open a file for reading at one moment.

    Raises:
        UnavailableError: no file, a directory, no database, another application's database, or
            one of a newer schema.
    """
    _check_file(path)
    with ExitStack() as stack:
        try:
            # SQLite puts its logs beside the file itself, not beside a link to it.
            connection = open_readonly(path.resolve(), stack)
            connection.execute("BEGIN")
            # The first read of the transaction fixes the moment.
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            _check_ownership(connection, path)
        except (sqlite3.Error, OSError) as error:
            raise UnavailableError(f"{path}: cannot be read: {error}") from None
        yield SqliteSnapshot(connection, str(path))


def check_place(path: Path) -> None:
    """Refuse a place where no database can be made or opened.

    Raises:
        UnavailableError: something else lies there, or its folder does not.
    """
    if path.exists():
        _check_file(path)
    elif not path.parent.is_dir():
        raise UnavailableError(f"{path}: the folder {path.parent} is not there")


def _check_file(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise UnavailableError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise UnavailableError(f"{path}: cannot be read: {error}") from None
    if stat.S_ISDIR(mode):
        raise UnavailableError(f"{path}: is a directory, expected a database file")
    if not stat.S_ISREG(mode):
        raise UnavailableError(f"{path}: is no regular file, expected a database file")


def open_readonly(path: Path, stack: ExitStack) -> sqlite3.Connection:
    """Open any SQLite file without touching it; the stack closes it and removes a copy.

    Raises:
        sqlite3.Error, OSError: it cannot be opened.
    """
    try:
        return _connect(f"{path.as_uri()}?mode=ro", stack)
    except sqlite3.OperationalError as error:
        if "locked" in str(error):  # somebody is writing: neither the file nor a copy holds still
            raise
        logs = [Path(f"{path}{suffix}") for suffix in ("-wal", "-journal")]
        logs = [log for log in logs if log.exists() and log.stat().st_size]
        if not logs:
            return _connect(f"{path.as_uri()}?mode=ro&immutable=1", stack)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bijotel-")))
        for file in (path, *logs):
            shutil.copyfile(file, folder / file.name)
        return _connect((folder / path.name).as_uri(), stack)


def _connect(uri: str, stack: ExitStack) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    stack.callback(connection.close)
    if sys.version_info >= (3, 11):
        # No value above the limit is ever materialised. What goes beyond a body's is for the
        # rest of its row, which is one value to SQLite where it has to sort.
        limit = MAX_BODY_BYTES + 1024 * 1024
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limit)
    return connection


def _check_ownership(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    # A store of ours whose id was wiped is a finding, not another application's database.
    if application != APPLICATION_ID and names and not names >= set(TABLES):
        raise UnavailableError(
            f"{path}: another application's database (application_id {application}, "
            f"expected {APPLICATION_ID})"
        )
    if application == APPLICATION_ID and version > SCHEMA_VERSION:
        raise UnavailableError(
            f"{path}: schema version {version} is newer than this library's {SCHEMA_VERSION}"
        )
