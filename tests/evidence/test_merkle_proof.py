"""Inclusion and consistency proofs against published probes and a slow reference."""

from __future__ import annotations

import base64
import json
import pickle
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel import merkle
from bijotel.merkle_proof import (
    ProofError,
    inclusion_root,
    make_consistency,
    make_inclusion,
    tree_hash,
    verify_consistency,
    verify_extension,
    verify_inclusion,
)
from tests.evidence import reference

LEAVES = [merkle.leaf_hash(bytes([index])) for index in range(65)]


def _probes(shared, kind):
    folder = shared / "vectors/merkle/transparency-dev-merkle/testdata" / kind
    probes = sorted(folder.rglob("*.json"))
    assert len(probes) == 98
    for path in probes:
        yield path, json.loads(path.read_text())


def _hashes(probe):
    return [base64.b64decode(value) for value in probe["proof"] or ()]


def test_row_43_published_inclusion_probes(shared):
    """Each of the 98 inclusion probes passes or fails as its file says."""
    for path, probe in _probes(shared, "inclusion"):
        leaf, root = base64.b64decode(probe["leafHash"]), base64.b64decode(probe["root"])
        failed = False
        try:
            verify_inclusion(leaf, probe["leafIdx"], probe["treeSize"], _hashes(probe), root)
        except ProofError:
            failed = True
        assert failed == probe["wantErr"], path


def test_row_43_published_consistency_probes(shared):
    """Each of the 98 consistency probes passes or fails as its file says."""
    for path, probe in _probes(shared, "consistency"):
        old, new = base64.b64decode(probe["root1"]), base64.b64decode(probe["root2"])
        failed = False
        try:
            verify_consistency(probe["size1"], probe["size2"], _hashes(probe), old, new)
        except ProofError:
            failed = True
        assert failed == probe["wantErr"], path


def test_reference_tree_has_the_published_roots(shared):
    """Leaf hashing, inner nodes and the right edge give the published roots of sizes 0 to 8."""
    tree = json.loads((shared / "vectors/merkle/reference-tree.json").read_text())
    leaves = [merkle.leaf_hash(bytes.fromhex(text)) for text in tree["leaf_inputs_hex"]]
    for size, expected in enumerate(tree["root_by_size_hex"]):
        edge: list[bytes] = []
        for index in range(size):
            merkle.extend(edge, index, leaves[index])
        assert merkle.root(edge).hex() == expected == reference.mth(leaves[:size]).hex()


@pytest.mark.parametrize("size", range(1, 65))
def test_inclusion_proofs_equal_the_reference_for_every_leaf(size):
    """For every leaf of every tree up to 64 the proof is the reference's, and it verifies."""
    leaves = LEAVES[:size]
    node, root = reference.node_of(leaves), reference.mth(leaves)
    assert tree_hash(node, 0, size) == root
    for index in range(size):
        proof = make_inclusion(node, index, size)
        assert list(proof) == reference.path(index, leaves)
        verify_inclusion(leaves[index], index, size, proof, root)


@pytest.mark.parametrize("size", range(1, 65))
def test_consistency_proofs_equal_the_reference_for_every_pair(size):
    """For every pair of sizes up to 64 the proof is the reference's, and it verifies."""
    leaves = LEAVES[:size]
    node, root = reference.node_of(leaves), reference.mth(leaves)
    for old in range(1, size + 1):
        proof = make_consistency(node, old, size)
        assert list(proof) == reference.proof(old, leaves)
        verify_consistency(old, size, proof, reference.mth(leaves[:old]), root)


@given(st.data())
def test_a_changed_inclusion_proof_never_verifies(data):
    """A flipped bit, a hash more or fewer, another leaf or place: rejected."""
    size = data.draw(st.integers(2, 64))
    index = data.draw(st.integers(0, size - 1))
    leaves = LEAVES[:size]
    proof = reference.path(index, leaves)
    change = data.draw(st.sampled_from(["flip", "drop", "add", "swap", "place", "leaf", "short"]))
    leaf, place = leaves[index], index
    if change == "flip":
        which = data.draw(st.integers(0, len(proof) - 1))
        proof[which] = bytes([proof[which][0] ^ 1]) + proof[which][1:]
    elif change == "drop":
        proof.pop(data.draw(st.integers(0, len(proof) - 1)))
    elif change == "add":
        proof.insert(data.draw(st.integers(0, len(proof))), LEAVES[64])
    elif change == "swap":
        proof = [leaf, *proof[1:]]
        leaf = reference.path(index, leaves)[0]
    elif change == "place":
        place = data.draw(st.integers(-2, size + 2).filter(lambda other: other != index))
    elif change == "leaf":
        leaf = LEAVES[64]
    else:
        proof[0] = proof[0][:31]
    with pytest.raises(ProofError):
        verify_inclusion(leaf, place, size, proof, reference.mth(leaves))


def test_nothing_is_hashed_before_every_length_is_known(monkeypatch):
    """Hashes of 31 and 33 bytes are refused although a shifted border would hash alike."""
    leaves = LEAVES[:2]
    proof = [leaves[1][:31]]
    monkeypatch.setattr("bijotel.merkle_proof.node_hash", lambda *_: pytest.fail("hashed"))
    for leaf, hashes in ((leaves[0], proof), (leaves[0] + b"x", [leaves[1]]), (b"", [leaves[1]])):
        with pytest.raises(ProofError, match=r"a hash of \d+ bytes: expected 32"):
            inclusion_root(leaf, 0, 2, hashes)
    with pytest.raises(ProofError, match="a hash of 0 bytes: expected 32"):
        verify_inclusion(leaves[0], 0, 1, [], b"")
    with pytest.raises(ProofError, match="a hash of 31 bytes: expected 32"):
        verify_consistency(1, 2, proof, leaves[0], leaves[1])


def test_two_readings_of_the_empty_tree():
    """RFC 9162 has no proof from size 0; a C2SP witness accepts an empty one and no other."""
    root = reference.mth(LEAVES[:3])
    with pytest.raises(ProofError, match="expected 0 < old <= new, got 0 and 3"):
        verify_consistency(0, 3, [], merkle.EMPTY_ROOT, root)
    verify_extension(0, 3, [], merkle.EMPTY_ROOT, root)
    with pytest.raises(ProofError, match="1 hashes: expected none from size 0"):
        verify_extension(0, 3, [root], merkle.EMPTY_ROOT, root)
    verify_extension(2, 3, [LEAVES[2]], reference.mth(LEAVES[:2]), root)
    proof = reference.proof(3, LEAVES[:5])
    with pytest.raises(ProofError, match="old root: expected"):
        verify_extension(3, 5, proof, LEAVES[0], reference.mth(LEAVES[:5]))


def test_known_answers(data):
    """The inclusion and consistency proofs of the known chain are reproduced."""
    chain = [
        entry
        for name in ("known-answers.json", "known-answers-more.json")
        for entry in json.loads((data / name).read_text())["entries"]
    ]
    leaves = [bytes.fromhex(entry["leaf"]) for entry in chain]
    more = json.loads((data / "known-answers-more.json").read_text())
    node = reference.node_of(leaves)
    inclusion = [value.hex() for value in make_inclusion(node, 4, 9)]
    consistency = [value.hex() for value in make_consistency(node, 5, 9)]
    assert inclusion == more["inclusion_4_in_9"]
    assert consistency == more["consistency_5_to_9"]


def test_errors_say_what_is_wrong():
    """Each way to be wrong has its own message, and the errors can be pickled."""
    root = reference.mth(LEAVES[:4])
    cases = [
        ((LEAVES[0], 4, 4, [], root), "index 4: expected 0 to 3 in a tree of 4 leaves"),
        ((LEAVES[0], 0, 4, [], root), "0 hashes: too few for a tree of 4 leaves"),
        ((LEAVES[0], 0, 1, [root], root), "1 hashes: too many for leaf 0 of 1"),
        ((LEAVES[0], 0, 1, [], root), f"root: expected {root.hex()}, got {LEAVES[0].hex()}"),
    ]
    for arguments, message in cases:
        with pytest.raises(ProofError, match=message) as caught:
            verify_inclusion(*arguments)
        assert caught.value.exit_code == 1
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    pairs = [
        ((4, 3, [], root, root), "sizes: expected 0 < old <= new, got 4 and 3"),
        ((3, 3, [root], root, root), "1 hashes: expected none between equal sizes"),
        ((3, 3, [], root, LEAVES[0]), "two roots of size 3"),
        ((3, 4, [], root, root), "no hashes: expected some from size 3 to 4"),
        ((1, 2, [root, root], root, root), "3 hashes: too many between these sizes"),
        ((3, 8, [root], root, root), "1 hashes: too few between these sizes"),
        ((2, 3, [LEAVES[2]], reference.mth(LEAVES[:2]), root), "new root: expected"),
    ]
    for arguments, message in pairs:
        with pytest.raises(ProofError, match=message):
            verify_consistency(*arguments)


@given(
    st.integers(-1, 70),
    st.integers(-1, 70),
    st.lists(st.binary(min_size=31, max_size=33), max_size=8),
    st.binary(max_size=33),
    st.binary(max_size=33),
)
def test_any_input_passes_or_raises_our_error(old, new, proof, one, other):
    """Nothing but ProofError leaves a verifier, whatever it is fed."""
    for function, arguments in (
        (verify_consistency, (old, new, proof, one, other)),
        (verify_extension, (old, new, proof, one, other)),
        (verify_inclusion, (one, old, new, proof, other)),
    ):
        try:
            function(*arguments)
        except ProofError:
            continue
        assert one == other or (function is verify_extension and old == 0)


def test_a_single_leaf_is_its_own_root():
    """The tree of one leaf needs no hash."""
    leaf = sha256(b"\0x").digest()
    verify_inclusion(leaf, 0, 1, make_inclusion(reference.node_of([leaf]), 0, 1), leaf)
