"""``bijotel prove``, ``verify-proof`` and ``consistency``: what they write, check and refuse."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bijotel.checkpoint import parse_checkpoint
from bijotel.consistency import verify_consistency_file
from bijotel.proof import parse_proof, verify_proof
from bijotel.stores.sqlite import SqliteStore
from tests.cli.conftest import (
    CHAIN_HEX,
    CHAIN_ID,
    append,
    body,
    installed,
    rag,
    source,
    span,
    tamper,
)
from tests.cli.evidence import key, note, save


@pytest.fixture
def pair(tmp_path):
    return save(tmp_path)


@pytest.fixture
def checkpoint(db, tmp_path):
    """A checkpoint of entries 0 to 5."""
    path = tmp_path / "a.checkpoint"
    path.write_bytes(note(db))
    return path


@pytest.fixture
def later(db, checkpoint, tmp_path):
    """A later one, of entries 0 to 8."""
    append(db, [span(number) for number in range(6, 9)])
    path = tmp_path / "b.checkpoint"
    path.write_bytes(note(db))
    return path


@pytest.fixture
def proof(bijotel, db, checkpoint, tmp_path):
    """The proof of entry 3."""
    path = tmp_path / "decision.tlog-proof"
    result = bijotel("prove", "--db", db, "3", "--checkpoint", checkpoint, "-o", path)
    assert (result.code, result.err) == (0, "")
    return path


def test_a_proof(bijotel, db, checkpoint, proof, pair):
    """One file for its owner alone; it proves the entry to whoever has the key, without secret."""
    assert "BIJOTEL_HMAC_SECRET" not in os.environ
    assert stat.S_IMODE(proof.stat().st_mode) == 0o600
    proven = verify_proof(proof.read_bytes(), [key().verifier])
    assert (proven.entry.seq, proven.checkpoint.size) == (3, 6)
    assert parse_proof(proof.read_bytes()).note == checkpoint.read_bytes()
    document = bijotel(
        "prove", "--db", db, "4", "--checkpoint", checkpoint, "-o", proof, "--json"
    ).document
    assert document == {
        "chain": CHAIN_HEX, "seq": 4, "size": 6, "file": str(proof),
        "bytes": proof.stat().st_size,
    }  # fmt: skip
    assert verify_proof(proof.read_bytes(), [key().verifier]).entry.seq == 4


def test_a_proof_is_checked_anywhere(proof, pair, tmp_path):
    """No database, no secret, no network: another folder, and an environment with nothing in it."""
    result = installed(
        "verify-proof", proof, "--pubkey", pair.public, BIJOTEL_HMAC_SECRET="", HOME=str(tmp_path)
    )
    assert (result.code, result.err) == (0, "")
    first, *lines = result.out.splitlines()
    name = f"bijotel+{key().verifier.key_hash.hex()}"
    assert first == (
        f"OK: entry 3 of bijotel/{CHAIN_HEX}: covered by the checkpoint of size 6 that {name} signed"
    )
    assert "not checked: that what was sealed is true" in lines
    assert "not checked: any other entry of the log" in lines
    assert "=== Span Metadata ===" in lines
    assert "span_id:             0000000000000003" in lines
    assert any('"gen_ai.input.messages":"question 3"' in line for line in lines)


def test_the_provenance_of_a_proven_call(bijotel, db, pair, tmp_path):
    """One decision, with the sources that fed it."""
    append(db, [span(9, attributes=rag([source(document_id="warranty.pdf")]))])
    (tmp_path / "c.checkpoint").write_bytes(note(db))
    out = tmp_path / "p"
    arguments = ("--checkpoint", tmp_path / "c.checkpoint", "-o", out)
    assert bijotel("prove", "--db", db, "6", *arguments).code == 0
    lines = bijotel("verify-proof", out, "--pubkey", pair.public).out
    assert "=== RAG Provenance ===" in lines
    assert "source 1: doc=warranty.pdf" in lines


def test_an_entry_that_is_no_span(bijotel, db, checkpoint, pair, tmp_path):
    """The genesis can be proven as well."""
    out = tmp_path / "p"
    assert bijotel("prove", "--db", db, "0", "--checkpoint", checkpoint, "-o", out).code == 0
    document = bijotel("verify-proof", out, "--pubkey", pair.public, "--json").document
    assert (document["ok"], document["entry"]["kind"]) == (True, "genesis")
    assert document["checkpoint"]["size"] == 6
    assert document["keys"] == [f"bijotel+{key().verifier.key_hash.hex()}"]


@pytest.mark.parametrize(
    ("draft", "line"),
    [
        (
            body("gap", {})._replace(kind="novel", fmt="novel/1"),
            "notice: kind novel, format novel/1",
        ),
        (
            body("gap", {"a": 1})._replace(kind="span", fmt="span/1"),
            "body:                cannot be read",
        ),
    ],
)
def test_a_proven_entry_that_cannot_be_read(bijotel, db, pair, tmp_path, *, draft, line):
    """It is in the log all the same; what cannot be shown is said."""
    append(db, [draft])
    (tmp_path / "c").write_bytes(note(db))
    arguments = ("--checkpoint", tmp_path / "c", "-o", tmp_path / "p")
    assert bijotel("prove", "--db", db, "6", *arguments).code == 0
    result = bijotel("verify-proof", tmp_path / "p", "--pubkey", pair.public)
    assert result.code == 0
    assert any(each.startswith(line) for each in result.out.splitlines())


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (lambda text: text.replace("index 3", "index 2"), "malformed-proof"),
        (lambda text: text.replace("\n6\n", "\n7\n"), "checkpoint-signature"),
        (lambda text: text.replace("c2sp.org", "c3sp.org"), "malformed-proof"),
        (lambda text: text[:-2], "malformed-note"),
        (lambda _: "", "malformed-proof"),
    ],
)
def test_a_proof_that_was_edited(bijotel, proof, pair, edit, code):
    """Exit 1, and no entry is shown."""
    proof.write_text(edit(proof.read_text()))
    result = bijotel("verify-proof", proof, "--pubkey", pair.public, "--json")
    assert (result.code, result.document["error"]["code"]) == (1, code)
    result = bijotel("verify-proof", proof, "--pubkey", pair.public)
    assert (result.code, result.out) == (1, "")


def test_another_key(bijotel, proof, pair, tmp_path):
    """Exit 1: somebody else's signature proves nothing, and every key given must have signed."""
    other = save(tmp_path, 1)
    for keys in (("--pubkey", other.public), ("--pubkey", pair.public, "--pubkey", other.public)):
        result = bijotel("verify-proof", proof, *keys, "--json")
        assert (result.code, result.document["error"]["code"]) == (1, "checkpoint-signature")


def test_verifying_a_proof_asked_wrongly(bijotel, proof, tmp_path):
    """No key: exit 2. No file: exit 3."""
    result = bijotel("verify-proof", proof)
    assert result.code == 2
    assert "Missing option '--pubkey'" in result.err
    result = bijotel("verify-proof", tmp_path / "no", "--pubkey", str(key().verifier))
    assert result == (
        3,
        "",
        f"error: {tmp_path / 'no'}: cannot be read: No such file or directory\n",
    )


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE entries SET body = x'7b7d' WHERE seq = 3", "checkpoint-mismatch"),
        ("UPDATE entries SET name = 'x' WHERE seq = 1", "checkpoint-mismatch"),
        ("DELETE FROM entries WHERE seq = 3", "seq-gap"),
        ("UPDATE entries SET tag = 'x' WHERE seq = 3", "type-mismatch"),
    ],
)
def test_a_store_that_is_not_what_was_signed(bijotel, db, checkpoint, tmp_path, statement, *, code):
    """Exit 1, and nothing is written."""
    tamper(db, statement)
    out = tmp_path / "p"
    result = bijotel("prove", "--db", db, "3", "--checkpoint", checkpoint, "-o", out, "--json")
    assert (result.code, result.document["error"]["code"]) == (1, code)
    assert not out.exists()


def test_row_50_a_poisoned_tile(bijotel, db, pair, tmp_path):
    """``prove`` makes the tile again from the rows, and the proof holds."""
    append(db, [span(number) for number in range(10, 300)])
    (tmp_path / "c").write_bytes(note(db))
    prove = ("prove", "--db", db, "3", "--checkpoint", tmp_path / "c", "-o", tmp_path / "p")
    assert bijotel(*prove).code == 0
    tamper(db, "UPDATE tiles SET hashes = zeroblob(length(hashes))")
    (tmp_path / "p").unlink()
    assert bijotel(*prove).code == 0
    assert verify_proof((tmp_path / "p").read_bytes(), [key().verifier]).entry.seq == 3


def test_proving_asked_wrongly(bijotel, db, checkpoint, tmp_path):
    """An entry behind the checkpoint: exit 2. A checkpoint of another chain: exit 1."""
    out = tmp_path / "p"
    result = bijotel("prove", "--db", db, "6", "--checkpoint", checkpoint, "-o", out)
    message = "entry 6: the checkpoint of size 6 does not cover it"
    assert result == (2, "", f"error: {message}\n")
    other = append(tmp_path / "other.db", [span(1)], chain_id=b"2" * 16)
    result = bijotel("prove", "--db", other, "1", "--checkpoint", checkpoint, "-o", out, "--json")
    assert (result.code, result.document["error"]["code"]) == (1, "checkpoint-origin")
    assert f"the store has the chains: {'32' * 16}" in result.err
    result = bijotel("prove", "--db", db, "-1", "--checkpoint", checkpoint, "-o", out)
    assert result.code == 2
    assert not out.exists()


def test_a_store_that_nobody_may_write(bijotel, db, checkpoint, tmp_path):
    """Without tiles it takes longer, and gives the same proof."""
    before = db.read_bytes()
    db.chmod(0o444)
    assert (
        bijotel("prove", "--db", db, "3", "--checkpoint", checkpoint, "-o", tmp_path / "p").code
        == 0
    )
    assert os.geteuid() == 0 or db.read_bytes() == before
    assert verify_proof((tmp_path / "p").read_bytes(), [key().verifier]).entry.seq == 3


# --- consistency -----------------------------------------------------------------------------


def test_a_later_checkpoint_only_appended(bijotel, db, checkpoint, later, pair, *, tmp_path):
    """Made from the store, written for others, and checked by them without it."""
    out = tmp_path / "consistency"
    keys = ("--pubkey", pair.public)
    result = bijotel("consistency", "--db", db, checkpoint, later, *keys, "-o", out)
    said = f"OK: bijotel/{CHAIN_HEX}: from 6 to 9 entries the log only appended\n"
    assert result == (0, f"{said}written: {out}\n", "")
    old = parse_checkpoint(checkpoint.read_bytes())
    assert verify_consistency_file(out.read_bytes(), old, [key().verifier]).size == 9
    assert bijotel("consistency", checkpoint, out, *keys) == (0, said, "")
    document = bijotel("consistency", checkpoint, out, *keys, "--json").document
    assert document == {
        "ok": True, "origin": f"bijotel/{CHAIN_HEX}", "old_size": 6, "new_size": 9, "file": None,
        "not_checked": [],
    }  # fmt: skip


def test_without_a_key_it_says_so(bijotel, db, checkpoint, later):
    """The store's tree leads from one to the other; who signed them is another question."""
    result = bijotel("consistency", "--db", db, checkpoint, later)
    assert result.code == 0
    assert "not checked: who signed the checkpoints (see --pubkey)\n" in result.out


def test_a_checkpoint_that_did_more_than_append(bijotel, db, checkpoint, pair, tmp_path):
    """Exit 1: history was rewritten between the two."""
    other = append(tmp_path / "other.db", [span(n) for n in range(30, 39)])
    (tmp_path / "b").write_bytes(note(other))
    result = bijotel(
        "consistency", "--db", other, checkpoint, tmp_path / "b", "--pubkey", pair.public, "--json"
    )
    assert (result.code, result.document["error"]["code"]) == (1, "proof-rejected")


def test_the_wrong_way_round(bijotel, db, checkpoint, later, pair):
    """Exit 1: the second one is smaller."""
    result = bijotel("consistency", "--db", db, later, checkpoint, "--json")
    assert (result.code, result.document["error"]["code"]) == (1, "checkpoint-inconsistent")


def test_a_forged_consistency_file(bijotel, db, checkpoint, later, pair, *, tmp_path):
    """Exit 1: a hash that was changed, or no such file at all."""
    out = tmp_path / "consistency"
    bijotel("consistency", "--db", db, checkpoint, later, "-o", out)
    lines = out.read_text().split("\n")
    lines[1] = lines[2]
    out.write_text("\n".join(lines))
    keys = ("--pubkey", pair.public, "--json")
    result = bijotel("consistency", checkpoint, out, *keys)
    assert (result.code, result.document["error"]["code"]) == (1, "proof-rejected")
    result = bijotel("consistency", checkpoint, later, *keys)
    assert (result.code, result.document["error"]["code"]) == (1, "malformed-consistency")


@pytest.mark.parametrize("arguments", [(), ("--pubkey", "KEY", "-o", "x")])
def test_consistency_asked_wrongly(bijotel, checkpoint, arguments):
    """Without a store there is nothing to make a proof from."""
    given = [str(key().verifier) if each == "KEY" else each for each in arguments]
    result = bijotel("consistency", checkpoint, checkpoint, *given)
    message = "without --db the proof is in NEW: expected --pubkey and no -o"
    assert result == (2, "", f"error: {message}\n")
    assert not Path("x").exists()


def test_tiles_are_no_part_of_what_is_verified(bijotel, secret, db, checkpoint, proof):
    """The table that proofs leave behind changes no verdict."""
    with SqliteStore(db).snapshot() as snapshot:
        assert len(list(snapshot.select(CHAIN_ID))) == 6
    assert bijotel("verify", "--db", db).code == 0
