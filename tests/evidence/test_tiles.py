"""Tiles: every subtree of growing trees, a poisoned cache, a cache that cannot be kept."""

from __future__ import annotations

import io
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel import merkle
from bijotel.checkpoint import TreeHead, signed_message
from bijotel.errors import VerificationError
from bijotel.export import write_export
from bijotel.keys import HmacKey
from bijotel.merkle_proof import make_inclusion, tree_hash, verify_inclusion
from bijotel.note import EvidenceError, Note, Signature
from bijotel.proof import make_proof, verify_proof
from bijotel.seal import Batch, open_chain, seal_entries
from bijotel.stores.memory import MemoryStore
from bijotel.stores.sqlite import SqliteStore
from bijotel.stores.sqlite_tiles import SqliteTiles, open_tiles
from bijotel.stores.tiles import NO_CACHE, ChainTree, Tile, with_tree
from bijotel.verify import verify_chain
from bijotel.verify.leaves import leaf_reader, read_entries
from tests.conftest import MASTER_KEY
from tests.evidence import reference
from tests.evidence.chains import CHAIN_ID, check_export, span

LEAVES = [merkle.leaf_hash(number.to_bytes(4, "big")) for number in range(1200)]


class Cache:
    """Keeps tiles in a dict, and counts what is asked of it."""

    def __init__(self):
        self.tiles = {}
        self.cleared = 0

    def read(self, level, position):
        return self.tiles.get((level, position), b"")

    def write(self, tiles):
        for tile in tiles:
            self.tiles[tile.level, tile.position] = tile.hashes

    def clear(self):
        self.tiles = {}
        self.cleared += 1


def _read(start, end):
    return LEAVES[start:end]


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 511, 512, 700, 1024, 1200])
def test_every_perfect_subtree_is_the_reference_one(size):
    """Whatever the size, and with tiles kept from a smaller one."""
    cache = Cache()
    for part in (size // 3, size):
        if not part:
            continue
        tree = ChainTree(part, _read, cache)
        reference_node = reference.node_of(LEAVES[:part])
        for level in range(part.bit_length()):
            for position in range(0, part >> level, 1 + (part >> level) // 7):
                assert tree.node(level, position) == reference_node(level, position)
        assert tree_hash(tree.node, 0, part) == reference.mth(LEAVES[:part])
        tree.flush()


@given(st.lists(st.integers(1, 1200), min_size=1, max_size=4))
def test_a_kept_tile_serves_every_later_and_earlier_size(sizes):
    """Partial tiles grow; a larger one serves a smaller tree."""
    cache = Cache()
    for size in sizes:
        tree = ChainTree(size, _read, cache)
        assert tree_hash(tree.node, 0, size) == _root(size)
        tree.flush()
    assert set(cache.tiles) <= {(0, number) for number in range(5)} | {(1, 0)}


def _root(size):
    edge: list[bytes] = []
    for number in range(size):
        merkle.extend(edge, number, LEAVES[number])
    return merkle.root(edge)


def test_with_tiles_a_proof_reads_no_rows():
    """Once kept, they are all that an inclusion proof needs."""
    cache = Cache()
    warm = ChainTree(1200, _read, cache)
    make_inclusion(warm.node, 0, 1200)
    warm.flush()
    tree = ChainTree(1200, lambda *_: pytest.fail("rows were read"), cache)
    for index in (0, 255, 256, 1023, 1199):
        proof = make_inclusion(tree.node, index, 1200)
        verify_inclusion(LEAVES[index], index, 1200, proof, _root(1200))


def test_many_new_tiles_are_handed_over_in_portions():
    """A cold cache is filled while the tree is walked, not at its end."""
    size = 70 * 256
    portions = []

    class Counting(Cache):
        def write(self, tiles):
            portions.append(len(tiles))
            super().write(tiles)

    tree = ChainTree(
        size, lambda start, end: (n.to_bytes(32, "big") for n in range(start, end)), Counting()
    )
    tree_hash(tree.node, 0, size)
    tree.flush()
    assert portions == [64, 7]


# --- in the store --------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path):
    """A SQLite store with a chain of 700 entries."""
    store = SqliteStore(tmp_path / "chain.db")
    fill(store)
    yield store
    store.release()


def fill(store):
    key = HmacKey(MASTER_KEY)
    store.append("default", lambda _: open_chain("default", CHAIN_ID, key, [], 1))
    drafts = [span(number) for number in range(1, 700)]
    store.append("default", lambda head: Batch(*seal_entries(head, drafts, key, 2)))


def _note(store, signer, size):
    """Sign the tree that the store's rows have at a size."""
    with store.snapshot() as snapshot:
        leaves = list(leaf_reader(snapshot, CHAIN_ID)(0, size))
    key = signer.verifier
    head = TreeHead(f"{key.name}/{CHAIN_ID.hex()}", size, reference.mth(leaves))
    octets = signer.sign(signed_message(key, head))
    return str(Note(head.text(), (Signature(key.name, key.key_hash, octets),))).encode()


def _prove(store, note, seq, size):
    with store.snapshot() as snapshot, open_tiles(store, CHAIN_ID) as tiles:
        (entry,) = read_entries(snapshot, CHAIN_ID, ((seq, seq),))
        read = leaf_reader(snapshot, CHAIN_ID)
        return with_tree(size, read, tiles, lambda node: make_proof(entry, note, node))


def _tiles(store):
    with sqlite3.connect(store.location) as connection:
        rows = connection.execute("SELECT level, position, length(hashes) FROM tiles").fetchall()
    connection.close()
    return sorted(rows)


def test_proofs_from_a_store_fill_its_tiles(store, signer, vkey):
    """Proving keeps tiles; the verifier of the chain does not mind the table."""
    note = _note(store, signer, 690)
    for seq in (0, 255, 256, 689):
        proven = verify_proof(_prove(store, note, seq, 690), [vkey])
        assert proven.entry.seq == seq
    assert _tiles(store) == [(0, 0, 8192), (0, 1, 8192), (0, 2, 32 * 178), (1, 0, 64)]
    later = _note(store, signer, 700)
    verify_proof(_prove(store, later, 3, 700), [vkey])
    assert _tiles(store)[2] == (0, 2, 32 * 188)
    assert verify_chain(store, MASTER_KEY, deep=True).ok


@pytest.mark.parametrize(
    "poison",
    [
        "UPDATE tiles SET hashes = zeroblob(length(hashes))",
        "UPDATE tiles SET hashes = zeroblob(8192) WHERE level = 1",
        "UPDATE tiles SET hashes = zeroblob(8191)",
        "UPDATE tiles SET hashes = zeroblob(1000000)",
        "UPDATE tiles SET hashes = 'text'",
        "UPDATE tiles SET hashes = NULL",
        "UPDATE tiles SET position = position + 9; UPDATE tiles SET position = position - 8",
        "DELETE FROM tiles WHERE position = 1",
        "DROP TABLE tiles",
        "DROP INDEX tiles_by_position",
        "DROP TABLE tiles; CREATE VIEW tiles AS SELECT chain_id, 0 AS level, 0 AS position, tree AS hashes FROM heads",
    ],
)
def test_poisoned_tiles_are_made_from_the_rows_again(store, signer, vkey, poison):
    """Attack 50: whatever is written to the cache, the proof is right and the cache heals."""
    note = _note(store, signer, 700)
    expected = _prove(store, note, 300, 700)
    connection = sqlite3.connect(store.location)
    connection.executescript(poison)
    connection.close()
    for _ in range(2):
        octets = _prove(store, note, 300, 700)
        assert octets == expected
        assert verify_proof(octets, [vkey]).entry.seq == 300
    if "VIEW" not in poison:
        assert _tiles(store) == [(0, 0, 8192), (0, 1, 8192), (0, 2, 32 * 188), (1, 0, 64)]


def test_rows_that_were_changed_are_not_blamed_on_the_tiles(store, signer):
    """When the rows lie as well, nothing is given out."""
    note = _note(store, signer, 700)
    connection = sqlite3.connect(store.location)
    connection.execute("UPDATE entries SET name = 'x' WHERE seq = 5")
    connection.commit()
    with pytest.raises(EvidenceError, match="does not cover it") as caught:
        _prove(store, note, 300, 700)
    assert caught.value.code == "checkpoint-mismatch"
    connection.execute("DELETE FROM entries WHERE seq = 5")
    connection.commit()
    with pytest.raises(EvidenceError, match="entry 5 is missing") as caught:
        _prove(store, note, 300, 700)
    assert caught.value.code == "seq-gap"
    connection.execute("UPDATE entries SET tag = 'x' WHERE seq = 2")
    connection.commit()
    connection.close()
    with pytest.raises(
        EvidenceError, match="entry 2: tag: expected 32 bytes, found text"
    ) as caught:
        _prove(store, note, 300, 700)
    assert (caught.value.code, caught.value.where) == ("type-mismatch", "tag")


def test_other_faults_do_not_clear_the_cache():
    """Only what the tiles can have caused is tried again."""
    cache = Cache()

    def fail(_node):
        raise EvidenceError("x", "body-hash-mismatch")

    with pytest.raises(VerificationError):
        with_tree(3, _read, cache, fail)
    assert cache.cleared == 0


def test_a_locked_store_keeps_no_tiles(store, signer, vkey):
    """The proof does not wait for a writer that holds the file."""
    note = _note(store, signer, 700)
    blocker = sqlite3.connect(store.location, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    octets = _prove(store, note, 300, 700)
    blocker.execute("ROLLBACK")
    blocker.close()
    assert verify_proof(octets, [vkey]).entry.seq == 300


def test_stores_of_another_engine_keep_no_tiles(store, tmp_path):
    """Another engine, a store in memory, and a file that is not there."""
    for other in (object(), MemoryStore()):
        with open_tiles(other, CHAIN_ID) as tiles:
            assert tiles is NO_CACHE
    with open_tiles(SqliteStore(tmp_path / "nowhere.db"), CHAIN_ID) as tiles:
        assert tiles is NO_CACHE
    assert not (tmp_path / "nowhere.db").exists()
    assert NO_CACHE.read(0, 0) == b""
    NO_CACHE.write([Tile(0, 0, b"")])
    NO_CACHE.clear()
    with open_tiles(store, CHAIN_ID) as tiles:
        assert isinstance(tiles, SqliteTiles)


def test_tiles_of_one_chain_are_not_those_of_another(store):
    """The chain's id is part of the place."""
    with open_tiles(store, CHAIN_ID) as tiles:
        tiles.write([Tile(0, 0, bytes(32))])
        assert tiles.read(0, 0) == bytes(32)
    with open_tiles(store, bytes(16)) as tiles:
        assert tiles.read(0, 0) == b""
        tiles.clear()
    with open_tiles(store, CHAIN_ID) as tiles:
        assert tiles.read(0, 0) == bytes(32)
        tiles.clear()
        assert tiles.read(0, 0) == b""


def test_parts_of_a_store_are_exported_through_its_tiles(store, signer, vkey):
    """Ranges of a store with 700 entries, proven with a handful of hashes."""
    note = _note(store, signer, 700)
    ranges = ((10, 20), (300, 300), (650, 699))
    with store.snapshot() as snapshot, open_tiles(store, CHAIN_ID) as tiles:

        def export(node):
            output = io.BytesIO()
            write_export(output, note, read_entries(snapshot, CHAIN_ID, ranges), node, ranges)
            return output.getvalue()

        octets = with_tree(700, leaf_reader(snapshot, CHAIN_ID), tiles, export)
    report = check_export(octets, [vkey], partial=True)
    assert report.ok
    assert report.checked["entries"] == 62
    assert octets.count(b"\n") == 63
