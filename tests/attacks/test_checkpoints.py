"""Attacks that only a checkpoint kept elsewhere shows, and attacks on checkpoints themselves."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bijotel import canonical, merkle, seal
from bijotel.checkpoint import checkpoint_draft, sign_checkpoint
from bijotel.errors import ConfigurationError
from bijotel.findings import Report
from bijotel.keys import HmacKey, KeyRing
from bijotel.note import parse_note
from bijotel.signing import SigningKey, generate_signing_key
from bijotel.verify import verify_chain
from tests.attacks.evidence import (
    CHAIN_ID,
    HEADER_COLUMNS,
    KEY,
    OTHER_CHAIN_ID,
    Evidence,
    Writer,
    build,
    first_finding,
    no_finding,
    reseal,
    span,
)

SIGNER = generate_signing_key("example.com/audit")
PQ_SIGNER = generate_signing_key("example.com/audit", 6)
PUBKEY, PQ_PUBKEY = SIGNER.verifier, PQ_SIGNER.verifier
RING = KeyRing(KEY)


def written(spans: int, **options: Any) -> Writer:
    """An honest writer after so many spans."""
    writer = Writer(**options)
    writer.append(*map(span, range(1, spans + 1)))
    return writer


def note_of(writer: Writer, *signers: SigningKey) -> bytes:
    """A checkpoint of a writer's chain as it is."""
    return sign_checkpoint(writer.head, RING, signers or (SIGNER,))


NOTE_51, NOTE_101 = (note_of(written(spans)) for spans in (50, 100))


def verify(evidence: Evidence, *notes: bytes, **options: Any) -> Report:
    """Verify against checkpoints, with any number of workers."""
    return evidence.verify(checkpoints=notes, pubkeys=options.pop("pubkeys", [PUBKEY]), **options)


def edited(note: bytes, line: int, text: str) -> bytes:
    """A note with one line replaced."""
    lines = note.decode().split("\n")
    lines[line] = text
    return "\n".join(lines).encode()


# --- honest chains ---------------------------------------------------------------------------


def test_an_honest_chain(evidence: Evidence):
    """The report says up to where nothing is missing, and which chain that is."""
    report = verify(evidence, NOTE_51, NOTE_101)
    no_finding(report)
    assert report.checked["checkpoints"] == {CHAIN_ID.hex(): 101}
    assert report.not_checked == ("completeness of the tail behind entry 100",)
    report = verify(evidence, NOTE_51, deep=True)
    assert report.not_checked == ("completeness of the tail behind entry 50",)
    assert verify(evidence).not_checked == ("which chain this is", "completeness of the tail")


@pytest.mark.parametrize("size", [1, 2, 14, 15, 16, 50, 51, 64, 99, 100, 101])
def test_every_size_on_worker_boundaries(evidence: Evidence, size: int):
    """The root is kept in the one pass, wherever the work is divided."""
    report = verify(evidence, note_of(written(size - 1)))
    no_finding(report)
    assert report.checked["checkpoints"] == {CHAIN_ID.hex(): size}


def test_a_chain_with_its_own_checkpoints(tmp_path: Path):
    """Sealed notes are compared too; those of keys that are not given are a notice."""
    writer = written(10)
    for first in (20, 30, 40):
        writer.append(checkpoint_draft(note_of(writer)), *map(span, range(first, first + 3)))
    writer.append(checkpoint_draft(note_of(writer, generate_signing_key("old"))))
    evidence = Evidence(writer.store(tmp_path / "chain.db"))
    report = verify(evidence, deep=True)
    no_finding(report)
    (notice,) = report.notices
    assert (notice.code, notice.seq) == ("checkpoint-unsigned", 23)
    assert evidence.verify().notices == ()
    evidence.close()


def test_several_chains_with_and_without_a_checkpoint(evidence: Evidence):
    """Each chain's tail is named for itself."""
    evidence.settle()
    build(evidence.path, 5, chain_id=OTHER_CHAIN_ID, name="other")
    assert verify(evidence, NOTE_101).not_checked == (
        "which chain this is",
        "completeness of the tail",
        f"completeness of the tail behind entry 100 of chain {CHAIN_ID.hex()}",
    )
    other = note_of(written(5, chain_id=OTHER_CHAIN_ID, name="other"))
    assert verify(evidence, NOTE_101, other).not_checked == (
        f"completeness of the tail behind entry 100 of chain {CHAIN_ID.hex()}",
        f"completeness of the tail behind entry 5 of chain {OTHER_CHAIN_ID.hex()}",
    )


def test_a_checkpoint_needs_a_key(evidence: Evidence):
    """Without one, anybody's checkpoint would do: that is asked wrongly."""
    with pytest.raises(ConfigurationError, match="at least one is required to check a checkpoint"):
        verify_chain(evidence.path, KEY, checkpoints=[NOTE_51])


# --- the end of the log ----------------------------------------------------------------------


def test_row_19_truncate_all_local(evidence: Evidence):
    """Rows cut and an old genuine head put back: a perfect shorter chain, but not what was signed."""
    evidence.delete(91, 100)
    evidence.set_head(**written(90).head._asdict())
    no_finding(evidence.verify())
    report = verify(evidence, NOTE_101)
    finding = first_finding(report, "truncated", 91, "size", last_seq=100)
    assert "101 entries were signed, 91 are there" in finding.message
    assert len(report.findings) == 1
    assert report.not_checked == ("which chain this is", "completeness of the tail")
    no_finding(verify(evidence, NOTE_51))


def test_row_23_replace_chain(tmp_path: Path):
    """Another chain of the same key in this one's place: its id is not the pinned one."""
    evidence = Evidence(build(tmp_path / "chain.db", chain_id=OTHER_CHAIN_ID))
    no_finding(evidence.verify())
    report = evidence.verify(chain=CHAIN_ID.hex())
    first_finding(report, "wrong-chain", 0, "chain_id")
    report = verify(evidence, NOTE_51, chain=CHAIN_ID.hex())
    first_finding(report, "wrong-chain", 0, "chain_id")
    assert [finding.code for finding in report.findings] == ["wrong-chain", "checkpoint-origin"]
    evidence.close()


def test_row_26_rollback(tmp_path: Path):
    """The whole store replaced by an older copy."""
    evidence = Evidence(build(tmp_path / "older.db", 90))
    no_finding(evidence.verify())
    first_finding(verify(evidence, NOTE_101), "truncated", 91, "size", last_seq=100)
    evidence.close()


def test_row_27_rollback_and_continue(tmp_path: Path):
    """Cut to 90, then the honest writer goes on to 100: as long, and not the same."""
    writer = written(90)
    writer.append(*map(span, range(191, 201)))
    evidence = Evidence(writer.store(tmp_path / "chain.db"))
    no_finding(evidence.verify(deep=True))
    finding = first_finding(verify(evidence, NOTE_101), "checkpoint-mismatch", None, "size")
    assert "at size 101 the entries have another root than was signed" in finding.message
    assert finding.expected == base64.b64decode(NOTE_101.split(b"\n")[2])
    no_finding(verify(evidence, NOTE_51))
    evidence.close()


def test_row_42_full_rewrite(tmp_path: Path):
    """A holder of the secret rewrites 30 on and seals it again: every tag holds."""
    writer = written(29)
    writer.append(*map(span, range(1030, 1101)))
    evidence = Evidence(writer.store(tmp_path / "chain.db"))
    no_finding(evidence.verify(deep=True))
    finding = first_finding(verify(evidence, NOTE_51), "checkpoint-mismatch", None, "size")
    assert "at size 51" in finding.message
    no_finding(verify(evidence, note_of(written(29))))
    evidence.close()


@pytest.mark.parametrize("seq", [0, 14, 50])
@pytest.mark.parametrize("column", [*HEADER_COLUMNS[3:], "tag"])
def test_row_42_one_entry_below_the_checkpoint(evidence: Evidence, seq: int, column: str):
    """Whatever column of whichever entry: the chain says where, the checkpoint that it was there."""
    value = getattr(evidence.entry(seq), column)
    if isinstance(value, bytes):
        value = bytes([value[0] ^ 1]) + value[1:] if value else bytes(32)
    elif isinstance(value, str):
        value += "x"
    else:
        value += 1
    if column in {"trace_id", "span_id"} and seq == 0:
        value = bytes(16 if column == "trace_id" else 8)
    evidence.drop_guards()
    evidence.set(seq, **{column: value})
    report = verify(evidence, NOTE_51)
    assert report.exit_code == 1
    assert report.findings[0].seq == seq
    assert [f.code for f in report.findings if f.column == "size"] == ["checkpoint-mismatch"]


def test_what_is_behind_the_checkpoint_is_the_chains_business(evidence: Evidence):
    """An edit behind it is found by the chain, and the checkpoint stays confirmed."""
    evidence.set(60, name="x")
    report = verify(evidence, NOTE_51)
    first_finding(report, "column-mismatch", 60, "name")
    assert len(report.findings) == 1
    assert report.checked["checkpoints"] == {CHAIN_ID.hex(): 51}


def test_row_50_a_tree_of_a_key_holder(evidence: Evidence):
    """With a checkpoint the tree is hashed, so that a poisoned head is found without --deep."""
    poisoned = evidence.head()._replace(tree=b"\xee" * len(evidence.head().tree))
    evidence.set_head(tree=poisoned.tree, mac=seal.head_mac(poisoned, KEY.chain_key(CHAIN_ID)))
    no_finding(evidence.verify())
    first_finding(verify(evidence, NOTE_51), "head-mismatch", None, "head")


# --- the checkpoint itself -------------------------------------------------------------------


def test_row_38_checkpoint_signature(evidence: Evidence):
    """One byte of the signature."""
    line = NOTE_51.decode().split("\n")[4]
    flipped = line[:-6] + ("A" if line[-6] != "A" else "B") + line[-5:]
    report = verify(evidence, edited(NOTE_51, 4, flipped))
    finding = first_finding(report, "checkpoint-signature", None, "signature line")
    assert finding.message.startswith("checkpoint 1 of size 51: ")
    assert "checkpoints" not in report.checked


def test_row_38_checkpoint_root(evidence: Evidence):
    """The root line of another size."""
    root = NOTE_101.decode().split("\n")[2]
    finding = first_finding(
        verify(evidence, edited(NOTE_51, 2, root)), "checkpoint-signature", None, "signature line"
    )
    assert finding.message.startswith("checkpoint 1 of size 51: ")


def test_row_38_checkpoint_size(evidence: Evidence):
    """The size line with the root of 51."""
    report = verify(evidence, edited(NOTE_51, 1, "50"))
    first_finding(report, "checkpoint-signature", None, "signature line")


def test_row_39_checkpoint_origin_of_another_log(evidence: Evidence):
    """A valid checkpoint of a log of another key, or of another chain of this key."""
    theirs = note_of(written(50), generate_signing_key("example.org/other"))
    first_finding(verify(evidence, theirs), "checkpoint-origin", None, "origin line")
    elsewhere = note_of(written(50, chain_id=OTHER_CHAIN_ID))
    finding = first_finding(verify(evidence, elsewhere), "checkpoint-origin", None, "origin line")
    assert f"is of chain {OTHER_CHAIN_ID.hex()}, verified are: {CHAIN_ID.hex()}" in finding.message


def test_row_39_the_chain_replaced(tmp_path: Path):
    """Another chain of the same key in this one's place, the old checkpoint given."""
    evidence = Evidence(build(tmp_path / "chain.db", chain_id=OTHER_CHAIN_ID))
    report = verify(evidence, NOTE_51)
    first_finding(report, "checkpoint-origin", None, "origin line")
    assert len(report.findings) == 1
    evidence.close()


def test_row_40_checkpoint_unknown_key(evidence: Evidence):
    """Signed by a key of the same name and 4-byte id."""
    twin = parse_note(note_of(written(50), generate_signing_key(PUBKEY.name)))
    line = replace(twin.signatures[0], key_hash=PUBKEY.key_hash)
    forged = str(replace(twin, signatures=(line,))).encode()
    first_finding(verify(evidence, forged), "checkpoint-signature", None, "signature line")


@pytest.mark.parametrize("size", [51, 101])
def test_row_41_checkpoint_pair(evidence: Evidence, size: int):
    """Two validly signed checkpoints that contradict each other: both notes are printed."""
    fork = Writer()
    fork.append(*map(span, range(501, 500 + size)))
    forged = note_of(fork)
    report = verify(evidence, NOTE_101, forged)
    finding = first_finding(report, "checkpoint-inconsistent", None, "size")
    assert repr(NOTE_101.decode()) in finding.message
    assert repr(forged.decode()) in finding.message
    assert f"checkpoints of size {size} (2) and 101 (1) are both signed" in finding.message


def test_row_44_note_parser(evidence: Evidence):
    """What is no note names its line."""
    for line, text in ((1, "4_2"), (1, "-1"), (1, "042"), (2, "AAAA"), (4, "junk")):
        report = verify(evidence, edited(NOTE_51, line, text))
        place = "line 5" if line == 4 else f"line {line + 1}"
        first_finding(report, "malformed-note", None, place)


def test_row_55_pq_stripped(evidence: Evidence):
    """The ML-DSA line removed while its key is pinned."""
    both = note_of(written(50), SIGNER, PQ_SIGNER)
    pinned = [PUBKEY, PQ_PUBKEY]
    no_finding(verify(evidence, both, pubkeys=pinned))
    parsed = parse_note(both)
    stripped = str(replace(parsed, signatures=parsed.signatures[:1])).encode()
    first_finding(verify(evidence, stripped, pubkeys=pinned), "checkpoint-signature", None, "note")
    no_finding(verify(evidence, stripped))


# --- fleets ----------------------------------------------------------------------------------


def fleet(tmp_path: Path) -> tuple[Evidence, bytes]:
    """Two chains and one that lists them, with its checkpoint."""
    chains = [written(20), written(5, chain_id=OTHER_CHAIN_ID, name="other")]
    listed = [
        {
            "chain_id": writer.head.chain_id.hex(),
            "root_hash": merkle.root(merkle.split_edge(writer.head.tree)).hex(),
            "size": writer.head.seq + 1,
        }
        for writer in chains
    ]
    lister = Writer(bytes(range(16)), "fleet")
    lister.append(seal.draft("fleet", canonical.dumps({"chains": listed})))
    for writer in (*chains, lister):
        writer.store(tmp_path / "fleet.db")
    return Evidence(tmp_path / "fleet.db"), note_of(lister)


def test_row_56_chain_vanished(tmp_path: Path):
    """One chain of a fleet deleted with its head; the fleet's checkpoint given."""
    evidence, note = fleet(tmp_path)
    report = verify(evidence, note)
    no_finding(report)
    assert len(report.checked["checkpoints"]) == 3
    for table in ("entries", "heads"):
        evidence.sql(f"DELETE FROM {table} WHERE chain_id = ?", OTHER_CHAIN_ID)
    no_finding(evidence.verify())
    report = verify(evidence, note)
    finding = first_finding(report, "chain-missing", None, "chain_id")
    assert finding.chain == OTHER_CHAIN_ID.hex()
    assert "fleet entry 1 of chain 000102" in finding.message
    evidence.close()


def test_row_56_a_chain_cut_or_changed_within_a_fleet(tmp_path: Path):
    """The list holds for each chain what its own checkpoint would."""
    evidence, note = fleet(tmp_path)
    shorter = written(3, chain_id=OTHER_CHAIN_ID, name="other")
    evidence.sql("DELETE FROM entries WHERE chain_id = ? AND seq > 3", OTHER_CHAIN_ID)
    head = shorter.head
    evidence.sql(
        "UPDATE heads SET seq = ?, tag = ?, tree = ?, mac = ? WHERE chain_id = ?",
        head.seq, head.tag, head.tree, head.mac, OTHER_CHAIN_ID,
    )  # fmt: skip
    no_finding(evidence.verify())
    finding = first_finding(verify(evidence, note), "truncated", 4, "size", last_seq=5)
    assert finding.chain == OTHER_CHAIN_ID.hex()
    evidence.close()


# --- notes that are sealed in the chain ------------------------------------------------------


def test_a_rewriter_leaves_the_sealed_note_behind(tmp_path: Path):
    """The secret alone does not sign: the old note in a rewritten chain contradicts it."""
    writer = written(29)
    rewritten = Writer()
    rewritten.append(*map(span, range(501, 530)))
    rewritten.append(checkpoint_draft(note_of(writer)))
    evidence = Evidence(rewritten.store(tmp_path / "chain.db"))
    no_finding(evidence.verify(deep=True))
    finding = first_finding(verify(evidence), "checkpoint-mismatch", 30, "body")
    assert "the checkpoint in entry 30: at size 30 the entries have another root" in finding.message
    evidence.close()


def test_a_sealed_note_that_convicts_the_signer(tmp_path: Path):
    """Whoever rewrites and signs again has signed two logs."""
    rewritten = Writer()
    rewritten.append(*map(span, range(501, 530)))
    rewritten.append(checkpoint_draft(note_of(written(29))))
    evidence = Evidence(rewritten.store(tmp_path / "chain.db"))
    report = verify(evidence, note_of(rewritten))
    first_finding(report, "checkpoint-inconsistent", 30, "body")
    evidence.close()


FAULTS = {
    "of-another-chain": (note_of(written(9, chain_id=OTHER_CHAIN_ID)), "checkpoint-origin"),
    "of-more-entries": (note_of(written(50)), "checkpoint-mismatch"),
    "no-note": (b"junk", "malformed-note"),
    "no-root": (edited(NOTE_51, 2, "AAAA"), "malformed-note"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_entry_that_holds_no_checkpoint_of_its_chain(tmp_path: Path, name: str):
    """Found without a public key: only a holder of the secret can have sealed it."""
    note, code = FAULTS[name]
    writer = written(20)
    writer.append(checkpoint_draft(note), span(30))
    evidence = Evidence(writer.store(tmp_path / "chain.db"))
    report = evidence.verify()
    first_finding(report, code, 21, "body")
    assert len(report.findings) == 1
    assert [finding.code for finding in verify(evidence).findings] == [code]
    evidence.close()


@pytest.mark.parametrize("body", [b"{}", b'{"note":7}', b'{"note":"x","more":1}', b"no JSON"])
def test_a_checkpoint_entry_without_a_note(tmp_path: Path, body: bytes):
    """Sealed by a holder of the secret, and nothing that could be compared."""
    writer = written(3)
    writer.append(seal.draft("checkpoint", body))
    evidence = Evidence(writer.store(tmp_path / "chain.db"))
    finding = first_finding(evidence.verify(), "malformed-note", 4, "body")
    assert "the body holds no note" in finding.message
    evidence.close()


def test_a_broken_signature_in_a_sealed_note(tmp_path: Path):
    """Under the name of a key that is given, and not made by it."""
    writer = written(9)
    twin = parse_note(note_of(writer, generate_signing_key(PUBKEY.name)))
    line = replace(twin.signatures[0], key_hash=PUBKEY.key_hash)
    writer.append(checkpoint_draft(str(replace(twin, signatures=(line,))).encode()))
    evidence = Evidence(writer.store(tmp_path / "chain.db"))
    no_finding(evidence.verify())
    first_finding(verify(evidence), "checkpoint-signature", 10, "body")
    evidence.close()


def test_a_sealed_note_edited_in_the_row(tmp_path: Path):
    """Without the secret that is an edited body as any other, whatever it says."""
    writer = written(9)
    writer.append(checkpoint_draft(note_of(writer)), span(20))
    evidence = Evidence(writer.store(tmp_path / "chain.db"))
    entry = evidence.entry(10)
    evidence.set(10, body=entry.body.replace(b"audit", b"wrong"))
    report = verify(evidence)
    first_finding(report, "body-hash-mismatch", 10, "body")
    assert len(report.findings) == 1
    evidence.put(10, reseal(entry, HmacKey(bytes(range(1, 33)))))
    first_finding(verify(evidence), "tag-mismatch", 10, "tag")
    evidence.close()
