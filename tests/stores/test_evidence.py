"""Checkpoints, proofs, exports and rotations are the same whichever store holds the chain."""

from __future__ import annotations

import io

import pytest

from bijotel.checkpoint import parse_checkpoint
from bijotel.checkpointing import Notary
from bijotel.errors import ConfigurationError, VerificationError
from bijotel.export import write_export
from bijotel.export_check import verify_export
from bijotel.keys import HmacKey, KeyRing
from bijotel.note import EvidenceError
from bijotel.proof import make_proof, verify_proof
from bijotel.sealer import Sealer
from bijotel.signing import generate_signing_key
from bijotel.stores.base import Store
from bijotel.stores.sqlite_tiles import open_tiles
from bijotel.stores.tiles import with_tree
from bijotel.verify import verify_chain
from bijotel.verify.leaves import leaf_reader, read_entries
from tests.stores.chains import KEY, append, entries, span

SIGNER = generate_signing_key()
NEW = HmacKey(bytes(range(64, 96)))


def sign(store: Store, *, ring: KeyRing | None = None) -> bytes:
    sealer = Sealer(store, "default", ring or KeyRing(KEY))
    notary = Notary(ring or KeyRing(KEY), [SIGNER])
    return notary.publish(store, "default", lambda draft: sealer.append([draft]))


def test_a_checkpoint_covers_what_was_committed(store: Store):
    """Signed, recorded behind what it covers, and confirmed by the rows, also in two ranges."""
    append(store, *range(300))
    note = sign(store)
    assert parse_checkpoint(note).size == 301
    assert entries(store)[-1].kind == "checkpoint"
    append(store, 1000, 1001)
    for workers in (1, 2):
        report = verify_chain(
            store, KEY, workers=workers, checkpoints=[note], pubkeys=[SIGNER.verifier]
        )
        assert report.findings == ()
        assert report.not_checked == ("completeness of the tail behind entry 300",)


def test_a_proof_and_an_export(store: Store):
    """Both check themselves against the checkpoint, from rows alone or with tiles."""
    append(store, *range(600))
    note = sign(store)
    checkpoint = parse_checkpoint(note)
    keys = [SIGNER.verifier]
    for _ in range(2):
        with store.snapshot() as snapshot, open_tiles(store, checkpoint.chain_id) as tiles:
            leaves = leaf_reader(snapshot, checkpoint.chain_id)
            (entry,) = read_entries(snapshot, checkpoint.chain_id, ((7, 7),))
            proof = with_tree(
                checkpoint.size,
                leaves,
                tiles,
                lambda node, entry=entry: make_proof(entry, note, node),
            )
            assert verify_proof(proof, keys).entry.seq == 7
            output = io.BytesIO()
            ranges = ((3, 9), (590, 600))
            found = read_entries(snapshot, checkpoint.chain_id, ranges)
            with_tree(
                checkpoint.size,
                leaves,
                tiles,
                lambda node, found=found, output=output: write_export(
                    output, note, found, node, ((3, 9), (590, 600))
                ),
            )
        source = io.BufferedReader(io.BytesIO(output.getvalue()))
        assert verify_export(source, keys, ring=KeyRing(KEY), partial=True).findings == ()


def test_another_chain_in_its_place(store: Store):
    """A checkpoint of another store's chain is of another log."""
    append(store, *range(3))
    note = sign(store)
    origin = parse_checkpoint(note).chain_id
    other = note.replace(origin.hex().encode(), b"ee" * 16)
    report = verify_chain(store, KEY, checkpoints=[other], pubkeys=[SIGNER.verifier])
    assert [finding.code for finding in report.findings] == ["checkpoint-signature"]


def test_a_rotation(store: Store):
    """The entry behind the hand-over is the new key's, whoever comes to append."""
    append(store, *range(3))
    sealer = Sealer(store, "default", KeyRing(KEY, NEW))
    head = sealer.rotate(NEW)
    assert (head.seq, head.key_id) == (4, KEY.key_id)
    assert sealer.append([span(10)]) == 1
    fresh = Sealer(store, "default", KeyRing(NEW, KEY))
    assert fresh.append([span(11)]) == 1
    assert [entry.key_id for entry in entries(store)[-3:]] == [KEY.key_id, NEW.key_id, NEW.key_id]
    report = verify_chain(store, KeyRing(KEY, NEW), deep=True)
    assert (report.findings, report.notices) == ((), ())
    assert sign(store, ring=KeyRing(KEY, NEW)).split(b"\n")[1] == b"7"


def test_who_may_not_go_on(store: Store):
    """Neither the key that was left, nor one that the chain never had."""
    append(store, *range(3))
    Sealer(store, "default", KeyRing(KEY, NEW)).rotate(NEW)
    before = entries(store)
    with pytest.raises(ConfigurationError, match=f"was handed over to key {NEW.key_id.hex()}"):
        Sealer(store, "default", KeyRing(KEY)).append([span(10)])
    with pytest.raises(ConfigurationError, match="was left, and never returns"):
        Sealer(store, "default", KeyRing(NEW, KEY)).rotate(KEY)
    with pytest.raises(ConfigurationError, match="is in force already"):
        Sealer(store, "default", KeyRing(NEW, KEY)).rotate(NEW)
    stranger = HmacKey(bytes(range(7, 39)))
    with pytest.raises(ConfigurationError, match="not in"):
        Sealer(store, "none", KeyRing(KEY, stranger)).rotate(stranger)
    assert entries(store) == before
    with pytest.raises(EvidenceError, match="no key of the ring made this record"):
        sign(store, ring=KeyRing(stranger))
    with pytest.raises((ConfigurationError, VerificationError)):
        Notary(KeyRing(KEY), [SIGNER]).publish(store, "none", lambda _draft: None)
    assert entries(store) == before
