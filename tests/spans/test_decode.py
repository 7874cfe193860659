"""Body to record: hostile until every member was looked at. docs/spec (body)."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel import canonical, seal
from bijotel.errors import CanonicalizationError
from bijotel.keys import HmacKey
from bijotel.model import ChainHead, Entry
from bijotel.spans.decode import decode_record, record_from_body
from bijotel.spans.encode import columns_of_body, encode_record
from bijotel.verify.deep import deep_faults

KEY = HmacKey(bytes(range(32)))


@pytest.fixture(scope="module")
def octets(data: Path) -> bytes:
    return json.loads((data / "span-body.json").read_text())["body"].encode()


def test_the_published_body_both_ways(octets: bytes):
    """The known body is read member by member, and writes itself again."""
    record = decode_record(octets)
    assert record.name == "chat claude-haiku-4-5"
    assert record.kind == "CLIENT"
    assert record.trace_id == "0af7651916cd43dd8448eb211c80319c"
    assert record.parent_span_id == "00f067aa0ba902b7"
    assert record.start_time_unix_nano == 1780000000123456789
    assert (record.status.code, record.status.description) == ("ERROR", "rate limited")
    assert record.attributes["big"] == 2**53 + 1
    assert record.attributes["nan"] != record.attributes["nan"]
    assert record.attributes["raw"] == b"\x00\xff"
    assert record.attributes["half"] == "a\ud83d"
    assert record.attributes["$price"] == 1
    assert record.attributes["\ud800"] == "key with a lone surrogate"
    assert record.events[0].attributes == {"exception.type": "RateLimit"}
    assert record.links[0].trace_flags == 1
    assert record.scope.version == "0.62.4"
    assert record.dropped == (0, 0, 0)
    assert (record.inherited, record.via, record.withheld) == ({}, "", "")
    assert encode_record(record).body == octets


def test_octets_that_are_not_canonical_are_refused(octets: bytes):
    """A body with white space, another order or a repeated key is no body."""
    for wrong in (
        b" " + octets,
        octets.replace(b'"flag":true', b'"flag":true,"flag":true'),
        json.dumps(json.loads(octets)).encode(),
    ):
        with pytest.raises(CanonicalizationError, match="not in canonical form"):
            decode_record(wrong)


MEMBERS = (
    "attributes", "dropped", "end_time_unix_nano", "events", "kind", "links", "name",
    "parent_span_id", "resource", "scope", "span_id", "start_time_unix_nano", "status",
    "trace_flags", "trace_id", "trace_state",
)  # fmt: skip


@pytest.mark.parametrize("member", MEMBERS)
def test_a_missing_member_is_refused(octets: bytes, member: str):
    """Each member must be there, and the error names it."""
    body = canonical.loads(octets)
    del body[member]
    with pytest.raises(CanonicalizationError, match=f"no span body: KeyError at '{member}'"):
        record_from_body(body)


WRONG_VALUES = ([7], {"x": 7}, 7.5, True, "seven", None)
# What is another value of the right type rather than one of a wrong type.
RIGHT_TYPES = {
    "attributes": ({"x": 7},),
    "end_time_unix_nano": (None,),
    "parent_span_id": (None, "seven"),
    "start_time_unix_nano": (None,),
    **dict.fromkeys(("kind", "name", "span_id", "trace_id", "trace_state"), ("seven",)),
}


@pytest.mark.parametrize(
    ("member", "value"),
    [
        (member, value)
        for member in MEMBERS
        for value in WRONG_VALUES
        if value not in RIGHT_TYPES.get(member, ())
    ],
    ids=str,
)
def test_a_member_of_another_type_is_refused_or_found(octets: bytes, member: str, value: Any):
    """No wrong type passes: reading raises our error, or writing again gives other octets."""
    body = canonical.loads(octets)
    body[member] = value
    changed = canonical.dumps(body)
    try:
        again = encode_record(decode_record(changed)).body
    except CanonicalizationError:
        return
    assert again != changed


@pytest.mark.parametrize("description", [5, True, ["x"], {"x": 1}, {"$bytes": ""}], ids=str)
def test_a_description_is_text_or_a_digest(octets: bytes, description: Any):
    """In digest mode a digest stands for the text; nothing else does."""
    body = canonical.loads(octets)
    digest = canonical.Digest.of(5, bytes(32))
    body["status"]["description"] = dict(digest)
    assert record_from_body(body).status.description == digest
    body["status"]["description"] = description
    with pytest.raises(CanonicalizationError, match="no span body: TypeError at 'description'"):
        record_from_body(body)


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(MEMBERS) | st.text(max_size=2), inner, max_size=5),
))  # fmt: skip
def test_any_json_is_read_or_refused(value: Any):
    """No other error leaves, whatever the JSON."""
    with pytest.raises(CanonicalizationError, match=r"no span body|is no encoding"):
        record_from_body(value)


# --- what --deep makes of it -----------------------------------------------------------------


def sealed(body: bytes, kind: str = "span", **columns: Any) -> Entry:
    draft = seal.draft(kind, body)
    if kind == "span" and not columns:
        columns = columns_of_body(canonical.loads(body))._asdict()
    draft = draft._replace(**columns)
    head = ChainHead(bytes(16), "default", 0, 0, KEY.key_id, bytes(32), bytes(32), b"")
    return seal.seal_entries(head, [draft], KEY, 1).entries[0]


def test_a_body_of_ours_has_no_deep_fault(octets: bytes):
    """The published body passes."""
    assert list(deep_faults(sealed(octets))) == []


def set_member(*path: Any, value: Any) -> Callable[[Any], None]:
    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        body[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        set_member("extra", value=1),
        set_member("status", "extra", value=1),
        set_member("scope", "extra", value=1),
        set_member("resource", "extra", value=1),
        set_member("dropped", "extra", value=1),
        set_member("events", 0, "extra", value=1),
        set_member("links", 0, "extra", value=1),
        set_member("inherited", value={}),
        set_member("via", value=""),
        set_member("withheld", value=""),
        set_member("trace_flags", value="1"),
        set_member("trace_flags", value=1.5),
        set_member("start_time_unix_nano", value="01780000000123456789"),
        set_member("start_time_unix_nano", value="1780000000_123456789"),
        set_member("start_time_unix_nano", value=1780000000),
        set_member("end_time_unix_nano", value="1.0e3"),
        set_member("end_time_unix_nano", value="infinity"),
        set_member("dropped", "events", value="0"),
        set_member("attributes", "x", value={"$int": "5"}),
        set_member("attributes", "x", value={"$digest": "short"}),
        set_member("attributes", value={"$digest": {"bytes": 1, "hmac": "00" * 32}}),
        set_member("attributes", "$price", value=1),
        set_member("events", value={}),
    ],
    ids=range(23),
)
def test_a_span_body_has_exactly_its_members(octets: bytes, change: Callable[[Any], None]):
    """A body that a lenient reader would accept is still no body of the format."""
    body = canonical.loads(octets)
    change(body)
    columns = columns_of_body(canonical.loads(octets))._asdict()
    faults = list(deep_faults(sealed(canonical.dumps(body), **columns)))
    assert [(code, column) for code, column, _ in faults] == [("body-not-canonical", "body")]


def test_each_column_is_compared(octets: bytes):
    """A column that contradicts the body is named with the body's value."""
    right = columns_of_body(canonical.loads(octets))._asdict()
    wrong = {
        "trace_id": bytes(16),
        "span_id": bytes(8),
        "name": "other",
        "start_unix_nano": 1,
        "end_unix_nano": 1,
        "dedup_key": bytes(32),
    }
    for column, value in wrong.items():
        faults = list(deep_faults(sealed(octets, **{**right, column: value})))
        assert [(code, where) for code, where, _ in faults] == [("column-mismatch", column)]
        assert faults[0][2].startswith(f"the body says {column} ")


@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        ("gap", {"count": 1, "first_unix_nano": "1", "last_unix_nano": "2", "reason": "x"}, None),
        ("gap", {"count": 1}, "body-not-canonical"),
        ("gap", [], "body-not-canonical"),
        ("genesis", {"chain": "c", "created_unix_nano": "1", "key_id": "", "library": ""}, None),
        ("genesis", None, "body-not-canonical"),
        ("key", {"new_key_id": "", "proof": ""}, None),
        ("checkpoint", {"note": ""}, None),
        ("checkpoint", {"note": "", "x": 1}, "body-not-canonical"),
        ("fleet", {"chains": []}, None),
        ("import", {"row": {}, "source": "bijotel-2"}, None),
        ("import", {"last_hash": "", "rows": 1, "source": "bijotel-2"}, None),
        ("import", {"rows": 1, "source": "bijotel-2"}, "body-not-canonical"),
    ],
    ids=range(12),
)
def test_bodies_of_other_kinds(kind: str, body: Any, code: str | None):
    """Every kind has exactly its members, and none of a span's columns."""
    entry = sealed(canonical.dumps(body), kind)
    assert [fault[0] for fault in deep_faults(entry)] == ([code] if code else [])
    named = list(deep_faults(entry._replace(name="x", start_unix_nano=1)))
    if code is None:
        assert [fault[:2] for fault in named] == [
            ("column-mismatch", "name"),
            ("column-mismatch", "start_unix_nano"),
        ]


def test_nesting_without_end_is_a_limit():
    """A million levels are told apart from a body that is wrong."""
    body = b'{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"
    entry = sealed(body, name="x")
    assert [fault[:2] for fault in deep_faults(entry)] == [("limit-exceeded", "body")]


def test_deep_faults_do_not_change_what_they_read(octets: bytes):
    """Looking at a body leaves it as it is."""
    body = canonical.loads(octets)
    before = deepcopy(body)
    record_from_body(body)
    assert body == before
