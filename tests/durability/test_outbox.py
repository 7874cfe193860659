"""What a process leaves is found by the next one: spools are sealed, losses put on record."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from bijotel import HmacChainSpanProcessor
from bijotel.canonical import loads
from tests.processor.conftest import KEY, entries, spans
from tests.processor.test_processor import chat

Make = Callable[..., HmacChainSpanProcessor]

CHILD = """
import os, sqlite3, sys
from opentelemetry.sdk.trace import TracerProvider
from bijotel import HmacChainSpanProcessor
db, how = sys.argv[1:]
provider = TracerProvider(shutdown_on_exit=False)
processor = HmacChainSpanProcessor(db, key=bytes(range(32)), max_queue_size=10)
provider.add_span_processor(processor)
def chat(name):
    provider.get_tracer("t").start_span(name, attributes={"gen_ai.operation.name": "chat"}).end()
chat("chat first")
assert processor.force_flush()
blocker = sqlite3.connect(db, isolation_level=None)
blocker.execute("BEGIN IMMEDIATE")
"""


def run_child(db: Path, code: str, *, expect: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CHILD + code, str(db), "x"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == expect, done.stderr
    return done.stdout


def folder(db: Path) -> Path:
    return Path(f"{db}-spool")


def test_a_clean_end_leaves_no_files(provider: TracerProvider, make: Make, db: Path):
    """The page goes with its process when everything was sealed."""
    processor = make()
    chat(provider)
    processor.force_flush()
    assert [path.suffix for path in folder(db).iterdir()] == [".page"]
    processor.shutdown()
    assert list(folder(db).iterdir()) == []


def test_a_half_full_queue_moves_to_the_disk(provider: TracerProvider, make: Make, db: Path):
    """With the store locked, 100 spans pass a queue of 20 without a loss, and keep their order."""
    processor = make(max_queue_size=20)
    chat(provider, "chat first")
    processor.force_flush()
    blocker = sqlite3.connect(db, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    for number in range(100):
        chat(provider, f"chat {number}")
        while len(processor._writer._queue) > 15:
            time.sleep(0.01)
    stats = processor.stats()
    assert stats.dropped == 0
    assert stats.spooled > 0
    blocker.execute("ROLLBACK")
    blocker.close()
    assert processor.force_flush()
    assert [span.name for span in spans(db)] == [
        "chat first",
        *(f"chat {number}" for number in range(100)),
    ]
    assert processor.stats().spooled == 0
    assert processor.stats().sealed == 101


def test_an_exit_with_the_store_down_loses_nothing(provider: TracerProvider, make: Make, db: Path):
    """The exit takes at most five seconds and keeps its code; the next start seals the rest."""
    started = time.monotonic()
    run_child(db, "for n in range(5): chat(f'chat {n}')\nsys.exit(7)", expect=7)
    assert time.monotonic() - started < 9  # starting Python included
    assert sorted(path.suffix for path in folder(db).iterdir()) == [".page", ".spool"]
    processor = make()
    chat(provider, "chat next")
    assert processor.force_flush()
    assert [span.name for span in spans(db)] == [
        "chat first",
        *(f"chat {number}" for number in range(5)),
        "chat next",
    ]
    assert processor.stats().recovered == 5
    assert not list(folder(db).glob("*.spool"))


def test_a_start_without_a_span_seals_what_is_left(make: Make, db: Path):
    """What an earlier process spooled does not wait for the next span."""
    run_child(db, "for n in range(3): chat(f'chat {n}')")
    processor = make()
    assert processor.force_flush()
    assert [span.name for span in spans(db)] == ["chat first", "chat 0", "chat 1", "chat 2"]
    assert processor.stats().recovered == 3
    processor.shutdown()
    assert list(folder(db).iterdir()) == []


def test_a_killed_process_leaves_its_loss_on_record(provider: TracerProvider, make: Make, db: Path):
    """``os._exit`` loses the queue at most, and the next start seals how many that were."""
    run_child(db, "for n in range(3): chat(f'chat {n}')\nos._exit(0)")
    processor = make()
    chat(provider, "chat next")
    assert processor.force_flush()
    sealed = entries(db)
    assert [entry.kind for entry in sealed] == ["genesis", "span", "gap", "span"]
    gap = loads(sealed[2].body)
    assert (gap["count"], gap["reason"]) == (3, "process-ended")
    assert 0 < int(gap["first_unix_nano"]) <= int(gap["last_unix_nano"]) <= time.time_ns()


def test_a_living_process_is_not_adopted(provider: TracerProvider, make: Make, db: Path):
    """A second processor leaves the page and the spool of a living one alone."""
    first = make(max_queue_size=4)
    chat(provider, "chat first")
    first.force_flush()
    (page,) = folder(db).iterdir()
    second = make(select=lambda span: span.name == "for the second")
    chat(provider, "for the second")
    assert second.force_flush()
    assert page.exists()
    assert second.stats().recovered == 0


def test_spans_after_shutdown_wait_on_the_disk(provider: TracerProvider, make: Make, db: Path):
    """What ends after the shutdown is found by the next start."""
    processor = make()
    late = provider.get_tracer("t").start_span("chat late", attributes={"gen_ai.x": 1})
    processor.shutdown()
    late.end()
    assert processor.stats().spooled == 1
    processor._writer._ledger.close()
    again = HmacChainSpanProcessor(db, key=KEY)
    again.on_end(late._readable_span())
    assert again.force_flush()
    assert [span.name for span in spans(db)] == ["chat late"]
    again.shutdown()


def test_a_full_spool_is_a_gap_with_its_own_reason(provider: TracerProvider, make: Make, db: Path):
    """What fits neither the queue nor the spool is dropped, counted and put on record."""
    processor = make(max_queue_size=10, max_spool_bytes=1)
    chat(provider, "chat first")
    processor.force_flush()
    blocker = sqlite3.connect(db, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    for number in range(60):
        chat(provider, f"chat {number}")
        time.sleep(0.02)
    dropped = processor.stats().dropped
    assert dropped > 0
    blocker.execute("ROLLBACK")
    blocker.close()
    assert processor.force_flush()
    gaps = [loads(entry.body) for entry in entries(db) if entry.kind == "gap"]
    assert sum(gap["count"] for gap in gaps) == dropped
    assert "spool-full" in {gap["reason"] for gap in gaps}
    assert len(spans(db)) + dropped == 61


def test_a_damaged_spool_becomes_a_gap(provider: TracerProvider, make: Make, db: Path):
    """An edited record is set aside and said; the others are sealed."""
    run_child(db, "for n in range(3): chat(f'chat {n}')")
    (path,) = folder(db).glob("*.spool")
    octets = bytearray(path.read_bytes())
    octets[octets.index(b"chat 1")] ^= 1
    path.write_bytes(octets)
    processor = make()
    chat(provider, "chat next")
    assert processor.force_flush()
    assert [span.name for span in spans(db)] == ["chat first", "chat 0", "chat 2", "chat next"]
    (gap,) = (loads(entry.body) for entry in entries(db) if entry.kind == "gap")
    assert (gap["count"], gap["reason"]) == (1, "spool-damaged")
    assert len(list(folder(db).glob("*.damaged"))) == 1


def test_an_old_spool_put_back_is_no_duplicate(provider: TracerProvider, make: Make, db: Path):
    """Records that were sealed before are skipped, whoever put the file back."""
    run_child(db, "for n in range(3): chat(f'chat {n}')")
    copies = {path: path.read_bytes() for path in folder(db).iterdir()}
    processor = make()
    chat(provider, "chat next")
    assert processor.force_flush()
    processor.shutdown()
    for path, octets in copies.items():
        path.write_bytes(octets)
    again = HmacChainSpanProcessor(db, key=KEY)
    provider.add_span_processor(again)
    chat(provider, "chat again")
    assert again.force_flush()
    names = [span.name for span in spans(db)]
    assert sorted(names) == sorted(set(names))
    assert len(names) == 6
    again.shutdown()


@pytest.mark.parametrize("octets", [b"", b"junk", b"bijotel-page/1\n\0" + bytes(10), bytes(4096)])
def test_foreign_files_in_the_folder_are_left_alone(
    provider: TracerProvider, make: Make, db: Path, octets: bytes
):
    """A page that is none is reported and not removed."""
    folder(db).mkdir()
    page = folder(db) / "1-x.page"
    page.write_bytes(octets)
    processor = make()
    chat(provider)
    assert processor.force_flush()
    assert page.read_bytes() == octets
    assert [entry.kind for entry in entries(db)] == ["genesis", "span"]


def test_without_a_place_on_the_disk_the_queue_still_works(
    provider: TracerProvider, make: Make, db: Path, tmp_path: Path
):
    """A spool folder that cannot be made is logged, and costs nothing else."""
    processor = make(spool=tmp_path / "missing" / "spool")
    chat(provider)
    assert processor.force_flush()
    assert processor.stats().errors.keys() == {"FileNotFoundError"}
    assert len(spans(db)) == 1


def test_a_replaced_file_gets_a_gap(provider: TracerProvider, make: Make, db: Path):
    """A file deleted under us is noticed before the next commit, and said in the new one."""
    processor = make()
    chat(provider, "chat first")
    processor.force_flush()
    os.unlink(db)
    chat(provider, "chat second")
    assert processor.force_flush()
    sealed = entries(db)
    assert [entry.kind for entry in sealed] == ["genesis", "gap", "span"]
    assert loads(sealed[1].body)["reason"] == "store-replaced"
    assert loads(sealed[1].body)["count"] is None


def test_a_store_rolled_back_gets_a_gap(provider: TracerProvider, make: Make, db: Path):
    """An older copy of our own file put in its place is noticed by its head."""
    processor = make()
    chat(provider, "chat first")
    processor.force_flush()
    copy = sqlite3.connect(":memory:")
    with sqlite3.connect(db) as connection:
        connection.backup(copy)
    connection.close()
    chat(provider, "chat second")
    processor.force_flush()
    other = db.with_suffix(".old")
    with sqlite3.connect(other) as target:
        copy.backup(target)
    target.close()
    copy.close()
    for suffix in ("-wal", "-shm"):
        Path(f"{db}{suffix}").unlink(missing_ok=True)
    os.replace(other, db)
    chat(provider, "chat third")
    assert processor.force_flush()
    assert [entry.kind for entry in entries(db)] == ["genesis", "span", "gap", "span"]
