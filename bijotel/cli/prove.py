"""``bijotel prove``: one entry, and the proof that a checkpoint covers it."""

from __future__ import annotations

from pathlib import Path

import click

from bijotel.checkpoint import Checkpoint
from bijotel.cli.evidence import check_chain, output_option, read_checkpoint
from bijotel.cli.options import db_option, json_option
from bijotel.cli.session import Session
from bijotel.cli.text import escape
from bijotel.errors import ConfigurationError
from bijotel.output_files import new_file
from bijotel.proof import make_proof
from bijotel.stores.open import open_store
from bijotel.stores.sqlite_tiles import open_tiles
from bijotel.stores.tiles import with_tree
from bijotel.verify.leaves import leaf_reader, read_entries


@click.command(short_help="Prove one entry to whoever has a public key.")
@db_option
@click.option(
    "--checkpoint",
    "note_path",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A checkpoint of the chain that covers the entry.",
)
@output_option
@json_option
@click.argument("seq", type=click.IntRange(min=0), metavar="SEQ")
@click.pass_obj
def prove(session: Session, location: str, note_path: Path, target: Path, seq: int) -> None:
    """Write entry SEQ and the proof that a checkpoint covers it, in one file (mode 0600).

    The file holds the entry in full and no other; "bijotel verify-proof" needs it and the public
    key alone. It is checked before it is written. No secret is needed.

    Exit codes: 0 written; 1 the store is not what was signed; 2 asked wrongly; 3 could not be
    done. Nothing is written but with 0.
    """
    note, checkpoint = read_checkpoint(note_path)
    octets = _prove(location, checkpoint, note, seq)
    with new_file(target, inputs=(location, note_path)) as file:
        file.write(octets)
    if session.json:
        session.output.document(
            {
                "chain": checkpoint.chain_id.hex(),
                "seq": seq,
                "size": checkpoint.size,
                "file": str(target),
                "bytes": len(octets),
            }
        )
    else:
        session.output.line(f"proven:  entry {seq} of {checkpoint.size}")
        session.output.line(f"written: {escape(str(target))} ({len(octets)} bytes)")


def _prove(location: str, checkpoint: Checkpoint, note: bytes, seq: int) -> bytes:
    chain_id, store = checkpoint.chain_id, open_store(location)
    with store.snapshot() as snapshot, open_tiles(store, chain_id) as tiles:
        check_chain(snapshot, checkpoint)
        if seq >= checkpoint.size:
            raise ConfigurationError(
                f"entry {seq}: the checkpoint of size {checkpoint.size} does not cover it"
            )
        (entry,) = read_entries(snapshot, chain_id, ((seq, seq),))
        leaves = leaf_reader(snapshot, chain_id)
        return with_tree(checkpoint.size, leaves, tiles, lambda node: make_proof(entry, note, node))
