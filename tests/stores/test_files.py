"""Where a SQLite file lies, what happens to it under us, and how an old one becomes a new one."""

from __future__ import annotations

import os
import random
import sqlite3
from itertools import pairwise
from pathlib import Path

import pytest

from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.stores import filesystems, sqlite_schema
from bijotel.stores.base import StoreBusyError
from bijotel.stores.filesystems import NETWORK_TYPES, file_system_of
from bijotel.stores.memory import MemoryStore
from bijotel.stores.open import open_store
from bijotel.stores.retry import patiently, pauses
from bijotel.stores.sqlite import SqliteStore
from tests.stores.chains import append, names, sealing, span

MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw
35 21 0:30 / /srv rw - nfs4 host:/srv rw,vers=4.2
36 35 8:2 / /srv/local\\040disk rw - xfs /dev/sdb rw
37 21 0:31 / /mnt/a rw - ext4 /dev/a rw
38 21 0:32 / /mnt/a rw - fuse.sshfs host:/ rw
garbage
39 21 0:33 / /srv2 rw - cifs //host/share rw
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chain.db"


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/chain.db", "ext4"),
        ("/srv", "nfs4"),
        ("/srv/a/chain.db", "nfs4"),
        ("/srv/local disk/chain.db", "xfs"),
        ("/srvx/chain.db", "ext4"),
        ("/srv2/chain.db", "cifs"),
        ("/mnt/a/chain.db", "fuse.sshfs"),
    ],
)
def test_the_file_system_of_a_path(place: str, kind: str):
    """The deepest mount counts, and of two on one point the last; names are unescaped."""
    assert file_system_of(place, MOUNTS) == kind
    assert file_system_of(place, "") == ""


def test_a_network_file_system_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is made there, and the message says why and what to do instead."""
    mounts = path.parent / "mountinfo"
    monkeypatch.setattr(filesystems, "_MOUNTS", mounts)
    for kind in sorted(NETWORK_TYPES):
        mounts.write_text(f"1 0 8:1 / {path.parent} rw - {kind} x rw\n")
        with pytest.raises(UnavailableError, match=f"network file system \\({kind}\\)") as caught:
            append(SqliteStore(path), 0)
    assert "use a local disk, or PostgreSQL for many hosts" in str(caught.value)
    assert not path.exists()
    mounts.unlink()  # as where there is no /proc
    append(store := SqliteStore(path), 0)
    store.release()


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_what_is_removed_under_us_is_noticed(path: Path, suffix: str):
    """A commit into a file or a log that nobody can open any more would be lost in silence."""
    store = SqliteStore(path)
    append(store, 0)
    Path(f"{path}{suffix}").unlink()
    append(store, 1)
    store.release()
    assert "chat 1" in names(SqliteStore(path))
    if suffix:
        assert names(SqliteStore(path)) == ["chat 0", "chat 1"]


def test_a_file_put_in_its_place_is_opened(path: Path):
    """Another inode under the same name is another file."""
    store, other = SqliteStore(path), SqliteStore(path.with_name("other.db"))
    append(store, 0)
    append(other, 7)
    other.release()
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink()
    os.replace(other.location, path)
    append(store, 1)
    store.release()
    assert names(SqliteStore(path)) == ["chat 7", "chat 1"]


def test_an_old_schema_is_migrated_once(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Steps run in order within the first append's transaction; entries stay as they are."""
    store = SqliteStore(path)
    append(store, 0)
    steps = []

    def step(number: int):
        def run(connection: sqlite3.Connection) -> None:
            assert connection.in_transaction
            steps.append(number)
            connection.execute(f"CREATE TABLE step{number} (x)")

        return run

    migrations = (*sqlite_schema.MIGRATIONS, step(2), step(3))
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", migrations)
    monkeypatch.setattr("bijotel.stores.sqlite.SCHEMA_VERSION", 3)
    append(store, 1)
    append(store, 2)
    store.release()
    assert steps == [2, 3]
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    assert connection.execute("SELECT count(*) FROM entries").fetchone() == (4,)
    connection.close()


def test_a_newer_schema_is_left_alone(path: Path):
    """A file of a newer library is neither written nor migrated back."""
    store = SqliteStore(path)
    append(store, 0)
    store.release()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(UnavailableError, match="schema version 99 is newer than this library's 1"):
        append(store, 1)


def test_another_applications_database_is_left_alone(path: Path):
    """Nothing is added to a database that is not ours, whether it says whose it is or not."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.commit()
    before = path.read_bytes()
    with pytest.raises(UnavailableError, match="another application's database"):
        append(SqliteStore(path), 0)
    connection.execute("PRAGMA application_id = 7")
    connection.close()
    with pytest.raises(UnavailableError, match="application_id 7"):
        append(SqliteStore(path), 0)
    assert len(path.read_bytes()) == len(before)


def test_patience_has_a_limit(path: Path):
    """A store that stays busy is unavailable in the end, and says for how long it was asked."""
    store = SqliteStore(path)
    append(store, 0)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnavailableError, match=r"still, after 0\.3 seconds"):
        patiently(lambda: store.append("default", sealing([span(1)])), 0.3)
    blocker.close()
    assert patiently(lambda: store.append("default", sealing([span(1)]))).seq == 2
    store.release()


def test_pauses_grow_to_a_limit_with_jitter():
    """Each doubles the one before it at most, and no two writers pause alike."""
    random.seed(1)
    first = [pause for pause, _ in zip(pauses(), range(20), strict=False)]
    second = [pause for pause, _ in zip(pauses(), range(20), strict=False)]
    assert first != second
    assert all(0.0005 <= pause <= 0.25 for pause in first)
    assert all(later <= earlier * 4 for earlier, later in pairwise(first))
    assert max(first) > 0.125


def test_a_path_a_url_or_a_store(tmp_path: Path):
    """Whatever names a store gives the store; nothing is opened."""
    store = MemoryStore()
    assert open_store(store) is store
    assert isinstance(open_store(":memory:"), MemoryStore)
    assert open_store(tmp_path / "a.db").location == str(tmp_path / "a.db")
    assert open_store(f"sqlite:///{tmp_path}/a.db").location == str(tmp_path / "a.db")
    assert open_store("sqlite://a.db").location == str(Path.cwd() / "a.db")
    for wrong, message in (("", "empty text"), ("mysql://x", "scheme 'mysql' is not known")):
        with pytest.raises(ConfigurationError, match=message):
            open_store(wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_memory_store_is_never_busy_and_has_no_files():
    """Its snapshots are copies, and ``release`` keeps what is in it."""
    store = MemoryStore()
    append(store, 0)
    with store.snapshot() as snapshot:
        append(store, 1)
        store.release()
        assert snapshot.head_rows()[0][2] == 1
    assert names(store) == ["chat 0", "chat 1"]
    assert StoreBusyError.code == "store-busy"
