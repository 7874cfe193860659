"""``bijotel rotate-key``: hand a chain over to a new HMAC key."""

from __future__ import annotations

from functools import partial

import click

from bijotel.cli.options import chain_option, db_option, json_option, key_option
from bijotel.cli.session import Session
from bijotel.cli.text import escape
from bijotel.entries import only_chain
from bijotel.keys import KeyRing, load_key
from bijotel.sealer import Sealer
from bijotel.stores.open import open_store
from bijotel.stores.retry import patiently


@click.command("rotate-key", short_help="Hand a chain over to a new HMAC key.")
@db_option
@key_option
@click.option(
    "--new-key",
    "new_source",
    required=True,
    metavar="SOURCE",
    help="The new HMAC key, env:NAME or file:PATH.",
)
@chain_option
@json_option
@click.pass_obj
def rotate_key(
    session: Session, location: str, keys: tuple[str, ...], new_source: str, chain: str | None
) -> None:
    """Seal an entry that hands a chain over to a new HMAC key.

    Give every writer both keys first, the new one first: they go on with the old one until this
    entry is there. A writer that has only the old key stops sealing then, and spools. Who
    verifies needs both keys for ever.

    Exit codes: 0 done; 1 the chain's tables are gone; 2 asked wrongly (a key that the chain has
    left, or a chain that is not there); 3 could not be done.
    """
    new_key = load_key(new_source)
    ring = KeyRing(*KeyRing(*keys), new_key)
    store = open_store(location)
    with store.snapshot() as snapshot:
        name = only_chain(snapshot, chain).name
    sealer = Sealer(store, name, ring)
    try:
        head = patiently(partial(sealer.rotate, new_key))
    finally:
        sealer.close()
    if session.json:
        session.output.document(
            {
                "chain": head.chain_id.hex(),
                "seq": head.seq,
                "old_key_id": head.key_id.hex(),
                "new_key_id": new_key.key_id.hex(),
            }
        )
        return
    session.output.line(
        f"chain {escape(head.name)} ({head.chain_id.hex()}): entry {head.seq} hands over from key "
        f"{head.key_id.hex()} to key {new_key.key_id.hex()}"
    )
    session.output.line("verify with both keys: --key OLD --key NEW")
