"""The proof of each entry under one checkpoint, as a page carries it.

A page composes the ``.tlog-proof`` file out of it, so that the octets of an entry stand in a
report once. Each proof is checked when it is made, against the root that was signed.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from bijotel.checkpoint import verify_checkpoint
from bijotel.errors import VerificationError
from bijotel.model import Entry
from bijotel.note import EvidenceError
from bijotel.proof import make_proof, parse_proof
from bijotel.stores.base import Snapshot
from bijotel.stores.tiles import NO_CACHE, ChainTree
from bijotel.verifier_key import VerifierKey
from bijotel.verify.leaves import leaf_reader


class Prover:
    """Proves entries of one chain."""

    def __init__(
        self, snapshot: Snapshot, chain_id: bytes, note: bytes, keys: Sequence[VerifierKey]
    ) -> None:
        """Take a checkpoint of the chain.

        Raises:
            EvidenceError: it is malformed, not signed by every key, or of another chain.
        """
        self.note = note
        self.checkpoint = verify_checkpoint(note, keys)
        if self.checkpoint.chain_id != chain_id:
            what = f"the checkpoint is of chain {self.checkpoint.chain_id.hex()}"
            raise EvidenceError(what, "checkpoint-origin", "origin line")
        # From the rows alone: tiles that somebody else may have written are not worth a doubt.
        self._tree = ChainTree(self.checkpoint.size, leaf_reader(snapshot, chain_id), NO_CACHE)

    def prove(self, entry: Entry) -> dict[str, Any]:
        """Give the parts of a proof, or why there is none."""
        size = self.checkpoint.size
        if entry.seq >= size:
            return {"why": f"the checkpoint of size {size} is older than this entry"}
        try:
            proof = parse_proof(make_proof(entry, self.note, self._tree.node))
        except VerificationError as error:
            return {"why": str(error)}
        return {
            "size": size,
            "line": proof.extra.decode(),
            "hashes": [base64.b64encode(value).decode() for value in proof.hashes],
        }
