"""All ways in which a process ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults.outcome import SOAK, finish, outcome, start

pytestmark = [pytest.mark.slow, pytest.mark.fork]

LOOPS = 500 if SOAK else 100


# The event, how the workshop does it, the mode, the exit code, and whether spans may be lost.
ENDS = (
    ("exit with a full queue", "exit", "queued", 0, False),
    ("SIGTERM, handled by the application", "SIGTERM, handled", "queued", 0, False),
    ("SIGTERM, not handled", "SIGTERM", "queued", -15, True),
    ("SIGTERM, not handled", "SIGTERM", "commit", -15, False),
    ("`os._exit`", "os._exit", "queued", 0, True),
    ("`os._exit`", "os._exit", "commit", 0, False),
)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: f"{end[1]}-{end[2]}")
def test_a_process_that_ends(tmp_path: Path, record: Any, end: tuple[str, str, str, int, bool]):
    """Where Python still runs code nothing is lost; else at most the queue, and that on record."""
    event, how, mode, code, loses = end
    task = {"store": str(tmp_path / "chain.db"), "counts": str(tmp_path / "counts"), "mode": mode}
    finish(start(task="end", how=how, **task), expect=code)
    (found,) = finish(start(task="recover", **task))
    assert found["lost"] <= (100 if loses else 0)
    assert set(found["reasons"]) <= {"process-ended"}
    record(outcome(event, mode, [found]))


@pytest.mark.parametrize("mode", ["queued", "commit"])
def test_killed_at_a_random_moment(tmp_path: Path, record: Any, mode: str):
    """One chain through a hundred deaths: contiguous, and in ``commit`` mode complete."""
    task = {"loops": LOOPS, "mode": mode, "seed": LOOPS, "folder": str(tmp_path)}
    (found,) = finish(start(task="random_kills", **task))
    if mode == "commit":
        assert found["lost"] == 0
    result = outcome("SIGKILL at a random moment", mode, [found])
    record(result._replace(runs=LOOPS))
