"""Attacks on the end of a chain, on its head, and on the whole of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bijotel import seal
from bijotel.keys import HmacKey
from bijotel.stores.base import HEAD_COLUMNS
from tests.attacks.evidence import (
    CHAIN_ID,
    KEY,
    OTHER_CHAIN_ID,
    Evidence,
    Writer,
    build,
    first_finding,
    no_finding,
    span,
)

STRANGER = HmacKey(bytes(range(1, 33)))


def test_row_17_truncate_lazy(evidence: Evidence):
    """The last rows deleted, the head left."""
    evidence.delete(91, 100)
    report = evidence.verify()
    finding = first_finding(report, "truncated", 91, None, last_seq=100)
    assert "the head says that entry 100 is the last" in finding.message
    assert len(report.findings) == 1


def test_row_18_truncate_and_head(evidence: Evidence):
    """The head rewritten to the entry that is now the last; its MAC needs the key."""
    evidence.delete(91, 100)
    evidence.set_head(seq=90, tag=evidence.entry(90).tag, tree=bytes(32 * (91).bit_count()))
    report = evidence.verify()
    first_finding(report, "head-mismatch", None, "head")
    assert len(report.findings) == 1


def test_row_18_head_deleted(evidence: Evidence):
    """The head gone: nothing says which entry is the last."""
    evidence.delete(91, 100)
    evidence.sql("DELETE FROM heads")
    report = evidence.verify()
    first_finding(report, "head-mismatch", None, "head")
    assert len(report.findings) == 1
    assert report.chains[0].entries == 91


HEAD_VALUES: dict[str, tuple[Any, ...]] = {
    "chain_id": (OTHER_CHAIN_ID, None, b"", "x"),
    "name": ("other", None, 7, b"default", "a" * 300),
    "seq": (99, 101, -1, None, "x", 2**62),
    "epoch": (1, -1, None, "x", 2**32),
    "key_id": (b"\xee" * 8, None, b"", "x"),
    "tag": (b"\xee" * 32, None, b"", "x"),
    "tree": (b"\xee" * 128, None, b"", b"\xee" * 96, "x"),
    "mac": (b"\xee" * 32, None, b"", "x"),
}


def test_row_18_a_name_that_is_no_utf_8(evidence: Evidence):
    """A head whose name no reader can decode is no head."""
    evidence.sql("UPDATE heads SET name = CAST(x'ff80' AS TEXT)")
    first_finding(evidence.verify(), "head-mismatch", None, "head")


def test_row_18_every_column_of_the_head_is_tried():
    """A column that is added to the head has to be added here."""
    assert tuple(HEAD_VALUES) == HEAD_COLUMNS


@pytest.mark.parametrize(
    ("column", "value"),
    [(column, value) for column, values in HEAD_VALUES.items() for value in values],
    ids=lambda value: repr(value)[:16],
)
def test_row_18_head_columns(evidence: Evidence, column: str, value: Any):
    """A head that no holder of the key made, or that is none at all."""
    evidence.set_head(**{column: value})
    report = evidence.verify()
    first_finding(report, "head-mismatch", None, "head")


def test_row_18_two_heads(evidence: Evidence):
    """Two heads of one chain: neither is believed in silence."""
    evidence.sql("DROP INDEX heads_by_chain_id")
    evidence.sql("DROP INDEX heads_by_name")
    evidence.sql("INSERT INTO heads SELECT * FROM heads")
    finding = first_finding(evidence.verify(), "head-mismatch", None, "head")
    assert finding.message == "a chain has two head records"


def test_row_19_truncate_all_local(evidence: Evidence):
    """Rows cut and an old genuine head put back: not to be seen without a checkpoint, and said."""
    writer = Writer()
    writer.append(*map(span, range(1, 91)))
    evidence.delete(91, 100)
    evidence.set_head(**writer.head._asdict())
    report = evidence.verify()
    no_finding(report)
    assert "completeness of the tail" in report.not_checked
    assert report.chains[0].last_seq == 90


def test_row_20_delete_all(evidence: Evidence):
    """All rows and the head gone: never "0 entries verified"."""
    evidence.sql("DELETE FROM entries")
    evidence.sql("DELETE FROM heads")
    report = evidence.verify()
    first_finding(report, "truncated", 0, "head")


def test_row_20_delete_all_rows(evidence: Evidence):
    """All rows gone, the head left."""
    evidence.sql("DELETE FROM entries")
    first_finding(evidence.verify(), "truncated", 0, None, last_seq=100)


@pytest.mark.parametrize("table", ["entries", "heads"])
def test_row_20_drop_table(evidence: Evidence, table: str):
    """A table gone."""
    evidence.sql(f"DROP TABLE {table}")
    report = evidence.verify()
    finding = first_finding(report, "schema-missing", None, table)
    assert finding.message == f"table {table} is missing"


def test_row_20_drop_both_tables(evidence: Evidence):
    """Our mark in the file, and nothing else."""
    evidence.sql("DROP TABLE entries")
    evidence.sql("DROP TABLE heads")
    report = evidence.verify()
    first_finding(report, "schema-missing", None, "entries")
    assert [finding.column for finding in report.findings] == ["entries", "heads"]


def test_row_20_empty_file(evidence: Evidence):
    """A file of no octets."""
    evidence.close()
    evidence.path.write_bytes(b"")
    empty = Evidence(evidence.path)
    first_finding(empty.verify(), "schema-missing", None, "entries")
    empty.close()
    assert evidence.path.read_bytes() == b""


def test_row_22_splice(evidence: Evidence, tmp_path: Path):
    """Rows of another chain of the same key in the place of ours."""
    other = Evidence(build(tmp_path / "other.db", chain_id=OTHER_CHAIN_ID))
    evidence.delete(40, 60)
    evidence.insert(*other.entries(40, 60))
    other.close()
    report = evidence.verify()
    finding = first_finding(report, "wrong-chain", 40, "chain_id", last_seq=60)
    assert finding.expected == CHAIN_ID.hex()
    assert finding.found == OTHER_CHAIN_ID
    assert len(report.findings) == 1


def test_row_22_splice_in_part(evidence: Evidence, tmp_path: Path):
    """Only some of the missing rows were replaced: the others are missing."""
    other = Evidence(build(tmp_path / "other.db", chain_id=OTHER_CHAIN_ID))
    evidence.delete(40, 60)
    evidence.insert(*other.entries(45, 50))
    other.close()
    report = evidence.verify()
    first_finding(report, "seq-gap", 40, None, last_seq=44)
    found = [(finding.code, finding.seq, finding.last_seq) for finding in report.findings]
    assert found == [("seq-gap", 40, 44), ("wrong-chain", 45, 50), ("seq-gap", 51, 60)]


def test_row_22_splice_at_the_tail(evidence: Evidence, tmp_path: Path):
    """The last rows replaced by another chain's."""
    other = Evidence(build(tmp_path / "other.db", chain_id=OTHER_CHAIN_ID))
    evidence.delete(91, 100)
    evidence.insert(*other.entries(91, 100))
    other.close()
    report = evidence.verify()
    first_finding(report, "wrong-chain", 91, "chain_id", last_seq=100)
    assert len(report.findings) == 1


def test_row_22_rows_relabelled(evidence: Evidence, tmp_path: Path):
    """Rows of another chain under our chain's id: another key of the same secret made them."""
    other = Evidence(build(tmp_path / "other.db", chain_id=OTHER_CHAIN_ID))
    evidence.delete(40, 60)
    evidence.insert(*(entry._replace(chain_id=CHAIN_ID) for entry in other.entries(40, 60)))
    other.close()
    first_finding(evidence.verify(), "link-mismatch", 40, "prev_tag")


def test_a_second_chain_in_the_file_is_no_fault(evidence: Evidence):
    """Chains of one store are verified side by side."""
    evidence.settle()
    build(evidence.path, 5, chain_id=OTHER_CHAIN_ID, name="other")
    report = evidence.verify()
    no_finding(report)
    assert {(chain.name, chain.entries) for chain in report.chains} == {
        ("default", 101),
        ("other", 6),
    }
    only = evidence.verify(chain="other")
    assert [chain.name for chain in only.chains] == ["other"]


def test_a_headless_chain_beside_a_sound_one(evidence: Evidence):
    """A second chain whose head was deleted is found, the first one stands."""
    evidence.settle()
    build(evidence.path, 5, chain_id=OTHER_CHAIN_ID, name="other")
    evidence.sql("DELETE FROM heads WHERE name = 'other'")
    report = evidence.verify()
    finding = first_finding(report, "head-mismatch", None, "head")
    assert finding.chain == OTHER_CHAIN_ID.hex()
    assert len(report.findings) == 1


def test_row_35_wrong_key(evidence: Evidence):
    """Another secret: said once, both ways in which it can be meant."""
    report = evidence.verify(STRANGER)
    finding = first_finding(report, "wrong-key", 0, None)
    assert "either this is the wrong secret, or another chain stands in" in finding.message
    assert finding.expected == STRANGER.key_id.hex()
    assert len(report.findings) == 1


def test_row_35_wrong_key_for_a_genesis_alone(tmp_path: Path):
    """A chain of one entry is no exception."""
    evidence = Evidence(build(tmp_path / "chain.db", 0))
    report = evidence.verify(STRANGER)
    first_finding(report, "wrong-key", 0, None)
    assert len(report.findings) == 1
    no_finding(evidence.verify())
    evidence.close()


def test_row_35_wrong_key_and_no_head(evidence: Evidence):
    """Without its head the chain is none of this secret's either."""
    evidence.sql("DELETE FROM heads")
    report = evidence.verify(STRANGER)
    first_finding(report, "wrong-key", 0, None)
    assert len(report.findings) == 1


def test_row_35_a_fault_is_no_wrong_key(evidence: Evidence):
    """Genesis and head both tampered with: the rest still shows whose chain it is."""
    evidence.set(0, tag=b"\xee" * 32)
    evidence.set_head(mac=b"\xee" * 32)
    report = evidence.verify()
    first_finding(report, "tag-mismatch", 0, "tag")
    assert [finding.code for finding in report.findings] == ["tag-mismatch", "head-mismatch"]


def test_row_35_every_key_id_replaced(evidence: Evidence):
    """Every key id replaced in the rows: it is no softer than a wrong key."""
    evidence.sql("UPDATE entries SET key_id = ?", b"\xee" * 8)
    report = evidence.verify()
    first_finding(report, "wrong-key", 0, None)
    assert len(report.findings) == 1


def test_row_35_every_key_id_replaced_in_the_head_too(evidence: Evidence):
    """Rows and head alike."""
    evidence.sql("UPDATE entries SET key_id = ?", b"\xee" * 8)
    evidence.set_head(key_id=b"\xee" * 8)
    report = evidence.verify()
    first_finding(report, "wrong-key", 0, None)
    assert len(report.findings) == 1


def test_row_35_every_key_id_replaced_by_the_verifiers(evidence: Evidence):
    """The ids changed to that of the secret which the verifier holds, who has another one."""
    evidence.sql("UPDATE entries SET key_id = ?", STRANGER.key_id)
    evidence.set_head(key_id=STRANGER.key_id)
    report = evidence.verify(STRANGER)
    first_finding(report, "wrong-key", 0, None)
    assert len(report.findings) == 1


def test_row_35_another_chain_of_another_key(tmp_path: Path):
    """A chain that somebody else sealed, whole and sound, in this one's place."""
    evidence = Evidence(build(tmp_path / "chain.db", key=STRANGER))
    first_finding(evidence.verify(KEY), "wrong-key", 0, None)
    evidence.close()


@pytest.mark.parametrize("column", ["seq", "epoch", "tag", "tree", "name"])
def test_row_50_tree_poisoned(evidence: Evidence, column: str):
    """The head's tree, or anything else that its MAC covers, edited without the key."""
    head = evidence.head()
    value = {
        "seq": 99,
        "epoch": 1,
        "tag": evidence.entry(99).tag,
        "tree": head.tree[:-1] + bytes([head.tree[-1] ^ 1]),
        "name": "Default",
    }[column]
    evidence.set_head(**{column: value})
    report = evidence.verify()
    first_finding(report, "head-mismatch", None, "head")


def test_row_50_tree_of_a_key_holder(evidence: Evidence):
    """A tree that a holder of the key put there is found by recomputing it, which --deep does."""
    head = evidence.head()
    poisoned = head._replace(tree=b"\xee" * len(head.tree))
    mac = seal.head_mac(poisoned, KEY.chain_key(CHAIN_ID))
    evidence.set_head(tree=poisoned.tree, mac=mac)
    no_finding(evidence.verify())
    first_finding(evidence.verify(deep=True), "head-mismatch", None, "head")


def test_rows_beyond_the_head(evidence: Evidence):
    """Genuine rows that the head does not count: somebody put an older head back."""
    writer = Writer()
    writer.append(*map(span, range(1, 91)))
    evidence.set_head(**writer.head._asdict())
    finding = first_finding(evidence.verify(), "head-mismatch", None, "head")
    assert finding.message == "the head says that entry 90 is the last, but 100 is there"


def test_rows_beyond_the_head_with_a_hole(evidence: Evidence):
    """A hole with a higher row behind it is a hole, wherever the head says that the chain ends."""
    writer = Writer()
    writer.append(*map(span, range(1, 91)))
    evidence.set_head(**writer.head._asdict())
    evidence.delete(95)
    report = evidence.verify()
    first_finding(report, "seq-gap", 95, None)
    assert len(report.findings) == 1


def test_rows_beyond_the_head_with_a_fault(evidence: Evidence):
    """A fault in what stands beyond the head is the fault that is said."""
    writer = Writer()
    writer.append(*map(span, range(1, 91)))
    evidence.set_head(**writer.head._asdict())
    evidence.set(95, name="other")
    first_finding(evidence.verify(), "column-mismatch", 95, "name")
