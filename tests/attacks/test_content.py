"""Attacks on what an entry says: its body, its columns, its tag."""

from __future__ import annotations

import time
from hashlib import sha256
from typing import Any

import pytest

from bijotel import seal
from bijotel.keys import KeyRing
from bijotel.model import Entry
from bijotel.stores.base import ENTRY_COLUMNS
from bijotel.verify import verify_chain
from tests.attacks.evidence import (
    HEADER_COLUMNS,
    HOUR,
    KEY,
    NEW_KEY,
    Evidence,
    first_finding,
    no_finding,
    reseal,
)


def flip(octets: bytes, place: int = 0) -> bytes:
    return octets[:place] + bytes([octets[place] ^ 1]) + octets[place + 1 :]


def rehash(evidence: Evidence, seq: int, old: bytes, new: bytes) -> Entry:
    """Change a word of a body and hash it again; the tag needs the key and is left."""
    entry = evidence.entry(seq)
    assert old in entry.body
    body = entry.body.replace(old, new)
    evidence.set(seq, body=body, body_hash=seal.body_hash(body))
    return evidence.entry(seq)


def test_row_00_the_honest_chain(evidence: Evidence):
    """Without an attack nothing is found, and what is not proven is said."""
    report = evidence.verify(deep=True)
    no_finding(report)
    (chain,) = report.chains
    assert (chain.entries, chain.last_seq) == (101, 100)
    assert chain.kinds == {"genesis": 1, "span": 100}
    assert report.checked == {"chains": 1, "entries": 101, "deep": True}
    assert report.not_checked == ("which chain this is", "completeness of the tail")
    assert report.notices == ()


def test_row_01_body_bitflip(evidence: Evidence):
    """One bit of a body."""
    evidence.set(50, body=flip(evidence.entry(50).body, 20))
    first_finding(evidence.verify(), "body-hash-mismatch", 50, "body")


def test_row_01_body_hash_bitflip(evidence: Evidence):
    """One bit of a body's hash: the tag holds with the hash of the body that is there."""
    evidence.set(50, body_hash=flip(evidence.entry(50).body_hash))
    first_finding(evidence.verify(), "body-hash-mismatch", 50, "body_hash")


def test_row_02_prompt_and_hash(evidence: Evidence):
    """A word of the prompt, hashed again: the dedup key in its column contradicts the body."""
    rehash(evidence, 50, b"document 50?", b"document 51?")
    first_finding(evidence.verify(), "tag-mismatch", 50, "body")


def test_row_02_answer_and_hash(evidence: Evidence):
    """A word of the answer, hashed again: no column repeats it, so none can be named."""
    rehash(evidence, 50, b"is empty", b"is  full")
    finding = first_finding(evidence.verify(), "tag-mismatch", 50, None)
    assert "body with its hash, or the time of sealing" in finding.message


@pytest.mark.parametrize(
    "body", [b"", b"no JSON", b"[]", b'{"span_id":5}', b'{"span_id":"","name":{"$int":"x"}}']
)
def test_row_02_a_body_that_cannot_be_read(evidence: Evidence, body: bytes):
    """A body that is none, hashed again: it says nothing of its columns."""
    evidence.set(50, body=body, body_hash=seal.body_hash(body))
    first_finding(evidence.verify(), "tag-mismatch", 50, None)


def test_row_03_unkeyed_reseal(evidence: Evidence):
    """A changed body with its hash and a tag that is a plain SHA-256."""
    entry = rehash(evidence, 50, b"document 50?", b"document 51?")
    evidence.set(50, tag=sha256(seal.entry_header(entry)).digest())
    first_finding(evidence.verify(), "tag-mismatch", 50, "tag")


SPAN_COLUMNS: dict[str, Any] = {
    "trace_id": b"\xee" * 16,
    "span_id": b"\xee" * 8,
    "name": "chat n",
    "start_unix_nano": 1,
    "end_unix_nano": 2,
    "dedup_key": b"\xee" * 32,
}
# Named by other rows of the list, each with the code that its check gives.
ELSEWHERE = {
    "chain_id", "seq", "epoch", "key_id", "kind", "sealed_at_unix_nano", "fmt", "body_hash",
    "prev_tag",
}  # fmt: skip


def test_row_04_the_columns_are_those_of_the_schema(evidence: Evidence):
    """A column that is added to the schema has to be added to these tests."""
    in_schema = [row[1] for row in evidence.sql("PRAGMA table_info(entries)")]
    assert in_schema == list(ENTRY_COLUMNS)
    assert set(HEADER_COLUMNS) == SPAN_COLUMNS.keys() | ELSEWHERE


@pytest.mark.parametrize("column", SPAN_COLUMNS)
def test_row_04_column(evidence: Evidence, column: str):
    """A search column that contradicts the sealed body."""
    evidence.set(50, **{column: SPAN_COLUMNS[column]})
    report = evidence.verify()
    first_finding(report, "column-mismatch", 50, column)
    assert len(report.findings) == 1


def test_row_04_a_name_of_megabytes(evidence: Evidence):
    """A finding is for people to read: it repeats the beginning only."""
    evidence.set(50, name="x" * 4_000_000)
    finding = first_finding(evidence.verify(), "column-mismatch", 50, "name")
    assert finding.found == "x" * 200


@pytest.mark.parametrize("column", ["trace_id", "span_id", "dedup_key"])
def test_row_04_column_emptied(evidence: Evidence, column: str):
    """A search column emptied, as it is where there is no span."""
    evidence.set(50, **{column: b""})
    first_finding(evidence.verify(), "column-mismatch", 50, column)


def test_row_04_several_columns(evidence: Evidence):
    """Every column that was changed is named."""
    evidence.set(50, **SPAN_COLUMNS)
    report = evidence.verify()
    first_finding(report, "column-mismatch", 50, "trace_id")
    assert [finding.column for finding in report.findings] == list(SPAN_COLUMNS)
    assert {finding.seq for finding in report.findings} == {50}


@pytest.mark.parametrize("column", SPAN_COLUMNS)
def test_row_04_column_of_an_entry_that_is_no_span(evidence: Evidence, column: str):
    """The genesis has none of a span's columns."""
    evidence.set(0, **{column: SPAN_COLUMNS[column]})
    first_finding(evidence.verify(), "column-mismatch", 0, column)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("kind", "gap"),
        ("kind", "unheard-of"),
        ("kind", ""),
        ("epoch", 1),
        ("fmt", "gap/1"),
        ("fmt", "span/9"),
        ("fmt", ""),
    ],
)
def test_row_05_header_columns(evidence: Evidence, column: str, value: Any):
    """A column with few values: the tag holds with the true one."""
    evidence.set(50, **{column: value})
    first_finding(evidence.verify(), "tag-mismatch", 50, column)


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_row_05_sealed_at_by_an_hour(evidence: Evidence, by: int):
    """A time of sealing outside its neighbours'."""
    evidence.set(50, sealed_at_unix_nano=evidence.entry(50).sealed_at_unix_nano + by)
    first_finding(evidence.verify(), "tag-mismatch", 50, "sealed_at_unix_nano")


@pytest.mark.parametrize("by", [1, -1])
def test_row_05_sealed_at_by_a_nanosecond(evidence: Evidence, by: int):
    """A time of sealing between its neighbours': nothing says that it is the one that lies."""
    evidence.set(50, sealed_at_unix_nano=evidence.entry(50).sealed_at_unix_nano + by)
    first_finding(evidence.verify(), "tag-mismatch", 50, None)


@pytest.mark.parametrize(
    ("changes", "column"),
    [({"fmt": "span/9"}, "fmt"), ({"kind": "verdict", "fmt": "verdict/1"}, "kind")],
)
def test_row_05_unknown_format_while_the_tag_holds(
    evidence: Evidence, changes: dict[str, Any], column: str
):
    """Sealed with the key, so a newer library wrote it; the chain's end is not proven by it."""
    last = reseal(evidence.entry(100), **changes)
    evidence.put(100, last)
    evidence.seal_head(last)
    first_finding(evidence.verify(), "format-unknown", 100, column, exit_code=3)


def test_row_60_newer_format(evidence: Evidence):
    """A format of a newer library, sealed with the key."""
    entries = [evidence.entry(seq) for seq in range(50, 101)]
    previous = evidence.entry(49).tag
    evidence.drop_guards()
    for entry in entries:
        fmt = "span/9" if entry.seq == 50 else entry.fmt
        sealed = reseal(entry, prev_tag=previous, fmt=fmt)
        evidence.put(entry.seq, sealed)
        previous = sealed.tag
    evidence.seal_head(evidence.entry(100))
    report = evidence.verify()
    first_finding(report, "format-unknown", 50, "fmt", exit_code=3)
    assert len(report.findings) == 1
    assert report.chains[0].entries == 101


def test_row_06_key_id_known(evidence: Evidence):
    """The id of another key of the ring, without a rotation."""
    evidence.set(50, key_id=NEW_KEY.key_id)
    first_finding(evidence.verify(KeyRing(KEY, NEW_KEY)), "key-order", 50, "key_id")


def test_row_06_key_id_unknown(evidence: Evidence):
    """An id that nobody knows buys no softer verdict."""
    evidence.set(50, key_id=b"\xee" * 8)
    first_finding(evidence.verify(), "key-order", 50, "key_id")


def test_row_08_tag_flip(evidence: Evidence):
    """The successor states the tag that the row should have."""
    evidence.set(50, tag=flip(evidence.entry(50).tag))
    report = evidence.verify()
    finding = first_finding(report, "tag-mismatch", 50, "tag")
    assert "the successor confirms the recomputed tag" in finding.message
    assert len(report.findings) == 1


def test_row_08_tag_flip_of_the_last_entry(evidence: Evidence):
    """The head confirms the recomputed tag of the last entry."""
    evidence.set(100, tag=flip(evidence.entry(100).tag))
    report = evidence.verify()
    first_finding(report, "tag-mismatch", 100, "tag")
    assert len(report.findings) == 1


def test_row_09_prev_flip(evidence: Evidence):
    """The link to the entry before."""
    evidence.set(50, prev_tag=flip(evidence.entry(50).prev_tag))
    report = evidence.verify()
    first_finding(report, "link-mismatch", 50, "prev_tag")
    assert len(report.findings) == 1


def test_row_09_prev_flip_of_the_genesis(evidence: Evidence):
    """The genesis follows nothing."""
    evidence.set(0, prev_tag=b"\x01" + bytes(31))
    first_finding(evidence.verify(), "link-mismatch", 0, "prev_tag")


WRONG_TYPES: dict[str, tuple[Any, ...]] = {
    "body": (None, 7, 0.5, "text of a body"),
    "tag": (None, 7, "x" * 32, b"", bytes(31), bytes(33)),
    "epoch": (None, "x", 0.5, b"\0", -1, 2**32),
    "key_id": (None, 7, "x" * 8, b"", bytes(7), bytes(9)),
    "kind": (None, b"span", "k" * 65, "sp\u00e4n"),
    "fmt": (None, b"span/1", "f" * 65, "span/\u0661"),
    "sealed_at_unix_nano": (None, "soon", 0.5, b"\0", -1, 1e300),
    "body_hash": (None, "x" * 32, b"", bytes(31), bytes(33)),
    "prev_tag": (None, "x" * 32, b"", bytes(31), bytes(33)),
    "trace_id": (None, "x" * 16, bytes(15), bytes(17)),
    "span_id": (None, "x" * 8, bytes(7), bytes(9)),
    "name": (None, b"chat m"),
    "start_unix_nano": (None, "x", 0.5, b"\0", -1),
    "end_unix_nano": (None, "x", 0.5, b"\0", -1),
    "dedup_key": (None, "x" * 32, bytes(31), bytes(33)),
}


def test_row_28_every_column_is_tried():
    """A column of the schema without wrong types would be forgotten here."""
    assert WRONG_TYPES.keys() | {"chain_id", "seq"} == set(ENTRY_COLUMNS)


@pytest.mark.parametrize(
    ("column", "value"),
    [(column, value) for column, values in WRONG_TYPES.items() for value in values],
    ids=lambda value: value if isinstance(value, str) and len(value) < 25 else repr(value)[:20],
)
def test_row_28_types(evidence: Evidence, column: str, value: Any):
    """A value of another storage class or length, NULL included."""
    evidence.set(50, **{column: value})
    report = evidence.verify()
    first_finding(report, "type-mismatch", 50, column)
    assert len(report.findings) == 1


@pytest.mark.parametrize("column", ["kind", "fmt", "name"])
def test_row_28_text_that_is_no_utf_8(evidence: Evidence, column: str):
    """Octets stored as text that no reader can decode."""
    evidence.sql(f"UPDATE entries SET {column} = CAST(x'ff80' AS TEXT) WHERE seq = 50")
    report = evidence.verify()
    first_finding(report, "type-mismatch", 50, column)
    assert len(report.findings) == 1


@pytest.mark.parametrize("value", [None, "x" * 16, b"", bytes(15), bytes(17)], ids=range(5))
def test_row_28_chain_id(evidence: Evidence, value: Any):
    """A row whose chain cannot be told stands where one is missing."""
    evidence.set(50, chain_id=value)
    first_finding(evidence.verify(), "type-mismatch", 50, "chain_id")


def test_row_34_strip_tags(evidence: Evidence):
    """Tag and key id emptied."""
    evidence.set(50, tag=b"", key_id=b"")
    first_finding(evidence.verify(), "type-mismatch", 50, "key_id")


def test_row_34_strip_all_tags(evidence: Evidence):
    """Tag and key id of every row emptied: one run."""
    evidence.sql("UPDATE entries SET tag = x'', key_id = x''")
    first_finding(evidence.verify(), "type-mismatch", 0, "key_id", last_seq=100)


def test_row_51_epoch_huge(evidence: Evidence):
    """No key is derived because a row says so, so the answer takes no time."""
    evidence.set(50, epoch=2**32 - 1)
    evidence.settle()
    began = time.perf_counter()
    first_finding(verify_chain(evidence.path, KEY), "tag-mismatch", 50, "epoch")
    assert time.perf_counter() - began < 1
    first_finding(evidence.verify(), "tag-mismatch", 50, "epoch")
