"""The Merkle tree over a chain's entries: RFC 6962 hashing and the tree's right edge. Pure.

A tree of ``size`` leaves is kept as the roots of its perfect subtrees, largest first: one hash
for each bit set in ``size``. That right edge is all that an append and a root need, so neither
ever reads the log again.

Source: RFC 6962 section 2.1 (hashing), docs/spec (head).
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()
"""The root of the tree without leaves."""


def leaf_hash(data: bytes) -> bytes:
    """Hash a leaf's data. The prefix keeps leaves and inner nodes apart (RFC 6962 2.1)."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two subtrees into their parent."""
    return sha256(b"\x01" + left + right).digest()


def extend(edge: list[bytes], size: int, leaf: bytes) -> None:
    """Append one leaf to a right edge in place; O(1) hashes amortised.

    Args:
        edge: Roots of the perfect subtrees of ``size`` leaves, largest first.
        size: Leaves before this one.
        leaf: The leaf's hash.
    """
    while size & 1:
        leaf = node_hash(edge.pop(), leaf)
        size >>= 1
    edge.append(leaf)


def root(edge: list[bytes]) -> bytes:
    """Compute the root hash from a right edge."""
    if not edge:
        return EMPTY_ROOT
    result = edge[-1]
    for left in reversed(edge[:-1]):
        result = node_hash(left, result)
    return result


def split_edge(tree: bytes) -> list[bytes]:
    """Take a stored right edge apart into its hashes."""
    return [tree[start : start + HASH_BYTES] for start in range(0, len(tree), HASH_BYTES)]


class CompactRange:
    """The perfect subtrees that cover leaves ``start`` to ``start + count - 1``. Mutable.

    Ranges that were hashed apart (by several workers) join into one; a range that starts at 0
    is the tree's right edge.
    """

    __slots__ = ("nodes",)

    def __init__(self, nodes: Iterable[tuple[int, int, bytes]] = ()) -> None:
        """Start with the nodes of another range, or empty."""
        self.nodes: list[tuple[int, int, bytes]] = list(nodes)
        """``(first leaf, level, hash)``, by first leaf."""

    def append(self, first_leaf: int, level: int, node: bytes) -> None:
        """Append a perfect subtree of ``2**level`` leaves that follows the range."""
        nodes = self.nodes
        while nodes and nodes[-1][1] == level and nodes[-1][0] % (2 << level) == 0:
            first_leaf, _, left = nodes.pop()
            node = node_hash(left, node)
            level += 1
        nodes.append((first_leaf, level, node))

    def join(self, following: CompactRange) -> None:
        """Append a range that starts where this one ends."""
        for first_leaf, level, node in following.nodes:
            self.append(first_leaf, level, node)

    def joined(self, following: CompactRange) -> CompactRange:
        """Make a range of this one and one that starts where it ends; both stay as they are."""
        both = CompactRange(self.nodes)
        both.join(following)
        return both

    def root(self) -> bytes:
        """Compute the root hash of a range that starts at 0."""
        return root([node for _, _, node in self.nodes])

    def edge(self) -> bytes:
        """Give the hashes as a head record stores them."""
        return b"".join(node for _, _, node in self.nodes)
