"""Range proofs: every subset of small trees, huge sizes, and streaming."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel import merkle
from bijotel.merkle_proof import ProofError
from bijotel.range_proof import check_ranges, make_range_proof, range_root, ranges_of
from tests.evidence import reference

LEAVES = [merkle.leaf_hash(bytes([index])) for index in range(64)]


@pytest.mark.parametrize("size", range(1, 9))
def test_every_subset_of_a_small_tree(size):
    """For every non-empty set of leaves the proof is the reference's and gives the root."""
    leaves = LEAVES[:size]
    node, root = reference.node_of(leaves), reference.mth(leaves)
    for bits in range(1, 1 << size):
        exported = [index for index in range(size) if bits >> index & 1]
        ranges = ranges_of(exported)
        check_ranges(ranges, size)
        proof = list(make_range_proof(node, size, ranges))
        assert proof == reference.range_proof(set(exported), leaves)
        given_leaves = iter([leaves[index] for index in exported])
        assert range_root(size, ranges, given_leaves, proof) == root


@given(st.integers(1, 64), st.data())
def test_ranges_of_larger_trees(size, data):
    """Any ranges of trees up to 64 leaves; a whole tree has an empty proof."""
    exported = sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1)))
    leaves = LEAVES[:size]
    ranges = ranges_of(exported)
    proof = list(make_range_proof(reference.node_of(leaves), size, ranges))
    assert proof == reference.range_proof(set(exported), leaves)
    assert bool(proof) == (len(exported) < size)
    stream = iter([leaves[index] for index in exported])
    assert range_root(size, ranges, stream, proof) == reference.mth(leaves)


@given(st.integers(2, 40), st.data())
def test_a_changed_export_has_another_root(size, data):
    """A changed leaf or hash gives another root; a missing or added one an error."""
    exported = sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1)))
    leaves = LEAVES[:size]
    ranges = ranges_of(exported)
    proof = reference.range_proof(set(exported), leaves)
    items = [leaves[index] for index in exported]
    pool = items if data.draw(st.booleans()) or not proof else proof
    which = data.draw(st.integers(0, len(pool) - 1))
    if data.draw(st.booleans()):
        pool[which] = bytes([pool[which][0] ^ 1]) + pool[which][1:]
        assert range_root(size, ranges, iter(items), proof) != reference.mth(leaves)
    else:
        del pool[which]
        with pytest.raises(ProofError, match=r"not there|no hash for entries"):
            range_root(size, ranges, iter(items), proof)


def test_surplus_and_short_hashes_are_refused():
    """A hash that the ranges do not demand, and one of 31 bytes."""
    with pytest.raises(ProofError, match="more hashes than the ranges demand"):
        range_root(1, ((0, 0),), iter(LEAVES[:1]), [LEAVES[1]])
    with pytest.raises(ProofError, match="a hash of 31 bytes: expected 32"):
        range_root(2, ((0, 0),), iter(LEAVES[:1]), [LEAVES[1][:31]])


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ((), "expected at least one"),
        (((2, 1),), "range 2 to 1"),
        (((0, 9),), "range 0 to 9: expected 0 <= first <= last < 9"),
        (((-1, 2),), "range -1 to 2"),
        (((0, 2), (2, 3)), "range 2 to 3: expected 4 <= first"),
        (((0, 2), (3, 4)), "range 3 to 4: expected 4 <= first"),
        (((4, 5), (0, 1)), "range 0 to 1: expected 7 <= first"),
    ],
)
def test_unsound_ranges_are_refused(ranges, message):
    """Ranges are ascending, disjoint, not touching, not empty and below size."""
    with pytest.raises(ProofError, match=message):
        check_ranges(ranges, 9)


def test_ranges_of_joins_neighbours():
    """Neighbouring indexes make one range."""
    assert ranges_of([0, 1, 2, 5, 7, 8]) == ((0, 2), (5, 5), (7, 8))
    assert ranges_of([]) == ()


def test_a_claimed_size_costs_nothing_until_leaves_come():
    """A header that claims 2**62 entries ends at the first leaf that is not there."""
    with pytest.raises(ProofError, match="leaf 3: not there"):
        range_root(2**62, ((0, 2**62 - 1),), iter(LEAVES[:3]), [])


def test_memory_stays_flat():
    """A hundred thousand leaves pass through without being kept."""
    size = 100_000

    def leaves():
        return (index.to_bytes(32, "big") for index in range(size))

    tracemalloc.start()
    try:
        range_root(size, ((0, size - 1),), leaves(), [])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_known_answer(data):
    """The proof of the known partial export is reproduced."""
    names = ("known-answers.json", "known-answers-more.json")
    documents = [json.loads((data / name).read_text()) for name in names]
    leaves = [bytes.fromhex(e["leaf"]) for document in documents for e in document["entries"]]
    header = json.loads(documents[1]["export_part"].splitlines()[0])
    ranges = tuple((first, last) for first, last in header["ranges"])
    proof = [value.hex() for value in make_range_proof(reference.node_of(leaves), 9, ranges)]
    assert proof == header["proof"]
