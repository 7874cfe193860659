"""Proof files and consistency files: known answers, and a mutation of every octet."""

from __future__ import annotations

import base64
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.checkpoint import parse_checkpoint
from bijotel.consistency import check_extends, make_consistency_file, verify_consistency_file
from bijotel.entry_line import format_entry_line, parse_entry_line
from bijotel.errors import BijotelError, ConfigurationError, VerificationError
from bijotel.merkle_proof import ProofError
from bijotel.note import EvidenceError
from bijotel.proof import make_proof, parse_proof, verify_proof
from bijotel.signing import generate_signing_key
from tests.evidence.chains import TOOL, chain_of, our_verdict, span, tool_verdict

CHAIN = chain_of(21)


@pytest.fixture(scope="module")
def note(signer):
    return CHAIN.note(20, signer)


def test_known_proof_is_made_and_verified(known, vkey, data):
    """The known proof file gives its entry, and making it again gives the same octets."""
    proven = verify_proof(known["tlog_proof"].encode(), [vkey])
    stated = next(entry for entry in known["entries"] if entry["seq"] == 4)
    assert proven.entry.body.decode() == stated["body"]
    assert proven.entry.tag.hex() == stated["tag"]
    assert proven.entry.body_hash.hex() == stated["body_hash"]
    assert proven.checkpoint.size == 9

    hashes = dict(zip([(0, 5), (1, 3), (2, 0), (0, 8)], known["inclusion_4_in_9"], strict=True))

    def node(level, position):
        return bytes.fromhex(hashes[level, position])

    made = make_proof(proven.entry, known["checkpoint_9"].encode(), node)
    assert made.decode() == known["tlog_proof"]


@pytest.mark.parametrize("seq", range(20))
def test_every_entry_below_the_size_can_be_proven(note, vkey, seq):
    """Proofs of all entries verify with both verifiers, without database and secret."""
    octets = make_proof(CHAIN.entries[seq], note, CHAIN.node)
    assert verify_proof(octets, [vkey]).entry == CHAIN.entries[seq]
    assert bytes(parse_proof(octets)) == octets
    assert tool_verdict(octets, [vkey]) == (0, "")


def test_an_entry_beyond_the_checkpoint_cannot_be_proven(note):
    """Asked wrongly: the checkpoint is older than the entry."""
    with pytest.raises(ConfigurationError, match="entry 20: the checkpoint of size 20 does not"):
        make_proof(CHAIN.entries[20], note, CHAIN.node)


def test_a_store_that_lies_yields_no_proof(note):
    """A changed body, column or tree: nothing is given out."""
    entry = CHAIN.entries[7]
    lies = [entry._replace(name="x"), entry._replace(body=b"{}"), entry._replace(seq=8)]
    for lie in lies:
        with pytest.raises(EvidenceError, match="does not cover it: expected root") as caught:
            make_proof(lie, note, CHAIN.node)
        assert caught.value.code == "checkpoint-mismatch"
    with pytest.raises(EvidenceError, match="does not cover it"):
        make_proof(entry, note, lambda level, position: bytes(32))
    with pytest.raises(EvidenceError, match="the body is not UTF-8"):
        make_proof(entry._replace(body=b"\xff"), note, CHAIN.node)
    with pytest.raises(EvidenceError, match="expected chain 1111") as caught:
        make_proof(entry._replace(chain_id=b"\x11" * 16), note, CHAIN.node)
    assert caught.value.code == "checkpoint-origin"


def test_no_changed_octet_of_a_proof_is_accepted(note, vkey):
    """Every octet changed in turn: refused by both verifiers, with the same code."""
    octets = make_proof(CHAIN.entries[7], note, CHAIN.node)
    for place in range(len(octets)):
        changed = octets[:place] + bytes([octets[place] ^ 1]) + octets[place + 1 :]
        ours, theirs = our_verdict(changed, [vkey]), tool_verdict(changed, [vkey])
        if changed.startswith(b"c2sp.org/tlog-proof@v1\n"):
            assert ours == theirs, (place, octets[place : place + 20])
        assert (ours[0], theirs[0]) == (1, 1), place


def _lines(octets):
    head, _, rest = octets.partition(b"\n\n")
    return head.split(b"\n"), rest


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda lines: lines[:1] + lines[2:], "malformed-proof"),
        (lambda lines: [*lines[:2], b"index 8", *lines[3:]], "malformed-proof"),
        (lambda lines: [*lines[:2], b"index 07", *lines[3:]], "malformed-proof"),
        (lambda lines: [*lines[:2], b"index -7", *lines[3:]], "malformed-proof"),
        (lambda lines: [*lines[:2], b"index", *lines[3:]], "malformed-proof"),
        (lambda lines: [lines[0], b"extra !", *lines[2:]], "malformed-proof"),
        (lambda lines: [lines[0], b"extra e30=", *lines[2:]], "malformed-entry"),
        (lambda lines: lines[:-1], "proof-rejected"),
        (lambda lines: lines[:3], "proof-rejected"),
        (lambda lines: [*lines, lines[-1]], "proof-rejected"),
        (lambda lines: [*lines[:3], *reversed(lines[3:])], "checkpoint-mismatch"),
        (lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]], "checkpoint-mismatch"),
        (lambda lines: [*lines[:3], lines[3][:-4] + b"AA==", *lines[4:]], "malformed-proof"),
        (lambda lines: [*lines[:3], base64.b64encode(bytes(31)), *lines[4:]], "malformed-proof"),
        (lambda lines: [*lines, *[lines[-1]] * 60], "malformed-proof"),
        (lambda lines: [b"c2sp.org/tlog-proof@v2", *lines[1:]], "malformed-proof"),
    ],
)
def test_edited_proofs_are_refused(note, vkey, change, code):
    """Attack 43 on the file: lines gone, doubled, swapped, of another length or spelling."""
    head, rest = _lines(make_proof(CHAIN.entries[7], note, CHAIN.node))
    octets = b"\n".join(change(head)) + b"\n\n" + rest
    assert our_verdict(octets, [vkey]) == (1, code)
    assert tool_verdict(octets, [vkey]) == (1, code)


def test_proofs_need_every_key_and_at_least_one(note, vkey, pq_vkey, signer, pq_signer):
    """The keys are the checkpoint's, all of them."""
    octets = make_proof(CHAIN.entries[7], note, CHAIN.node)
    with pytest.raises(ConfigurationError, match="at least one is required"):
        verify_proof(octets, [])
    assert our_verdict(octets, [vkey, pq_vkey]) == (1, "checkpoint-signature")
    assert tool_verdict(octets, [vkey, pq_vkey]) == (1, "checkpoint-signature")
    both = make_proof(CHAIN.entries[7], CHAIN.note(20, signer, pq_signer), CHAIN.node)
    assert our_verdict(both, [vkey, pq_vkey]) == tool_verdict(both, [pq_vkey, vkey]) == (0, "")
    stranger = generate_signing_key(vkey.name).verifier
    assert our_verdict(octets, [stranger]) == (1, "checkpoint-signature")
    assert tool_verdict(octets, [stranger]) == (1, "checkpoint-signature")


def test_a_proof_at_a_million_entries_is_small(vkey, signer, note):
    """Twenty hashes, the checkpoint and a few words: at most 1.5 KB beside the entry."""
    octets = make_proof(CHAIN.entries[7], note, CHAIN.node)
    extra = len(base64.b64encode(parse_proof(octets).extra))
    hashes = 45 * (20 - len(parse_proof(octets).hashes))
    assert len(octets) - extra + hashes + len("1000000") - 2 <= 1536


@given(st.binary(max_size=300))
def test_any_bytes_give_a_proof_or_our_error(vkey, octets):
    """No foreign exception leaves the parsers of proofs, consistency files and entry lines."""
    prefix = b"c2sp.org/tlog-proof@v1\n"
    for function, arguments in (
        (parse_proof, (octets,)),
        (verify_proof, (octets, [vkey])),
        (verify_proof, (prefix + octets, [vkey])),
        (verify_consistency_file, (b"old 3\n" + octets, parse_checkpoint_5, [vkey])),
        (parse_entry_line, (octets, bytes(16))),
    ):
        with pytest.raises(VerificationError):
            function(*arguments)
    assert tool_verdict(prefix + octets, [vkey])[0] == 1


parse_checkpoint_5 = parse_checkpoint(
    b"a/00112233445566778899aabbccddeeff\n5\n" + base64.b64encode(bytes(32)) + b"\n\n"
    b"\xe2\x80\x94 a AAAAAAA=\n"
)

MEMBERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)


@given(st.data())
def test_any_member_of_an_entry_line_gives_an_entry_or_our_error(data):
    """Members of any JSON type are read by both verifiers to the same verdict."""
    members = json.loads(format_entry_line(CHAIN.entries[7]))
    name = data.draw(st.sampled_from(sorted(members)))
    value = data.draw(MEMBERS | st.just(members[name]))
    members[name] = value
    line = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    octets = line.encode("utf-8", "replace")
    ours = theirs = None
    try:
        parse_entry_line(octets, bytes(16))
    except BijotelError as error:
        ours = error.code
    try:
        TOOL.read_entry(octets + b"\n", bytes(16))
    except TOOL.EvidenceError as error:
        theirs = str(error).partition(":")[0]
    assert (ours is None) == (theirs is None)
    assert ours in {None, "malformed-entry", "type-mismatch"}


def test_limits_are_checked_before_anything_is_decoded():
    """A file, and a body, over their limits."""

    class Huge(bytes):
        def __len__(self):
            return 10**9

    with pytest.raises(EvidenceError, match="1000000000 bytes: expected at most"):
        parse_proof(Huge())
    line = format_entry_line(CHAIN.entries[7]._replace(body=b"x" * (16 * 1024 * 1024 + 1)))
    with pytest.raises(EvidenceError, match="body: expected at most 16777216 bytes") as caught:
        parse_entry_line(line, bytes(16))
    assert (caught.value.code, caught.value.where) == ("limit-exceeded", "body")
    with pytest.raises(TOOL.EvidenceError, match="limit-exceeded"):
        TOOL.read_entry(line + b"\n", bytes(16))


# --- consistency ---------------------------------------------------------------------------------


def test_known_consistency_file_is_made_and_verified(known, vkey):
    """The known file leads from the known earlier checkpoint to the later one."""
    old = parse_checkpoint(known["checkpoint_5"].encode())
    octets = known["consistency_file_5_to_9"].encode()
    assert verify_consistency_file(octets, old, [vkey]).size == 9
    places = [(0, 4), (0, 5), (1, 3), (2, 0), (0, 8)]
    hashes = dict(zip(places, known["consistency_5_to_9"], strict=True))

    def node(level, position):
        return bytes.fromhex(hashes[level, position])

    made = make_consistency_file(old, known["checkpoint_9"].encode(), node)
    assert made == octets


@pytest.mark.parametrize("old", range(1, 21))
def test_every_earlier_size_is_consistent(signer, vkey, note, old):
    """From every size to 20 the file verifies, and every changed octet of it fails."""
    earlier = parse_checkpoint(CHAIN.note(old, signer))
    octets = make_consistency_file(earlier, note, CHAIN.node)
    assert verify_consistency_file(octets, earlier, [vkey]).size == 20
    check_extends(earlier, parse_checkpoint(note), CHAIN.node)
    for place in range(0, len(octets), 7):
        changed = octets[:place] + bytes([octets[place] ^ 1]) + octets[place + 1 :]
        with pytest.raises(VerificationError):
            verify_consistency_file(changed, earlier, [vkey])


def test_inconsistent_pairs_are_refused(signer, vkey, note):
    """A fork, a shrunken log, another chain, another starting size, malformed files."""
    fork = chain_of(20, drafts=[_other(n) for n in range(1, 20)])
    forked = parse_checkpoint(fork.note(10, signer))
    later = parse_checkpoint(note)
    with pytest.raises(ProofError, match="old root: expected"):
        make_consistency_file(forked, note, CHAIN.node)
    with pytest.raises(EvidenceError, match="size 9: the earlier checkpoint's is 20") as caught:
        make_consistency_file(later, CHAIN.note(9, signer), CHAIN.node)
    assert caught.value.code == "checkpoint-inconsistent"
    elsewhere = parse_checkpoint(chain_of(9, chain_id=b"\x22" * 16).note(9, signer))
    with pytest.raises(EvidenceError, match="the earlier checkpoint's is") as caught:
        make_consistency_file(elsewhere, note, CHAIN.node)
    assert caught.value.code == "checkpoint-origin"
    ten = parse_checkpoint(CHAIN.note(10, signer))
    octets = make_consistency_file(ten, note, CHAIN.node)
    nine = parse_checkpoint(CHAIN.note(9, signer))
    with pytest.raises(EvidenceError, match="old 10: the earlier checkpoint is of size 9"):
        verify_consistency_file(octets, nine, [vkey])
    for malformed in (
        b"",
        octets.replace(b"old 10", b"old 010"),
        octets.replace(b"old 10", b"10"),
        octets.replace(b"\n\n", b"\n", 1),
        octets.replace(b"\n", b"\nAAAA\n", 1),
        octets.replace(b"\n", b"\n" + octets.split(b"\n")[1] * 1 + b"\n" + b"x\n" * 63, 1),
        b"x" * 2_000_000,
    ):
        with pytest.raises(EvidenceError) as caught:
            verify_consistency_file(malformed, ten, [vkey])
        assert caught.value.code == "malformed-consistency"


def _other(number):
    return span(number, name="forked")


def test_a_checkpoint_that_does_not_extend_the_one_before_is_refused(signer, note):
    """Attack 57: a rolled back, rewritten or other chain never replaces the newer note."""
    newer = parse_checkpoint(note)
    older = parse_checkpoint(CHAIN.note(12, signer))
    with pytest.raises(EvidenceError, match="has 12 entries, the earlier checkpoint 20") as caught:
        check_extends(newer, older, CHAIN.node)
    assert (caught.value.code, caught.value.where) == ("truncated", "size")
    fork = chain_of(21, drafts=[_other(n) for n in range(1, 21)])
    rewritten = parse_checkpoint(fork.note(21, signer))
    with pytest.raises(EvidenceError, match="checkpoint of size 20: expected root") as caught:
        check_extends(newer, rewritten, fork.node)
    assert (caught.value.code, caught.value.where) == ("checkpoint-mismatch", "size")
    elsewhere = parse_checkpoint(chain_of(9, chain_id=b"\x22" * 16).note(9, signer))
    with pytest.raises(EvidenceError, match=re.escape(elsewhere.origin)):
        check_extends(newer, elsewhere, CHAIN.node)
