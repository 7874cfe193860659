"""``bijotel verify``: what it prints for sound and for tampered chains."""

from __future__ import annotations

from pathlib import Path

from bijotel.verify import verify_chain
from tests.cli.conftest import (
    CHAIN_HEX,
    MASTER_KEY,
    OTHER_SECRET,
    SEALED_AT,
    append,
    gap,
    span,
    tamper,
)

NOT_CHECKED = (
    "not checked: which chain this is (any chain sealed with this key passes; name the one you "
    "mean with --chain ID)\n"
    "not checked: completeness of the tail (not provable without a checkpoint: entries cut off "
    "at the end, together with an older head record, leave a chain that passes)\n"
)


def test_a_sound_chain(bijotel, secret, db):
    """A verdict line, and what the verdict does not say."""
    append(db, [gap(3)])
    assert bijotel("verify", "--db", db) == (
        0,
        f"OK: chain default ({CHAIN_HEX}): no findings, 7 entries read (1 gap, 1 genesis, 5 span)\n"
        + NOT_CHECKED,
        "",
    )


def test_options_reach_the_verifier(bijotel, secret, db):
    """Chain, depth and workers change the work, not the verdict."""
    result = bijotel("verify", "--db", db, "--chain", CHAIN_HEX, "--deep", "--workers", 2, "--json")
    assert result.code == 0
    assert result.document["checked"] == {"chains": 1, "entries": 6, "deep": True}


def test_a_changed_body_names_entry_and_column(bijotel, secret, db):
    """One line says what, where, expected and found."""
    tamper(db, "UPDATE entries SET body = replace(body, 'question', 'Question') WHERE seq = 3")
    tamper(db, "UPDATE entries SET body = CAST(body AS BLOB) WHERE seq = 3")
    result = bijotel("verify", "--db", db)
    finding = verify_chain(db, MASTER_KEY).findings[0]
    assert result.code == 1
    assert result.out == (
        f"FAILED: chain default ({CHAIN_HEX}): 1 finding, 6 entries read (1 genesis, 5 span)\n"
        "  body-hash-mismatch: entry 3, column body: the body does not have the sealed hash "
        f"(expected {finding.expected.hex()}, found {finding.found.hex()})\n" + NOT_CHECKED
    )


def test_a_run_of_findings_is_one_line(bijotel, secret, db):
    """Rows that are gone are named from the first to the last."""
    tamper(db, "DELETE FROM entries WHERE seq IN (2, 3)")
    out = bijotel("verify", "--db", db).out
    assert "  seq-gap: entries 2 to 3: entries 2 to 3 are missing, the next one found is 4 " in out


def test_json_is_the_report(bijotel, secret, db):
    """The document is what the library reports."""
    tamper(db, "UPDATE entries SET name = 'x' WHERE seq = 2")
    result = bijotel("verify", "--db", db, "--json")
    assert (result.code, result.err) == (1, "")
    assert result.document == verify_chain(db, MASTER_KEY).as_dict()
    assert result.document["findings"][0]["code"] == "column-mismatch"


def test_a_wrong_key_is_a_finding(bijotel, db, monkeypatch):
    """Exit 1: the wrong secret, or another chain."""
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", OTHER_SECRET)
    result = bijotel("verify", "--db", db)
    assert result.code == 1
    assert "  wrong-key: entry 0: the chain was not sealed with a key of the ring: " in result.out


def test_a_key_from_a_file(bijotel, db, tmp_path):
    """``--key`` may name a file; several keys make a ring."""
    path = tmp_path / "secret.hex"
    path.touch(mode=0o600)
    path.write_text(MASTER_KEY.hex() + "\n")
    assert bijotel("verify", "--db", db, "--key", f"file:{path}").code == 0


def test_several_keys_make_a_ring(bijotel, db, monkeypatch, secret):
    """One of the keys must fit."""
    monkeypatch.setenv("OTHER", OTHER_SECRET)
    keys = ("--key", "env:OTHER", "--key", "env:BIJOTEL_HMAC_SECRET")
    assert bijotel("verify", "--db", db, *keys).code == 0


def test_what_could_not_be_checked_has_its_own_verdict(bijotel, secret, db):
    """An entry of a newer format is neither fine nor false: exit 3."""
    from bijotel import canonical
    from bijotel.seal import KNOWN_FORMATS, draft
    from tests.cli.conftest import body

    assert "novel" not in KNOWN_FORMATS
    newer = draft("gap", canonical.dumps({}))._replace(kind="novel", fmt="novel/1")
    append(
        db,
        [
            newer,
            body(
                "gap",
                {"count": 1, "first_unix_nano": "1", "last_unix_nano": "2", "reason": "queue-full"},
            ),
        ],
    )
    result = bijotel("verify", "--db", db)
    assert result.code == 3
    assert result.out.startswith(f"NOT CHECKED: chain default ({CHAIN_HEX}): 1 finding, 8 entries")
    assert (
        "  format-unknown: entry 6, column kind: kind novel, format novel/1: sealed by a newer "
        "library (found novel novel/1)\n"
    ) in result.out


def test_every_chain_has_its_verdict(bijotel, secret, db):
    """A fault in one chain does not blame the other."""
    append(db, [span(9)], chain="second", chain_id=b"2" * 16)
    tamper(db, "UPDATE entries SET name = 'x' WHERE seq = 1 AND chain_id = ?", b"2" * 16)
    result = bijotel("verify", "--db", db)
    assert result.code == 1
    assert f"OK: chain default ({CHAIN_HEX}): no findings" in result.out
    assert f"FAILED: chain second ({'32' * 16}): 1 finding" in result.out
    assert bijotel("verify", "--db", db, "--chain", "default").code == 0
    # Who reads the first line alone reads of the one that fails.
    assert result.out.startswith(f"FAILED: chain second ({'32' * 16}): 1 finding")


def test_all_is_every_chain_on_every_processor(bijotel, secret, db):
    """``--all`` says the same as no ``--chain``, and contradicts one."""
    every = bijotel("verify", "--db", db, "--json")
    assert bijotel("verify", "--db", db, "--all", "--json").out == every.out
    assert bijotel("verify", "--db", db, "--all", "--workers", 2, "--json").out == every.out
    result = bijotel("verify", "--db", db, "--all", "--chain", CHAIN_HEX)
    assert (result.code, result.err) == (2, "error: --all, --chain: give one of them\n")


def test_findings_of_no_chain_are_the_stores(bijotel, secret, db):
    """A trigger belongs to the store."""
    tamper(db, "CREATE TRIGGER t\u202e AFTER INSERT ON entries BEGIN SELECT 1; END")
    result = bijotel("verify", "--db", db)
    assert result.code == 1
    assert f"FAILED: store {db}: 1 finding\n" in result.out
    assert (
        r"  schema-mismatch: column t\u202e: t\u202e is a trigger; the schema has none"
        in result.out
    )


def test_notices_are_no_findings(bijotel, secret, db):
    """A clock that was set back is told and is fine."""
    append(db, [span(7)], sealed_at=SEALED_AT - 1)
    result = bijotel("verify", "--db", db)
    assert result.code == 0
    assert (
        "notice: clock-step: entry 6: the wall clock was set back before it was sealed\n"
        in result.out
    )


def test_stored_text_cannot_fake_a_verdict(bijotel, secret, db):
    """What an attacker writes into a row stays on its line, escaped."""
    tamper(db, "UPDATE entries SET epoch = ? WHERE seq = 1", "\x1b[2K\rOK: chain intact\n")
    out = bijotel("verify", "--db", db).out
    assert "\x1b" not in out
    assert "\r" not in out
    assert not any(line.startswith("OK") for line in out.splitlines())


def test_an_empty_variable_is_unset(bijotel, db, monkeypatch, tmp_path):
    """The file's variable counts when the secret's is empty."""
    path = Path(tmp_path / "secret.hex")
    path.touch(mode=0o600)
    path.write_text(MASTER_KEY.hex())
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", "")
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET_FILE", str(path))
    assert bijotel("verify", "--db", db).code == 0
