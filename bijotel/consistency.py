"""The file that proves that a later checkpoint only appended to an earlier one. Pure.

Its layout is the body of a C2SP add-checkpoint request, so that a witness takes it as it is.

Source: C2SP tlog-witness, docs/spec (checkpoint).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Final

from bijotel import merkle
from bijotel.checkpoint import MAX_SIZE, Checkpoint, parse_checkpoint, verify_checkpoint
from bijotel.merkle_proof import NodeHash, make_consistency, tree_hash, verify_extension
from bijotel.note import MAX_NOTE_BYTES, EvidenceError
from bijotel.proof import MAX_HASHES, parse_hash_lines
from bijotel.verifier_key import VerifierKey

MAX_CONSISTENCY_BYTES: Final = MAX_NOTE_BYTES + 8192

_OLD_LINE = re.compile(r"old (0|[1-9][0-9]{0,18})")


def make_consistency_file(old: Checkpoint, new_note: bytes, node: NodeHash) -> bytes:
    """Prove that the newer of two checkpoints extends the older one.

    Args:
        old: The older checkpoint.
        new_note: The newer one, a signed note. Who signed either is not checked.
        node: Knows the perfect subtrees of the chain.

    Raises:
        EvidenceError: ``malformed-note``, ``checkpoint-origin`` when they are of two logs, or
            ``checkpoint-inconsistent`` when the newer one is smaller.
        ProofError: the chain does not lead from one to the other.
    """
    new = parse_checkpoint(new_note)
    _check_pair(old, new)
    hashes = make_consistency(node, old.size, new.size) if old.size else ()
    verify_extension(old.size, new.size, hashes, old.root_hash, new.root_hash)
    lines = [f"old {old.size}", *(base64.b64encode(value).decode() for value in hashes)]
    return "\n".join(lines).encode() + b"\n\n" + new_note


def verify_consistency_file(
    octets: bytes, old: Checkpoint, keys: Sequence[VerifierKey]
) -> Checkpoint:
    """Check a consistency file against the earlier checkpoint and public keys.

    Args:
        octets: The file.
        old: The earlier checkpoint, verified.
        keys: At least one; every one must have signed the newer checkpoint.

    Returns:
        The newer checkpoint, which extends ``old``.

    Raises:
        ConfigurationError: there is no key.
        VerificationError: the file is malformed, starts from another size, the newer
            checkpoint is not signed or of another log, or the proof does not hold.
    """
    if len(octets) > MAX_CONSISTENCY_BYTES:
        raise _malformed(f"{len(octets)} bytes: expected at most {MAX_CONSISTENCY_BYTES}")
    head, separator, note = octets.partition(b"\n\n")
    lines = head.decode("ascii", "replace").split("\n")
    match = _OLD_LINE.fullmatch(lines[0])
    if not separator or match is None or int(match[1]) > MAX_SIZE:
        raise _malformed("expected 'old SIZE', hashes, an empty line and a checkpoint")
    if len(lines) > MAX_HASHES + 1:
        raise _malformed(f"{len(lines) - 1} hashes: expected at most {MAX_HASHES}")
    hashes = parse_hash_lines(lines[1:], 2, "malformed-consistency")
    new = verify_checkpoint(note, keys)
    if int(match[1]) != old.size:
        raise _malformed(f"old {match[1]}: the earlier checkpoint is of size {old.size}")
    _check_pair(old, new)
    verify_extension(old.size, new.size, hashes, old.root_hash, new.root_hash)
    return new


def check_extends(old: Checkpoint, new: Checkpoint, node: NodeHash) -> None:
    """Refuse to put a checkpoint in the place of one that it does not extend.

    Args:
        old: What was signed before.
        new: What is to take its place; its tree is the one that ``node`` knows.
        node: Knows the perfect subtrees of the chain.

    Raises:
        EvidenceError: ``checkpoint-origin`` when they are of two logs, ``truncated`` when the
            chain is shorter than ``old`` says, ``checkpoint-mismatch`` when it had another root.
    """
    if new.origin == old.origin and new.size < old.size:
        raise EvidenceError(
            f"chain {new.chain_id.hex()} has {new.size} entries, the earlier checkpoint {old.size}",
            "truncated",
            "size",
        )
    _check_pair(old, new)
    root = tree_hash(node, 0, old.size) if old.size else merkle.EMPTY_ROOT
    if root != old.root_hash:
        raise EvidenceError(
            f"checkpoint of size {old.size}: expected root {old.root_hash.hex()}, the chain's is "
            f"{root.hex()}",
            "checkpoint-mismatch",
            "size",
        )


def _check_pair(old: Checkpoint, new: Checkpoint) -> None:
    if old.origin != new.origin:
        what = f"origin {new.origin}: the earlier checkpoint's is {old.origin}"
        raise EvidenceError(what, "checkpoint-origin", "origin line")
    if new.size < old.size:
        what = f"size {new.size}: the earlier checkpoint's is {old.size}"
        raise EvidenceError(what, "checkpoint-inconsistent", "size")


def _malformed(what: str) -> EvidenceError:
    return EvidenceError(f"consistency: {what}", "malformed-consistency", "file")
