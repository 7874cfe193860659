"""One proof for any set of ranges of leaves, made and checked as a stream. Pure.

Both sides walk the RFC 6962 tree from the root, left first. A subtree without an exported leaf
is not entered: its hash stands in the proof. A subtree whose leaves are all exported is hashed
from them. So a whole tree needs no proof, a range O(log n) hashes, and both sides memory for
O(log n) hashes at any size.

Source: RFC 6962 section 2.1, docs/spec (export).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from bijotel.merkle import extend, node_hash, root
from bijotel.merkle_proof import NodeHash, ProofError, check_hashes, split_point, tree_hash

Ranges: TypeAlias = "tuple[tuple[int, int], ...]"
"""First and last index of each range: ascending, disjoint, not touching."""


class Step(Enum):
    """What the walk does next."""

    SKIPPED = auto()
    """A subtree without an exported leaf: its hash stands in the proof."""
    COVERED = auto()
    """A subtree whose leaves are all exported."""
    JOINED = auto()
    """The last two subtrees make one."""


class Visit(NamedTuple):
    """One step of the walk, over leaves ``start`` to ``end - 1``."""

    step: Step
    start: int
    end: int


def check_ranges(ranges: Ranges, size: int) -> None:
    """Refuse ranges that are not in order or not within the tree.

    Raises:
        ProofError: none, empty, overlapping, touching or beyond ``size``.
    """
    if not ranges:
        raise ProofError("ranges: expected at least one")
    earliest = 0
    for first, last in ranges:
        if not earliest <= first <= last < size:
            raise ProofError(
                f"range {first} to {last}: expected {earliest} <= first <= last < {size}"
            )
        earliest = last + 2


def ranges_of(indexes: Iterable[int]) -> Ranges:
    """Join ascending indexes into ranges."""
    ranges: list[tuple[int, int]] = []
    for index in indexes:
        if ranges and index == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], index)
        else:
            ranges.append((index, index))
    return tuple(ranges)


def walk(size: int, ranges: Ranges) -> Iterator[Visit]:
    """List the steps that both sides take over a tree of ``size`` leaves, at least 1."""
    lasts = [last for _, last in ranges]

    def visit(start: int, end: int) -> Iterator[Visit]:
        place = bisect_right(lasts, start - 1)  # the first range that ends at start or later
        first, last = ranges[place] if place < len(ranges) else (size, size)
        if first >= end:
            yield Visit(Step.SKIPPED, start, end)
        elif first <= start and end - 1 <= last:
            yield Visit(Step.COVERED, start, end)
        else:
            split = split_point(start, end)
            yield from visit(start, split)
            yield from visit(split, end)
            yield Visit(Step.JOINED, start, end)

    return visit(0, size)


def make_range_proof(node: NodeHash, size: int, ranges: Ranges) -> Iterator[bytes]:
    """Make the hashes that prove the leaves of ``ranges`` in a tree of ``size`` leaves."""
    for step, start, end in walk(size, ranges):
        if step is Step.SKIPPED:
            yield tree_hash(node, start, end)


def range_root(size: int, ranges: Ranges, leaves: Iterator[bytes], proof: Iterable[bytes]) -> bytes:
    """Compute the root that the exported leaves and their proof lead to.

    Args:
        size: Leaves of the tree.
        ranges: Sound ranges, see :func:`check_ranges`.
        leaves: Hashes of the exported leaves in order; read as the walk needs them.
        proof: Hashes of 32 bytes.

    Raises:
        ProofError: there are too few leaves, or not as many hashes as the ranges demand.
    """
    hashes = iter(proof)
    stack: list[bytes] = []
    for step, start, end in walk(size, ranges):
        if step is Step.SKIPPED:
            skipped = next(hashes, None)
            if skipped is None:
                raise ProofError(f"proof: no hash for entries {start} to {end - 1}")
            check_hashes(skipped)
            stack.append(skipped)
        elif step is Step.COVERED:
            stack.append(_hash_leaves(leaves, start, end))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(node_hash(left, right))
    if next(hashes, None) is not None:
        raise ProofError("proof: more hashes than the ranges demand")
    return stack.pop()


def _hash_leaves(leaves: Iterator[bytes], start: int, end: int) -> bytes:
    edge: list[bytes] = []
    for count in range(end - start):
        leaf = next(leaves, None)
        if leaf is None:
            raise ProofError(f"leaf {start + count}: not there")
        extend(edge, count, leaf)
    return root(edge)
