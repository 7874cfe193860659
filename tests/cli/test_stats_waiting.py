"""``bijotel stats`` after an outage: what waits on the disk, and what was never settled."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bijotel.count_page import CountPage
from tests.cli.conftest import Result, installed

_PROGRAM = """
import os, sys, time
from opentelemetry.sdk.trace import TracerProvider
from bijotel import install
provider = TracerProvider()
processor = install(provider, store=sys.argv[1], key=bytes(range(32)))
tracer = provider.get_tracer("t")
def chat(name):
    tracer.start_span(name, attributes={"gen_ai.operation.name": "chat"}).end()
"""


def run(db: Path, code: str) -> None:
    """Run a program with the processor installed, to its end."""
    program = db.with_name("program.py")
    program.write_text(_PROGRAM + code)
    done = subprocess.run(
        [sys.executable, str(program), str(db)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """A store that a process has sealed a span into."""
    path = tmp_path / "chain.db"
    run(path, "chat('first')\nprovider.shutdown()\n")
    return path


def test_nothing_waits_after_an_ordinary_end(bijotel, chain: Path):
    """The text says nothing of it, the document does."""
    out = bijotel("stats", "--db", chain).out
    assert "waiting" not in out
    assert "unsettled" not in out
    spool = bijotel("stats", "--db", chain, "--json").document["spool"]
    assert spool == {"files": 0, "bytes": 0, "unsettled": 0}


def test_an_exit_with_the_store_locked(chain: Path):
    """Its spans wait in a spool, and that is said, until the next process has sealed them."""
    blocker = sqlite3.connect(chain, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    run(chain, "[chat(f'waits {n}') for n in range(3)]\nprovider.shutdown()\n")
    while_locked = installed("stats", "--db", chain)
    blocker.close()
    (spool,) = Path(f"{chain}-spool").glob("*.spool")
    size = spool.stat().st_size
    assert size > 1000
    line = f"waiting:        1 spool, {size:,} bytes, not sealed yet\n"
    for result in (while_locked, installed("stats", "--db", chain)):
        assert result.code == 0
        assert result.out.endswith(line)
        assert "entries:            2\n" in result.out
    document = installed("stats", "--db", chain, "--json").document
    assert document["spool"] == {"files": 1, "bytes": size, "unsettled": 0}
    run(chain, "provider.shutdown()\n")
    result = installed("stats", "--db", chain)
    assert "waiting" not in result.out
    assert "entries:            5\n" in result.out


def test_an_end_that_settles_nothing(chain: Path):
    """Spans that a killed process had taken are counted, and a start still finds them."""
    blocker = sqlite3.connect(chain, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    run(chain, "chat('lost')\nchat('lost too')\nos._exit(0)\n")
    blocker.close()
    for _ in range(2):  # looking changes nothing
        result: Result = installed("stats", "--db", chain)
        assert result.out.endswith("unsettled:      2 spans, taken by processes that have ended\n")
        assert "waiting" not in result.out
    document = installed("stats", "--db", chain, "--json").document
    assert document["spool"] == {"files": 0, "bytes": 0, "unsettled": 2}
    run(chain, "provider.shutdown()\n")
    result = installed("stats", "--db", chain)
    assert "unsettled" not in result.out
    assert "  gap process-ended:  2 spans lost (1 gap entries)\n" in result.out


def test_a_living_process_is_no_loss(bijotel, chain: Path):
    """What it has taken and not sealed yet is its own business."""
    folder = Path(f"{chain}-spool")
    folder.mkdir(exist_ok=True)
    page = CountPage(folder / "1-a.page", "default")
    page.count_taken(7)
    assert bijotel("stats", "--db", chain, "--json").document["spool"]["unsettled"] == 0
    page.close()
    assert bijotel("stats", "--db", chain, "--json").document["spool"]["unsettled"] == 7


def test_a_spool_folder_that_cannot_be_read(bijotel, chain: Path, monkeypatch: pytest.MonkeyPatch):
    """The store is counted all the same; exit 3, and what could not be looked at."""

    def refuse(path: Path) -> None:  # root, which tests may run as, may read any
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    result = bijotel("stats", "--db", chain, "--json")
    assert result.code == 3
    assert result.document["spool"] is None
    assert [each["entries"] for each in result.document["chains"]] == [2]
    assert result.err == f"error: {chain}-spool: cannot be read: Permission denied\n"
