"""Public keys that check signed notes, and the line that carries one. No I/O.

A verifier key is a name, a type of signature and a public key. Its line is what an auditor is
given: ``name+key hash+base64``, as C2SP signed-note defines it.

Source: C2SP signed-note, C2SP tlog-cosignature, RFC 8032, FIPS 204.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey

from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.quoting import quoted

ED25519: Final = 0x01
"""Signs the text of the note."""
ML_DSA_44: Final = 0x06
"""Cosigns a checkpoint, see ``checkpoint``."""

NO_TIMESTAMP: Final = bytes(8)
"""Stands before every ML-DSA-44 signature: none of ours says when it was made."""

DEFAULT_KEY_NAME: Final = "bijotel"
MAX_KEY_NAME_CHARACTERS: Final = 200

_KEY_BYTES: Final = {ED25519: 32, ML_DSA_44: 1312}
_LINE = re.compile(r"([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})")
_NAME = re.compile(r"[!-*,-~]*[!-*,-.0-~]")


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """One public key under its name. ``str()`` gives its line."""

    name: str
    """1 to 200 printable ASCII characters without space and ``+``, the last one no ``/``."""
    algorithm: int
    """``ED25519`` or ``ML_DSA_44``."""
    public_key: bytes
    """Raw, 32 or 1312 bytes."""

    def __post_init__(self) -> None:
        """Refuse what no note could name.

        Raises:
            ConfigurationError: name, algorithm or length are not as described.
        """
        check_key_name(self.name)
        if self.algorithm not in _KEY_BYTES:
            raise ConfigurationError(
                f"verifier key {self.name}: signature type {self.algorithm:#04x} is not known; "
                "expected 0x01 (Ed25519) or 0x06 (ML-DSA-44)"
            )
        if len(self.public_key) != _KEY_BYTES[self.algorithm]:
            raise ConfigurationError(
                f"verifier key {self.name}: expected {_KEY_BYTES[self.algorithm]} bytes of "
                f"public key, got {len(self.public_key)}"
            )

    def __str__(self) -> str:
        encoded = base64.b64encode(bytes([self.algorithm]) + self.public_key).decode()
        return f"{self.name}+{self.key_hash.hex()}+{encoded}"

    @property
    def key_hash(self) -> bytes:
        """Four bytes that name the key within a note; no proof of anything."""
        typed = bytes([self.algorithm]) + self.public_key
        return sha256(self.name.encode() + b"\n" + typed).digest()[:4]

    def signed(self, message: bytes, signature: bytes) -> bool:
        """Tell whether this key's owner signed a message.

        Raises:
            UnavailableError: this build of ``cryptography`` cannot check such a signature.
        """
        try:
            if self.algorithm == ED25519:
                Ed25519PublicKey.from_public_bytes(self.public_key).verify(signature, message)
            else:
                if signature[: len(NO_TIMESTAMP)] != NO_TIMESTAMP:
                    return False
                mldsa = MLDSA44PublicKey.from_public_bytes(self.public_key)
                mldsa.verify(signature[len(NO_TIMESTAMP) :], message)
        except InvalidSignature:
            return False
        except UnsupportedAlgorithm as error:
            raise UnavailableError(f"verifier key {self.name}: {error}") from None
        return True


def check_key_name(name: str) -> None:
    """Refuse a name that a key cannot have.

    Raises:
        ConfigurationError: empty, too long, with a character that is not allowed, or with a
            final ``/``.
    """
    if not _NAME.fullmatch(name) or len(name) > MAX_KEY_NAME_CHARACTERS:
        raise ConfigurationError(
            f"key name {name[:40]!r}: expected 1 to {MAX_KEY_NAME_CHARACTERS} printable ASCII "
            "characters without space and '+', and no final '/'"
        )


def parse_verifier_key(line: str) -> VerifierKey:
    """Read a verifier key line, without or with one final newline.

    Raises:
        ConfigurationError: the line is malformed, its hash is not that of the key, or the type
            is not known.
    """
    match = _LINE.fullmatch(line.removesuffix("\n"))
    if match is None:
        raise ConfigurationError(
            f"verifier key: expected NAME+HASH+KEY on one line, got {quoted(line)}"
        )
    name, key_hash, encoded = match.groups()
    try:
        octets = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        octets = b""
    if not octets or base64.b64encode(octets).decode() != encoded:
        raise ConfigurationError(f"verifier key {name}: the key is not valid base64")
    key = VerifierKey(name, octets[0], octets[1:])
    if key.key_hash.hex() != key_hash:
        raise ConfigurationError(
            f"verifier key {name}: expected hash {key.key_hash.hex()} for this name and key, "
            f"got {key_hash}"
        )
    return key
