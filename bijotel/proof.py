"""One entry and the proof that a checkpoint covers it, in one file. Pure.

Whoever has the file and the public key needs nothing else: no database, no secret, no network.
A pass means that the log vouched for this very entry at this place. It shows no other entry, and
it does not mean that what was sealed is true.

Source: C2SP tlog-proof, docs/spec (proof).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bijotel.checkpoint import MAX_SIZE, Checkpoint, parse_checkpoint, verify_checkpoint
from bijotel.entry_line import MAX_LINE_BYTES, format_entry_line, parse_entry_line
from bijotel.errors import ConfigurationError
from bijotel.merkle_proof import NodeHash, inclusion_root, make_inclusion
from bijotel.model import Entry
from bijotel.note import MAX_NOTE_BYTES, EvidenceError, decode_base64
from bijotel.quoting import quoted
from bijotel.seal import entry_header, entry_leaf
from bijotel.verifier_key import VerifierKey

MAX_HASHES: Final = 63
"""What a tree of fewer than 2**63 leaves can need."""
MAX_PROOF_BYTES: Final = MAX_LINE_BYTES * 4 // 3 + MAX_NOTE_BYTES + 8192

_FIRST_LINE: Final = "c2sp.org/tlog-proof@v1"
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class TlogProof:
    """The parts of a tlog-proof file. ``bytes()`` gives the file."""

    extra: bytes
    """What the log's own format adds: here the entry's line."""
    index: int
    hashes: tuple[bytes, ...]
    """From the leaf's sibling up."""
    note: bytes
    """The checkpoint, verbatim."""

    def __bytes__(self) -> bytes:
        lines = [_FIRST_LINE, f"extra {_base64(self.extra)}", f"index {self.index}"]
        lines += [_base64(value) for value in self.hashes]
        return "\n".join(lines).encode() + b"\n\n" + self.note


@dataclass(frozen=True, slots=True)
class ProvenEntry:
    """An entry, and the checkpoint that proves it."""

    entry: Entry
    checkpoint: Checkpoint


def make_proof(entry: Entry, note: bytes, node: NodeHash) -> bytes:
    """Make the file that proves one entry, and check it before it is given out.

    Args:
        entry: Of sound columns, as the chain holds it.
        note: A checkpoint of the entry's chain. Who signed it is not checked.
        node: Knows the perfect subtrees of the chain.

    Raises:
        ConfigurationError: the checkpoint does not reach as far as the entry.
        EvidenceError: ``malformed-note``, ``checkpoint-origin`` when the checkpoint is of
            another chain, ``checkpoint-mismatch`` when the chain is not what it signs.
    """
    checkpoint = parse_checkpoint(note)
    if checkpoint.chain_id != entry.chain_id:
        raise EvidenceError(
            f"origin {checkpoint.origin}: expected chain {entry.chain_id.hex()}",
            "checkpoint-origin",
            "origin line",
        )
    if entry.seq >= checkpoint.size:
        raise ConfigurationError(
            f"entry {entry.seq}: the checkpoint of size {checkpoint.size} does not cover it"
        )
    hashes = make_inclusion(node, entry.seq, checkpoint.size)
    line = format_entry_line(entry)
    # Read back, so that a body which is not the one that was sealed is never given out.
    _check_inclusion(parse_entry_line(line, entry.chain_id), checkpoint, hashes)
    return bytes(TlogProof(line, entry.seq, hashes, note))


def verify_proof(octets: bytes, keys: Sequence[VerifierKey]) -> ProvenEntry:
    """Check a proof file against public keys alone.

    Args:
        octets: The file.
        keys: At least one; every one must have signed the checkpoint.

    Raises:
        ConfigurationError: there is no key.
        VerificationError: its ``code`` is ``malformed-proof``, ``malformed-note``,
            ``checkpoint-signature``, ``checkpoint-origin``, ``malformed-entry`` or that of a
            column, ``proof-rejected`` for hashes that fit no such tree, or
            ``checkpoint-mismatch``: the checkpoint does not cover this entry.

    Source:
        docs/spec (proof).

    Added in 0.1.
    """
    proof = parse_proof(octets)
    checkpoint = verify_checkpoint(proof.note, keys)
    entry = parse_entry_line(proof.extra, checkpoint.chain_id)
    if entry.seq != proof.index:
        raise _malformed(f"index {proof.index}: the entry's seq is {entry.seq}")
    _check_inclusion(entry, checkpoint, proof.hashes)
    return ProvenEntry(entry, checkpoint)


def parse_proof(octets: bytes) -> TlogProof:
    """Take a proof file apart. Nothing is verified.

    Raises:
        EvidenceError: ``malformed-proof``.
    """
    if len(octets) > MAX_PROOF_BYTES:
        raise _malformed(f"{len(octets)} bytes: expected at most {MAX_PROOF_BYTES}")
    head, separator, note = octets.partition(b"\n\n")
    lines = head.decode("ascii", "replace").split("\n")
    if not separator or lines[0] != _FIRST_LINE:
        raise _malformed(f"expected {_FIRST_LINE!r}, hashes, an empty line and a checkpoint")
    if not 3 <= len(lines) <= MAX_HASHES + 3:
        raise _malformed(f"{len(lines)} lines before the checkpoint: expected 3 to 66")
    extra = _field(lines[1], "extra")
    index = _field(lines[2], "index")
    content = decode_base64(extra)
    if content is None:
        raise _malformed("line 2: the extra data is not valid base64")
    if not _NUMBER.fullmatch(index) or int(index) > MAX_SIZE:
        raise _malformed(f"line 3: expected an index in decimal, got {index[:40]!r}")
    hashes = parse_hash_lines(lines[3:], 4, "malformed-proof")
    return TlogProof(content, int(index), hashes, note)


def parse_hash_lines(lines: Sequence[str], number: int, code: str) -> tuple[bytes, ...]:
    """Read lines of base64, each of 32 bytes; ``number`` is the first one's.

    Raises:
        EvidenceError: with ``code``.
    """
    hashes = []
    for place, line in enumerate(lines, number):
        value = decode_base64(line)
        if value is None or len(value) != 32:
            what = f"proof: line {place}: expected base64 of 32 bytes, got {quoted(line)}"
            raise EvidenceError(what, code, f"line {place}")
        hashes.append(value)
    return tuple(hashes)


def _field(line: str, name: str) -> str:
    word, _, value = line.partition(" ")
    if word != name:
        raise _malformed(f"expected a line '{name} ...', got {quoted(line)}")
    return value


def _check_inclusion(entry: Entry, checkpoint: Checkpoint, hashes: Sequence[bytes]) -> None:
    leaf = entry_leaf(entry_header(entry), entry.tag)
    computed = inclusion_root(leaf, entry.seq, checkpoint.size, hashes)
    if computed != checkpoint.root_hash:
        raise EvidenceError(
            f"entry {entry.seq}: the checkpoint of size {checkpoint.size} does not cover it: "
            f"expected root {checkpoint.root_hash.hex()}, got {computed.hex()}",
            "checkpoint-mismatch",
            "root",
        )


def _malformed(what: str) -> EvidenceError:
    return EvidenceError(f"proof: {what}", "malformed-proof", "proof")


def _base64(octets: bytes) -> str:
    return base64.b64encode(octets).decode()
