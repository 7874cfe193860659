"""RFC 6962 hashing and the right edge, against published trees and a slow reference."""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.merkle import (
    EMPTY_ROOT,
    CompactRange,
    extend,
    leaf_hash,
    node_hash,
    root,
    split_edge,
)

LEAVES = [leaf_hash(bytes([number])) for number in range(65)]


def mth(entries: list[bytes]) -> bytes:
    """Merkle Tree Hash, written from RFC 6962 section 2.1; ``entries`` are the inputs."""
    n = len(entries)
    if n == 0:
        return sha256(b"").digest()
    if n == 1:
        return sha256(b"\x00" + entries[0]).digest()
    k = 1
    while k * 2 < n:
        k *= 2
    return sha256(b"\x01" + mth(entries[:k]) + mth(entries[k:])).digest()


def edge_of(leaves: list[bytes]) -> list[bytes]:
    edge: list[bytes] = []
    for size, leaf in enumerate(leaves):
        extend(edge, size, leaf)
    return edge


def range_of(first: int, last: int) -> CompactRange:
    compact = CompactRange()
    for number in range(first, last):
        compact.append(number, 0, LEAVES[number])
    return compact


def test_the_published_tree(shared: Path):
    """Each published root follows from the leaves before it."""
    tree = json.loads((shared / "vectors/merkle/reference-tree.json").read_text())
    inputs = [bytes.fromhex(text) for text in tree["leaf_inputs_hex"]]
    roots = [bytes.fromhex(text) for text in tree["root_by_size_hex"]]
    assert len(roots) == 9
    for size, expected in enumerate(roots):
        assert root(edge_of([leaf_hash(data) for data in inputs[:size]])) == expected
        assert mth(inputs[:size]) == expected
    for case in tree["hasher"]:
        if "leaf_hex" in case:
            assert leaf_hash(bytes.fromhex(case["leaf_hex"])).hex() == case["hash"]
        else:
            left, right = (bytes.fromhex(case[f"{side}_hex"]) for side in ("left", "right"))
            assert node_hash(left, right).hex() == case["hash"]


@pytest.mark.parametrize("size", range(65))
def test_roots_and_edges_up_to_64(size: int):
    """The edge holds one hash for each bit of the size, and its root is the reference's."""
    edge = edge_of(LEAVES[:size])
    assert len(edge) == size.bit_count()
    assert root(edge) == mth([bytes([number]) for number in range(size)])
    assert split_edge(b"".join(edge)) == edge


@pytest.mark.parametrize("size", range(1, 65))
def test_ranges_join_to_the_edge_at_every_split(size: int):
    """Two ranges hashed apart join to the right edge, wherever they are split."""
    expected = b"".join(edge_of(LEAVES[:size]))
    for split in range(size + 1):
        joined = range_of(0, split)
        joined.join(range_of(split, size))
        assert joined.edge() == expected


@given(st.integers(1, 65), st.lists(st.integers(0, 65), max_size=8))
def test_ranges_join_from_any_number_of_parts(size: int, cuts: list[int]):
    """Parts of any sizes, empty ones included, join from the left and from the right."""
    borders = [0, *sorted(min(cut, size) for cut in cuts), size]
    parts = [range_of(low, high) for low, high in pairwise(borders)]
    left = CompactRange()
    for part in parts:
        left.join(part)
    right = CompactRange()
    for part in reversed(parts):
        part.join(right)
        right = part
    assert left.edge() == right.edge() == b"".join(edge_of(LEAVES[:size]))


def test_the_empty_tree():
    """The tree without leaves has the hash of nothing as its root."""
    assert root([]) == EMPTY_ROOT == sha256(b"").digest()
    assert split_edge(b"") == []
    assert CompactRange().edge() == b""


def test_no_odd_leaf_is_doubled():
    """Three leaves and the same with the last one twice are two trees (CVE-2012-2459's kind)."""
    three = root(edge_of(LEAVES[:3]))
    assert three != root(edge_of([*LEAVES[:3], LEAVES[2]]))


def test_a_node_is_no_leaf():
    """An inner node offered as the data of a leaf gives another hash."""
    assert leaf_hash(LEAVES[0] + LEAVES[1]) != node_hash(LEAVES[0], LEAVES[1])
