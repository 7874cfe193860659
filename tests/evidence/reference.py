"""RFC 6962 section 2.1 written down as it stands there: slow, recursive, obviously right."""

from __future__ import annotations

from hashlib import sha256


def split(n: int) -> int:
    """The largest power of two smaller than n."""
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def mth(leaves: list[bytes]) -> bytes:
    """MTH(D[n]) of leaf hashes."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def path(m: int, leaves: list[bytes]) -> list[bytes]:
    """PATH(m, D[n]), section 2.1.1."""
    n = len(leaves)
    if n == 1:
        return []
    k = split(n)
    if m < k:
        return [*path(m, leaves[:k]), mth(leaves[k:])]
    return [*path(m - k, leaves[k:]), mth(leaves[:k])]


def proof(m: int, leaves: list[bytes]) -> list[bytes]:
    """PROOF(m, D[n]), section 2.1.2."""
    return subproof(m, leaves, True)


def subproof(m: int, leaves: list[bytes], b: bool) -> list[bytes]:
    n = len(leaves)
    if m == n:
        return [] if b else [mth(leaves)]
    k = split(n)
    if m <= k:
        return [*subproof(m, leaves[:k], b), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


def range_proof(exported: set[int], leaves: list[bytes], start: int = 0) -> list[bytes]:
    """Walk from the root, left first; a subtree without an exported leaf gives its hash."""
    inside = [index for index in range(start, start + len(leaves)) if index in exported]
    if not inside:
        return [mth(leaves)]
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    return [
        *range_proof(exported, leaves[:k], start),
        *range_proof(exported, leaves[k:], start + k),
    ]


def node_of(leaves: list[bytes]):
    """Perfect subtrees of a list of leaves."""

    def node(level: int, position: int) -> bytes:
        first = position << level
        assert first + (1 << level) <= len(leaves), "a node that is not in the tree was asked for"
        return mth(leaves[first : first + (1 << level)])

    return node
