"""``bijotel checkpoint`` and ``verify --checkpoint``: what is signed, refused and shown."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from bijotel import canonical
from bijotel.checkpoint import parse_checkpoint, verify_checkpoint
from bijotel.stores.sqlite import SqliteStore
from tests.cli.conftest import CHAIN_HEX, CHAIN_ID, OTHER_SECRET, append, span, tamper
from tests.cli.evidence import head, key, note, save


@pytest.fixture
def pair(tmp_path):
    return save(tmp_path)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "newest.checkpoint"


def rows(db: Path, **columns):
    with SqliteStore(db).snapshot() as snapshot:
        found = snapshot.select(CHAIN_ID, tuple(columns.items()))
        return [row.columns for row in found]


def octets(db: Path) -> bytes:
    tamper(db, "PRAGMA user_version")  # puts the log into the file
    return db.read_bytes()


# --- signing ---------------------------------------------------------------------------------


def test_a_checkpoint_on_standard_output(bijotel, secret, db, pair):
    """Exactly the note, which covers what was there, and is recorded behind it."""
    result = bijotel("checkpoint", "--db", db, "--signing-key", f"file:{pair.private}")
    assert (result.code, result.err) == (0, "")
    checkpoint = verify_checkpoint(result.out.encode(), [key().verifier])
    assert (checkpoint.origin, checkpoint.size) == (f"bijotel/{CHAIN_HEX}", 6)
    (row,) = rows(db, kind="checkpoint")
    assert row[1] == 6
    assert canonical.loads(row[-1]) == {"note": result.out}


def test_a_checkpoint_in_a_file(bijotel, secret, db, pair, out):
    """The file holds the note, for everybody to read; the next one takes its place."""
    arguments = ("checkpoint", "--db", db, "--signing-key", f"file:{pair.private}", "--out", out)
    result = bijotel(*arguments)
    assert result == (0, f"signed:  bijotel/{CHAIN_HEX}, 6 entries\nwritten: {out}\n", "")
    first = out.read_bytes()
    assert stat.S_IMODE(out.stat().st_mode) == 0o644
    document = bijotel(*arguments, "--json").document
    newest = verify_checkpoint(out.read_bytes(), [key().verifier])
    assert (parse_checkpoint(first).size, newest.size) == (6, 7)
    assert document["checkpoint"] == out.read_text()
    assert (document["size"], document["chain"]) == (7, CHAIN_HEX)
    assert document["file"] == str(out)
    assert sorted(path.name for path in out.parent.iterdir() if path.name[0] == ".") == []


def test_both_kinds_of_signatures(bijotel, secret, db, pair, tmp_path):
    """An ML-DSA-44 key signs beside the Ed25519 key, in this order only."""
    second = save(tmp_path, 0, 6)
    sources = ["--signing-key", f"file:{pair.private}", "--signing-key", f"file:{second.private}"]
    result = bijotel("checkpoint", "--db", db, *sources)
    verify_checkpoint(result.out.encode(), [key().verifier, key(0, 6).verifier])
    result = bijotel("checkpoint", "--db", db, *sources[2:], *sources[:2])
    assert (result.code, result.out) == (2, "")
    assert "expected one Ed25519 key, then at most one ML-DSA" in result.err


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE heads SET tree = zeroblob(length(tree))", "no key of the ring made this record"),
        ("UPDATE heads SET seq = 5, tag = zeroblob(32)", "no key of the ring made this record"),
        ("UPDATE heads SET mac = x'00'", "a head record is malformed; nothing was signed"),
        ("DELETE FROM heads", "rows but no head record that names their chain"),
        ("DROP TABLE heads", "table heads is missing"),
    ],
)
def test_row_50_a_head_that_does_not_verify(bijotel, secret, db, pair, out, *, statement, message):
    """Exit 1, and nothing is written: neither the file nor an entry."""
    tamper(db, statement)
    before = octets(db)
    result = bijotel(
        "checkpoint", "--db", db, "--signing-key", f"file:{pair.private}", "--out", out
    )
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert not out.exists()
    assert octets(db) == before


def test_a_secret_that_is_not_the_chains(bijotel, db, pair, monkeypatch):
    """Exit 1: the head cannot be trusted without the key that made it."""
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", OTHER_SECRET)
    result = bijotel("checkpoint", "--db", db, "--signing-key", f"file:{pair.private}", "--json")
    assert result.code == 1
    assert result.document["error"]["code"] == "head-mismatch"
    assert rows(db, kind="checkpoint") == []


def test_row_57_a_store_that_was_rolled_back(bijotel, secret, db, pair, *, out, tmp_path):
    """Exit 1: the newer note stays, and nothing is recorded."""
    older = Path(shutil.copyfile(db, tmp_path / "older.db"))
    append(db, [span(7), span(8)])
    arguments = ("--signing-key", f"file:{pair.private}", "--out", out)
    assert bijotel("checkpoint", "--db", db, *arguments).code == 0
    newest, before = out.read_bytes(), octets(older)
    result = bijotel("checkpoint", "--db", older, *arguments)
    message = f"chain {CHAIN_HEX} has 6 entries, the earlier checkpoint 8"
    assert result == (1, "", f"error: {message}\n")
    document = bijotel("checkpoint", "--db", older, *arguments, "--json").document
    assert document == {"error": {"code": "truncated", "message": message}}
    assert out.read_bytes() == newest
    assert octets(older) == before
    append(older, [span(number) for number in range(20, 30)])
    result = bijotel("checkpoint", "--db", older, *arguments, "--json")
    assert (result.code, result.document["error"]["code"]) == (1, "checkpoint-mismatch")
    assert out.read_bytes() == newest


def test_a_file_of_another_chain(bijotel, secret, db, pair, *, out, tmp_path):
    """Exit 1: a chain's note takes the place of its own ones only."""
    other = append(tmp_path / "other.db", [span(1)], chain_id=b"2" * 16)
    assert (
        bijotel(
            "checkpoint", "--db", other, "--signing-key", f"file:{pair.private}", "--out", out
        ).code
        == 0
    )
    newest = out.read_bytes()
    result = bijotel(
        "checkpoint", "--db", db, "--signing-key", f"file:{pair.private}", "--out", out, "--json"
    )
    assert (result.code, result.document["error"]["code"]) == (1, "checkpoint-origin")
    assert out.read_bytes() == newest


def test_a_file_of_something_else(bijotel, secret, db, pair, out):
    """Exit 2: it is not overwritten."""
    out.write_text("precious")
    result = bijotel(
        "checkpoint", "--db", db, "--signing-key", f"file:{pair.private}", "--out", out
    )
    assert (result.code, result.out) == (2, "")
    assert f"{out}: holds no checkpoint and is not overwritten" in result.err
    assert out.read_text() == "precious"
    assert rows(db, kind="checkpoint") == []


def test_a_poisoned_tile_does_not_speak_for_an_older_note(bijotel, secret, db, pair, out):
    """Row 50: what a tile says is checked against the rows before anybody is accused."""
    append(db, [span(number) for number in range(10, 300)])
    arguments = ("checkpoint", "--db", db, "--signing-key", f"file:{pair.private}", "--out", out)
    assert bijotel(*arguments).code == 0
    assert bijotel(*arguments).code == 0
    tamper(db, "UPDATE tiles SET hashes = zeroblob(length(hashes))")
    assert bijotel(*arguments).code == 0
    assert parse_checkpoint(out.read_bytes()).size == 298


def test_a_folder_that_is_not_there(bijotel, secret, db, pair, tmp_path):
    """Exit 3, and nothing is recorded."""
    out = tmp_path / "no" / "a.checkpoint"
    result = bijotel(
        "checkpoint", "--db", db, "--signing-key", f"file:{pair.private}", "--out", out
    )
    assert (result.code, result.out) == (3, "")
    assert f"{out.parent}: cannot be used: No such file or directory" in result.err
    assert rows(db, kind="checkpoint") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing option '--signing-key'"),
        (("--signing-key", "file:/nowhere"), "signing key file /nowhere: No such file"),
        (("--signing-key", "KEY", "--chain", "none"), "chain 'none': not in this store"),
        (("--signing-key", "KEY", "--chain", "default", "--fleet"), "--fleet or --chain"),
    ],
)
def test_asked_wrongly(bijotel, secret, db, pair, *, arguments, message):
    """Exit 2."""
    given = [str(pair.private) if each == "KEY" else each for each in arguments]
    result = bijotel("checkpoint", "--db", db, *given)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_one_of_several_chains(bijotel, secret, db, pair):
    """A store with several chains wants to be told which one."""
    append(db, [span(1)], chain="second", chain_id=b"2" * 16)
    result = bijotel("checkpoint", "--db", db, "--signing-key", str(pair.private))
    assert result.code == 2
    assert "the store has 2 chains, name one of them: default, second" in result.err
    result = bijotel(
        "checkpoint", "--db", db, "--signing-key", str(pair.private), "--chain", "second"
    )
    assert parse_checkpoint(result.out.encode()).chain_id == b"2" * 16


# --- a fleet ---------------------------------------------------------------------------------


def test_row_56_a_chain_that_vanished(bijotel, secret, db, pair, tmp_path):
    """A fleet's checkpoint names every chain, also one that is gone with its head."""
    append(db, [span(1), span(2)], chain="second", chain_id=b"2" * 16)
    sign = ("checkpoint", "--db", db, "--signing-key", str(pair.private), "--fleet")
    (tmp_path / "fleet.checkpoint").write_text(bijotel(*sign).out)
    assert head(db, "fleet").seq == 2
    check = (
        "verify", "--db", db, "--checkpoint", tmp_path / "fleet.checkpoint",
        "--pubkey", pair.public,
    )  # fmt: skip
    result = bijotel(*check, "--json")
    fleet_id = head(db, "fleet").chain_id.hex()
    assert result.code == 0
    assert result.document["checked"]["checkpoints"] == {fleet_id: 2, CHAIN_HEX: 6, "32" * 16: 3}
    tamper(db, "DELETE FROM entries WHERE chain_id = ?", b"2" * 16)
    tamper(db, "DELETE FROM heads WHERE chain_id = ?", b"2" * 16)
    result = bijotel(*check, "--json")
    (finding,) = result.document["findings"]
    assert (result.code, finding["code"]) == (1, "chain-missing")
    assert (finding["chain"], finding["column"]) == ("32" * 16, "chain_id")
    out = bijotel(*check).out
    assert f"FAILED: store {db}: 1 finding\n  chain-missing: column chain_id: chain 3232" in out


def test_a_fleet_with_a_forged_head(bijotel, secret, db, pair):
    """One head that does not verify: nothing is listed, nothing is signed."""
    append(db, [span(1)], chain="second", chain_id=b"2" * 16)
    tamper(db, "UPDATE heads SET tag = zeroblob(32) WHERE name = 'second'")
    result = bijotel("checkpoint", "--db", db, "--signing-key", str(pair.private), "--fleet")
    assert (result.code, result.out) == (1, "")
    assert f"head of chain {'32' * 16}: no key of the ring made this record" in result.err
    with SqliteStore(db).snapshot() as snapshot:
        assert [row[1] for row in snapshot.head_rows()] == ["default", "second"]


def test_a_fleet_with_a_malformed_head(bijotel, secret, db, pair):
    """Nobody knows whose it is, so nothing is listed."""
    append(db, [span(1)], chain="second", chain_id=b"2" * 16)
    tamper(db, "UPDATE heads SET seq = 'x' WHERE name = 'second'")
    result = bijotel("checkpoint", "--db", db, "--signing-key", str(pair.private), "--fleet")
    message = "a head record is malformed; nothing was signed"
    assert result == (1, "", f"error: {message}\n")


# --- verify ----------------------------------------------------------------------------------


def test_verify_against_a_checkpoint(bijotel, secret, db, pair, out):
    """The report says up to where the log is what was signed."""
    out.write_bytes(note(db))
    result = bijotel("verify", "--db", db, "--checkpoint", out, "--pubkey", pair.public)
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        f"OK: chain default ({CHAIN_HEX}): no findings, 6 entries read (1 genesis, 5 span)\n"
        f"checkpoint: the first 6 entries of chain {CHAIN_HEX} are what was signed\n"
        "not checked: completeness of the tail behind entry 5\n"
    )


def test_a_key_is_required(bijotel, secret, db, out):
    """Exit 2: without one, anybody's checkpoint would do."""
    out.write_bytes(note(db))
    message = "verifier key: at least one is required to check a checkpoint"
    assert bijotel("verify", "--db", db, "--checkpoint", out) == (2, "", f"error: {message}\n")


def test_every_key_must_have_signed(bijotel, secret, db, pair, *, out, tmp_path):
    """Row 55: a signature that was taken away while its key is pinned."""
    out.write_bytes(note(db))
    second = save(tmp_path, 0, 6)
    keys = ("--pubkey", pair.public, "--pubkey", second.public)
    result = bijotel("verify", "--db", db, "--checkpoint", out, *keys)
    assert result.code == 1
    assert f"FAILED: store {db}: 1 finding\n  checkpoint-signature: column note: " in result.out
    out.write_bytes(note(db, key(), key(0, 6)))
    assert bijotel("verify", "--db", db, "--checkpoint", out, *keys).code == 0


def test_files_that_are_not_there(bijotel, secret, db, pair, *, out, tmp_path):
    """A checkpoint that is missing could not be checked; a key that is missing is asked wrongly."""
    keys = ("--pubkey", pair.public)
    result = bijotel("verify", "--db", db, "--checkpoint", out, *keys)
    assert result == (3, "", f"error: {out}: cannot be read: No such file or directory\n")
    out.write_bytes(note(db))
    result = bijotel("verify", "--db", db, "--checkpoint", out, "--pubkey", tmp_path / "no.pub")
    assert result.code == 2
    assert "no.pub: No such file or directory" in result.err
