"""Bad input: each ends with its code, one clear line, and the file as it was."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import OTHER_SECRET, append, installed, span, tamper

READERS = [("verify",), ("inspect", "1"), ("list",), ("stats",)]


def _arguments(command, path):
    return (command[0], "--db", path, *command[1:])


def _assert_error(bijotel, command, path, *, code, message):
    """The line on standard error, and the document with --json, say the same."""
    arguments = _arguments(command, path)
    word = {1: "verification", 2: "configuration", 3: "unavailable"}[code]
    assert bijotel(*arguments) == (code, "", f"error: {message}\n")
    result = bijotel(*arguments, "--json")
    assert result.document == {"error": {"code": word, "message": message}}
    assert (result.code, result.err) == (code, f"error: {message}\n")


@pytest.mark.parametrize("command", READERS)
def test_a_missing_file(bijotel, secret, tmp_path, command):
    """Exit 3, and no file is made."""
    path = tmp_path / "no" / "chain.db"
    _assert_error(bijotel, command, path, code=3, message=f"{path}: no such file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", READERS)
def test_a_directory(bijotel, secret, tmp_path, command):
    """Exit 3."""
    message = f"{tmp_path}: is a directory, expected a database file"
    _assert_error(bijotel, command, tmp_path, code=3, message=message)


@pytest.mark.parametrize("command", READERS)
def test_no_database(bijotel, secret, tmp_path, command):
    """Exit 3."""
    path = tmp_path / "chain.db"
    path.write_bytes(b"not a database" * 100)
    message = f"{path}: cannot be read: file is not a database"
    _assert_error(bijotel, command, path, code=3, message=message)
    assert path.read_bytes() == b"not a database" * 100


@pytest.mark.parametrize("command", READERS)
def test_another_applications_database(bijotel, secret, tmp_path, command):
    """Exit 3."""
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE notes (text)")
    connection.execute("PRAGMA application_id = 7")
    connection.close()
    message = f"{path}: another application's database (application_id 7, expected 1651075695)"
    _assert_error(bijotel, command, path, code=3, message=message)


@pytest.mark.parametrize("command", READERS)
def test_a_newer_schema(bijotel, secret, db, command):
    """Exit 3."""
    tamper(db, "PRAGMA user_version = 2")
    message = f"{db}: schema version 2 is newer than this library's 1"
    _assert_error(bijotel, command, db, code=3, message=message)


@pytest.mark.parametrize("command", READERS)
def test_an_unknown_scheme(bijotel, secret, command):
    """Exit 2: this is asked wrongly."""
    result = bijotel(*_arguments(command, "mysql://host/x"))
    assert (result.code, result.out) == (2, "")
    # Which schemes are known is for the stores' own tests.
    assert result.err.startswith("error: store: scheme 'mysql' is not known; expected a path")


@pytest.mark.parametrize("command", READERS[1:])
def test_an_empty_file_is_a_finding(bijotel, secret, tmp_path, command):
    """Exit 1: whoever emptied the file left this."""
    path = tmp_path / "chain.db"
    path.touch()
    message = "schema-missing: table entries is missing"
    _assert_error(bijotel, command, path, code=1, message=message)
    assert path.read_bytes() == b""


def test_verify_of_an_empty_file(bijotel, secret, tmp_path):
    """Exit 1, as a finding in the report."""
    path = tmp_path / "chain.db"
    path.touch()
    result = bijotel("verify", "--db", path)
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith(
        f"FAILED: store {path}: 2 findings\n"
        "  schema-missing: column entries: table entries is missing\n"
        "  schema-missing: column heads: table heads is missing\n"
    )
    assert path.read_bytes() == b""


@pytest.mark.parametrize("command", READERS[1:])
def test_our_id_without_our_tables_is_a_finding(bijotel, secret, db, command):
    """Exit 1."""
    tamper(db, "DROP TABLE heads")
    message = "schema-missing: table heads is missing"
    _assert_error(bijotel, command, db, code=1, message=message)


@pytest.mark.parametrize("command", READERS[1:])
def test_tables_without_a_chain_are_a_finding(bijotel, secret, db, command):
    """Exit 1: a store of ours always has a first entry."""
    tamper(db, "DELETE FROM entries")
    tamper(db, "DELETE FROM heads")
    message = "truncated: the tables hold no chain, not even its first entry"
    _assert_error(bijotel, command, db, code=1, message=message)


@pytest.mark.parametrize("command", READERS[1:])
def test_rows_without_a_head_are_a_finding(bijotel, secret, db, command):
    """Exit 1, with the way to look at the rows all the same."""
    tamper(db, "DELETE FROM heads")
    message = (
        "head-mismatch: rows but no head record that names their chain; "
        "`bijotel verify` tells the chain's id, which --chain takes"
    )
    _assert_error(bijotel, command, db, code=1, message=message)


@pytest.mark.parametrize("command", READERS)
def test_an_unknown_chain(bijotel, secret, db, command):
    """Exit 2, with the chains that there are."""
    message = "chain 'other': not in this store, which has default"
    arguments = (*_arguments(command, db), "--chain", "other")
    assert bijotel(*arguments) == (2, "", f"error: {message}\n")


@pytest.mark.parametrize("command", READERS[1:])
def test_an_unknown_chain_id(bijotel, secret, db, command):
    """An id is looked for in the rows as well."""
    result = bijotel(*_arguments(command, db), "--chain", "f" * 32)
    assert result.code == 2
    assert "not in this store, which has default" in result.err


def test_verifying_a_chain_that_was_replaced(bijotel, secret, db):
    """A chain that is named by its id and is not there is a finding, not a misspelling."""
    result = bijotel(*_arguments(READERS[0], db), "--chain", "f" * 32, "--json")
    assert result.code == 1
    (finding,) = json.loads(result.out)["findings"]
    assert (finding["code"], finding["seq"], finding["chain"]) == ("wrong-chain", 0, "f" * 32)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "00" * 31,
            "HMAC key in environment variable {}: expected 64 hex digits, got 62 characters",
        ),
        (
            "xx" * 32,
            (
                "HMAC key in environment variable {}: expected 64 hex digits, got 64 characters "
                "that are not all hex digits"
            ),
        ),
        ("00" * 32, "HMAC key: all 32 bytes are equal; make one with a generator"),
    ],
)
@pytest.mark.parametrize("command", READERS[:2])
def test_a_malformed_key(bijotel, monkeypatch, db, *, command, value, message):
    """Exit 2, from the default place and from a named one."""
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", value)
    expected = message.format("BIJOTEL_HMAC_SECRET")
    _assert_error(bijotel, command, db, code=2, message=expected)
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", "01" * 16 + "02" * 16)
    monkeypatch.setenv("MINE", value)
    result = bijotel(*_arguments(command, db), "--key", "env:MINE")
    assert result == (2, "", f"error: {message.format('MINE')}\n")


def test_verify_without_a_key(bijotel, db):
    """Exit 2, with the names of the variables."""
    message = (
        "no HMAC key: set BIJOTEL_HMAC_SECRET (64 hex digits) or BIJOTEL_HMAC_SECRET_FILE "
        "(a file that holds them)"
    )
    _assert_error(bijotel, ("verify",), db, code=2, message=message)


@pytest.mark.parametrize("command", READERS[:2])
def test_a_named_key_that_is_missing(bijotel, db, tmp_path, command):
    """Exit 2: an unset variable, an empty one, a missing file."""
    arguments = _arguments(command, db)
    assert bijotel(*arguments, "--key", "env:NOT_SET") == (
        2,
        "",
        "error: HMAC key: environment variable NOT_SET is not set or empty\n",
    )
    path = tmp_path / "no.hex"
    assert bijotel(*arguments, "--key", f"file:{path}") == (
        2,
        "",
        f"error: HMAC key file {path}: No such file or directory\n",
    )


def test_a_key_on_the_command_line_is_refused_and_not_repeated(bijotel, db):
    """Exit 2, and the secret is in no output."""
    result = bijotel("verify", "--db", db, "--key", OTHER_SECRET)
    assert result.code == 2
    assert OTHER_SECRET not in result.err + result.out
    assert result.err.startswith("error: HMAC key source: expected env:NAME")
    assert "a key itself is never given as text" in result.err


@pytest.mark.parametrize(
    "name", ["a b", "we?ird#dir", "100%", "quo'te", "naïve 日本", "semi;colon", "back\\slash"]
)
def test_any_path_is_the_right_file(bijotel, secret, tmp_path, name):
    """What a URI would read otherwise is still the name of this file."""
    folder = tmp_path / name
    folder.mkdir()
    path = append(folder / "s?#%20.db", [span(1)])
    assert bijotel("verify", "--db", path).code == 0
    assert bijotel("stats", "--db", path, "--json").document["chains"][0]["entries"] == 2
    assert bijotel("verify", "--db", f"/{path}").code == 0  # begins with two slashes
    assert {each.name for each in tmp_path.iterdir()} == {name}


def test_a_path_that_is_no_text(tmp_path, secret):
    """Octets that are no UTF-8 name a file too, and are shown escaped."""
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)
    result = installed("verify", "--db", os.fsdecode(folder) + "/chain.db")
    assert result.code == 3
    assert result.err == f"error: {tmp_path}/\\udcff/chain.db: no such file\n"
    result = installed("verify", "--db", os.fsdecode(folder) + "/chain.db", "--json")
    assert result.document["error"]["message"] == f"{tmp_path}/\\udcff/chain.db: no such file"


@pytest.mark.parametrize("command", [*READERS, ("verify", "--deep", "--workers", "2")])
def test_readers_leave_the_files_as_they_were(bijotel, secret, db, command):
    """Database and write-ahead log are the same octets afterwards, also while a writer is on."""
    writer = sqlite3.connect(db)
    writer.execute("UPDATE heads SET name = name")
    writer.commit()
    before = _digests(db)
    assert before[1] != hashlib.sha256(b"").hexdigest()
    assert bijotel(*_arguments(command, db)).code == 0
    assert _digests(db) == before
    writer.close()


def _digests(path: Path) -> list[str]:
    return [
        hashlib.sha256(Path(f"{path}{suffix}").read_bytes()).hexdigest() for suffix in ("", "-wal")
    ]
