"""``bijotel consistency``: prove or check that a later checkpoint only appended."""

from __future__ import annotations

from pathlib import Path

import click

from bijotel.checkpoint import Checkpoint, parse_checkpoint, verify_checkpoint
from bijotel.cli.evidence import check_chain, read_note
from bijotel.cli.options import json_option
from bijotel.cli.session import Session
from bijotel.cli.text import escape
from bijotel.consistency import (
    MAX_CONSISTENCY_BYTES,
    make_consistency_file,
    verify_consistency_file,
)
from bijotel.errors import ConfigurationError
from bijotel.evidence_files import read_evidence
from bijotel.output_files import PUBLIC, new_file
from bijotel.signing import load_verifier_key
from bijotel.stores.open import open_store
from bijotel.stores.sqlite_tiles import open_tiles
from bijotel.stores.tiles import with_tree
from bijotel.verifier_key import VerifierKey
from bijotel.verify.leaves import leaf_reader


@click.command(short_help="Prove that a later checkpoint only appended.")
@click.option("--db", "location", metavar="STORE", help="The store: makes the proof.")
@click.option(
    "--pubkey",
    "pubkeys",
    multiple=True,
    metavar="KEY",
    help="Verifier key, a line or a file; every one given must have signed both.",
)
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write the proof, for others.",
)
@json_option
@click.argument("old", metavar="OLD", type=click.Path(path_type=Path))
@click.argument("new", metavar="NEW", type=click.Path(path_type=Path))
@click.pass_obj
def consistency(
    session: Session,
    *,
    location: str | None,
    pubkeys: tuple[str, ...],
    target: Path | None,
    old: Path,
    new: Path,
) -> None:
    """Prove that checkpoint NEW only appended to checkpoint OLD.

    With --db the proof is made from the store, and written to -o for others. Without it NEW is
    such a file, which holds the later checkpoint and the proof; then --pubkey is required.

    Exit codes: 0 it only appended; 1 it did not, or a signature is missing; 2 asked wrongly; 3
    could not check.
    """
    keys = tuple(load_verifier_key(source) for source in pubkeys)
    if location is None and (not keys or target is not None):
        raise ConfigurationError("without --db the proof is in NEW: expected --pubkey and no -o")
    older = _read(read_note(old), keys)
    if location is None:
        newer = verify_consistency_file(read_evidence(new, MAX_CONSISTENCY_BYTES), older, keys)
    else:
        note = read_note(new)
        newer = _read(note, keys)
        octets = _prove(location, older, newer, note)
        if target is not None:
            with new_file(target, PUBLIC, inputs=(location, old, new, *pubkeys)) as file:
                file.write(octets)
    _say(session, older, newer, target, signed=bool(keys))


def _read(note: bytes, keys: tuple[VerifierKey, ...]) -> Checkpoint:
    return verify_checkpoint(note, keys) if keys else parse_checkpoint(note)


def _prove(location: str, older: Checkpoint, newer: Checkpoint, note: bytes) -> bytes:
    store = open_store(location)
    with store.snapshot() as snapshot, open_tiles(store, newer.chain_id) as tiles:
        check_chain(snapshot, newer)
        leaves = leaf_reader(snapshot, newer.chain_id)
        return with_tree(
            newer.size, leaves, tiles, lambda node: make_consistency_file(older, note, node)
        )


def _say(
    session: Session, older: Checkpoint, newer: Checkpoint, target: Path | None, *, signed: bool
) -> None:
    not_checked = [] if signed else ["who signed the checkpoints (see --pubkey)"]
    if session.json:
        session.output.document(
            {
                "ok": True,
                "origin": newer.origin,
                "old_size": older.size,
                "new_size": newer.size,
                "file": None if target is None else str(target),
                "not_checked": not_checked,
            }
        )
        return
    session.output.line(
        f"{session.output.styled('OK', 'good')}: {escape(newer.origin)}: from {older.size} to "
        f"{newer.size} entries the log only appended"
    )
    for subject in not_checked:
        session.output.line(f"not checked: {subject}")
    if target is not None:
        session.output.line(f"written: {escape(str(target))}")
