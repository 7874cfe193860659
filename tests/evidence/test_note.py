"""Signed notes: published vectors, every malformation of the attack list, any bytes at all."""

from __future__ import annotations

import base64
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.checkpoint import parse_tree_head
from bijotel.errors import ConfigurationError
from bijotel.note import EvidenceError, check_signatures, parse_note
from bijotel.verifier_key import VerifierKey, parse_verifier_key


def _vectors(shared):
    return json.loads((shared / "vectors/notes/signed-note-vectors.json").read_text())


def _check(octets, keys):
    note = parse_note(octets)
    check_signatures(note, keys, lambda _key: note.text.encode())
    return note


def test_published_notes_are_judged_as_they_say(shared):
    """Accepted, unverified, wrongly signed and malformed notes of four published collections."""
    codes = {"malformed": "malformed-note", "invalid-signature": "checkpoint-signature"}
    vectors = _vectors(shared)["vectors"]
    assert len(vectors) >= 32
    for vector in vectors:
        octets = base64.b64decode(vector["note_b64"])
        keys = [parse_verifier_key(line) for line in vector["vkeys"]]
        if vector["expect"] == "ok":
            note = _check(octets, keys)
            assert [key.name for key in keys] == vector["verified"], vector["name"]
            assert str(note).encode() == octets
            signed = {signature.name for signature in note.signatures}
            assert set(vector.get("unverified", [])) <= signed
        elif vector["expect"] == "unverified":
            with pytest.raises(ConfigurationError, match="at least one is required"):
                _check(octets, keys)
        else:
            with pytest.raises(EvidenceError) as caught:
                _check(octets, keys)
            assert caught.value.code == codes[vector["expect"]], vector["name"]
        if "checkpoint" in vector:
            head = parse_tree_head(parse_note(octets).text)
            root = base64.b64encode(head.root_hash).decode()
            expected = vector["checkpoint"]
            assert (head.origin, head.size, root) == tuple(expected.values())


def test_published_examples_without_keys_parse(shared):
    """The C2SP examples parse; a cosignature is a signature line like any other."""
    examples = json.loads((shared / "vectors/notes/parse-only-examples.json").read_text())
    plain = parse_note(base64.b64decode(examples["checkpoint_b64"]))
    cosigned = parse_note(base64.b64decode(examples["cosigned_checkpoint_b64"]))
    assert parse_tree_head(plain.text) == parse_tree_head(cosigned.text)
    assert cosigned.signatures[:1] == plain.signatures
    time = int.from_bytes(cosigned.signatures[1].octets[:8], "big")
    assert time == examples["cosignature_timestamp"]


def test_bad_verifier_keys_are_refused(shared):
    """A cut key, a changed name, surplus octets and an unknown type."""
    messages = [
        "not valid base64|expected hash",
        "expected hash",
        "base64|expected",
        "0x65|expected",
    ]
    for line, message in zip(_vectors(shared)["bad_vkeys"], messages, strict=True):
        with pytest.raises(ConfigurationError, match=message):
            parse_verifier_key(line)


def test_every_key_given_must_have_signed(shared):
    """A second key that has not signed fails the note, whatever the first one says."""
    vector = {v["name"]: v for v in _vectors(shared)["vectors"]}["golang-one-sig"]
    octets = base64.b64decode(vector["note_b64"])
    keys = [parse_verifier_key(line) for line in vector["vkeys"]]
    other = VerifierKey("EnochRoot", 1, bytes(range(32)))
    with pytest.raises(EvidenceError, match=r"key EnochRoot\+\w{8} has not signed") as caught:
        _check(octets, [*keys, other])
    assert (caught.value.code, caught.value.where) == ("checkpoint-signature", "note")


def test_a_second_signature_by_the_same_key_is_ignored(known, vkey):
    """A broken line behind a good one is ignored; a good one behind a broken one does not help."""
    note = known["checkpoint_5"]
    good = note.splitlines(keepends=True)[-1]
    other = known["checkpoint_9"].splitlines(keepends=True)[-1]
    _check((note + other).encode(), [vkey])
    with pytest.raises(EvidenceError, match=r"that of key \S+ does not hold") as caught:
        _check(note.replace(good, other + good).encode(), [vkey])
    assert (caught.value.code, caught.value.where) == ("checkpoint-signature", "signature line")


SIGNATURE = "— example.com/audit hTbRww7LcUUF\n"


@pytest.mark.parametrize(
    ("octets", "message"),
    [
        (("o\n\n" + SIGNATURE * 101).encode(), "101 signatures: expected at most 100"),
        (("o\x07\n\n" + SIGNATURE).encode(), r"line 1: control character U\+0007"),
        (("o\r\n\r\n" + SIGNATURE).encode(), r"line 1: control character U\+000D"),
        (("o\n\n" + SIGNATURE[:-1] + "\r\n").encode(), r"line 3: control character U\+000D"),
        (("o\n\n" + SIGNATURE[:-1]).encode(), "line 3: the final newline is missing"),
        (b"o\n\n\xe2\x80\x94 a b=c\n", "line 3: expected '— NAME BASE64'"),
        ("o\n\n— a AAAAA\n".encode(), "line 3: the signature is not valid base64"),
        ("o\n\n— a AAAAAAB=\n".encode(), "line 3: the signature is not valid base64"),
        ("o\n\n— a AAAA\n".encode(), "at least 5 bytes"),
        ("o\n\n— a+b AAAAAAA=\n".encode(), "line 3: expected '— NAME BASE64'"),
        ("o\n\n— a\u2003b AAAAAAA=\n".encode(), "line 3: expected '— NAME BASE64'"),
        ("o\n\n—  AAAAAAA=\n".encode(), "line 3: expected '— NAME BASE64'"),
        (("\ufeffo\n\n" + SIGNATURE).encode(), "line 1: starts with a byte order mark"),
        (b"o\n\n" + SIGNATURE.encode() + b"junk\n", "line 4: expected '— NAME BASE64', got 'junk'"),
        (b"\xff\n\n" + SIGNATURE.encode(), "line 1: expected UTF-8"),
        (b"o\np\xc3\n\n" + SIGNATURE.encode(), "line 2: expected UTF-8"),
        (b"o\n", "no signature"),
        (b"o\n\n", "no signature"),
        (b"", "no signature"),
        (b"o" * 1_000_001, "1000001 bytes: expected at most 1000000"),
    ],
)
def test_malformed_notes_are_refused(octets, message):
    """Each malformation is refused with the line where it stands."""
    with pytest.raises(EvidenceError, match=message) as caught:
        parse_note(octets)
    assert caught.value.code == "malformed-note"
    assert caught.value.exit_code == 1
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.code, again.where) == (
        str(caught.value),
        "malformed-note",
        caught.value.where,
    )


def test_a_hundred_signatures_are_accepted():
    """The limit itself is within the limit."""
    octets = ("o\n\n" + SIGNATURE * 100).encode()
    note = parse_note(octets)
    assert len(note.signatures) == 100
    assert str(note).encode() == octets


def test_the_text_may_hold_empty_lines():
    """The last empty line divides text and signatures."""
    note = parse_note(("a\n\nb\n\n" + SIGNATURE).encode())
    assert note.text == "a\n\nb\n"


@given(st.binary(max_size=200))
def test_any_bytes_give_a_note_or_our_error(octets):
    """No foreign exception leaves the parser, and what it accepts it writes back."""
    try:
        note = parse_note(octets)
    except EvidenceError:
        return
    assert str(note).encode() == octets


@given(st.data())
def test_any_edit_of_a_note_gives_a_note_or_our_error(data):
    """Cut, doubled and replaced octets of a real note."""
    octets = bytearray(("example\n5\nAAAA\n\n" + SIGNATURE * 2).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(octets)))
        octets[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        note = parse_note(bytes(octets))
    except EvidenceError:
        return
    assert str(note).encode() == octets


@given(st.text(max_size=80))
def test_any_text_gives_a_verifier_key_or_our_error(line):
    """No foreign exception leaves the parser of verifier keys."""
    try:
        key = parse_verifier_key(line)
    except ConfigurationError:
        return
    assert str(key) == line.removesuffix("\n")


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a/", "ü", "a\x7f", "a\n", "x" * 201])
def test_names_that_no_key_can_have(name):
    """Empty, a space, a plus, a final slash, beyond ASCII, a control character, too long."""
    with pytest.raises(ConfigurationError, match="expected 1 to 200 printable ASCII"):
        VerifierKey(name, 1, bytes(32))


def test_lengths_and_types_of_verifier_keys():
    """The public key has the length of its type, and the type is known."""
    with pytest.raises(ConfigurationError, match="expected 32 bytes of public key, got 31"):
        VerifierKey("a", 1, bytes(31))
    with pytest.raises(ConfigurationError, match="expected 1312 bytes of public key, got 32"):
        VerifierKey("a", 6, bytes(32))
    with pytest.raises(ConfigurationError, match="signature type 0x04 is not known"):
        VerifierKey("a", 4, bytes(32))
    VerifierKey("x" * 200, 1, bytes(32))
    VerifierKey("~/!", 1, bytes(32))


def test_ed25519_answers_of_the_classic_list(shared):
    """Public keys, signatures and messages of the published list verify; a changed one does not."""
    lines = (shared / "vectors/ed25519/sign-first100.input").read_text().splitlines()
    assert len(lines) == 100
    for line in lines:
        secret_public, public, message, signed = map(bytes.fromhex, line.split(":")[:4])
        key = VerifierKey("a", 1, public)
        signature = signed[:64]
        assert secret_public[32:] == public
        assert key.signed(message, signature)
        assert not key.signed(message + b"x", signature)
        assert not key.signed(message, bytes([signature[0] ^ 1]) + signature[1:])
        assert not key.signed(message, signature[:63])
