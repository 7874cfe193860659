"""What is SQLite's own about the SQLite store; the contract is tested in ``test_contract``."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from bijotel import seal
from bijotel.model import ChainHead
from bijotel.seal import Batch
from bijotel.stores.base import ENTRY_COLUMNS, HEAD_COLUMNS, AlreadySealedError, StoreBusyError
from bijotel.stores.sqlite import SqliteStore
from bijotel.stores.sqlite_schema import APPLICATION_ID, SCHEMA_VERSION
from bijotel.verify import verify_chain
from tests.stores.chains import KEY, append, entries, names, sealing, span


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chain.db"


@pytest.fixture
def store(path: Path) -> SqliteStore:
    return SqliteStore(path)


def pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_naming_a_store_opens_nothing(store: SqliteStore, path: Path):
    """The file is made by the first append, not by the object."""
    assert not path.exists()
    assert repr(store) == f"SqliteStore({str(path)!r})"
    append(store, 1)
    assert path.exists()
    store.release()


def test_the_files_mark_and_schema(store: SqliteStore, path: Path):
    """The file says whose it is, and has the columns of the format in their physical order."""
    append(store, 1)
    store.release()
    connection = sqlite3.connect(path)
    assert pragma(connection, "application_id") == APPLICATION_ID == int.from_bytes(b"bijo", "big")
    assert pragma(connection, "user_version") == SCHEMA_VERSION == 1
    for table, columns in (("entries", ENTRY_COLUMNS), ("heads", HEAD_COLUMNS)):
        rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
        assert tuple(row[1] for row in rows) == columns
        assert not any(row[3] or row[5] for row in rows), "no NOT NULL, no PRIMARY KEY"
    assert list(ENTRY_COLUMNS)[-2:] == ["tag", "body"]
    kinds = connection.execute("SELECT DISTINCT type FROM sqlite_master ORDER BY 1").fetchall()
    assert kinds == [("index",), ("table",)]
    (strict,) = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE sql LIKE '%STRICT%' OR sql LIKE '%CHECK%'"
    ).fetchone()
    assert strict == 0
    connection.close()


def test_the_unique_guards(store: SqliteStore, path: Path):
    """Each guard is an index of its own name over the columns of the format."""
    append(store, 1)
    store.release()
    connection = sqlite3.connect(path)
    guards = {
        name: tuple(row[2] for row in connection.execute(f"PRAGMA index_info({name})"))
        for (_, name, unique, _, _) in connection.execute("PRAGMA index_list(entries)")
        if unique
    }
    assert guards == {
        "entries_by_seq": ("chain_id", "seq"),
        "entries_by_prev_tag": ("chain_id", "prev_tag"),
        "entries_by_span": ("chain_id", "trace_id", "span_id", "body_hash"),
    }
    connection.close()


def test_a_commit_is_on_the_disk(store: SqliteStore):
    """Write-ahead logging with full synchronisation, and a log that is copied back in time."""
    append(store, 1)
    connection = store._connect()
    assert pragma(connection, "journal_mode") == "wal"
    assert pragma(connection, "synchronous") == 2
    assert pragma(connection, "page_size") == 8192
    assert pragma(connection, "wal_autocheckpoint") == 512  # few entries at once
    append(store, *range(2, 40))
    assert pragma(connection, "wal_autocheckpoint") == 2048
    append(store, 40)
    assert pragma(connection, "wal_autocheckpoint") == 512
    assert connection.isolation_level is None
    store.release()


def test_a_file_with_other_pages_is_kept_as_it_is(store: SqliteStore, path: Path):
    """As one that a release with smaller pages made; its log is bounded to as many bytes."""
    append(store, 1)
    store.release()
    connection = sqlite3.connect(path, isolation_level=None)
    for change in ("journal_mode = DELETE", "page_size = 4096"):
        connection.execute(f"PRAGMA {change}")
    connection.execute("VACUUM")
    connection.close()
    append(store, *range(2, 40))
    assert pragma(store._connect(), "page_size") == 4096
    assert pragma(store._connect(), "wal_autocheckpoint") == 4096
    assert names(store) == [f"chat {number}" for number in range(1, 40)]
    store.release()


def test_make_sees_the_head_under_the_lock(store: SqliteStore, path: Path):
    """While make runs no other connection can begin to write."""
    append(store, 1)

    def make(head: ChainHead | None) -> Batch:
        other = sqlite3.connect(path, timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
        return sealing([span(2)])(head)

    assert store.append("default", make).seq == 2
    store.release()


class Stop(BaseException):
    """Not an Exception, like KeyboardInterrupt."""


@pytest.mark.parametrize("error", [RuntimeError, Stop])
def test_an_append_that_raises_leaves_nothing(
    store: SqliteStore, path: Path, error: type[BaseException]
):
    """Neither rows nor head nor lock remain, not even of the very first append."""

    def make(_head: ChainHead | None) -> Batch:
        raise error

    with pytest.raises(error):
        store.append("default", make)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.close()
    assert append(store, 1).seq == 1
    with pytest.raises(error):
        store.append("default", make)
    assert append(store, 2).seq == 2
    store.release()
    assert verify_chain(path, KEY, deep=True).findings == ()


def test_a_batch_that_fails_half_way_leaves_nothing(store: SqliteStore, path: Path):
    """The guard refuses the second of two entries: the first one is not stored either."""
    append(store, 1)
    with pytest.raises(AlreadySealedError, match=r"chain\.db: UNIQUE constraint failed: .*span_id"):
        store.append("default", sealing([span(2), span(1)]))
    assert [entry.name for entry in entries(store)] == ["", "chat 1"]
    chain_id = entries(store)[0].chain_id
    sealed, new = span(1), span(2)
    identities = [(draft.trace_id, draft.span_id, draft.body_hash) for draft in (sealed, new)]
    assert store.sealed(chain_id, identities) == {identities[0]}
    assert store.sealed(bytes(16), identities) == set()
    store.release()


def test_a_busy_store_is_said_soon(store: SqliteStore, path: Path):
    """Another process that holds the lock is waited for a moment, not for ever."""
    append(store, 1)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match=r"chain\.db: database is locked"):
        store.append("default", sealing([span(2)]))
    holder.execute("ROLLBACK")
    holder.close()
    assert append(store, 2).seq == 2
    store.release()


APPEND = """
import sys
sys.path[:0] = [sys.argv[1]]
from tests.stores.chains import append
from bijotel.stores.sqlite import SqliteStore
store = SqliteStore(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for number in range(6):
    append(store, 100 * int(sys.argv[3]) + number)
store.release()
"""


def test_eight_processes_open_a_new_file_at_once(path: Path):
    """One genesis, one chain, no lost and no doubled entry."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", APPEND, str(Path.cwd()), str(path), str(number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(1, 9)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.communicate("go\n", timeout=60)
        assert process.returncode == 0
    report = verify_chain(path, KEY, deep=True)
    assert report.findings == ()
    (chain,) = report.chains
    assert chain.kinds == {"genesis": 1, "span": 48}
    stored = entries(SqliteStore(path))
    assert len({entry.prev_tag for entry in stored}) == 49
    wanted = {f"chat {100 * number + each}" for number in range(1, 9) for each in range(6)}
    assert {entry.name for entry in stored[1:]} == wanted


TRY_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    connection.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    print(error)
"""


@pytest.mark.fork
def test_a_fork_does_not_cost_the_parents_lock(store: SqliteStore, path: Path):
    """A child that releases and drops what it inherited leaves the parent's lock in place."""
    append(store, 1)

    def make(head: ChainHead | None) -> Batch:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
            child = os.fork()
        if child == 0:
            store.release()
            gc.collect()
            os._exit(0)
        os.waitpid(child, 0)
        # Asked by another process: within one, SQLite knows without asking the file.
        command = [sys.executable, "-c", TRY_LOCK, str(path)]
        asked = subprocess.run(command, capture_output=True, text=True, check=True)
        assert asked.stdout == "database is locked\n"
        return sealing([span(2)])(head)

    assert store.append("default", make).seq == 2
    store.release()
    assert verify_chain(path, KEY).findings == ()


def test_a_deleted_file_is_begun_again(store: SqliteStore, path: Path):
    """What is appended after the file was deleted goes to a file that can be read."""
    append(store, 1)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink()
    assert append(store, 2).seq == 1
    store.release()
    assert [entry.name for entry in entries(SqliteStore(path))] == ["", "chat 2"]


def test_values_are_stored_as_they_are(store: SqliteStore, path: Path):
    """No column's affinity changes what is stored: hashed and read octets are the same."""
    draft = span(1)._replace(
        name="1.0", start_unix_nano=2**63 - 1, end_unix_nano=1_759_000_000_123_456_789
    )
    store.append("default", sealing([draft]))
    entry = entries(store)[1]
    assert (entry.name, entry.start_unix_nano) == ("1.0", 2**63 - 1)
    assert entry.end_unix_nano == 1_759_000_000_123_456_789
    assert seal.body_hash(entry.body) == entry.body_hash
    store.release()
    assert verify_chain(path, KEY).findings == ()


def test_one_object_serves_many_threads(store: SqliteStore, path: Path):
    """Calls of one store are serialised, whichever thread makes them."""
    threads = [
        threading.Thread(target=lambda number=number: append(store, number)) for number in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.release()
    report = verify_chain(path, KEY)
    assert report.findings == ()
    assert report.chains[0].entries == 21
