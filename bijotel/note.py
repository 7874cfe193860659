"""Signed notes: text, an empty line, and one line for each signature. Pure.

What a note's text says is the reader's business (``checkpoint``). Nothing in it may be believed
before :func:`check_signatures` returned, and what cannot be written back octet for octet is no
note.

Source: C2SP signed-note; limits as in Go's golang.org/x/mod/sumdb/note.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from bijotel.errors import ConfigurationError, VerificationError
from bijotel.quoting import quoted
from bijotel.verifier_key import VerifierKey

MAX_NOTE_BYTES: Final = 1_000_000
MAX_SIGNATURES: Final = 100

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
_SIGNATURE_LINE = re.compile(r"— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})")
_KEY_HASH_BYTES: Final = 4


class EvidenceError(VerificationError):
    """A note, checkpoint, proof or export that proves nothing.

    ``code`` is the code of the finding that says the same, ``where`` its place.
    """

    def __init__(self, message: str, code: str = "malformed-note", where: str = "note") -> None:
        """Say what is wrong in words, as a code and where."""
        super().__init__(message)
        self.code = code
        self.where = where


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature line."""

    name: str
    key_hash: bytes
    """4 bytes."""
    octets: bytes
    """The signature itself, at least 1 byte."""

    def __str__(self) -> str:
        return f"— {self.name} {base64.b64encode(self.key_hash + self.octets).decode()}\n"


@dataclass(frozen=True, slots=True)
class Note:
    """A text and who says to have signed it. ``str()`` gives the note itself."""

    text: str
    """Ends with a newline."""
    signatures: tuple[Signature, ...]
    """1 to ``MAX_SIGNATURES``, in the order of their lines."""

    def __str__(self) -> str:
        return self.text + "\n" + "".join(str(signature) for signature in self.signatures)

    def signature_of(self, key: VerifierKey) -> Signature | None:
        """Find the first signature under a key's name and hash, whoever made it."""
        wanted = (key.name, key.key_hash)
        found = (one for one in self.signatures if (one.name, one.key_hash) == wanted)
        return next(found, None)


def parse_note(octets: bytes) -> Note:
    """Read a signed note. Nothing is verified.

    Args:
        octets: At most ``MAX_NOTE_BYTES``.

    Raises:
        EvidenceError: ``malformed-note``: too long, not UTF-8, a control character or a byte
            order mark, no final newline, no signature, over ``MAX_SIGNATURES`` of them, or a
            signature line that is malformed.
    """
    if len(octets) > MAX_NOTE_BYTES:
        malformed(f"{len(octets)} bytes: expected at most {MAX_NOTE_BYTES}")
    document = _decode(octets)
    text, separator, rest = document.rpartition("\n\n")
    number = text.count("\n") + 3
    if not separator or not rest:
        malformed("no signature: expected text, an empty line and signature lines")
    if not rest.endswith("\n"):
        malformed(f"line {document.count(chr(10)) + 1}: the final newline is missing")
    lines = rest.removesuffix("\n").split("\n")
    if len(lines) > MAX_SIGNATURES:
        malformed(f"{len(lines)} signatures: expected at most {MAX_SIGNATURES}")
    signatures = (_parse_signature(line, number + place) for place, line in enumerate(lines))
    return Note(text + "\n", tuple(signatures))


def _decode(octets: bytes) -> str:
    try:
        document = octets.decode()
    except UnicodeDecodeError as error:
        _malformed_at(octets.count(b"\n", 0, error.start) + 1, "expected UTF-8")
    control = _CONTROL.search(document)
    if control:
        line = document.count("\n", 0, control.start()) + 1
        _malformed_at(line, f"control character U+{ord(control.group()):04X}")
    if document.startswith("\ufeff"):
        _malformed_at(1, "starts with a byte order mark")
    return document


def _parse_signature(line: str, number: int) -> Signature:
    match = _SIGNATURE_LINE.fullmatch(line)
    if match is None:
        _malformed_at(number, f"expected '— NAME BASE64', got {quoted(line)}")
    name, encoded = match.groups()
    octets = decode_base64(encoded)
    if octets is None or len(octets) <= _KEY_HASH_BYTES:
        _malformed_at(number, "the signature is not valid base64 of at least 5 bytes")
    return Signature(name, octets[:_KEY_HASH_BYTES], octets[_KEY_HASH_BYTES:])


def decode_base64(text: str) -> bytes | None:
    """Decode base64 that is spelled as it would be written; None for any other."""
    try:
        octets = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
    return octets if base64.b64encode(octets).decode() == text else None


def check_signatures(
    note: Note, keys: Sequence[VerifierKey], message: Callable[[VerifierKey], bytes]
) -> None:
    """Check that each of these keys signed a note.

    Signatures of other keys are ignored, and so is a second signature of the same key, even if
    it is broken.

    Args:
        note: A parsed note.
        keys: At least one.
        message: What a key signs.

    Raises:
        ConfigurationError: there is no key.
        EvidenceError: ``checkpoint-signature``: a key did not sign, or not this text.
    """
    if not keys:
        raise ConfigurationError("verifier key: at least one is required to check a note")
    for key in keys:
        named = f"{key.name}+{key.key_hash.hex()}"
        signature = note.signature_of(key)
        if signature is None:
            what = f"signature: key {named} has not signed this note"
            raise EvidenceError(what, "checkpoint-signature", "note")
        if not key.signed(message(key), signature.octets):
            what = f"signature: that of key {named} does not hold"
            raise EvidenceError(what, "checkpoint-signature", "signature line")


def malformed(what: str, where: str = "note") -> NoReturn:
    """Say that octets are no signed note, or no checkpoint."""
    raise EvidenceError(f"note: {what}", "malformed-note", where)


def _malformed_at(line: int, what: str) -> NoReturn:
    malformed(f"line {line}: {what}", f"line {line}")
