"""What an event cost: the rows of the table in docs/explanation/durability.

The short form of the suite runs with all tests and prints its numbers. The long form,
``BIJOTEL_SOAK=1``, takes every system call and more of everything, and writes the table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import ROOT

SOAK = os.environ.get("BIJOTEL_SOAK") == "1"
PAGE = ROOT / "docs" / "explanation" / "durability.md"
BEGIN, END = "<!-- the fault suite's table -->\n", "<!-- end of the table -->\n"
HEADER = (
    "| event | mode | runs | spans | lost | on record | duplicated | chain |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
)

# Every event of the suite, in the order of the table.
EVENTS = (
    ("exit with a full queue", "queued"),
    ("SIGTERM, handled by the application", "queued"),
    ("SIGTERM, not handled", "queued"),
    ("SIGTERM, not handled", "commit"),
    ("`os._exit`", "queued"),
    ("`os._exit`", "commit"),
    ("SIGKILL at a system call of the write path", "queued"),
    ("SIGKILL at a system call of the write path", "commit"),
    ("SIGKILL at a system call of the recovery", "queued"),
    ("SIGKILL at a random moment", "queued"),
    ("SIGKILL at a random moment", "commit"),
    ("I/O error at a system call of the write path", "queued"),
    ("I/O error at a system call of the write path", "commit"),
    ("I/O error at a system call of the recovery", "queued"),
    ("disk full for a while", "queued"),
    ("file system read-only for a while", "queued"),
    ("SQLite file locked for a while", "queued"),
    ("SQLite file locked for a while", "commit"),
    ("SQLite file deleted under the writers", "queued"),
    ("SQLite file replaced by an older copy", "queued"),
    ("16 writers on one SQLite file", "queued"),
    ("16 writers on one SQLite file", "commit"),
    ("4 processes on one PostgreSQL chain", "queued"),
    ("PostgreSQL killed and restarted under load", "queued"),
    ("PostgreSQL killed and restarted under load", "commit"),
    ("PostgreSQL frozen under load", "queued"),
)


class Outcome(NamedTuple):
    """What one event cost, over all its runs."""

    event: str
    mode: str
    runs: int
    spans: int
    lost: int
    """Spans that an application ended and that are in no chain."""
    recorded: str
    """What gap entries say: at least what was lost."""
    duplicated: int
    verdict: str

    def row(self) -> str:
        """Write a row of the table."""
        return f"| {' | '.join(str(value) for value in self)} |\n"


def outcome(event: str, mode: str, runs: Iterable[dict[str, Any]]) -> Outcome:
    """Add up runs, none of which may break a promise."""
    found = list(runs)
    assert found, "nothing was run"
    for run in found:
        assert run["findings"] == [], run
        assert run["contiguous"], run
        assert run["duplicated"] == 0, run
        assert run["next_code"] == 0, run
        assert run["lost"] <= run["recorded"] or run["unknown"], run
        assert run["lost"] == 0 or mode == "queued", run
    recorded = sum(run["recorded"] for run in found)
    unknown = sum(run["unknown"] for run in found)
    return Outcome(
        event,
        mode,
        len(found),
        sum(run["spans"] for run in found),
        sum(run["lost"] for run in found),
        f"{recorded} and {unknown} unknown" if unknown else str(recorded),
        sum(run["duplicated"] for run in found),
        "verifies",
    )


def start(**task: Any) -> subprocess.Popen[str]:
    """Start the workshop with a task."""
    command = [sys.executable, "-m", "tests.faults.workshop", json.dumps(task)]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(child: subprocess.Popen[str], *, expect: int = 0) -> list[dict[str, Any]]:
    """Wait for the workshop and read what it found."""
    output, errors = child.communicate(timeout=1800)
    assert child.returncode == expect, errors[-2000:]
    return [json.loads(line) for line in output.splitlines()]


def table_of(page: str) -> str:
    """Take the table out of the page."""
    return page.partition(BEGIN)[2].partition(END)[0]


def check_table() -> None:
    """Hold the page to the suite: each event in its order, and no promise broken."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table_of(PAGE.read_text(encoding="utf-8")).splitlines()
        if line.startswith("|") and line not in HEADER
    ]
    assert [(row[0], row[1]) for row in rows] == list(EVENTS)
    for event, mode, runs, spans, lost, recorded, duplicated, verdict in rows:
        assert int(runs) >= 1
        assert int(spans) > 100
        assert (duplicated, verdict) == ("0", "verifies")
        if mode == "commit":
            assert lost == "0", event
        if "unknown" not in recorded:
            assert int(lost) <= int(recorded), event


def write_table(outcomes: Iterable[Outcome], page: Path = PAGE) -> None:
    """Put the table into the page."""
    found = {(each.event, each.mode): each for each in outcomes}
    rows = [found[event].row() for event in EVENTS]
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{HEADER}{''.join(rows)}\n{END}{after}", encoding="utf-8")
