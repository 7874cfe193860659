"""The committed table is the suite's own."""

from __future__ import annotations

from pathlib import Path

from tests.faults.outcome import EVENTS, PAGE, Outcome, check_table, outcome, table_of, write_table


def test_the_committed_table_has_every_event():
    """Each event and mode of the suite, in its order, and every chain verifies."""
    check_table()


def test_the_table_is_written_in_the_order_of_the_events(tmp_path: Path):
    """Whatever stood between the marks is replaced, and nothing else."""
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8"))
    found = [Outcome(event, mode, 1, 2, 0, "0", 0, "verifies") for event, mode in EVENTS]
    write_table(reversed(found), page)
    once = page.read_text()
    write_table(found, page)
    assert page.read_text() == once
    assert once.startswith(PAGE.read_text(encoding="utf-8").partition("<!--")[0])
    assert table_of(once).strip().splitlines()[2] == found[0].row().strip()


def test_a_broken_promise_is_no_outcome():
    """A loss without a record, a duplicate, a finding or a hole fails the suite."""
    good = {
        "findings": [], "contiguous": True, "duplicated": 0, "next_code": 0, "lost": 1,
        "recorded": 2, "unknown": 0, "spans": 9,
    }  # fmt: skip
    assert outcome("e", "queued", [good, good])[2:] == (2, 18, 2, "4", 0, "verifies")
    broken = {
        "findings": ["truncated"], "contiguous": False, "duplicated": 1, "next_code": 1,
        "recorded": 0,
    }  # fmt: skip
    for name, value in broken.items():
        try:
            outcome("e", "queued", [good, {**good, name: value}])
        except AssertionError:
            continue
        raise AssertionError(name)
