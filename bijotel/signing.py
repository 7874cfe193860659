"""Signing keys: made, saved and loaded. The only place that touches private signing material.

A private key is a PKCS #8 PEM file of mode 0600; beside it, under the same name with the suffix
``.pub``, lies the verifier key line that auditors get. No file is ever overwritten.

Source: docs/spec (checkpoint), RFC 5958, RFC 8032, FIPS 204.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.key_files import PRIVATE, PUBLIC, NewFile, read_key_file, write_new_files
from bijotel.verifier_key import (
    DEFAULT_KEY_NAME,
    ED25519,
    ML_DSA_44,
    VerifierKey,
    parse_verifier_key,
)

_VERIFIER_LINE = re.compile(r"[^+]+\+[0-9A-Fa-f]{8}\+[^+/]\S*\n?")

_PrivateKey: TypeAlias = "Ed25519PrivateKey | MLDSA44PrivateKey"


class SigningKey:
    """A private key and its public half. Its ``repr`` never shows the key."""

    __slots__ = ("_private", "verifier")

    def __init__(self, private: _PrivateKey, name: str = DEFAULT_KEY_NAME) -> None:
        """Name a private key.

        Raises:
            ConfigurationError: a key cannot have this name.
        """
        algorithm = ED25519 if isinstance(private, Ed25519PrivateKey) else ML_DSA_44
        self._private = private
        self.verifier = VerifierKey(name, algorithm, private.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"SigningKey({self.verifier.name}+{self.verifier.key_hash.hex()})"

    def sign(self, message: bytes) -> bytes:
        """Sign a message: Ed25519, or ML-DSA-44 pure with an empty context."""
        return self._private.sign(message)

    def pem(self) -> bytes:
        """Write the private key, unencrypted."""
        return self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def generate_signing_key(name: str = DEFAULT_KEY_NAME, algorithm: int = ED25519) -> SigningKey:
    """Make a key pair from the operating system's randomness.

    Raises:
        ConfigurationError: a key cannot have this name.
        UnavailableError: this build of ``cryptography`` has no ML-DSA-44.
    """
    if algorithm == ED25519:
        return SigningKey(Ed25519PrivateKey.generate(), name)
    try:
        return SigningKey(MLDSA44PrivateKey.generate(), name)
    except UnsupportedAlgorithm as error:
        raise UnavailableError(f"ML-DSA-44 signing key: {error}") from None


def save_signing_keys(*pairs: tuple[SigningKey, Path]) -> None:
    """Write private keys (mode 0600), each with its verifier key line beside it; all or none.

    Raises:
        ConfigurationError: a private key's name ends in ``.pub``, or a file exists already.
        UnavailableError: a file cannot be written.
    """
    files = []
    for key, path in pairs:
        public = public_path(path)
        if public == path:
            raise ConfigurationError(f"{path}: is where the public key would go; name it .pem")
        files.append(NewFile(path, key.pem(), PRIVATE))
        files.append(NewFile(public, f"{key.verifier}\n".encode(), PUBLIC))
    write_new_files(files)


def public_path(path: Path) -> Path:
    """Name the verifier key file that belongs to a private key file."""
    return path.with_suffix(".pub")


def load_signing_key(source: str, name: str | None = None) -> SigningKey:
    """Load a private key.

    Args:
        source: ``file:PATH``, or a path.
        name: The key's name; without it that of the ``.pub`` file beside, else ``bijotel``.

    Raises:
        ConfigurationError: the file is missing, readable by others, no unencrypted Ed25519 or
            ML-DSA-44 key, or not the private half of the ``.pub`` file beside it.
    """
    path = Path(source.removeprefix("file:"))
    private = _parse_pem(read_key_file(path, "signing key", private=True), path)
    beside = public_path(path)
    if name is not None or not beside.exists():
        return SigningKey(private, DEFAULT_KEY_NAME if name is None else name)
    verifier = load_verifier_key(str(beside))
    key = SigningKey(private, verifier.name)
    if key.verifier != verifier:
        raise ConfigurationError(f"signing key file {path}: is not the private half of {beside}")
    return key


def load_verifier_key(source: str) -> VerifierKey:
    """Load a verifier key from its line, or from a file that holds the line.

    Raises:
        ConfigurationError: no such file, or no verifier key in it.
    """
    if not source:
        raise ConfigurationError("verifier key: expected a line or the name of a file, got ''")
    if _VERIFIER_LINE.fullmatch(source):
        return parse_verifier_key(source)
    path = Path(source.removeprefix("file:"))
    octets = read_key_file(path, "verifier key", private=False)
    try:
        return parse_verifier_key(octets.decode("ascii", "replace"))
    except ConfigurationError as error:
        raise ConfigurationError(f"verifier key file {path}: {error}") from None


def _parse_pem(octets: bytes, path: Path) -> _PrivateKey:
    try:
        private = load_pem_private_key(octets, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigurationError(
            f"signing key file {path}: expected an unencrypted PKCS #8 PEM file"
        ) from None
    if not isinstance(private, (Ed25519PrivateKey, MLDSA44PrivateKey)):
        raise ConfigurationError(
            f"signing key file {path}: expected an Ed25519 or ML-DSA-44 key, "
            f"got {type(private).__name__}"
        )
    return private
