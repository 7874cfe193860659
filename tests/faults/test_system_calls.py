"""Death, and errors, at the system calls of the write path, one after another."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.outcome import SOAK, finish, outcome, start

pytestmark = [pytest.mark.slow, pytest.mark.fork]

IN_QUEUE = 13
"""All the spans of one life; its queue takes fewer."""


def run(folder: str, **task: Any) -> list[dict[str, Any]]:
    """Every call in the long form, every third or so in the short one."""
    task = {"step": 1 if SOAK else 4, "first": 1, "lasting": 1, "life": "first", **task}
    runs = finish(start(task="kill_points", folder=folder, **task))
    assert {run["number"] for run in runs} >= {task["first"], task["first"] + task["step"]}
    assert all(run["left"] == [] for run in runs)
    return runs


@pytest.mark.parametrize("mode", ["queued", "commit"])
def test_killed_at_a_system_call(tracing: None, fast_folder: str, record: Any, mode: str):
    """Wherever it dies, the chain verifies and goes on; nothing acknowledged is missing."""
    runs = run(fast_folder, mode=mode, fault="kill", first=1 if mode == "queued" else 2)
    assert {run["code"] for run in runs} == {-9}
    for each in runs:
        assert each["lost"] <= IN_QUEUE
        assert set(each["reasons"]) <= {"process-ended", "spool-damaged"}
    record(outcome("SIGKILL at a system call of the write path", mode, runs))


def test_killed_while_recovering(tracing: None, fast_folder: str, record: Any):
    """A start that dies while it adopts what another one left leaves all of it to the next."""
    runs = run(fast_folder, life="next", mode="queued", fault="kill", first=3)
    assert {run["code"] for run in runs} == {-9}
    record(outcome("SIGKILL at a system call of the recovery", "queued", runs))


@pytest.mark.parametrize("mode", ["queued", "commit"])
def test_an_error_at_a_system_call(tracing: None, fast_folder: str, record: Any, mode: str):
    """A single error anywhere costs nothing: what failed is done again."""
    runs = run(fast_folder, mode=mode, fault="EIO", first=3 if mode == "queued" else 4)
    assert {run["code"] for run in runs} == {0}
    assert {run["lost"] for run in runs} == {0}
    record(outcome("I/O error at a system call of the write path", mode, runs))


def test_an_error_while_recovering(tracing: None, fast_folder: str, record: Any):
    """Nor does one while what another process left is adopted."""
    runs = run(fast_folder, life="next", mode="queued", fault="EIO", first=4)
    assert {run["code"] for run in runs} == {0}
    record(outcome("I/O error at a system call of the recovery", "queued", runs))


@pytest.mark.parametrize(
    ("event", "fault"),
    [("disk full for a while", "ENOSPC"), ("file system read-only for a while", "EROFS")],
)
def test_errors_for_a_while(tracing: None, fast_folder: str, record: Any, event: str, fault: str):
    """Thirty calls that fail in a row: the host goes on, and what has no room is on record."""
    step = 5 if SOAK else 25
    runs = run(fast_folder, mode="queued", fault=fault, lasting=30, step=step)
    assert {run["code"] for run in runs} == {0}
    record(outcome(event, "queued", runs))
