"""What the commands about checkpoints, proofs and exports share."""

from __future__ import annotations

from pathlib import Path

import click

from bijotel.checkpoint import Checkpoint, parse_checkpoint
from bijotel.errors import ConfigurationError
from bijotel.evidence_files import read_evidence
from bijotel.note import MAX_NOTE_BYTES, EvidenceError
from bijotel.stores.base import Snapshot

pubkey_option = click.option(
    "--pubkey",
    "pubkeys",
    multiple=True,
    required=True,
    metavar="KEY",
    help="Verifier key, a line or a file; every one given must have signed.",
)
output_option = click.option(
    "-o",
    "--output",
    "target",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write; takes the place of a file that is there.",
)


def read_note(path: Path) -> bytes:
    """Read a checkpoint's file.

    Raises:
        UnavailableError: it cannot be read.
    """
    return read_evidence(path, MAX_NOTE_BYTES)


def read_checkpoint(path: Path) -> tuple[bytes, Checkpoint]:
    """Read the checkpoint that a command works with: its octets, and what they say.

    Raises:
        ConfigurationError: the file holds something else.
        UnavailableError: it cannot be read.
    """
    note = read_note(path)
    try:
        return note, parse_checkpoint(note)
    except EvidenceError as error:
        raise ConfigurationError(f"--checkpoint {path}: {error}") from None


def check_chain(snapshot: Snapshot, checkpoint: Checkpoint) -> None:
    """Refuse a checkpoint of a chain that a store does not hold.

    Raises:
        EvidenceError: ``checkpoint-origin``.
    """
    ids = [row[0] for row in snapshot.head_rows()]
    if checkpoint.chain_id not in ids:
        names = ", ".join(sorted(each.hex() for each in ids if isinstance(each, bytes))) or "none"
        what = f"origin {checkpoint.origin}: the store has the chains: {names}"
        raise EvidenceError(what, "checkpoint-origin", "origin line")
