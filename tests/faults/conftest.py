"""Collects what the events cost, prints it, and writes the table in the long form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults import injection
from tests.faults.outcome import EVENTS, SOAK, Outcome, check_table, write_table
from tests.requirements import missing

Record = Callable[[Outcome], None]


@pytest.fixture(scope="session")
def outcomes() -> Iterator[list[Outcome]]:
    found: list[Outcome] = []
    yield found
    if not SOAK:
        return
    absent = set(EVENTS) - {(each.event, each.mode) for each in found}
    if absent:
        print(f"\nno table was written, for want of: {sorted(absent)}")
        return
    write_table(found)
    check_table()


@pytest.fixture
def record(outcomes: list[Outcome], capsys: pytest.CaptureFixture[str]) -> Record:
    """Keep an outcome; its numbers are printed, whatever pytest does with output."""

    def keep(outcome: Outcome) -> None:
        assert (outcome.event, outcome.mode) in EVENTS
        outcomes.append(outcome)
        with capsys.disabled():
            print(f"\n  {outcome.row().strip()}", end="")

    return keep


@pytest.fixture(scope="session")
def fast_folder() -> str:
    """A folder in memory where there is one: thousands of deaths need no disk."""
    memory = Path("/dev/shm")
    return str(memory if memory.is_dir() else "/tmp")


@pytest.fixture(scope="session")
def tracing() -> None:
    """This machine can stop a process at its system calls; required when ``CI=true``."""
    if not injection.is_supported():
        missing("no tracer for this platform")
