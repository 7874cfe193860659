"""Inclusion and consistency proofs over an RFC 6962 tree: making them, checking them. Pure.

A proof is made from a function that knows the perfect subtrees, wherever their hashes are kept
(rows, tiles, a list). Checking needs the proof and the two ends alone.

Published implementations differ on the empty tree: RFC 9162 and transparency-dev know no
consistency proof from size 0, a C2SP witness accepts an empty one. Hence two functions.

Source: RFC 6962 section 2.1, RFC 9162 sections 2.1.3.2 and 2.1.4.2, C2SP tlog-witness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from bijotel.errors import VerificationError
from bijotel.merkle import HASH_BYTES, node_hash

NodeHash: TypeAlias = "Callable[[int, int], bytes]"
"""Given level and position, the hash of leaves ``position * 2**level`` and the next 2**level."""


class ProofError(VerificationError):
    """A Merkle proof does not lead where it should."""

    code = "proof-rejected"


def split_point(start: int, end: int) -> int:
    """Where the root of leaves ``start`` to ``end - 1`` divides them (RFC 6962 2.1)."""
    return start + (1 << ((end - start - 1).bit_length() - 1))


def tree_hash(node: NodeHash, start: int, end: int) -> bytes:
    """Hash a subtree of an RFC 6962 tree, perfect or at the right edge; ``start < end``."""
    size = end - start
    if size & (size - 1) == 0:
        level = size.bit_length() - 1
        return node(level, start >> level)
    split = split_point(start, end)
    return node_hash(tree_hash(node, start, split), tree_hash(node, split, end))


def make_inclusion(node: NodeHash, index: int, size: int) -> tuple[bytes, ...]:
    """Make the proof that leaf ``index`` is in the tree of ``size`` leaves.

    Args:
        node: Knows the perfect subtrees of the tree.
        index: From 0, below ``size``.
        size: Leaves of the tree.

    Returns:
        From the leaf's sibling up to the root's child (RFC 6962 2.1.1).
    """
    start, end, path = 0, size, []
    while end - start > 1:
        split = split_point(start, end)
        if index < split:
            path.append(tree_hash(node, split, end))
            end = split
        else:
            path.append(tree_hash(node, start, split))
            start = split
    return tuple(reversed(path))


def make_consistency(node: NodeHash, old_size: int, new_size: int) -> tuple[bytes, ...]:
    """Make the proof that the tree of ``new_size`` only appended to that of ``old_size``.

    Args:
        node: Knows the perfect subtrees of the new tree.
        old_size: At least 1, at most ``new_size``.
        new_size: Leaves of the new tree.

    Returns:
        As RFC 6962 2.1.2 orders it; empty when the sizes are equal.
    """
    start, end, path = 0, new_size, []
    while end != old_size:
        split = split_point(start, end)
        if old_size <= split:
            path.append(tree_hash(node, split, end))
            end = split
        else:
            path.append(tree_hash(node, start, split))
            start = split
    if start:  # a tree that is whole on the left needs no hash of its own: it is the old root
        path.append(tree_hash(node, start, end))
    return tuple(reversed(path))


def inclusion_root(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes:
    """Compute the root that a leaf and its proof lead to.

    Raises:
        ProofError: ``index`` is not below ``size``, a hash is not 32 bytes long, or the proof
            has not as many hashes as the place demands.
    """
    if not 0 <= index < size:
        raise ProofError(f"index {index}: expected 0 to {size - 1} in a tree of {size} leaves")
    check_hashes(leaf, *proof)
    result, last = leaf, size - 1
    for sibling in proof:
        if last == 0:
            raise ProofError(f"{len(proof)} hashes: too many for leaf {index} of {size}")
        if index & 1 or index == last:
            result = node_hash(sibling, result)
            while not index & 1 and index:
                index >>= 1
                last >>= 1
        else:
            result = node_hash(result, sibling)
        index >>= 1
        last >>= 1
    if last:
        raise ProofError(f"{len(proof)} hashes: too few for a tree of {size} leaves")
    return result


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> None:
    """Check that a leaf is in a tree.

    Raises:
        ProofError: it is not, or the proof is malformed.
    """
    check_hashes(root)
    computed = inclusion_root(leaf, index, size, proof)
    if computed != root:
        raise ProofError(f"root: expected {root.hex()}, got {computed.hex()} from the proof")


def verify_consistency(
    old_size: int, new_size: int, proof: Sequence[bytes], old_root: bytes, new_root: bytes
) -> None:
    """Check that one tree is the beginning of another, as RFC 9162 defines it.

    Raises:
        ProofError: it is not, the proof is malformed, or the old tree is empty.
    """
    if not 0 < old_size <= new_size:
        raise ProofError(f"sizes: expected 0 < old <= new, got {old_size} and {new_size}")
    if old_size == new_size:
        if proof:
            raise ProofError(f"{len(proof)} hashes: expected none between equal sizes")
        if old_root != new_root:
            raise ProofError(f"two roots of size {old_size}: {old_root.hex()}, {new_root.hex()}")
        return
    check_hashes(old_root, new_root, *proof)
    if not proof:
        raise ProofError(f"no hashes: expected some from size {old_size} to {new_size}")
    path = list(proof) if old_size & (old_size - 1) else [old_root, *proof]
    _climb(path, old_size - 1, new_size - 1, old_root, new_root)


def _climb(path: list[bytes], old: int, new: int, old_root: bytes, new_root: bytes) -> None:
    """Rebuild both roots from the last leaf of the old tree upwards (RFC 9162 2.1.4.2)."""
    while old & 1:
        old >>= 1
        new >>= 1
    old_hash = new_hash = path[0]
    for sibling in path[1:]:
        if new == 0:
            raise ProofError(f"{len(path)} hashes: too many between these sizes")
        if old & 1 or old == new:
            old_hash, new_hash = node_hash(sibling, old_hash), node_hash(sibling, new_hash)
            while not old & 1 and old:
                old >>= 1
                new >>= 1
        else:
            new_hash = node_hash(new_hash, sibling)
        old >>= 1
        new >>= 1
    if new:
        raise ProofError(f"{len(path)} hashes: too few between these sizes")
    if old_hash != old_root:
        raise ProofError(f"old root: expected {old_root.hex()}, got {old_hash.hex()}")
    if new_hash != new_root:
        raise ProofError(f"new root: expected {new_root.hex()}, got {new_hash.hex()}")


def verify_extension(
    old_size: int, new_size: int, proof: Sequence[bytes], old_root: bytes, new_root: bytes
) -> None:
    """Check that one tree extends another, as a C2SP witness does: any tree extends nothing.

    Raises:
        ProofError: it does not, or the proof is malformed; from size 0 it must be empty.
    """
    if old_size:
        verify_consistency(old_size, new_size, proof, old_root, new_root)
    elif proof:
        raise ProofError(f"{len(proof)} hashes: expected none from size 0")


def check_hashes(*hashes: bytes) -> None:
    """Refuse a hash of a wrong length before anything is hashed.

    Raises:
        ProofError: one is not 32 bytes long.
    """
    for value in hashes:
        if len(value) != HASH_BYTES:
            raise ProofError(f"a hash of {len(value)} bytes: expected {HASH_BYTES}")
