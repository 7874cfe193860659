"""Attacks on which entries there are and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from bijotel.model import Entry
from tests.attacks.evidence import (
    NEW_KEY,
    SEALED_AT,
    STEP,
    Evidence,
    first_finding,
    no_finding,
    reseal,
    span,
)


def relink(evidence: Evidence, first: int) -> None:
    """Repair the links from one entry on, which takes no key."""
    for entry in evidence.entries(first):
        evidence.set(entry.seq, prev_tag=evidence.entry(entry.seq - 1).tag)


def test_row_10_delete_middle(evidence: Evidence):
    """A row deleted."""
    evidence.delete(50)
    report = evidence.verify()
    finding = first_finding(report, "seq-gap", 50, None)
    assert finding.message == "entry 50 is missing, the next one found is 51"
    assert len(report.findings) == 1


def test_row_10_delete_several(evidence: Evidence):
    """A run of deleted rows is one finding."""
    evidence.delete(40, 50)
    first_finding(evidence.verify(), "seq-gap", 40, None, last_seq=50)


def test_row_11_delete_renumber(evidence: Evidence):
    """A row deleted and the later ones renumbered."""
    evidence.drop_guards()
    evidence.delete(50)
    evidence.shift(51, -1)
    first_finding(evidence.verify(), "link-mismatch", 50, "prev_tag")


def test_row_11_delete_renumber_relink(evidence: Evidence):
    """The link repaired as well: the tag covers both."""
    evidence.drop_guards()
    evidence.delete(50)
    evidence.shift(51, -1)
    relink(evidence, 50)
    first_finding(evidence.verify(), "tag-mismatch", 50, None, last_seq=99)


def test_row_12_renumber_tail(evidence: Evidence):
    """The tail moved to higher numbers."""
    evidence.shift(50, 1000)
    report = evidence.verify()
    finding = first_finding(report, "seq-gap", 50, None, last_seq=1049)
    assert (finding.expected, finding.found) == (50, 1050)
    assert "truncated" not in {finding.code for finding in report.findings}


def test_row_13_duplicate_row(evidence: Evidence):
    """An old row behind the last one."""
    evidence.drop_guards()
    evidence.insert(evidence.entry(50)._replace(seq=101))
    first_finding(evidence.verify(), "link-mismatch", 101, "prev_tag")


def test_row_14_insert_forged(evidence: Evidence):
    """A new row between two, sealed with another key under the right key's name."""
    evidence.drop_guards()
    before, after = evidence.entry(50), evidence.entry(51)
    draft = span(999)
    forged = before._replace(
        **draft._asdict(),
        seq=51,
        prev_tag=before.tag,
        sealed_at_unix_nano=(before.sealed_at_unix_nano + after.sealed_at_unix_nano) // 2,
    )
    evidence.shift(51, 1)
    evidence.insert(reseal(forged, NEW_KEY))
    first_finding(evidence.verify(), "tag-mismatch", 51, None, last_seq=101)


def swap(evidence: Evidence, first: int, second: int) -> None:
    evidence.drop_guards()
    one, other = evidence.entry(first), evidence.entry(second)
    evidence.put(first, one._replace(seq=-7))
    evidence.put(second, other._replace(seq=first))
    evidence.put(-7, one._replace(seq=second))


def test_row_15_swap_rows(evidence: Evidence):
    """Two neighbours exchanged."""
    swap(evidence, 50, 51)
    first_finding(evidence.verify(), "link-mismatch", 50, "prev_tag", last_seq=52)


def test_row_15_swap_rows_relink(evidence: Evidence):
    """Two neighbours exchanged and the links repaired."""
    swap(evidence, 50, 51)
    for seq in (50, 51, 52):
        evidence.set(seq, prev_tag=evidence.entry(seq - 1).tag)
    first_finding(evidence.verify(), "tag-mismatch", 50, "sealed_at_unix_nano", last_seq=51)


def test_the_physical_order_does_not_matter(evidence: Evidence):
    """Rows that stand elsewhere in the file, under their own numbers, are no fault."""
    moved = evidence.entries(30, 60)
    evidence.delete(30, 60)
    evidence.insert(*reversed(moved))
    no_finding(evidence.verify(deep=True))


@pytest.mark.parametrize(
    ("value", "seq", "found"), [(-1, -1, -1), (0.5, None, 0.5), ("x", None, "text 'x'")]
)
def test_row_16_seq_below_zero(evidence: Evidence, value: Any, seq: int | None, found: Any):
    """A row whose number is none, beside a chain that is whole."""
    evidence.drop_guards()
    evidence.insert(evidence.entry(50)._replace(seq=value))
    report = evidence.verify()
    finding = first_finding(report, "type-mismatch", seq, "seq")
    assert finding.found == found
    assert len(report.findings) == 1


@pytest.mark.parametrize("value", [None, "x" * 100_000, b"\0" * 100_000, -(2**63), 1e300])
def test_row_16_seq_of_other_types(evidence: Evidence, value: Any):
    """A number replaced by something else: that row and the hole are both said."""
    evidence.drop_guards()
    evidence.set(50, seq=value)
    report = evidence.verify()
    first_finding(report, "type-mismatch", value if isinstance(value, int) else None, "seq")
    assert (report.findings[1].code, report.findings[1].seq) == ("seq-gap", 50)


def test_row_21_cut_head(evidence: Evidence):
    """The first rows deleted."""
    evidence.delete(0, 9)
    report = evidence.verify()
    first_finding(report, "seq-gap", 0, None, last_seq=9)
    assert len(report.findings) == 1


def replay(evidence: Evidence) -> list[Entry]:
    evidence.drop_guards()
    return [entry._replace(seq=entry.seq + 81) for entry in evidence.entries(20, 30)]


def test_row_24_replay(evidence: Evidence):
    """Old rows behind the last one, under new numbers."""
    evidence.insert(*replay(evidence))
    first_finding(evidence.verify(), "link-mismatch", 101, "prev_tag")


def test_row_24_replay_relink(evidence: Evidence):
    """The first replayed row linked to the last genuine one: its time says that it is old."""
    first, *rest = replay(evidence)
    evidence.insert(first._replace(prev_tag=evidence.entry(100).tag), *rest)
    first_finding(evidence.verify(), "tag-mismatch", 101, "sealed_at_unix_nano")


def fork_of(evidence: Evidence, **changes: Any) -> Entry:
    """Another entry in the place of 50, sealed by a holder of the key."""
    draft = span(999)
    place = evidence.entry(50)
    return reseal(place._replace(**draft._asdict(), **changes))


def test_row_25_fork(evidence: Evidence):
    """Two writers continued one entry."""
    evidence.drop_guards()
    evidence.insert(fork_of(evidence))
    report = evidence.verify()
    first_finding(report, "forked", 50, "seq")
    assert len(report.findings) == 1


def test_row_25_fork_continued(evidence: Evidence):
    """Both branches go on: the second one's entries follow a tag of the first's rival."""
    evidence.drop_guards()
    rival = fork_of(evidence)
    draft = span(998)
    after = reseal(evidence.entry(51)._replace(**draft._asdict(), prev_tag=rival.tag))
    evidence.insert(rival, after)
    report = evidence.verify()
    first_finding(report, "forked", 50, "seq")
    assert {finding.code for finding in report.findings} <= {"forked", "seq-repeat"}


@pytest.mark.parametrize("what", ["same row", "forged", "other link", "wrong type"])
def test_row_25_second_row_invalid(evidence: Evidence, what: str):
    """A second row with a number, which no holder of the key sealed there."""
    evidence.drop_guards()
    second = {
        "same row": evidence.entry(50),
        "forged": fork_of(evidence)._replace(tag=b"\xee" * 32),
        "other link": fork_of(evidence, prev_tag=b"\xee" * 32),
        "wrong type": evidence.entry(50)._replace(body="text"),
    }[what]
    evidence.insert(second)
    report = evidence.verify()
    first_finding(report, "seq-repeat", 50, "seq")
    assert len(report.findings) == 1


def test_row_25_forged_row_first(evidence: Evidence):
    """The forged row stands before the genuine one in the file, and gets the first finding."""
    evidence.drop_guards()
    rows = evidence.entries(50, 100)
    evidence.delete(50, 100)
    evidence.insert(fork_of_row(rows[0]), *rows)
    report = evidence.verify()
    first_finding(report, "tag-mismatch", 50, None)
    assert (report.findings[1].code, report.findings[1].seq) == ("seq-repeat", 50)


def fork_of_row(entry: Entry) -> Entry:
    return entry._replace(**span(999)._asdict(), tag=b"\xee" * 32)


def test_times_of_sealing_stand_in_order(evidence: Evidence):
    """What the rows above rely on: each entry was sealed a step after the one before."""
    times = [entry.sealed_at_unix_nano for entry in evidence.entries()]
    assert times == [SEALED_AT + seq * STEP for seq in range(101)]
