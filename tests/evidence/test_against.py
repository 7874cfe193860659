"""Checkpoints against a store: attacks 19, 26, 27, 38 to 42, 50, 55 and 56."""

from __future__ import annotations

import base64
import sqlite3
from dataclasses import replace

import pytest

from bijotel import canonical, merkle
from bijotel.checkpoint import TreeHead, sign_checkpoint, signed_message
from bijotel.errors import ConfigurationError
from bijotel.keys import HmacKey
from bijotel.merkle import EMPTY_ROOT
from bijotel.note import Note, Signature, parse_note
from bijotel.seal import Batch, draft, head_mac, open_chain, seal_entries
from bijotel.signing import generate_signing_key
from bijotel.stores.memory import MemoryStore
from bijotel.stores.sqlite import SqliteStore
from bijotel.verify import verify_chain
from bijotel.verify.against import compare, rows_reader
from bijotel.verify.vouched import NamedNote, read_outside
from tests.conftest import MASTER_KEY
from tests.evidence.chains import CHAIN_ID, RING, chain_of, span

CHAIN = chain_of(101)
OTHER_ID = b"\x22" * 16
KEY = HmacKey(MASTER_KEY)


def _put(store, chain, name="default"):
    head = chain.heads[-1]._replace(name=name)
    head = head._replace(mac=head_mac(head, KEY.chain_key(head.chain_id)))
    store.append(name, lambda _: Batch(tuple(chain.entries), head))


@pytest.fixture(params=["sqlite", "memory"])
def store(request, tmp_path):
    """A store with a chain of 101 entries."""
    store = SqliteStore(tmp_path / "chain.db") if request.param == "sqlite" else MemoryStore()
    _put(store, CHAIN)
    yield store
    store.release()


@pytest.fixture
def file(tmp_path):
    """The same as a SQLite file that can be tampered with."""
    store = SqliteStore(tmp_path / "chain.db")
    _put(store, CHAIN)
    yield store
    store.release()


def _tamper(store, *statements):
    store.release()
    connection = sqlite3.connect(store.location)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def _compare(store, notes, keys, chains=(CHAIN_ID,)):
    with store.snapshot() as snapshot:
        named = [NamedNote(f"note-{number}", note) for number, note in enumerate(notes)]
        vouched = read_outside(named, keys)
        comparison = compare(vouched.signed, chains, rows_reader(snapshot, {}))
        return replace(comparison, findings=(*vouched.findings, *comparison.findings))


def _found(comparison):
    return [(f.code, f.seq, f.last_seq, f.column) for f in comparison.findings]


def test_genuine_checkpoints_are_confirmed(store, signer, vkey):
    """Any number of genuine ones, of any size, at once and alone."""
    sizes = (1, 2, 50, 51, 64, 100, 101)
    notes = [CHAIN.note(size, signer) for size in sizes]
    comparison = _compare(store, notes, [vkey])
    assert comparison.findings == ()
    assert comparison.confirmed == {CHAIN_ID: 101}
    for size, note in zip(sizes, notes, strict=True):
        assert _compare(store, [note], [vkey]).confirmed == {CHAIN_ID: size}
    assert _compare(store, [], [vkey]).confirmed == {}


def test_a_key_is_required(store, signer):
    """Without one the question is asked wrongly."""
    with pytest.raises(ConfigurationError, match="at least one is required"):
        _compare(store, [CHAIN.note(51, signer)], [])


def test_truncated_with_an_old_head(tmp_path, signer, vkey):
    """Attacks 19 and 26: a perfect shorter chain passes alone, and fails against the checkpoint."""
    store = SqliteStore(tmp_path / "old.db")
    _put(store, type(CHAIN)(CHAIN.entries[:91], CHAIN.heads[:91]))
    assert verify_chain(store, MASTER_KEY).ok
    comparison = _compare(store, [CHAIN.note(101, signer), CHAIN.note(51, signer)], [vkey])
    assert _found(comparison) == [("truncated", 91, 100, "size")]
    assert "note-0: 101 entries were signed, 91 are there" in comparison.findings[0].message
    assert comparison.confirmed == {CHAIN_ID: 51}
    store.release()


def test_rolled_back_and_continued(tmp_path, signer, vkey):
    """Attack 27: the honest writer went on after the cut; the tree at size 101 is another."""
    store = SqliteStore(tmp_path / "old.db")
    head = CHAIN.heads[90]
    batch = seal_entries(head, [span(n, name="later") for n in range(91, 101)], KEY, 2**60)
    chain = type(CHAIN)([*CHAIN.entries[:91], *batch.entries], [batch.head])
    _put(store, chain)
    assert verify_chain(store, MASTER_KEY).ok
    comparison = _compare(store, [CHAIN.note(101, signer)], [vkey])
    assert _found(comparison) == [("checkpoint-mismatch", None, None, "size")]
    assert "at size 101" in comparison.findings[0].message
    store.release()


def test_rewritten_by_a_holder_of_the_secret(tmp_path, signer, vkey):
    """Attack 42: everything from 30 on is sealed anew; the tags hold, the checkpoint does not."""
    store = SqliteStore(tmp_path / "rewritten.db")
    batch = seal_entries(CHAIN.heads[29], [span(n, name="x") for n in range(30, 101)], KEY, 2**60)
    _put(store, type(CHAIN)([*CHAIN.entries[:30], *batch.entries], [batch.head]))
    assert verify_chain(store, MASTER_KEY, deep=True).ok
    comparison = _compare(store, [CHAIN.note(51, signer), CHAIN.note(30, signer)], [vkey])
    assert _found(comparison) == [("checkpoint-mismatch", None, None, "size")]
    assert comparison.confirmed == {CHAIN_ID: 30}
    # The rewriter also has the signing key: then the two notes convict him.
    new_note = sign_checkpoint(batch.head, RING, [signer])
    comparison = _compare(store, [CHAIN.note(51, signer), new_note], [vkey])
    assert _found(comparison) == [("checkpoint-inconsistent", None, None, "size")]
    assert comparison.confirmed == {CHAIN_ID: 101}
    store.release()


@pytest.mark.parametrize(
    ("edit", "column"),
    [
        (lambda note: note[:-6] + b"AAAA=\n", "signature line"),
        (lambda note: note.replace(b"\n51\n", b"\n52\n"), "signature line"),
        (lambda note: _replace_line(note, 2, CHAIN_50_ROOT), "signature line"),
        (
            lambda note: note.replace(b"example.com/audit/0", b"example.com/audit/1"),
            "signature line",
        ),
    ],
)
def test_an_edited_checkpoint(store, signer, vkey, edit, column):
    """Attack 38: the signature, the size, the root; the finding names the note and its size."""
    comparison = _compare(store, [edit(CHAIN.note(51, signer))], [vkey])
    assert [(f.code, f.column) for f in comparison.findings] == [("checkpoint-signature", column)]
    assert comparison.findings[0].message.startswith("checkpoint note-0 of size 5")
    assert comparison.confirmed == {}


CHAIN_50_ROOT = b"JLZYuMyCMFaXqRfkTRxS52xPUDofGBAmKLBIvCsayno="


def _replace_line(note, number, line):
    lines = note.split(b"\n")
    lines[number] = line
    return b"\n".join(lines)


def test_a_note_that_is_none(store, vkey):
    """Attack 44: malformed, and named."""
    comparison = _compare(store, [b"junk"], [vkey])
    assert [(f.code, f.column) for f in comparison.findings] == [("malformed-note", "note")]
    assert comparison.findings[0].message.startswith("checkpoint note-0: note: no signature")


def test_a_checkpoint_of_another_chain(store, signer, vkey):
    """Attack 39: the chain was replaced by another one of the same key."""
    elsewhere = chain_of(60, chain_id=OTHER_ID)
    comparison = _compare(store, [elsewhere.note(51, signer)], [vkey])
    (finding,) = comparison.findings
    assert (finding.code, finding.column) == ("checkpoint-origin", "origin line")
    assert OTHER_ID.hex() in finding.message
    assert CHAIN_ID.hex() in finding.message
    assert _found(_compare(store, [CHAIN.note(51, signer)], [vkey], ())) == [
        ("checkpoint-origin", None, None, "origin line")
    ]


def test_a_key_with_the_same_four_bytes(store, signer, vkey):
    """Attack 40: the twin's signature stands under the genuine key's name and hash."""
    note = parse_note(CHAIN.note(51, generate_signing_key(vkey.name)))
    line = replace(note.signatures[0], key_hash=vkey.key_hash)
    comparison = _compare(store, [str(replace(note, signatures=(line,))).encode()], [vkey])
    assert [(f.code, f.column) for f in comparison.findings] == [
        ("checkpoint-signature", "signature line")
    ]


def test_two_checkpoints_that_contradict_each_other(store, signer, vkey):
    """Attack 41: the same size with two roots, or a smaller one that the larger does not hold."""
    fork = chain_of(101, drafts=[span(n, name="forked") for n in range(1, 101)])
    for size in (101, 51):
        genuine, forged = CHAIN.note(101, signer), fork.note(size, signer)
        comparison = _compare(store, [genuine, forged], [vkey])
        (finding,) = comparison.findings
        assert (finding.code, finding.column) == ("checkpoint-inconsistent", "size")
        assert f"checkpoints of size {size} (note-1) and 101 (note-0)" in finding.message
        for note in (genuine, forged):
            assert repr(note.decode()) in finding.message
        assert comparison.confirmed == {CHAIN_ID: 101}
    both_foreign = _compare(store, [fork.note(51, signer), _other_fork(signer)], [vkey])
    assert [code for code, *_ in _found(both_foreign)] == ["checkpoint-inconsistent"] * 2


def _other_fork(signer):
    return chain_of(51, drafts=[span(n, name="again") for n in range(1, 51)]).note(51, signer)


def test_a_larger_one_that_does_not_hold_convicts_nobody(store, signer, vkey):
    """Rows cannot tell whether the later checkpoint or the store is false."""
    fork = chain_of(101, drafts=[span(n, name="forked") for n in range(1, 101)])
    comparison = _compare(store, [CHAIN.note(51, signer), fork.note(101, signer)], [vkey])
    assert _found(comparison) == [("checkpoint-mismatch", None, None, "size")]
    assert comparison.confirmed == {CHAIN_ID: 51}


def test_a_stripped_signature(store, signer, pq_signer, vkey, pq_vkey):
    """Attack 55: while the ML-DSA key is pinned, its line must be there."""
    note = CHAIN.note(51, signer, pq_signer)
    assert _compare(store, [note], [vkey, pq_vkey]).confirmed == {CHAIN_ID: 51}
    parsed = parse_note(note)
    stripped = str(replace(parsed, signatures=parsed.signatures[:1])).encode()
    comparison = _compare(store, [stripped], [vkey, pq_vkey])
    assert [(f.code, f.column) for f in comparison.findings] == [("checkpoint-signature", "note")]


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ("DELETE FROM entries WHERE seq = 20", "checkpoint-mismatch", "because entry 20 is not"),
        ("UPDATE entries SET tag = 'x' WHERE seq = 20", "checkpoint-mismatch", "because entry 20"),
        ("UPDATE entries SET name = 'x' WHERE seq = 20", "checkpoint-mismatch", "at size 51"),
        ("DELETE FROM entries WHERE seq >= 20", "truncated", "51 entries were signed, 20 are"),
        ("DELETE FROM entries", "truncated", "51 entries were signed, 0 are there"),
        ("UPDATE entries SET name = 'x' WHERE seq = 51", "", ""),
    ],
)
def test_tampered_rows(file, signer, vkey, statement, *, code, message):
    """Whatever happens below the size is seen; what happens behind it is not its business."""
    _tamper(file, statement)
    comparison = _compare(file, [CHAIN.note(51, signer)], [vkey])
    assert [finding.code for finding in comparison.findings] == ([code] if code else [])
    assert all(message in finding.message for finding in comparison.findings)
    assert comparison.confirmed == ({} if code else {CHAIN_ID: 51})


def test_the_empty_log(store, signer, vkey):
    """A checkpoint of size 0 is confirmed by any chain when its root is that of no entry."""
    for root, expected in ((EMPTY_ROOT, []), (bytes(32), ["checkpoint-mismatch"])):
        head = TreeHead(f"{vkey.name}/{CHAIN_ID.hex()}", 0, root)
        octets = signer.sign(signed_message(vkey, head))
        note = str(Note(head.text(), (Signature(vkey.name, vkey.key_hash, octets),))).encode()
        comparison = _compare(store, [note], [vkey])
        assert [finding.code for finding in comparison.findings] == expected


# --- fleets --------------------------------------------------------------------------------------


@pytest.fixture
def fleet(tmp_path):
    """A store with two chains and one that lists them."""
    store = SqliteStore(tmp_path / "fleet.db")
    _put(store, CHAIN)
    _put(store, chain_of(9, chain_id=OTHER_ID), "other")
    yield store
    store.release()


def _fleet_chain(listed):
    body = canonical.dumps({"chains": listed})
    batch = open_chain("fleet", b"\x33" * 16, KEY, [draft("fleet", body), span(1)], 5)
    return type(CHAIN)(list(batch.entries), [batch.head])


def _listed(chain, size):
    note = chain.note(size, _any_signer())
    root = parse_note(note).text.split("\n")[2]
    return {
        "chain_id": chain.entries[0].chain_id.hex(),
        "root_hash": base64.b64decode(root).hex(),
        "size": size,
    }


def _any_signer():
    return generate_signing_key()


@pytest.fixture
def fleet_note(fleet, signer):
    other = chain_of(9, chain_id=OTHER_ID)
    chain = _fleet_chain([_listed(CHAIN, 51), _listed(other, 9)])
    _put(fleet, chain, "fleet")
    return sign_checkpoint(chain.heads[-1], RING, [signer])


FLEET = (b"\x33" * 16, CHAIN_ID, OTHER_ID)


def test_a_whole_fleet_is_confirmed(fleet, fleet_note, vkey):
    """Every listed chain is there, as long and as signed."""
    comparison = _compare(fleet, [fleet_note], [vkey], FLEET)
    assert comparison.findings == ()
    assert comparison.confirmed == {b"\x33" * 16: 3, CHAIN_ID: 51, OTHER_ID: 9}


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (
            [
                "DELETE FROM entries WHERE chain_id = x'{id}'",
                "DELETE FROM heads WHERE chain_id = x'{id}'",
            ],
            ("chain-missing", None, None, "chain_id"),
        ),
        (["DELETE FROM entries WHERE chain_id = x'{id}' AND seq > 4"], ("truncated", 5, 8, "size")),
        (
            ["UPDATE entries SET name = 'x' WHERE chain_id = x'{id}' AND seq = 4"],
            ("checkpoint-mismatch", None, None, "size"),
        ),
    ],
)
def test_a_chain_that_vanishes_from_a_fleet(fleet, fleet_note, vkey, statements, expected):
    """Attack 56: with its head, or in part, or changed: the chain's id is named."""
    _tamper(fleet, *(statement.format(id=OTHER_ID.hex()) for statement in statements))
    comparison = _compare(fleet, [fleet_note], [vkey], FLEET[:2])
    assert _found(comparison) == [expected]
    (finding,) = comparison.findings
    assert finding.chain == OTHER_ID.hex()
    assert "fleet entry 1 of chain 3333" in finding.message


def test_chains_that_list_each_other_end(tmp_path, signer, vkey):
    """A circle of fleet entries is walked once."""
    store = SqliteStore(tmp_path / "circle.db")
    first = _fleet_chain([])
    body = canonical.dumps({"chains": [_listed(first, 1)]})
    batch = open_chain("second", OTHER_ID, KEY, [draft("fleet", body)], 5)
    second = type(CHAIN)(list(batch.entries), [batch.head])
    body = canonical.dumps({"chains": [_listed_of(batch)]})
    head = open_chain("fleet", b"\x33" * 16, KEY, [], 5)
    more = seal_entries(head.head, [draft("fleet", body)], KEY, 6)
    _put(store, second, "second")
    _put(store, type(CHAIN)([*head.entries, *more.entries], [more.head]), "fleet")
    note = sign_checkpoint(more.head, RING, [signer])
    comparison = _compare(store, [note], [vkey], FLEET)
    assert [finding.code for finding in comparison.findings] == []
    store.release()


def _listed_of(batch):
    root = merkle.root(merkle.split_edge(batch.head.tree))
    return {
        "chain_id": batch.head.chain_id.hex(),
        "root_hash": root.hex(),
        "size": batch.head.seq + 1,
    }


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"not json",
        b'{"chains":7}',
        b'{"chains":[7]}',
        b'{"chains":[{"chain_id":"zz","root_hash":"","size":1}]}',
        b'{"chains":[{"chain_id":"00","root_hash":"","size":1}]}',
        b'{"chains":[{"chain_id":"00112233445566778899aabbccddeeff","root_hash":"","size":"1"}]}',
    ],
)
def test_a_malformed_fleet_entry_lists_nothing(fleet, signer, vkey, body):
    """Sealed by a key holder, but no list: nothing is compared, nothing breaks."""
    batch = open_chain("fleet", b"\x33" * 16, KEY, [draft("fleet", body)], 5)
    _put(fleet, type(CHAIN)(list(batch.entries), [batch.head]), "fleet")
    note = sign_checkpoint(batch.head, RING, [signer])
    comparison = _compare(fleet, [note], [vkey], FLEET)
    assert comparison.findings == ()


def test_a_fleet_body_that_is_not_the_sealed_one_lists_nothing(fleet, fleet_note, vkey):
    """The leaf covers the body's hash; a body without it is the chain verifier's finding."""
    _tamper(fleet, "UPDATE entries SET body = x'7b7d' WHERE kind = 'fleet'")
    assert _compare(fleet, [fleet_note], [vkey], FLEET).findings == ()
    assert not verify_chain(fleet, MASTER_KEY).ok
