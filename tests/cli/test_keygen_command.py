"""``bijotel keygen``: a key that is good, private, and never overwrites one."""

from __future__ import annotations

import os
import re
import stat

import pytest

from bijotel.keys import KeyRing
from bijotel.signing import load_signing_key, load_verifier_key
from tests.cli.conftest import installed


def test_a_key_file(bijotel, tmp_path):
    """64 hex digits and a newline, mode 0600, and how to use it."""
    path = tmp_path / "secret.hex"
    result = bijotel("keygen", "-o", path)
    assert (result.code, result.err) == (0, "")
    assert re.fullmatch(r"[0-9a-f]{64}\n", path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key_id = KeyRing(f"file:{path}").sealing.key_id.hex()
    assert result.out == (
        f"key id:  {key_id}\n"
        f"written: {path} (mode 0600)\n"
        f"seal:    export BIJOTEL_HMAC_SECRET_FILE={path}\n"
        f"verify:  bijotel verify --db STORE --key file:{path}\n"
    )
    assert path.read_text().strip() not in result.out


def test_two_keys_differ(bijotel, tmp_path):
    """Keys are random."""
    bijotel("keygen", "-o", tmp_path / "a")
    bijotel("keygen", "-o", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() != (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_the_mode_does_not_depend_on_the_mask(bijotel, tmp_path, mask):
    """The owner alone may read it, whatever the process's mask is."""
    before = os.umask(mask)
    try:
        assert bijotel("keygen", "-o", tmp_path / "secret.hex").code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "secret.hex").stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_nothing_is_overwritten(bijotel, tmp_path, kind):
    """Exit 2, and what was there is as it was."""
    path = tmp_path / "secret.hex"
    if kind == "file":
        path.write_text("precious")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "target")
    message = f"{path}: exists already and is not overwritten"
    assert bijotel("keygen", "-o", path) == (2, "", f"error: {message}\n")
    assert bijotel("keygen", "-o", path, "--json").document == {
        "error": {"code": "configuration", "message": message}
    }
    assert kind != "file" or path.read_text() == "precious"
    assert not (tmp_path / "target").exists()


def test_a_folder_that_is_not_there(bijotel, tmp_path):
    """Exit 3: it cannot be written."""
    path = tmp_path / "no" / "secret.hex"
    message = f"{path}: cannot be written: No such file or directory"
    assert bijotel("keygen", "-o", path) == (3, "", f"error: {message}\n")


def test_a_failed_write_leaves_nothing(tmp_path):
    """Half a key is no key: here no file may grow beyond 16 bytes."""
    path = tmp_path / "secret.hex"
    result = installed("keygen", "-o", path, file_limit=16)
    message = f"{path}: cannot be written: File too large"
    assert (result.code, result.out, result.err) == (3, "", f"error: {message}\n")
    assert os.listdir(tmp_path) == []


def test_without_a_file_no_key_is_printed(bijotel):
    """A secret goes to standard output only when that was asked for."""
    result = bijotel("keygen")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: Missing option '-o' / '--output'.")


def test_a_key_on_standard_output(tmp_path):
    """``-o -``: the key alone on standard output, its id on standard error."""
    result = installed("keygen", "-o", "-")
    assert result.code == 0
    assert re.fullmatch(r"[0-9a-f]{64}\n", result.out)
    key_id = KeyRing(bytes.fromhex(result.out.strip())).sealing.key_id.hex()
    assert result.err == f"key id: {key_id}\n"


def test_a_key_on_standard_output_is_no_document(bijotel):
    """Exit 2: a bare key and one JSON document exclude each other."""
    message = "-o -: the key itself is no JSON document; leave --json out"
    result = bijotel("keygen", "-o", "-", "--json")
    assert result.document == {"error": {"code": "configuration", "message": message}}
    assert result.code == 2


def test_json(bijotel, tmp_path):
    """The id and the file, never the key."""
    path = tmp_path / "secret.hex"
    document = bijotel("keygen", "-o", path, "--json").document
    key_id = KeyRing(f"file:{path}").sealing.key_id.hex()
    assert document == {"key_id": key_id, "file": str(path)}


def test_a_signing_key(bijotel, tmp_path):
    """The private key for its owner alone, and one verifier key line beside it."""
    path = tmp_path / "signing.pem"
    result = bijotel("keygen", "--signing", "-o", path)
    assert (result.code, result.err) == (0, "")
    public = tmp_path / "signing.pub"
    key = load_signing_key(f"file:{path}")
    assert public.read_text() == f"{key.verifier}\n"
    assert key.verifier.name == "bijotel"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert result.out == (
        f"key:     bijotel+{key.verifier.key_hash.hex()}\n"
        f"written: {path} (mode 0600)\n"
        f"written: {public} (for auditors)\n"
        f"sign:    bijotel checkpoint --db STORE --signing-key file:{path}\n"
    )


def test_a_second_pair_for_the_long_term(bijotel, tmp_path):
    """``--ml-dsa``: two pairs of one name, told apart by the names of their files."""
    path = tmp_path / "signing.pem"
    result = bijotel(
        "keygen", "--signing", "--ml-dsa", "--name", "example.com/audit", "-o", path, "--json"
    )
    first, second = result.document["keys"]
    assert first["file"] == str(path)
    assert first["public_file"] == str(tmp_path / "signing.pub")
    assert second["file"] == str(tmp_path / "signing.mldsa.pem")
    assert second["public_file"] == str(tmp_path / "signing.mldsa.pub")
    for document, algorithm in ((first, 0x01), (second, 0x06)):
        key = load_verifier_key(document["public_file"])
        assert str(key) == document["public_key"]
        assert (key.name, key.algorithm) == ("example.com/audit", algorithm)
        assert load_signing_key(document["file"]).verifier == key
        assert stat.S_IMODE(os.stat(document["file"]).st_mode) == 0o600


def test_a_second_pair_beside_a_file_without_suffix(bijotel, tmp_path):
    """The two pairs never share a name."""
    assert bijotel("keygen", "--signing", "--ml-dsa", "-o", tmp_path / "k").code == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["k", "k.mldsa.pem", "k.mldsa.pub", "k.pub"]


@pytest.mark.parametrize(
    "there", ["signing.pem", "signing.pub", "signing.mldsa.pem", "signing.mldsa.pub"]
)
def test_no_signing_key_is_overwritten(bijotel, tmp_path, there):
    """One file in the way: none is written, and it stays as it was."""
    (tmp_path / there).write_text("precious")
    result = bijotel("keygen", "--signing", "--ml-dsa", "-o", tmp_path / "signing.pem")
    message = f"{tmp_path / there}: exists already and is not overwritten"
    assert result == (2, "", f"error: {message}\n")
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--name", "x"), "--name and --ml-dsa go with --signing"),
        (("--ml-dsa",), "--name and --ml-dsa go with --signing"),
        (("--signing", "--name", "a b"), "key name 'a b': expected 1 to 200 printable ASCII"),
        (("--signing", "--name", "a/"), "key name 'a/': expected 1 to 200 printable ASCII"),
    ],
)
def test_signing_keys_asked_for_wrongly(bijotel, tmp_path, arguments, message):
    """Exit 2, and nothing is written."""
    result = bijotel("keygen", *arguments, "-o", tmp_path / "signing.pem")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {message}")
    assert list(tmp_path.iterdir()) == []


def test_a_signing_key_is_never_printed(bijotel):
    """Standard output is no place for a pair of files."""
    result = bijotel("keygen", "--signing", "-o", "-")
    assert result == (2, "", "error: -o -: a signing key is written to files only\n")
