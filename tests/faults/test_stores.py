"""A store that many write to, and that is locked, deleted, replaced, killed or frozen meanwhile."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.outcome import SOAK, finish, outcome, start
from tests.postgres_server import Server, new_database

pytestmark = [pytest.mark.slow, pytest.mark.fork]


def load(store: str, folder: Path, **task: Any) -> Any:
    """Start processes that end spans for some seconds."""
    given = {"mode": "queued", "processes": 4, "threads": 1, "spans": 1500, "pause": 0.001}
    given |= {"wait": 100, "store": store, "spool": str(folder / "spool"), **task}
    return start(task="load", **given)


def result(event: str, mode: str, child: Any) -> tuple[Any, dict[str, Any]]:
    """All processes ended as they should; what became of their spans."""
    (found,) = finish(child)
    assert set(found["codes"]) == {0}
    return outcome(event, mode, [found]), found


def wait_for(path: Path, seconds: float = 20) -> None:
    """Wait until the chain has been begun."""
    deadline = time.monotonic() + seconds
    log = path.with_name(f"{path.name}-wal")
    while not log.exists() or log.stat().st_size < 100_000:
        assert time.monotonic() < deadline, f"{path} is not written"
        time.sleep(0.05)


@pytest.mark.parametrize("mode", ["queued", "commit"])
def test_sixteen_writers_on_one_file(tmp_path: Path, record: Any, mode: str):
    """Eight processes with two threads each: every span once, in one contiguous chain."""
    each = (20_000 if SOAK else 1_600) // 16
    task = {"processes": 8, "threads": 2, "spans": each, "pause": 0, "wait": 60_000, "mode": mode}
    child = load(str(tmp_path / "chain.db"), tmp_path, **task)
    row, found = result("16 writers on one SQLite file", mode, child)
    assert (found["spans"], found["lost"], found["recorded"]) == (each * 16 + 1, 0, 0)
    record(row)


@pytest.mark.parametrize("mode", ["queued", "commit"])
def test_a_locked_file(tmp_path: Path, record: Any, mode: str):
    """Held by somebody for seconds: all wait, and nothing is lost."""
    path = tmp_path / "chain.db"
    child = load(str(path), tmp_path, mode=mode, processes=2, spans=15_000 if SOAK else 1500)
    wait_for(path)
    blocker = sqlite3.connect(path, isolation_level=None, timeout=20)
    blocker.execute("BEGIN IMMEDIATE")
    time.sleep(30 if SOAK else 2)
    blocker.close()
    row, found = result("SQLite file locked for a while", mode, child)
    assert (found["lost"], found["recorded"]) == (0, 0)
    record(row)


def test_a_deleted_file(tmp_path: Path, record: Any):
    """What was in it is gone with it; the new one says that something was there before."""
    path = tmp_path / "chain.db"
    child = load(str(path), tmp_path)
    wait_for(path)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink()
    row, found = result("SQLite file deleted under the writers", "queued", child)
    assert found["reasons"] == ["store-replaced"]
    record(row)


def test_a_file_replaced_by_an_older_copy(tmp_path: Path, record: Any):
    """The chain goes on behind the older head, and says that it went back."""
    path, copy = tmp_path / "chain.db", tmp_path / "copy.db"
    child = load(str(path), tmp_path)
    wait_for(path)
    with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close(), target.close()
    time.sleep(0.3)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    os.replace(copy, path)
    row, found = result("SQLite file replaced by an older copy", "queued", child)
    assert found["reasons"] == ["store-replaced"]
    assert found["lost"] > 0
    record(row)


@pytest.mark.postgres
def test_four_processes_on_postgresql(postgres_url: str, tmp_path: Path, record: Any):
    """They share one chain and lose nothing."""
    each = 5_000 if SOAK else 400
    child = load(postgres_url, tmp_path, spans=each, pause=0)
    row, found = result("4 processes on one PostgreSQL chain", "queued", child)
    assert (found["spans"], found["lost"], found["recorded"]) == (each * 4 + 1, 0, 0)
    record(row)


@pytest.mark.postgres
@pytest.mark.parametrize("mode", ["queued", "commit"])
def test_a_server_killed_under_load(mortal_server: Server, tmp_path: Path, record: Any, mode: str):
    """Every process of it at once, in the middle of commits; then it is started again."""
    with new_database(mortal_server.url) as url:
        # A millisecond a span at least: the load outlasts the last kill.
        child = load(url, tmp_path, mode=mode, spans=40_000 if SOAK else 4000)
        for _ in range(5 if SOAK else 1):
            time.sleep(2)
            mortal_server.kill()
            time.sleep(0.5)
            mortal_server.start()
        row, found = result("PostgreSQL killed and restarted under load", mode, child)
        assert (found["lost"], found["recorded"]) == (0, 0)
        record(row)


@pytest.mark.postgres
def test_a_frozen_server(mortal_server: Server, tmp_path: Path, record: Any):
    """It takes connections and answers nothing for a while."""
    with new_database(mortal_server.url) as url:
        child = load(url, tmp_path, spans=10_000 if SOAK else 3000)
        time.sleep(2)
        with mortal_server.frozen():
            time.sleep(30 if SOAK else 4)
        row, found = result("PostgreSQL frozen under load", "queued", child)
        assert (found["lost"], found["recorded"]) == (0, 0)
        record(row)
