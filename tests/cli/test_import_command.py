"""Chains of bijotel 2.x on the command line: verify, verify-export, import."""

from __future__ import annotations

import hmac
import shutil
import sqlite3
from hashlib import sha256

import pytest

from bijotel import KeyRing, verify_chain
from bijotel.legacy.carry import carried_rows
from bijotel.legacy.rows import COLUMNS, open_database
from bijotel.model import Entry
from bijotel.stores.sqlite import SqliteStore
from tests.cli.conftest import MASTER_KEY, OTHER_SECRET, append, span

OPEN_COLUMNS = "timestamp_ns, trace_id, span_id, span_name, span_kind, semantic_body_hash"


@pytest.fixture
def interop(shared):
    return shared / "interop" / "bijotel-2.17"


@pytest.fixture
def old(interop, tmp_path):
    path = tmp_path / "old.db"
    shutil.copyfile(interop / "chain_vectors.db", path)
    return path


@pytest.fixture
def new(tmp_path):
    return tmp_path / "new.db"


def tamper_old(path, statement):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


def long_database(path, count):
    """Seal rows as that version did."""
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE chain ({', '.join(COLUMNS)})")
    before = "0" * 64
    for seq in range(1, count + 1):
        body = f'{{"name":"chat {seq}"}}'.encode()
        digest = sha256(body).hexdigest()
        tag = hmac.digest(MASTER_KEY, (before + digest).encode(), "sha256").hex()
        row = (seq, seq, "", "", "", "", body, digest, before, tag, None)
        connection.execute(f"INSERT INTO chain VALUES ({', '.join('?' * 11)})", row)
        before = tag
    connection.commit()
    connection.close()
    return path


# --- verify ----------------------------------------------------------------------------------


def test_verify_an_old_database(bijotel, secret, old):
    """OK of what that format covers: the open columns and the tail are named."""
    before = old.read_bytes()
    result = bijotel("verify", "--db", old)
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "OK: bijotel 2.x: no findings, 13 entries read\n"
        f"not checked: columns that this format does not cover: seq, {OPEN_COLUMNS}\n"
        "not checked: completeness of the tail: this format cannot show that the end was cut off\n"
    )
    assert old.read_bytes() == before


def test_verify_a_tampered_old_database(bijotel, secret, old):
    """Findings as for any chain: code, entry, column; exit 1."""
    tamper_old(old, "UPDATE chain SET canonical_body = x'7b7d' WHERE seq = 5")
    result = bijotel("verify", "--db", old)
    assert result.code == 1
    assert result.out.startswith(
        "FAILED: bijotel 2.x: 1 finding, 13 entries read\n"
        "  body-hash-mismatch: entry 5, column canonical_body: "
    )
    document = bijotel("verify", "--db", old, "--json").document
    assert document["findings"][0]["seq"] == 5


def test_options_that_the_old_format_has_nothing_for(bijotel, secret, old):
    """Exit 2: no ids, no checkpoints."""
    result = bijotel("verify", "--db", old, "--chain", "00" * 16)
    message = f"{old}: a database of bijotel 2.x has neither chain ids nor checkpoints"
    assert result == (2, "", f"error: {message}\n")


@pytest.mark.parametrize(
    ("name", "with_secret", "with_public_key"),
    [
        ("export_v1.json", 0, 1),
        ("export_v1_segment_4_8.json", 0, 1),
        ("export_v1_tampered_body.json", 1, 1),
        ("export_v1_tampered_metadata.json", 0, 1),
        ("export_v2.json", 0, 3),
        ("export_v2_forged_without_any_key.json", 1, 3),
    ],
)
def test_old_exports(bijotel, interop, monkeypatch, name, *, with_secret, with_public_key):
    """With the secret what the format covers; with the public key alone nothing is proven."""
    public_key = interop / "ed25519_public.pem"
    result = bijotel("verify-export", interop / name, "--pubkey", public_key)
    assert result.code == with_public_key
    assert not result.out.startswith("OK")
    assert bijotel("verify-export", interop / name).code == (1 if "tampered_body" in name else 3)
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", MASTER_KEY.hex())
    result = bijotel("verify-export", interop / name)
    assert result.code == with_secret
    assert (
        f"not checked: columns that this format does not cover: seq, {OPEN_COLUMNS}" in result.out
    )


def test_one_public_key_at_most(bijotel, interop):
    """Exit 2: that format knows one."""
    key = interop / "ed25519_public.pem"
    result = bijotel("verify-export", interop / "export_v2.json", "--pubkey", key, "--pubkey", key)
    message = "--pubkey: an export of bijotel 2.x has one public key at most"
    assert result == (2, "", f"error: {message}\n")


def test_contradicting_columns_of_an_old_export_are_noticed(bijotel, secret, interop):
    """What the format leaves open and the covered body contradicts is told, and proves nothing."""
    out = bijotel("verify-export", interop / "export_v1_tampered_metadata.json").out
    assert "notice: column-mismatch: entry 2: span_name is " in out


# --- import ----------------------------------------------------------------------------------


def test_import(bijotel, secret, old, new):
    """Every column of every row is carried over, sealed, and proven to be there."""
    before = old.read_bytes()
    result = bijotel("import", old, "--db", new)
    assert result.code == 0
    assert result.out.startswith("OK: bijotel 2.x: no findings, 13 entries read\n")
    with SqliteStore(new).snapshot() as snapshot:
        ((chain_id, name, *_),) = snapshot.head_rows()
        entries = [Entry._make(row.columns) for row in snapshot.select(chain_id)]
    assert result.out.endswith(
        f"imported: 13 rows into chain default ({chain_id.hex()}); every one was read back and "
        "compared\n"
    )
    assert name == "default"
    report = verify_chain(new, KeyRing(MASTER_KEY), deep=True)
    assert (report.ok, report.chains[0].kinds) == (True, {"genesis": 1, "import": 14})
    with open_database(old) as rows:
        assert list(carried_rows(entries)) == list(rows)
    assert old.read_bytes() == before


def test_import_under_a_new_secret(bijotel, old, new, monkeypatch):
    """The first key seals; the old secret stays what verifies the old rows."""
    monkeypatch.setenv("NEW", OTHER_SECRET)
    monkeypatch.setenv("OLD", MASTER_KEY.hex())
    keys = ("--key", "env:NEW", "--key", "env:OLD")
    document = bijotel("import", old, "--db", new, *keys, "--json").document
    assert (document["rows"], document["old"]["ok"]) == (13, True)
    report = verify_chain(new, bytes.fromhex(OTHER_SECRET), chain=document["chain"])
    assert report.ok


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chain SET canonical_body = x'7b7d' WHERE seq = 5",
        "UPDATE chain SET hmac_hash = prev_hash WHERE seq = 13",
        "DELETE FROM chain WHERE seq = 4",
        "DELETE FROM chain",
    ],
)
def test_an_old_database_that_does_not_verify(bijotel, secret, old, new, statement):
    """Exit 1, and nothing is written."""
    tamper_old(old, statement)
    result = bijotel("import", old, "--db", new)
    assert result.code == 1
    assert result.out.startswith("FAILED: bijotel 2.x: 1 finding, ")
    assert result.out.endswith("nothing was written\n")
    assert not new.exists()


def test_a_wrong_secret(bijotel, old, new, monkeypatch):
    """Exit 1: either the wrong secret, or a forgery."""
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", OTHER_SECRET)
    document = bijotel("import", old, "--db", new, "--json").document
    assert document["old"]["findings"][0]["code"] == "wrong-key"
    assert (document["chain"], document["rows"]) == (None, 0)
    assert not new.exists()


def test_into_a_store_that_has_chains(bijotel, secret, old, db):
    """Beside another chain, under a name of its own; never into one that is there."""
    result = bijotel("import", old, "--db", db)
    assert result == (2, "", f"error: {db}: has a chain 'default' already\n")
    assert bijotel("import", old, "--db", db, "--chain", "old").code == 0
    report = verify_chain(db, MASTER_KEY)
    assert {chain.name: chain.entries for chain in report.chains} == {"default": 6, "old": 15}


def test_what_is_no_old_database(bijotel, secret, new, tmp_path):
    """A store of ours: exit 2. No file: exit 3."""
    ours = append(tmp_path / "ours.db", [span(1)])
    result = bijotel("import", ours, "--db", new)
    assert result == (2, "", f"error: {ours}: is no database of bijotel 2.x\n")
    result = bijotel("import", tmp_path / "no.db", "--db", new)
    assert (result.code, result.out) == (3, "")
    assert not new.exists()


def test_many_rows(bijotel, secret, new, tmp_path):
    """More rows than one transaction takes."""
    old = long_database(tmp_path / "long.db", 700)
    assert bijotel("import", old, "--db", new, "--json").document["rows"] == 700
    assert verify_chain(new, MASTER_KEY).chains[0].entries == 702
