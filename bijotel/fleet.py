"""The entry that lists the other chains of a store, so that none can vanish unseen. Pure.

It is sealed into a chain of its own, and a checkpoint of that chain vouches for all of them.

Source: docs/spec (entry), docs/how-to/checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bijotel import canonical, merkle
from bijotel.model import Draft
from bijotel.note import EvidenceError
from bijotel.seal import draft
from bijotel.verify.judge import Heads

FLEET_CHAIN: Final = "fleet"
"""The name of the chain that lists the others."""


def fleet_draft(heads: Heads) -> Draft:
    """Make the entry that lists every chain but the fleet's own, by size and root.

    Args:
        heads: All head records of a store, read at one moment.

    Raises:
        EvidenceError: ``head-mismatch``: no key of the ring made one of them.
    """
    for check in heads.sound.values():
        if not check.holds:
            what = f"head of chain {check.head.chain_id.hex()}: no key of the ring made this record"
            raise EvidenceError(f"{what}; nothing was signed", "head-mismatch", "head")
    if heads.broken:
        what = f"{heads.broken[0].message}; nothing was signed"
        raise EvidenceError(what, "head-mismatch", "head")
    chains = [
        _listed(check.head.chain_id, check.head.seq + 1, check.head.tree)
        for _, check in sorted(heads.sound.items())
        if check.head.name != FLEET_CHAIN
    ]
    return draft("fleet", canonical.dumps({"chains": chains}))


def _listed(chain_id: bytes, size: int, tree: bytes) -> Mapping[str, object]:
    root = merkle.root(merkle.split_edge(tree))
    return {"chain_id": chain_id.hex(), "root_hash": root.hex(), "size": size}
