"""The first line of an export: a checkpoint, the ranges behind it, and one proof for them. Pure.

Nothing stands in it that is not checked: the checkpoint is signed, the ranges are compared with
the entries, and the proof leads to the root or it does not.

Source: docs/spec (export).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from bijotel import canonical
from bijotel.checkpoint import Checkpoint, verify_checkpoint
from bijotel.errors import CanonicalizationError
from bijotel.merkle_proof import ProofError
from bijotel.note import EvidenceError
from bijotel.quoting import quoted
from bijotel.range_proof import Ranges, check_ranges
from bijotel.verifier_key import VerifierKey

FORMAT: Final = "bijotel-export/1"


class Header(NamedTuple):
    """The first line of an export."""

    checkpoint: Checkpoint
    """Signed by every key that was given."""
    ranges: Ranges
    proof: tuple[bytes, ...]

    @property
    def is_whole(self) -> bool:
        """True when the export is all entries of its checkpoint."""
        return self.ranges == ((0, self.checkpoint.size - 1),)

    def __str__(self) -> str:
        ranges = ", ".join(f"{first} to {last}" for first, last in self.ranges)
        return f"entries {ranges} of {self.checkpoint.size}"


def format_header(note: bytes, ranges: Ranges, proof: Sequence[bytes]) -> bytes:
    """Write the first line, without the newline."""
    return canonical.dumps(
        {
            "checkpoint": note.decode(),
            "format": FORMAT,
            "proof": [value.hex() for value in proof],
            "ranges": ranges,
        }
    )


def read_header(line: bytes, keys: Sequence[VerifierKey]) -> Header:
    """Read the first line of an export and verify its checkpoint.

    Args:
        line: Without the newline; empty when the file is.
        keys: At least one; every one must have signed the checkpoint.

    Raises:
        ConfigurationError: there is no key.
        EvidenceError: ``truncated`` for an empty file, ``malformed-export``, or what
            ``verify_checkpoint`` raises.
    """
    if not line:
        raise EvidenceError("export: the file is empty", "truncated", "header")
    try:
        members = canonical.loads(line)
        note, ranges, proof = _take_apart(members)
    except (CanonicalizationError, ValueError, TypeError, AttributeError, LookupError):
        raise EvidenceError(
            f"export: expected a header of {FORMAT}, got {quoted(line)}",
            "malformed-export",
            "header",
        ) from None
    checkpoint = verify_checkpoint(note, keys)
    try:
        check_ranges(ranges, checkpoint.size)
    except ProofError as error:
        raise EvidenceError(f"export: {error}", "malformed-export", "ranges") from None
    return Header(checkpoint, ranges, proof)


def _take_apart(members: dict[str, Any]) -> tuple[bytes, Ranges, tuple[bytes, ...]]:
    """Take a header apart; whatever is not one raises some error of a wrong type or value."""
    if members.keys() != {"checkpoint", "format", "proof", "ranges"} or members["format"] != FORMAT:
        raise ValueError
    ranges = tuple((first, last) for first, last in members["ranges"])
    proof = tuple(bytes.fromhex(text) for text in members["proof"])
    sound = all(type(place) is int for pair in ranges for place in pair)
    if not sound or [value.hex() for value in proof] != members["proof"]:
        raise ValueError
    return members["checkpoint"].encode(), ranges, proof
