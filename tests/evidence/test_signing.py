"""Signing keys on disk: modes, never overwritten, and every way to load the wrong thing."""

from __future__ import annotations

import os
import stat

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.signing import (
    generate_signing_key,
    load_signing_key,
    load_verifier_key,
    public_path,
    save_signing_keys,
)


@pytest.mark.parametrize("algorithm", [1, 6])
def test_a_saved_key_loads_again(tmp_path, algorithm):
    """Both files are written, the private one for its owner alone, and both load again."""
    key = generate_signing_key("example.com/audit", algorithm)
    path = tmp_path / "signing.pem"
    save_signing_keys((key, path))
    public = public_path(path)
    assert public == tmp_path / "signing.pub"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert public.read_text() == f"{key.verifier}\n"
    assert load_signing_key(f"file:{path}").verifier == key.verifier
    for source in (str(public), f"file:{public}", str(key.verifier)):
        assert load_verifier_key(source) == key.verifier
    message = b"message"
    loaded = load_signing_key(str(path))
    signature = loaded.sign(message)
    prefix = bytes(8) if algorithm == 6 else b""
    assert key.verifier.signed(message, prefix + signature)
    assert not key.verifier.signed(message + b"x", prefix + signature)


def test_nothing_is_overwritten(tmp_path):
    """A file that is there stops the writing, and then neither file is left behind."""
    path = tmp_path / "signing.pem"
    key = generate_signing_key()
    path.write_text("mine")
    with pytest.raises(ConfigurationError, match=r"signing\.pem: exists already"):
        save_signing_keys((key, path))
    assert path.read_text() == "mine"
    assert not (tmp_path / "signing.pub").exists()
    path.unlink()
    (tmp_path / "signing.pub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match=r"signing\.pub: exists already"):
        save_signing_keys((key, path))
    assert not path.exists()
    assert not (tmp_path / "elsewhere").exists()
    other = tmp_path / "other.pem"
    with pytest.raises(ConfigurationError, match=r"signing\.pub: exists already"):
        save_signing_keys((key, other), (key, path))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["signing.pub"]
    with pytest.raises(ConfigurationError, match="is where the public key would go"):
        save_signing_keys((key, tmp_path / "other.pub"))
    with pytest.raises(UnavailableError, match="cannot be written: No such file"):
        save_signing_keys((key, tmp_path / "nowhere" / "signing.pem"))


def test_the_private_key_is_written_unreadable_whatever_the_umask(tmp_path):
    """No moment at which others could read it."""
    before = os.umask(0)
    try:
        save_signing_keys((generate_signing_key(), tmp_path / "signing.pem"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "signing.pem").stat().st_mode) == 0o600


def test_the_name_comes_from_the_argument_the_file_beside_or_the_default(tmp_path):
    """Without a verifier key file beside, the name is the default or the one given."""
    path = tmp_path / "signing.pem"
    save_signing_keys((generate_signing_key("example.com/audit"), path))
    public = public_path(path)
    assert load_signing_key(str(path)).verifier.name == "example.com/audit"
    assert load_signing_key(str(path), "other").verifier.name == "other"
    public.unlink()
    assert load_signing_key(str(path)).verifier.name == "bijotel"
    with pytest.raises(ConfigurationError, match="key name ''"):
        load_signing_key(str(path), "")


def test_a_verifier_key_of_another_key_beside_is_refused(tmp_path):
    """The two files belong together or nothing is signed."""
    path = tmp_path / "signing.pem"
    save_signing_keys((generate_signing_key(), path))
    (tmp_path / "signing.pub").write_text(f"{generate_signing_key().verifier}\n")
    with pytest.raises(ConfigurationError, match="is not the private half of"):
        load_signing_key(str(path))


def _write(path, octets, mode=0o600):
    path.write_bytes(octets)
    path.chmod(mode)
    return str(path)


def test_files_that_hold_no_signing_key(tmp_path):
    """Missing, readable by others, no PEM, encrypted, another kind of key, a directory."""
    path = tmp_path / "k.pem"
    with pytest.raises(ConfigurationError, match=r"signing key file .*: No such file"):
        load_signing_key(str(path))
    with pytest.raises(ConfigurationError, match=r"signing key file .*: Is a directory"):
        load_signing_key(str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"mode is 0640, expected 0600"):
        load_signing_key(_write(path, generate_signing_key().pem(), 0o640))
    with pytest.raises(ConfigurationError, match="expected an unencrypted PKCS #8 PEM file"):
        load_signing_key(_write(path, b"\xff\x00"))
    private = Ed25519PrivateKey.generate()
    encryption = BestAvailableEncryption(b"secret")
    encrypted = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    with pytest.raises(ConfigurationError, match="expected an unencrypted PKCS #8 PEM file"):
        load_signing_key(_write(path, encrypted))
    other = generate_private_key(SECP256R1())
    octets = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(ConfigurationError, match="expected an Ed25519 or ML-DSA-44 key, got"):
        load_signing_key(_write(path, octets))


def test_files_that_hold_no_verifier_key(tmp_path):
    """Missing, empty, two lines, a path with a NUL: our error with the file's name."""
    path = tmp_path / "signing.pub"
    with pytest.raises(ConfigurationError, match=r"verifier key file .*: No such file"):
        load_verifier_key(str(path))
    line = str(generate_signing_key().verifier)
    for octets in (b"", b"\xff", f"{line}\n{line}\n".encode(), f"{line}\n\n".encode()):
        path.write_bytes(octets)
        with pytest.raises(ConfigurationError, match=r"verifier key file .*signing\.pub: "):
            load_verifier_key(str(path))
    with pytest.raises(ConfigurationError, match="verifier key file"):
        load_verifier_key("a\0b")


def test_a_key_never_shows_itself():
    """Neither repr nor str of a signing key holds key material."""
    key = generate_signing_key("example.com/audit")
    text = f"{key!r} {key}"
    assert key.verifier.key_hash.hex() in text
    assert len(text) < 80


def test_a_build_without_ml_dsa_could_not_check(monkeypatch, pq_vkey):
    """An older cryptography library: nothing is false, nothing was checked."""

    class Without:
        @staticmethod
        def generate():
            raise UnsupportedAlgorithm("ML-DSA-44 is not supported by this version of OpenSSL")

        @staticmethod
        def from_public_bytes(_octets):
            raise UnsupportedAlgorithm("ML-DSA-44 is not supported by this version of OpenSSL")

    monkeypatch.setattr("bijotel.signing.MLDSA44PrivateKey", Without)
    monkeypatch.setattr("bijotel.verifier_key.MLDSA44PublicKey", Without)
    with pytest.raises(UnavailableError, match="ML-DSA-44 signing key: ML-DSA-44 is not supported"):
        generate_signing_key(algorithm=6)
    with pytest.raises(UnavailableError, match=r"verifier key example\.com/audit: ML-DSA-44 is"):
        pq_vkey.signed(b"message", bytes(8 + 2420))
