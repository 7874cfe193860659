"""Key entries: which key follows which, and the new key's own proof. Pure.

Source: docs/spec (rotation).
"""

from __future__ import annotations

import hmac
from typing import NamedTuple

import orjson

from bijotel import canonical
from bijotel.keys import DOMAIN, HmacKey
from bijotel.model import ChainHead, Draft, Entry
from bijotel.seal import draft, length_prefixed


class Rotation(NamedTuple):
    """One change of key."""

    seq: int
    old_key_id: bytes
    new_key_id: bytes
    proof: bytes

    def proven_by(self, new_key: HmacKey, entry: Entry) -> bool:
        """Tell whether the holder of the new key made this entry's proof."""
        return hmac.compare_digest(self.proof, rotation_proof(new_key, entry, self.new_key_id))


def rotation_proof(new_key: HmacKey, entry: Entry, new_key_id: bytes) -> bytes:
    """Compute the proof that a key entry carries; place and link are the entry's own."""
    message = length_prefixed(
        entry.chain_id, entry.seq.to_bytes(8, "big"), entry.prev_tag, entry.key_id, new_key_id
    )
    return _proof(new_key, entry.chain_id, message)


def _proof(new_key: HmacKey, chain_id: bytes, message: bytes) -> bytes:
    return hmac.digest(new_key.chain_key(chain_id), DOMAIN + b"rotate\0" + message, "sha256")


def rotation_draft(head: ChainHead, key: HmacKey, new_key: HmacKey) -> Draft:
    """Make the entry that stands behind a head and hands over to a new key.

    Args:
        head: Its MAC was checked.
        key: The key in force, which seals the entry.
        new_key: Seals everything behind it.
    """
    seq = (head.seq + 1).to_bytes(8, "big")
    message = length_prefixed(head.chain_id, seq, head.tag, key.key_id, new_key.key_id)
    proof = _proof(new_key, head.chain_id, message)
    members = {"new_key_id": new_key.key_id.hex(), "proof": proof.hex()}
    return draft("key", canonical.dumps(members))


def read_rotation(entry: Entry) -> Rotation | None:
    """Read the body of a key entry; None when it does not have that shape."""
    try:
        body = orjson.loads(entry.body)
        new_key_id, proof = bytes.fromhex(body["new_key_id"]), bytes.fromhex(body["proof"])
    except (ValueError, TypeError, KeyError):
        return None
    if set(body) != {"new_key_id", "proof"} or (len(new_key_id), len(proof)) != (8, 32):
        return None
    return Rotation(entry.seq, entry.key_id, new_key_id, proof)


def genesis_key_id(entry: Entry) -> bytes | None:
    """Read which key a genesis entry says it was sealed with; None when it is no genesis."""
    try:
        key_id = bytes.fromhex(orjson.loads(entry.body)["key_id"])
    except (ValueError, TypeError, KeyError):
        return None
    return key_id if len(key_id) == 8 else None
