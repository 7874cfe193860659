"""Key material: where it comes from, how it is named, and what is derived from it.

A master key is exactly 32 bytes. It comes from an environment variable or a file as 64 hex
digits, or raw from a callable, and never from a command line. A chain's own key is derived from
it and the chain id, so that one secret may serve many chains.

Source: docs/spec (keys); HKDF: RFC 5869 with SHA-256, HMAC: RFC 2104.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

from bijotel.errors import ConfigurationError
from bijotel.key_files import read_key_file

SECRET_VARIABLE: Final = "BIJOTEL_HMAC_SECRET"  # noqa: S105 - a name
"""Holds 64 hex digits."""
SECRET_FILE_VARIABLE: Final = "BIJOTEL_HMAC_SECRET_FILE"  # noqa: S105 - a name
"""Holds the path of a file with 64 hex digits."""

DOMAIN: Final = b"bijotel/v1/"
"""Prefix of every derivation and every sealed header: separates this format from all others."""

KeySource: TypeAlias = "bytes | str | Callable[[], bytes] | HmacKey"

_HEX_KEY = re.compile(r"[0-9A-Fa-f]{64}")


class HmacKey:
    """One master key of 32 bytes and its public name. Its ``repr`` never shows the key."""

    __slots__ = ("_chain_key", "_master", "key_id")

    def __init__(self, master: bytes) -> None:
        """Take key material.

        Raises:
            ConfigurationError: not exactly 32 bytes, or all bytes equal.
        """
        if type(master) is not bytes or len(master) != 32:
            found = f"{len(master)} bytes" if type(master) is bytes else type(master).__name__
            raise ConfigurationError(f"HMAC key: expected exactly 32 bytes, got {found}")
        if len(set(master)) == 1:
            raise ConfigurationError("HMAC key: all 32 bytes are equal; make one with a generator")
        self._master = master
        self.key_id = hmac.digest(master, DOMAIN + b"kid", "sha256")[:8]
        self._chain_key = lru_cache(maxsize=1024)(self._derive_chain_key)

    def __repr__(self) -> str:
        return f"HmacKey({self.key_id.hex()})"

    def __reduce__(self) -> str | tuple[type[HmacKey], tuple[bytes]]:
        return HmacKey, (self._master,)

    def chain_key(self, chain_id: bytes) -> bytes:
        """Derive the key that seals a chain in epoch 0, the only epoch of this format."""
        return self._chain_key(chain_id)

    def spool_key(self) -> bytes:
        """Derive the key of the spools that wait for any chain."""
        return expand(extract(b"", self._master), DOMAIN + b"spool")

    def digest_key(self, chain_id: bytes) -> bytes:
        """Derive the key of the digests that stand for withheld values in a chain."""
        return expand(extract(chain_id, self._master), DOMAIN + b"digest")

    def master_mac(self, message: bytes) -> bytes:
        """HMAC under the master key itself, as bijotel 2.x used it; nothing of ours does."""
        return hmac.digest(self._master, message, "sha256")

    def _derive_chain_key(self, chain_id: bytes) -> bytes:
        return expand(extract(chain_id, self._master), DOMAIN + b"mac" + bytes(4))


def extract(salt: bytes, material: bytes) -> bytes:
    """HKDF-Extract (RFC 5869 section 2.2) with SHA-256."""
    return hmac.digest(salt, material, "sha256")


def expand(pseudo_random_key: bytes, info: bytes) -> bytes:
    """HKDF-Expand (RFC 5869 section 2.3) with SHA-256, one block: 32 bytes."""
    return hmac.digest(pseudo_random_key, info + b"\x01", "sha256")


class KeyRing:
    """The keys a verifier may use. The first one seals; the others only verify.

    Args:
        sources: Each 32 raw bytes, ``"env:NAME"``, ``"file:PATH"``, a callable that returns 32
            bytes, or an :class:`HmacKey`. Without any, ``BIJOTEL_HMAC_SECRET`` or the file
            named by ``BIJOTEL_HMAC_SECRET_FILE`` is read.

    Raises:
        ConfigurationError: a source is missing, unreadable, malformed, or there is none.
    """

    __slots__ = ("_keys",)

    def __init__(self, *sources: KeySource) -> None:
        keys = [load_key(source) for source in sources or (default_source(),)]
        self._keys = {key.key_id: key for key in keys}

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(key_id.hex() for key_id in self._keys)})"

    def __iter__(self) -> Iterator[HmacKey]:
        return iter(self._keys.values())

    def __len__(self) -> int:
        return len(self._keys)

    def get(self, key_id: bytes) -> HmacKey | None:
        """Find a key by its id."""
        return self._keys.get(key_id)

    @property
    def sealing(self) -> HmacKey:
        """The key that new entries are sealed with: the first one given."""
        return next(iter(self._keys.values()))


def as_key_ring(key: KeyRing | KeySource | None) -> KeyRing:
    """Accept what callers pass for ``key=``: a ring, one source, or None for the environment."""
    if isinstance(key, KeyRing):
        return key
    return KeyRing() if key is None else KeyRing(key)


def default_source() -> str:
    """Name the configured source of the secret; an empty variable counts as unset.

    Raises:
        ConfigurationError: neither variable is set.
    """
    if os.environ.get(SECRET_VARIABLE):
        return f"env:{SECRET_VARIABLE}"
    if path := os.environ.get(SECRET_FILE_VARIABLE):
        return f"file:{path}"
    raise ConfigurationError(
        f"no HMAC key: set {SECRET_VARIABLE} (64 hex digits) or {SECRET_FILE_VARIABLE} "
        "(a file that holds them)"
    )


def load_key(source: KeySource) -> HmacKey:
    """Load one key from its source.

    Raises:
        ConfigurationError: the source is missing, unreadable or malformed.
    """
    if isinstance(source, HmacKey):
        return source
    if isinstance(source, bytes):
        return HmacKey(source)
    if callable(source):
        return HmacKey(_call(source))
    scheme, _, place = str(source).partition(":")  # str: callers may pass anything
    if scheme == "env" and place:
        return _from_environment(place)
    if scheme == "file" and place:
        return _from_file(Path(place))
    raise ConfigurationError(
        "HMAC key source: expected env:NAME or file:PATH, got something else (a key itself is "
        "never given as text)"
    )


def _call(source: Callable[[], bytes]) -> bytes:
    try:
        return source()
    except Exception as error:
        # Only the class is told: the message of a foreign error may hold anything.
        name = type(error).__name__
        raise ConfigurationError(f"HMAC key: the callable that gives it raised {name}") from error


def _from_environment(name: str) -> HmacKey:
    text = os.environ.get(name, "")
    if not text:
        raise ConfigurationError(f"HMAC key: environment variable {name} is not set or empty")
    return _from_hex(text, f"environment variable {name}")


def _from_file(path: Path) -> HmacKey:
    octets = read_key_file(path, "HMAC key", private=True)
    text = octets.decode("ascii", "replace").removesuffix("\n")
    return _from_hex(text, f"file {path}")


def _from_hex(text: str, place: str) -> HmacKey:
    if not _HEX_KEY.fullmatch(text):
        raise ConfigurationError(
            f"HMAC key in {place}: expected 64 hex digits, got {len(text)} characters"
            + ("" if len(text) != 64 else " that are not all hex digits")
        )
    return HmacKey(bytes.fromhex(text))
