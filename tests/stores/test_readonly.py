"""Evidence is verified without touching it: read-only media, foreign writers, odd paths."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bijotel.errors import UnavailableError
from bijotel.stores import sqlite_open
from bijotel.stores.sqlite import SqliteStore
from bijotel.verify import verify_chain
from tests.stores.chains import KEY, append, sealing, span

NOBODY = 65534
COUNT = 8
"""Entries of the chains in this module, the genesis included."""


@pytest.fixture
def medium() -> Iterator[Path]:
    """A folder that anybody can reach, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="bijotel-medium-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def as_nobody(function: Callable[[], Any]) -> Any:
    """Call a function in a child of this process that may write nothing of ours."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
        child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            result = (True, function())
        except BaseException:
            result = (False, traceback.format_exc())
        with open(writer, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        succeeded, value = pickle.load(pipe)
    os.waitpid(child, 0)
    assert succeeded, value
    return value


def chain(path: Path) -> SqliteStore:
    """A chain of eight entries, whose writer is still there."""
    store = SqliteStore(path)
    append(store, *range(COUNT - 3))
    append(store, COUNT - 3)
    append(store, COUNT - 2)
    return store


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but the shared memory, which is no evidence."""
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")
    }


def seal_off(folder: Path) -> None:
    """Make a folder and its files read-only."""
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)


def assert_verified_untouched(folder: Path, name: str = "chain.db") -> None:
    before, names = contents(folder), sorted(os.listdir(folder))
    report = as_nobody(lambda: verify_chain(folder / name, KEY))
    assert report.findings == ()
    assert report.chains[0].entries == COUNT
    assert contents(folder) == before
    assert sorted(os.listdir(folder)) == names


@pytest.mark.fork
def test_a_read_only_medium(medium: Path):
    """A file that was closed in order, with no log beside it."""
    chain(medium / "chain.db").release()
    assert os.listdir(medium) == ["chain.db"]
    seal_off(medium)
    assert_verified_untouched(medium)


@pytest.mark.fork
def test_a_read_only_medium_with_an_empty_log(medium: Path):
    """A log without content is no log."""
    chain(medium / "chain.db").release()
    (medium / "chain.db-wal").touch()
    seal_off(medium)
    assert_verified_untouched(medium)


def copy_with_log(tmp_path: Path, medium: Path) -> None:
    """Copy a store as it is while its writer has it open: most of it is in the log."""
    store = chain(tmp_path / "chain.db")
    for suffix in ("", "-wal"):
        shutil.copyfile(tmp_path / f"chain.db{suffix}", medium / f"chain.db{suffix}")
    store.release()
    assert (medium / "chain.db-wal").stat().st_size > 0


@pytest.mark.fork
def test_a_read_only_medium_with_a_log_and_no_shared_memory(tmp_path: Path, medium: Path):
    """What is in the log counts, though SQLite can make no shared memory beside it."""
    copy_with_log(tmp_path, medium)
    with sqlite3.connect(f"file:{medium}/chain.db?immutable=1", uri=True) as connection:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    connection.close()
    assert tables == 0, "without its log the file is empty"
    seal_off(medium)
    assert_verified_untouched(medium)


@pytest.mark.fork
def test_a_link_to_a_read_only_medium_with_a_log(tmp_path: Path, medium: Path):
    """The log lies beside the file, not beside the link."""
    copy_with_log(tmp_path, medium)
    seal_off(medium)
    links = Path(tempfile.mkdtemp(prefix="bijotel-links-"))
    try:
        (links / "link.db").symlink_to(medium / "chain.db")
        links.chmod(0o555)
        assert_verified_untouched(links, "link.db")
    finally:
        shutil.rmtree(links)


def test_a_copy_with_a_log_in_a_folder_of_ours(tmp_path: Path, medium: Path):
    """Where the verifier could write, it still leaves file and log as they are."""
    copy_with_log(tmp_path, medium)
    before = contents(medium)
    for workers in (1, 2):
        report = verify_chain(medium / "chain.db", KEY, workers=workers)
        assert report.findings == ()
        assert report.chains[0].entries == COUNT
    assert contents(medium) == before


def copy_with_hot_journal(tmp_path: Path, medium: Path) -> None:
    """Copy a store whose writer, of the older kind of journal, died within a transaction."""
    chain(tmp_path / "chain.db").release()
    connection = sqlite3.connect(tmp_path / "chain.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE entries SET name = 'not committed', body = zeroblob(10000)")
    for suffix in ("", "-journal"):
        shutil.copyfile(tmp_path / f"chain.db{suffix}", medium / f"chain.db{suffix}")
    connection.execute("ROLLBACK")
    connection.close()
    assert b"not committed" in (medium / "chain.db").read_bytes()


@pytest.mark.fork
def test_a_read_only_medium_with_a_hot_journal(tmp_path: Path, medium: Path):
    """A transaction that was never committed is no evidence: a copy is rolled back."""
    copy_with_hot_journal(tmp_path, medium)
    seal_off(medium)
    assert_verified_untouched(medium)


def test_a_hot_journal_in_a_folder_of_ours(
    tmp_path: Path, medium: Path, monkeypatch: pytest.MonkeyPatch
):
    """Where the verifier could roll back, it does so in a copy, which it removes."""
    copy_with_hot_journal(tmp_path, medium)
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    before = contents(medium)
    report = verify_chain(medium / "chain.db", KEY)
    assert report.findings == ()
    assert contents(medium) == before
    assert os.listdir(copies) == []


@pytest.mark.fork
def test_a_store_that_somebody_else_writes(medium: Path):
    """File and log of a living writer are read and left as they are, by whoever may only read."""
    store = chain(medium / "chain.db")
    before = contents(medium)
    assert before["chain.db-wal"]
    for path in medium.iterdir():
        path.chmod(0o444)
    report = as_nobody(lambda: verify_chain(medium / "chain.db", KEY))
    assert report.findings == ()
    assert report.chains[0].entries == COUNT
    assert contents(medium) == before
    append(store, 99)
    store.release()


def test_a_reader_does_not_hold_up_a_writer(tmp_path: Path):
    """While a snapshot is open the writer goes on, and the snapshot shows what it showed."""
    store = chain(tmp_path / "chain.db")
    with SqliteStore(tmp_path / "chain.db").snapshot() as snapshot:
        before = snapshot.head_rows()
        assert append(store, 50).seq == COUNT
        assert snapshot.head_rows() == before
        assert snapshot.places() == (1, COUNT)
    store.release()


@pytest.mark.fork
def test_a_file_that_may_not_be_read(medium: Path):
    """No permission is said in one line."""
    chain(medium / "chain.db").release()
    (medium / "chain.db").chmod(0o000)

    def verify() -> str:
        with pytest.raises(UnavailableError) as caught:
            verify_chain(medium / "chain.db", KEY)
        return str(caught.value)

    assert as_nobody(verify) == f"{medium}/chain.db: cannot be read: unable to open database file"
    medium.chmod(0o700)
    assert "Permission denied" in as_nobody(verify)


ODD_NAMES = (
    "with space.db",
    "what?.db",
    "a#b.db",
    "100%.db",
    "%41.db",
    "a&mode=rwc.db",
    "semi;colon.db",
    "quote'\".db",
    "file:chain.db",
    ":memory:.db",
    "\u00e9\u65e5.db",
    "new\nline.db",
    os.fsdecode(b"\xff\xfe.db"),
)


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_odd_names(tmp_path: Path, name: str):
    """A path is a path, whatever a URI would make of it; nothing else appears beside it."""
    path = tmp_path / name
    chain(path).release()
    assert os.listdir(tmp_path) == [name]
    for workers in (1, 2):
        assert verify_chain(str(path), KEY, workers=workers).findings == ()
    with pytest.raises(UnavailableError, match="no such file"):
        verify_chain(f"{path}x", KEY)
    assert set(os.listdir(tmp_path)) <= {name, f"{name}-wal", f"{name}-shm"}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_leading_double_slash(tmp_path: Path, workers: int):
    """POSIX lets two slashes lead a path; a URI would read a host there."""
    chain(tmp_path / "chain.db").release()
    report = verify_chain(f"/{tmp_path}/chain.db", KEY, workers=workers)
    assert report.findings == ()
    assert report.chains[0].entries == COUNT


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A relative path is taken from where the store was named."""
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("chain.db")
    monkeypatch.chdir("/")
    store.append("default", sealing([span(1)]))
    store.release()
    assert verify_chain(tmp_path / "chain.db", KEY).findings == ()


def test_a_file_that_is_locked_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Neither the file nor a copy of it holds still while somebody has all of it locked."""
    monkeypatch.setattr(sqlite_open, "BUSY_SECONDS", 0.05)
    chain(tmp_path / "chain.db").release()
    holder = sqlite3.connect(tmp_path / "chain.db", isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("UPDATE entries SET name = 'not committed'")
    with pytest.raises(UnavailableError, match="cannot be read: database is locked"):
        verify_chain(tmp_path / "chain.db", KEY)
    holder.execute("ROLLBACK")
    holder.close()
    assert verify_chain(tmp_path / "chain.db", KEY).findings == ()


# --- what is no store ------------------------------------------------------------------------


def test_what_is_no_file(tmp_path: Path):
    """A missing file, a folder and a pipe are told apart, and none is made or waited for."""
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (
        ("none", "no such file"),
        ("", "is a directory, expected a database file"),
        ("pipe", "is no regular file, expected a database file"),
        ("a" * 300, "cannot be read: .*File name too long"),
        ("nul\0", "cannot be read: .*embedded null"),
    ):
        with pytest.raises(UnavailableError, match=reason):
            verify_chain(tmp_path / name, KEY)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["CREATE TABLE t (x)"], r"another application's database \(application_id 0, expected"),
        (
            ["PRAGMA application_id = 7", "CREATE TABLE t (x)"],
            "another application's .* 7, expected",
        ),
        (
            ["PRAGMA application_id = 1651075695", "PRAGMA user_version = 2", "CREATE TABLE t (x)"],
            "schema version 2 is newer than this library's 1",
        ),
    ],
    ids=["no mark", "another mark", "newer schema"],
)
def test_what_is_no_store_of_ours(tmp_path: Path, statements: list[str], message: str):
    """Somebody else's database, or one that a newer library made, is left as it is."""
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    before = contents(tmp_path)
    with pytest.raises(UnavailableError, match=message):
        verify_chain(path, KEY)
    with pytest.raises(UnavailableError, match=message):
        SqliteStore(path).append("default", sealing([span(1)]))
    assert contents(tmp_path) == before
