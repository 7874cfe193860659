"""Checkpoints: known answers, both signatures, origins, and a mutation of every octet."""

from __future__ import annotations

import base64
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel import canonical, merkle
from bijotel.checkpoint import (
    Checkpoint,
    TreeHead,
    checkpoint_draft,
    parse_checkpoint,
    parse_tree_head,
    sign_checkpoint,
    signed_message,
    verify_checkpoint,
)
from bijotel.errors import ConfigurationError
from bijotel.keys import KeyRing
from bijotel.model import ChainHead
from bijotel.note import EvidenceError, Note, Signature, parse_note
from bijotel.signing import generate_signing_key
from bijotel.verifier_key import VerifierKey


def _head(known, name):
    fields = known[name]
    octets = {"chain_id", "key_id", "tag", "tree", "mac"}
    return ChainHead(*(bytes.fromhex(v) if k in octets else v for k, v in fields.items()))


@pytest.fixture
def ring(known, master_key):
    return KeyRing(master_key, bytes.fromhex(known["new_master_key"]))


def test_known_checkpoints_are_signed_octet_for_octet(known, signer, ring):
    """Signing the known head gives the known note, and the known verifier key line."""
    assert str(signer.verifier) == known["vkey"]
    note = sign_checkpoint(_head(known, "head_seq_8"), ring, [signer])
    assert note.decode() == known["checkpoint_9"]


@pytest.mark.parametrize("size", [5, 9])
def test_known_checkpoints_verify(known, vkey, size):
    """The known notes give origin, chain, size and root."""
    checkpoint = verify_checkpoint(known[f"checkpoint_{size}"].encode(), [vkey])
    root = bytes.fromhex(known["roots"][str(size)])
    chain_id = bytes.fromhex(known["head_seq_8"]["chain_id"])
    assert checkpoint == Checkpoint(known["origin"], chain_id, size, root)


def test_ml_dsa_signs_the_known_message(known, pq_vkey, pq_signer):
    """Key line, key hash and the cosigned message are the known ones."""
    assert pq_signer.verifier == pq_vkey
    assert pq_vkey.key_hash.hex() == known["ml_dsa_44"]["key_id"]
    head = parse_tree_head(parse_note(known["checkpoint_9"].encode()).text)
    assert signed_message(pq_vkey, head).hex() == known["ml_dsa_44"]["cosigned_message_9"]


@pytest.fixture(scope="module")
def both(known, signer, pq_signer):
    ring = KeyRing(bytes.fromhex(known["new_master_key"]))
    return sign_checkpoint(_head(known, "head_seq_8"), ring, [signer, pq_signer])


def test_both_signatures_are_checked_when_both_keys_are_given(both, vkey, pq_vkey):
    """The Ed25519 line stands first, and each key alone or both together accept the note."""
    note = parse_note(both)
    assert [signature.key_hash for signature in note.signatures] == [
        vkey.key_hash,
        pq_vkey.key_hash,
    ]
    assert len(note.signatures[1].octets) == 8 + 2420
    expected = verify_checkpoint(both, [vkey])
    assert verify_checkpoint(both, [pq_vkey]) == expected
    assert verify_checkpoint(both, [vkey, pq_vkey]) == expected


def test_a_stripped_ml_dsa_line_is_noticed_while_its_key_is_pinned(both, vkey, pq_vkey):
    """Attack 55."""
    note = parse_note(both)
    stripped = str(replace(note, signatures=note.signatures[:1])).encode()
    verify_checkpoint(stripped, [vkey])
    with pytest.raises(EvidenceError, match="has not signed this note") as caught:
        verify_checkpoint(stripped, [vkey, pq_vkey])
    assert (caught.value.code, caught.value.where) == ("checkpoint-signature", "note")


@pytest.mark.parametrize("place", [0, 7, 8, 2427])
def test_a_changed_ml_dsa_signature_does_not_hold(both, pq_vkey, place):
    """Neither a changed signature nor a timestamp that was not signed is accepted."""
    note = parse_note(both)
    line = note.signatures[1]
    octets = bytearray(line.octets)
    octets[place] ^= 1
    changed = replace(note, signatures=(replace(line, octets=bytes(octets)),))
    with pytest.raises(EvidenceError, match="does not hold"):
        verify_checkpoint(str(changed).encode(), [pq_vkey])


def _edited(note, line, text):
    lines = note.split("\n")
    lines[line] = text
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("line", "text", "code", "where"),
    [
        (1, "6", "checkpoint-signature", "signature line"),
        (2, "JLZYuMyCMFaXqRfkTRxS52xPUDofGBAmKLBIvCsaynp=", "malformed-note", "line 3"),
        (
            2,
            "KLZYuMyCMFaXqRfkTRxS52xPUDofGBAmKLBIvCsayno=",
            "checkpoint-signature",
            "signature line",
        ),
        (1, "4_2", "malformed-note", "line 2"),
        (1, "-1", "malformed-note", "line 2"),
        (1, "042", "malformed-note", "line 2"),
        (1, "+5", "malformed-note", "line 2"),
        (1, "5 ", "malformed-note", "line 2"),
        (1, "", "malformed-note", "line 2"),
        (1, "०५", "malformed-note", "line 2"),
        (1, "५", "malformed-note", "line 2"),
        (1, "9223372036854775808", "malformed-note", "line 2"),
        (1, "99999999999999999999", "malformed-note", "line 2"),
        (2, "AAAA", "malformed-note", "line 3"),
        (2, "", "malformed-note", "line 3"),
        (2, "A" * 43 + "é", "malformed-note", "line 3"),
        (2, "A" * 44, "malformed-note", "line 3"),
        (0, "", "malformed-note", "note text"),
        (0, "x" * 256, "malformed-note", "line 1"),
        (0, "a\nb", "malformed-note", "note text"),
    ],
)
def test_edited_checkpoints_are_refused(known, vkey, line, text, *, code, where):
    """Attacks 38 and 44: a changed size, root or line, and every other spelling of a number."""
    with pytest.raises(EvidenceError) as caught:
        verify_checkpoint(_edited(known["checkpoint_5"], line, text), [vkey])
    assert (caught.value.code, caught.value.where) == (code, where)


def test_extension_lines_are_refused(known, vkey, signer):
    """Even a validly signed text with a fourth line is no checkpoint of ours."""
    text = parse_note(known["checkpoint_5"].encode()).text + "extension\n"
    signature = Signature(vkey.name, vkey.key_hash, signer.sign(text.encode()))
    with pytest.raises(EvidenceError, match="expected origin, size and root hash, got 4 lines"):
        verify_checkpoint(str(Note(text, (signature,))).encode(), [vkey])


def test_no_changed_octet_is_accepted(known, vkey):
    """Every octet of a note changed in turn: refused, with a code, never accepted."""
    note = known["checkpoint_9"].encode()
    for place in range(len(note)):
        for change in (1, 0x20, 0x80):
            octets = note[:place] + bytes([note[place] ^ change]) + note[place + 1 :]
            with pytest.raises(EvidenceError) as caught:
                verify_checkpoint(octets, [vkey])
            assert caught.value.code in {
                "malformed-note",
                "checkpoint-signature",
                "checkpoint-origin",
            }


def _signed(head, key):
    text = head.text()
    verifier = key.verifier
    line = Signature(verifier.name, verifier.key_hash, key.sign(signed_message(verifier, head)))
    return str(Note(text, (line,))).encode()


@pytest.mark.parametrize(
    "origin",
    [
        "example.com/audit",
        "example.com/other/00112233445566778899aabbccddeeff",
        "example.com/audit/00112233445566778899AABBCCDDEEFF",
        "example.com/audit/00112233445566778899aabbccddee",
        "example.com/audit//00112233445566778899aabbccddeeff",
        "example.com/audit/x/00112233445566778899aabbccddeeff",
        "/00112233445566778899aabbccddeeff",
        "go.sum database tree",
    ],
)
def test_a_validly_signed_checkpoint_of_another_log_is_refused(signer, vkey, origin):
    """Attack 39: the origin is the key's name, a slash and a chain id, nothing else."""
    note = _signed(TreeHead(origin, 5, bytes(32)), signer)
    with pytest.raises(
        EvidenceError, match=r"expected example\.com/audit/ and a chain id"
    ) as caught:
        verify_checkpoint(note, [vkey])
    assert (caught.value.code, caught.value.where) == ("checkpoint-origin", "origin line")


def test_a_checkpoint_of_another_key_of_another_name_is_of_another_log(known):
    """A key that has not signed because it is another log's is told so."""
    other = generate_signing_key("example.org/log").verifier
    with pytest.raises(EvidenceError, match="a checkpoint of another log") as caught:
        verify_checkpoint(known["checkpoint_5"].encode(), [other])
    assert caught.value.code == "checkpoint-origin"


def test_a_key_with_the_same_name_and_hash_does_not_help(known, vkey):
    """Attack 40: the four bytes name a key, they do not prove it."""

    class Twin(VerifierKey):
        @property
        def key_hash(self):
            return vkey.key_hash

    twin = Twin(vkey.name, 1, generate_signing_key().verifier.public_key)
    with pytest.raises(EvidenceError, match="does not hold") as caught:
        verify_checkpoint(known["checkpoint_5"].encode(), [twin])
    assert (caught.value.code, caught.value.where) == ("checkpoint-signature", "signature line")


def test_without_a_key_nothing_is_verified(known):
    """A checkpoint without a key is a question asked wrongly."""
    with pytest.raises(ConfigurationError, match="at least one is required"):
        verify_checkpoint(known["checkpoint_5"].encode(), [])


def test_a_head_that_no_key_of_the_ring_made_is_not_signed(known, signer, ring, master_key):
    """Attack 50: a poisoned tree, a wrong MAC, another epoch, a key outside the ring."""
    head = _head(known, "head_seq_8")
    poisoned = head._replace(tree=bytes([head.tree[0] ^ 1]) + head.tree[1:])
    for changed in (poisoned, head._replace(mac=bytes(32)), head._replace(epoch=1)):
        with pytest.raises(EvidenceError, match="no key of the ring made this record") as caught:
            sign_checkpoint(changed, ring, [signer])
        assert (caught.value.code, caught.value.where) == ("head-mismatch", "head")
    with pytest.raises(EvidenceError, match=re.escape(head.key_id.hex())):
        sign_checkpoint(head, KeyRing(master_key), [signer])


def test_signing_keys_that_do_not_fit_together(known, ring, signer, pq_signer):
    """Ed25519 comes first, each type once, all under one name."""
    head = _head(known, "head_seq_8")
    for signers in ([], [pq_signer], [signer, signer], [pq_signer, signer]):
        with pytest.raises(ConfigurationError, match="expected one Ed25519 key"):
            sign_checkpoint(head, ring, signers)
    stranger = generate_signing_key("other", 6)
    with pytest.raises(
        ConfigurationError, match=r"expected one name, got example\.com/audit, other"
    ):
        sign_checkpoint(head, ring, [signer, stranger])


def test_the_entry_that_records_a_checkpoint_holds_it_verbatim(known):
    """The draft's body is the known body of the known checkpoint entry."""
    draft = checkpoint_draft(known["checkpoint_5"].encode())
    entry = next(entry for entry in known["entries"] if entry["kind"] == "checkpoint")
    assert (draft.kind, draft.fmt, draft.body.decode()) == (
        "checkpoint",
        entry["fmt"],
        entry["body"],
    )
    assert canonical.loads(draft.body) == {"note": known["checkpoint_5"]}


def test_parsing_alone_reads_without_believing(known):
    """A note with a broken signature can be read, and says what it claims."""
    broken = known["checkpoint_9"].replace("hTbRw4pq", "hTbRw4pr")
    assert parse_checkpoint(broken.encode()).size == 9
    with pytest.raises(EvidenceError, match="expected a key name, '/' and a chain id"):
        parse_checkpoint(_edited(known["checkpoint_9"], 0, "example.com/audit"))


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=60),
    st.integers(0, 2**63 - 1),
    st.binary(min_size=32, max_size=32),
)
def test_tree_heads_are_read_as_they_are_written(origin, size, root):
    """Writing and reading a tree head are inverse."""
    head = TreeHead(origin, size, root)
    assert parse_tree_head(head.text()) == head


@given(st.text(max_size=120))
def test_any_text_gives_a_tree_head_or_our_error(text):
    """No foreign exception leaves the parser of checkpoint texts."""
    try:
        head = parse_tree_head(text)
    except EvidenceError:
        return
    assert head.text() == text


def test_the_root_of_a_known_head_is_that_of_its_tree(known):
    """The right edge in the head gives the root that the checkpoint states."""
    root = merkle.root(merkle.split_edge(_head(known, "head_seq_8").tree))
    line = known["checkpoint_9"].split("\n")[2]
    assert base64.b64encode(root).decode() == line
