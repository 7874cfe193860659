"""Checkpoints: the signed size and root hash of a chain. Pure.

A checkpoint says: at this size the log had this root. Whoever holds one outside the store can
prove later that nothing below that size was changed or cut off. It is a signed note whose text
has three lines and no more; its origin names the signing key and the chain.

Where the head comes from and where notes are kept is the caller's business; the entries
themselves are compared in ``verify.against``.

Source: C2SP tlog-checkpoint, C2SP tlog-cosignature (type 0x06), docs/spec (checkpoint).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from bijotel import canonical, merkle
from bijotel.errors import ConfigurationError
from bijotel.keys import KeyRing
from bijotel.model import ChainHead, Draft
from bijotel.note import (
    EvidenceError,
    Note,
    Signature,
    check_signatures,
    decode_base64,
    malformed,
    parse_note,
)
from bijotel.seal import draft, head_holds
from bijotel.verifier_key import ED25519, NO_TIMESTAMP, VerifierKey

MAX_SIZE: Final = 2**63 - 1
MAX_ORIGIN_BYTES: Final = 255
"""What a cosignature can name."""

_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
_CHAIN_ORIGIN = re.compile(r"(.+)/([0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class TreeHead:
    """What the text of any C2SP checkpoint says."""

    origin: str
    size: int
    """Leaves of the tree."""
    root_hash: bytes
    """32 bytes."""

    def text(self) -> str:
        """Write the three lines that are signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root_hash).decode()}\n"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The head of one of our chains, as a checkpoint states it."""

    origin: str
    """Key name, ``/`` and the chain's id in hex."""
    chain_id: bytes
    """16 bytes."""
    size: int
    """Entries of the chain: ``seq`` 0 to ``size - 1``."""
    root_hash: bytes
    """32 bytes."""


class Signer(Protocol):
    """A private key, wherever it is kept."""

    verifier: VerifierKey
    """Its public half."""

    def sign(self, message: bytes) -> bytes:
        """Sign a message; for ML-DSA-44 pure, with an empty context."""
        ...


def parse_tree_head(text: str) -> TreeHead:
    """Read the text of a checkpoint of any log.

    Raises:
        EvidenceError: ``malformed-note``: not exactly three lines, no origin, or a size or root
            that is not spelled as it would be written.
    """
    lines = text.split("\n")
    if len(lines) != 4 or lines[3] or not lines[0]:
        malformed(f"expected origin, size and root hash, got {len(lines) - 1} lines", "note text")
    origin, size, encoded = lines[:3]
    if len(origin.encode()) > MAX_ORIGIN_BYTES:
        malformed(f"line 1: origin over {MAX_ORIGIN_BYTES} bytes", "line 1")
    if not _SIZE.fullmatch(size) or int(size) > MAX_SIZE:
        malformed(f"line 2: expected a size in decimal, got {size[:40]!r}", "line 2")
    root_hash = decode_base64(encoded)
    if root_hash is None or len(root_hash) != merkle.HASH_BYTES:
        malformed(f"line 3: expected base64 of 32 bytes, got {encoded[:60]!r}", "line 3")
    return TreeHead(origin, int(size), root_hash)


def parse_checkpoint(octets: bytes) -> Checkpoint:
    """Read a checkpoint of one of our chains WITHOUT verifying who signed it.

    Raises:
        EvidenceError: ``malformed-note``, or ``checkpoint-origin`` when it is of another log.
    """
    return _of_chain(parse_tree_head(parse_note(octets).text))


def verify_checkpoint(octets: bytes, keys: Sequence[VerifierKey]) -> Checkpoint:
    """Read a checkpoint and check that every one of these keys signed it.

    A pass proves that the keys' owners vouched for this size and root. It does not prove that
    any store holds such a log.

    Args:
        octets: The signed note.
        keys: At least one; all of the same name.

    Raises:
        ConfigurationError: there is no key.
        EvidenceError: ``malformed-note``, ``checkpoint-signature``, or ``checkpoint-origin``
            when it is of another log than this key's.

    Source:
        docs/spec (checkpoint).

    Added in 0.1.
    """
    note = parse_note(octets)
    head = parse_tree_head(note.text)
    foreign = [key for key in keys if not _is_origin_of(key.name, head.origin)]
    # A key that has not signed because it is another log's is told so. Where its signature is
    # there, that decides first: without it nothing in the text may be believed.
    if foreign and not any(note.signature_of(key) for key in foreign):
        raise _wrong_origin(head.origin, foreign[0].name)
    check_signatures(note, keys, lambda key: signed_message(key, head))
    if foreign:
        raise _wrong_origin(head.origin, foreign[0].name)
    return _of_chain(head)


def signed_message(key: VerifierKey, head: TreeHead) -> bytes:
    """Write what a key signs for a tree head: the text, or a cosignature's structure."""
    if key.algorithm == ED25519:
        return head.text().encode()
    name, origin = key.name.encode(), head.origin.encode()
    return b"".join(
        (
            b"subtree/v1\n\0",
            bytes([len(name)]),
            name,
            NO_TIMESTAMP,
            bytes([len(origin)]),
            origin,
            bytes(8),
            head.size.to_bytes(8, "big"),
            head.root_hash,
        )
    )


def sign_checkpoint(head: ChainHead, ring: KeyRing, signers: Sequence[Signer]) -> bytes:
    """Sign the tree of a chain's head; the log itself is not read.

    Args:
        head: Of the right types and lengths (``verify.head`` checks them).
        ring: Holds the key that sealed the head's entry.
        signers: The Ed25519 key, and on request an ML-DSA-44 key of the same name behind it.

    Returns:
        The signed note.

    Raises:
        ConfigurationError: not one Ed25519 key first, or keys of different names.
        EvidenceError: ``head-mismatch``: no key of the ring made this head.
    """
    check_signers(signers)
    key = ring.get(head.key_id)
    if key is None or head.epoch or not head_holds(head, key):
        raise EvidenceError(
            f"head of chain {head.chain_id.hex()}: no key of the ring made this record "
            f"(it names {head.key_id.hex()}); nothing was signed",
            "head-mismatch",
            "head",
        )
    origin = f"{signers[0].verifier.name}/{head.chain_id.hex()}"
    tree_head = TreeHead(origin, head.seq + 1, merkle.root(merkle.split_edge(head.tree)))
    signatures = tuple(_sign(signer, tree_head) for signer in signers)
    return str(Note(tree_head.text(), signatures)).encode()


def check_signers(signers: Sequence[Signer]) -> None:
    """Refuse keys that cannot sign a checkpoint together.

    Raises:
        ConfigurationError: not one Ed25519 key first, or keys of different names.
    """
    algorithms = [signer.verifier.algorithm for signer in signers]
    if algorithms[:1] != [ED25519] or len(set(algorithms)) != len(algorithms):
        raise ConfigurationError("signing keys: expected one Ed25519 key, then at most one ML-DSA")
    if len({signer.verifier.name for signer in signers}) > 1:
        names = ", ".join(signer.verifier.name for signer in signers)
        raise ConfigurationError(f"signing keys: expected one name, got {names}")


def _sign(signer: Signer, head: TreeHead) -> Signature:
    key = signer.verifier
    octets = signer.sign(signed_message(key, head))
    prefix = b"" if key.algorithm == ED25519 else NO_TIMESTAMP
    return Signature(key.name, key.key_hash, prefix + octets)


def checkpoint_draft(note: bytes) -> Draft:
    """Wrap a signed note as the entry that records it in its own chain."""
    return draft("checkpoint", canonical.dumps({"note": note.decode()}))


def _of_chain(head: TreeHead) -> Checkpoint:
    match = _CHAIN_ORIGIN.fullmatch(head.origin)
    if match is None:
        raise EvidenceError(
            f"origin {head.origin[:80]!r}: expected a key name, '/' and a chain id",
            "checkpoint-origin",
            "origin line",
        )
    return Checkpoint(head.origin, bytes.fromhex(match[2]), head.size, head.root_hash)


def _is_origin_of(name: str, origin: str) -> bool:
    match = _CHAIN_ORIGIN.fullmatch(origin)
    return match is not None and match[1] == name


def _wrong_origin(origin: str, name: str) -> EvidenceError:
    return EvidenceError(
        f"origin {origin[:300]!r}: expected {name}/ and a chain id: a checkpoint of another log",
        "checkpoint-origin",
        "origin line",
    )
