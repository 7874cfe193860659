"""``bijotel checkpoint``: sign the size and root of a chain."""

from __future__ import annotations

import base64
from functools import partial
from pathlib import Path

import click

from bijotel.checkpoint import parse_checkpoint
from bijotel.checkpointing import make_notary, read_head
from bijotel.cli.options import chain_option, db_option, json_option, key_option
from bijotel.cli.session import Session
from bijotel.cli.text import escape
from bijotel.errors import ConfigurationError
from bijotel.fleet import FLEET_CHAIN, fleet_draft
from bijotel.keys import KeyRing
from bijotel.model import Draft
from bijotel.sealer import Sealer
from bijotel.stores.base import Store
from bijotel.stores.open import open_store
from bijotel.stores.retry import patiently
from bijotel.verify.judge import read_heads


@click.command(short_help="Sign the size and root of a chain.")
@db_option
@click.option(
    "--signing-key",
    "signing_keys",
    multiple=True,
    required=True,
    metavar="SOURCE",
    help="Private key, file:PATH; an ML-DSA-44 key may be given behind the Ed25519 key.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Keep the newest checkpoint in this file; an older one there must be extended.",
)
@key_option
@chain_option
@click.option("--fleet", is_flag=True, help="List every chain of the store, and sign that list.")
@json_option
@click.pass_obj
def checkpoint(
    session: Session,
    *,
    location: str,
    signing_keys: tuple[str, ...],
    out: Path | None,
    keys: tuple[str, ...],
    chain: str | None,
    fleet: bool,
) -> None:
    """Sign the size and root of a chain, and record that in the chain.

    Whoever keeps a copy elsewhere can prove later that nothing below this size was changed or
    cut off. The log is not read: the head record holds the tree, and its MAC is checked. Without
    --out the checkpoint goes to standard output.

    Exit codes: 0 signed; 1 the head does not verify, or the file at --out holds a checkpoint that
    the chain does not extend: nothing was written; 2 asked wrongly; 3 could not be done.
    """
    if fleet and chain is not None:
        raise ConfigurationError("expected --fleet or --chain, one of the two")
    store, ring = open_store(location), KeyRing(*keys)
    notary = make_notary(ring, signing_keys, out)
    name = _list_fleet(store, ring) if fleet else _chain_name(store, ring, chain)
    sealer = Sealer(store, name, ring)
    try:
        note = notary.publish(store, name, partial(_record, sealer))
    finally:
        sealer.close()
    signed = parse_checkpoint(note)
    if session.json:
        session.output.document(
            {
                "origin": signed.origin,
                "chain": signed.chain_id.hex(),
                "size": signed.size,
                "root_hash": base64.b64encode(signed.root_hash).decode(),
                "checkpoint": note.decode(),
                "file": None if out is None else str(out),
            }
        )
    elif out is None:
        session.output.line(note.decode().removesuffix("\n"))
    else:
        session.output.line(f"signed:  {escape(signed.origin)}, {signed.size} entries")
        session.output.line(f"written: {escape(str(out))}")


def _chain_name(store: Store, ring: KeyRing, chain: str | None) -> str:
    with store.snapshot() as snapshot:
        return read_head(snapshot, ring, chain).name


def _list_fleet(store: Store, ring: KeyRing) -> str:
    """Seal the list of all chains into the chain that is there for it."""
    with store.snapshot() as snapshot:
        draft = fleet_draft(read_heads(snapshot, ring))
    sealer = Sealer(store, FLEET_CHAIN, ring)
    try:
        _record(sealer, draft)
    finally:
        sealer.close()
    return FLEET_CHAIN


def _record(sealer: Sealer, draft: Draft) -> None:
    patiently(lambda: sealer.append([draft]))
