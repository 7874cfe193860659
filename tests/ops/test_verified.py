"""Reading a chain for an analysis: verified, or said not to be."""

from __future__ import annotations

import pytest

from bijotel.errors import CanonicalizationError, UnavailableError, VerificationError
from bijotel.keys import KeyRing
from bijotel.spans.decode import decode_record
from bijotel.spans.encode import encode_record
from bijotel.stores.open import open_store
from bijotel.traces.reader import read_traces
from bijotel.verified import skim, verify_to_read
from tests.cli.conftest import CHAIN_ID, OTHER_SECRET, append, gap, rag, source, span, tamper
from tests.conftest import MASTER_KEY

RING = KeyRing(MASTER_KEY)


@pytest.fixture
def db(tmp_path):
    """A chain of two spans with a gap between them: entries 0 to 3."""
    return append(tmp_path / "chain.db", [span(1), gap(3), span(2)])


def read(path, keys=RING, *, unverified=False):
    """Read everything: the chain that was verified, and what its spans are."""
    with open_store(path).snapshot() as snapshot:
        chain = verify_to_read(snapshot, CHAIN_ID, keys, location=str(path), unverified=unverified)
        return chain, [(entry.seq, record.span_id) for entry, record in chain.spans(skim)]


def test_a_chain_that_verifies(db):
    """Its spans come in order, other entries do not, and there is nothing to be said first."""
    chain, spans = read(db)
    assert spans == [(1, f"{1:016x}"), (3, f"{2:016x}")]
    assert (chain.caveat, chain.unreadable, chain.report.ok) == ("", 0, True)
    assert read(db, unverified=True)[0].caveat == ""


def test_a_chain_that_does_not_verify(db):
    """The error says what is wrong and how to go on; who goes on is told first."""
    tamper(db, "UPDATE entries SET name = 'x' WHERE seq = 1")
    message = (
        r"^the chain does not verify: column-mismatch: .*; see bijotel verify; "
        r"to go on all the same use --unverified$"
    )
    with pytest.raises(VerificationError, match=message):
        read(db)
    chain, spans = read(db, unverified=True)
    assert len(spans) == 2
    assert chain.caveat.startswith("the chain does not verify: column-mismatch: ")


def test_a_key_that_is_not_there(db):
    """Nothing could be checked: that is another exit code than false."""
    with pytest.raises(
        UnavailableError, match=r"^no key \(--key, .*cannot be verified; .*unverified$"
    ):
        read(db, None)
    chain, spans = read(db, None, unverified=True)
    assert (chain.caveat, chain.report, len(spans)) == ("no key, nothing was verified", None, 2)


def test_the_wrong_key(db):
    """It is not the chain that is meant, or not the key."""
    with pytest.raises(VerificationError, match=r"does not verify: wrong-key: "):
        read(db, KeyRing(bytes.fromhex(OTHER_SECRET)))


def test_another_chain_of_the_store_does_not_matter(db):
    """Only the chain that is read is verified."""
    other = bytes(range(16, 32))
    append(db, [span(7)], chain="other", chain_id=other)
    tamper(db, "UPDATE entries SET name = 'x' WHERE seq = 1 AND chain_id = ?", other)
    assert len(read(db)[1]) == 2


def test_rows_that_are_no_entries_are_counted(db):
    """Who goes on unverified reads what can be read."""
    tamper(db, "UPDATE entries SET name = NULL WHERE seq = 1")
    tamper(db, "UPDATE entries SET body = x'00' WHERE seq = 3")
    chain, spans = read(db, unverified=True)
    assert (spans, chain.unreadable) == ([], 2)


RECORDS = [
    span(1),
    span(2, attributes=rag([source(metadata={"$x": 1, "n": float("nan")})])),
    span(
        3, attributes={"big": 2**70, "$own": b"x", "nested": [{"a": 1.5}]}, parent_span_id="ab" * 8
    ),
    span(4, start_time_unix_nano=None, end_time_unix_nano=1.5, inherited={"bijotel.rag.x": 1}),
]


@pytest.mark.parametrize("record", RECORDS, ids=range(1, 5))
def test_skimming_gives_what_reading_gives(record):
    """Only events, links and what no number is made of are left out."""
    body = encode_record(record).body
    skimmed, whole = skim(body), decode_record(body)
    for name in (
        "trace_id", "span_id", "parent_span_id", "start_time_unix_nano",
        "end_time_unix_nano", "inherited",
    ):  # fmt: skip
        assert getattr(skimmed, name) == getattr(whole, name)
    assert repr(skimmed.attributes) == repr(whole.attributes)
    assert (skimmed.status.code, skimmed.scope.name) == (whole.status.code, whole.scope.name)
    assert skimmed.resource.attributes == whole.resource.attributes


def test_skimming_recorded_traces(data):
    """The same for what published instrumentations emit."""
    count = 0
    for path in sorted((data / "traces").glob("*.jsonl")):
        for trace in read_traces([path]):
            for each in trace.spans:
                skimmed = skim(encode_record(each).body)
                assert skimmed.attributes == decode_record(encode_record(each).body).attributes
                count += 1
    assert count > 300


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"null",
        b"{}",
        b'{"$x":1}',
        encode_record(span(1)).body.replace(b'"attributes":{', b'"attributes":[{', 1),
    ],
)
def test_what_is_no_body_is_refused(body):
    """With the one error that readers expect."""
    with pytest.raises(CanonicalizationError):
        skim(body)


@pytest.mark.parametrize(
    "member", ["trace_id", "span_id", "status", "attributes", "resource", "scope"]
)
@pytest.mark.parametrize("value", [b"7", b"[]", b"null"])
def test_members_of_another_type_are_refused(member, value):
    """Nothing that is no text passes for one."""
    from bijotel import canonical

    body = canonical.loads(encode_record(span(1)).body)
    body[member] = canonical.loads(value)
    with pytest.raises(CanonicalizationError):
        skim(canonical.dumps(body))
