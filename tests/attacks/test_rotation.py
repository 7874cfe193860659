"""Attacks on the handing over from one key to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from bijotel import canonical, seal
from bijotel.keys import HmacKey, KeyRing
from tests.attacks.evidence import (
    KEY,
    NEW_KEY,
    Evidence,
    Writer,
    first_finding,
    no_finding,
    reseal,
    rotation,
    span,
)

BOTH = KeyRing(KEY, NEW_KEY)
THIRD = HmacKey(bytes(range(100, 132)))


def evidence_of(writer: Writer, tmp_path: Path) -> Evidence:
    return Evidence(writer.store(tmp_path / "chain.db"))


def spans(first: int, last: int) -> list[seal.Draft]:
    return [span(number) for number in range(first, last + 1)]


def test_an_honest_rotation(rotated_evidence: Evidence):
    """With both secrets, in either order, nothing is found."""
    no_finding(rotated_evidence.verify(BOTH, deep=True))
    no_finding(rotated_evidence.verify(KeyRing(NEW_KEY, KEY)))


def test_two_honest_rotations(tmp_path: Path):
    """A chain may hand over again, at once or as its last entry."""
    writer = Writer()
    writer.append(*spans(1, 3))
    writer.rotate(NEW_KEY)
    writer.rotate(THIRD)
    writer.append(*spans(4, 6))
    writer.rotate(HmacKey(bytes(range(7, 39))))
    evidence = evidence_of(writer, tmp_path)
    no_finding(evidence.verify(KeyRing(KEY, NEW_KEY, THIRD, bytes(range(7, 39))), deep=True))
    evidence.close()


def test_row_07_key_not_in_ring(rotated_evidence: Evidence):
    """The new secret was not given: what it sealed could not be checked, the rest was."""
    report = rotated_evidence.verify(KEY)
    finding = first_finding(report, "key-unknown", 61, None, last_seq=100, exit_code=3)
    assert "not in the ring: not checked" in finding.message
    assert len(report.findings) == 1
    assert report.chains[0].entries == 101


def test_only_the_new_key_in_the_ring(rotated_evidence: Evidence):
    """The old secret was not given: its entries could not be checked, the later ones were."""
    report = rotated_evidence.verify(NEW_KEY)
    first_finding(report, "key-unknown", 0, None, last_seq=60, exit_code=3)
    assert len(report.findings) == 1


def test_a_fault_outranks_what_could_not_be_checked(rotated_evidence: Evidence):
    """Tampering in the checked part is exit 1, whatever else could not be checked."""
    rotated_evidence.set(30, name="other")
    report = rotated_evidence.verify(KEY)
    first_finding(report, "column-mismatch", 30, "name")
    assert [finding.code for finding in report.findings] == ["column-mismatch", "key-unknown"]


def test_row_06_unknown_id_within_a_rotated_chain(rotated_evidence: Evidence):
    """Also behind a rotation an unknown id is out of order, not unknown."""
    rotated_evidence.set(70, key_id=b"\xee" * 8)
    for ring in (BOTH, KEY):
        report = rotated_evidence.verify(ring)
        codes = {(finding.code, finding.seq) for finding in report.findings}
        assert ("key-order", 70) in codes
        assert report.exit_code == 1


def test_row_36_rows_still_under_the_old_key(tmp_path: Path):
    """The key entry hands over, and the old key goes on sealing."""
    writer = Writer()
    writer.append(*spans(1, 59))
    writer.append(rotation(writer.head))
    writer.append(*spans(61, 100))
    evidence = evidence_of(writer, tmp_path)
    first_finding(evidence.verify(BOTH), "key-order", 61, "key_id", last_seq=100)
    evidence.close()


def test_row_36_the_old_key_used_again_later(rotated_evidence: Evidence):
    """One later entry sealed with the key that was left."""
    rotated_evidence.put(80, reseal(rotated_evidence.entry(80), KEY, key_id=KEY.key_id))
    first_finding(rotated_evidence.verify(BOTH), "key-order", 80, "key_id")


def bad_proof(writer: Writer, seq: int | None = None) -> seal.Draft:
    head = writer.head if seq is None else writer.head._replace(seq=seq)
    honest = canonical.loads(rotation(head).body)
    if seq is None:
        honest["proof"] = "ee" * 32
    return seal.draft("key", canonical.dumps(honest))


@pytest.mark.parametrize("seq", [None, 7])
def test_row_36_bad_proof(tmp_path: Path, seq: int | None):
    """A key entry whose proof the new key did not make, or made for another place."""
    writer = Writer()
    writer.append(*spans(1, 59))
    writer.append(bad_proof(writer, seq))
    evidence = evidence_of(writer, tmp_path)
    finding = first_finding(evidence.verify(BOTH), "rotation-proof", 60, "body")
    assert "the new key's proof in the body does not hold" in finding.message
    evidence.close()


@pytest.mark.parametrize("body", [b"{}", b"no JSON", b'{"new_key_id":"00","proof":"00"}'])
def test_row_36_no_rotation_at_all(tmp_path: Path, body: bytes):
    """A key entry that names no new key."""
    writer = Writer()
    writer.append(*spans(1, 59), seal.draft("key", body))
    evidence = evidence_of(writer, tmp_path)
    finding = first_finding(evidence.verify(BOTH), "rotation-proof", 60, "body")
    assert "the key entry names no new key" in finding.message
    evidence.close()


def test_row_36_rotation_forged_without_the_old_key(evidence: Evidence):
    """Who holds only a new key hands over to itself: the entry's own tag needs the old key."""
    head = evidence.head()
    draft = rotation(head, KEY, NEW_KEY)
    writer = Writer()
    writer.head, writer.entries, writer.key = head, [], NEW_KEY
    writer.append(draft)
    forged = reseal(writer.entries[0], NEW_KEY, key_id=KEY.key_id)
    writer.head = writer.head._replace(tag=forged.tag)
    writer.append(span(102))
    evidence.insert(forged, writer.entries[1])
    evidence.set_head(**writer.head._asdict())
    report = evidence.verify(BOTH)
    first_finding(report, "tag-mismatch", 101, None)


def test_row_36_rotation_to_a_key_outside_the_ring(rotated_evidence: Evidence):
    """The rows behind it could not be checked; that is never fine."""
    report = rotated_evidence.verify(KeyRing(KEY, THIRD))
    first_finding(report, "key-unknown", 61, None, last_seq=100, exit_code=3)


def test_row_36_a_key_never_returns(tmp_path: Path):
    """Handing back to a key that was left."""
    writer = Writer()
    writer.append(*spans(1, 3))
    writer.rotate(NEW_KEY)
    writer.append(*spans(5, 8))
    writer.rotate(KEY)
    writer.append(*spans(10, 12))
    evidence = evidence_of(writer, tmp_path)
    finding = first_finding(evidence.verify(BOTH), "key-order", 9, "body")
    assert f"rotates back to key {KEY.key_id.hex()}" in finding.message
    evidence.close()


def test_row_36_a_key_that_hands_over_to_itself(tmp_path: Path):
    """A key id once left never returns, not even at once."""
    writer = Writer()
    writer.append(*spans(1, 3))
    writer.rotate(KEY)
    writer.append(*spans(5, 8))
    evidence = evidence_of(writer, tmp_path)
    first_finding(evidence.verify(BOTH), "key-order", 4, "body")
    evidence.close()


def test_row_36_the_key_entry_deleted(rotated_evidence: Evidence):
    """Without the entry that hands over, the new key has no right to seal."""
    rotated_evidence.delete(60)
    report = rotated_evidence.verify(BOTH)
    first_finding(report, "seq-gap", 60, None)
    assert (report.findings[1].code, report.findings[1].seq) == ("key-order", 61)


def test_row_36_the_chain_begins_with_another_key_than_it_says(evidence: Evidence):
    """The genesis names the key that seals it, and so what seals all that follows."""
    genesis = evidence.entry(0)
    other = genesis.body.replace(KEY.key_id.hex().encode(), NEW_KEY.key_id.hex().encode())
    evidence.put(0, reseal(genesis, body=other))
    first_finding(evidence.verify(BOTH), "wrong-key", 0, None)


def test_row_36_rotation_to_a_key_outside_the_ring_as_the_last_entry(tmp_path: Path):
    """Nothing stands behind it yet; the proof of the new key could not be checked."""
    writer = Writer()
    writer.append(*spans(1, 59))
    writer.rotate()
    evidence = evidence_of(writer, tmp_path)
    finding = first_finding(evidence.verify(KEY), "key-unknown", 60, "body", exit_code=3)
    assert f"hands over to key {NEW_KEY.key_id.hex()}, which is not in the ring" in finding.message
    no_finding(evidence.verify(BOTH))
    evidence.close()


def test_a_key_of_the_ring_that_never_occurs(rotated_evidence: Evidence):
    """A notice, which costs nothing: the chain is what the other keys sealed."""
    report = rotated_evidence.verify(KeyRing(KEY, NEW_KEY, THIRD))
    no_finding(report)
    (notice,) = report.notices
    assert notice.code == "key-unused"
    assert notice.message == f"key {THIRD.key_id.hex()} of the ring seals none of these entries"
    assert rotated_evidence.verify(BOTH).notices == ()


def test_who_has_only_the_old_key_cannot_rewrite_what_it_sealed(rotated: Evidence, tmp_path: Path):
    """The new key's proof in the hand-over covers the tag before it, and so everything before."""
    writer = Writer()
    writer.append(*spans(1, 29), *spans(1030, 1059))
    handing_over = rotated.entry(60)
    writer.append(seal.draft("key", handing_over.body))
    writer.entries += rotated.entries(61)
    writer.head = rotated.head()
    evidence = evidence_of(writer, tmp_path)
    report = evidence.verify(BOTH)
    finding = first_finding(report, "rotation-proof", 60, "body")
    assert "the new key's proof in the body does not hold" in finding.message
    evidence.close()
