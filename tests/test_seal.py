"""Entries, tags, leaves and heads by their formulas. docs/spec (entry, head, rotation)."""

from __future__ import annotations

import hmac
import json
import struct
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel import canonical, merkle, seal
from bijotel._version import __version__
from bijotel.errors import ConfigurationError
from bijotel.keys import HmacKey
from bijotel.model import ChainHead, Draft, Entry
from bijotel.rotation import genesis_key_id, read_rotation, rotation_proof

MASTER = bytes(range(32))
KEY = HmacKey(MASTER)
CHAIN_ID = bytes.fromhex("00112233445566778899aabbccddeeff")
DOMAIN = b"bijotel/v1/"


@pytest.fixture(scope="module")
def answers(data: Path) -> dict[str, Any]:
    """Both files of known answers: the more detailed one's members, and all nine entries."""
    first = json.loads((data / "known-answers.json").read_text())
    more = json.loads((data / "known-answers-more.json").read_text())
    entries = [
        {"epoch": 0, "key_id": first["key_id"], **entry}
        for entry in (*first["entries"], *more["entries"])
    ]
    return {**first, **more, "entries": entries, "roots": {**first["roots"], **more["roots"]}}


@pytest.fixture(scope="module")
def keys(answers: dict[str, Any]) -> dict[str, HmacKey]:
    both = (HmacKey(bytes.fromhex(answers[name])) for name in ("master_key", "new_master_key"))
    return {key.key_id.hex(): key for key in both}


def draft_of(answer: dict[str, Any]) -> Draft:
    body = answer["body"].encode()
    return Draft(
        answer["kind"],
        answer["fmt"],
        bytes.fromhex(answer["trace_id"]),
        bytes.fromhex(answer["span_id"]),
        answer["name"],
        int(answer["start_unix_nano"]),
        int(answer["end_unix_nano"]),
        bytes.fromhex(answer["dedup_key"]),
        body,
        seal.body_hash(body),
    )


def span(number: int = 1, **changes: Any) -> Draft:
    body = b'{"number":%d}' % number
    draft = Draft(
        "span", "span/1", bytes([number]) * 16, bytes([number]) * 8, "chat", number, number + 1,
        bytes(32), body, seal.body_hash(body),
    )  # fmt: skip
    return draft._replace(**changes)


def empty_head(key: HmacKey = KEY) -> ChainHead:
    return ChainHead(CHAIN_ID, "default", -1, 0, key.key_id, bytes(32), b"", b"")


# --- known answers ---------------------------------------------------------------------------


def test_entries_and_roots_have_their_known_values(answers, keys):
    """Sealing the nine known entries one by one gives each header, tag, leaf and root."""
    head = empty_head()
    for answer in answers["entries"]:
        key = keys[answer["key_id"]]
        batch = seal.seal_entries(head, [draft_of(answer)], key, int(answer["sealed_at_unix_nano"]))
        (entry,) = batch.entries
        assert entry.seq == answer["seq"]
        assert entry.body_hash.hex() == answer["body_hash"]
        assert entry.prev_tag.hex() == answer["prev_tag"]
        header = seal.entry_header(entry)
        assert header.hex() == answer["header"]
        assert entry.tag.hex() == answer["tag"]
        assert seal.entry_leaf(header, entry.tag).hex() == answer["leaf"]
        head = batch.head
        if root := answers["roots"].get(str(head.seq + 1)):
            assert merkle.root(merkle.split_edge(head.tree)).hex() == root
        if known := answers.get(f"head_seq_{head.seq}"):
            assert head == ChainHead(
                *(bytes.fromhex(known["chain_id"]), known["name"], known["seq"], known["epoch"]),
                *(bytes.fromhex(known[name]) for name in ("key_id", "tag", "tree", "mac")),
            )
            assert seal.head_holds(head, key)
    assert head.seq == 8


def test_one_batch_seals_as_many_single_ones_do(answers, keys):
    """A batch of several entries is sealed as if each were appended alone."""
    drafts = [draft_of(answer) for answer in answers["entries"][:6]]
    together = seal.seal_entries(empty_head(), drafts, KEY, 5)
    head = empty_head()
    apart: list[Entry] = []
    for draft in drafts:
        batch = seal.seal_entries(head, [draft], KEY, 5)
        apart += batch.entries
        head = batch.head
    assert together.entries == tuple(apart)
    assert together.head == head


def test_the_rotation_proof_has_its_known_value(answers, keys):
    """The key entry's body carries the known proof, and the proof binds place and link."""
    answer = next(entry for entry in answers["entries"] if entry["kind"] == "key")
    new_key = keys[answers["new_key_id"]]
    entry = Entry(
        CHAIN_ID, answer["seq"], 0, bytes.fromhex(answer["key_id"]), "key", 0, "key/1", b"",
        bytes.fromhex(answer["prev_tag"]), b"", b"", "", 0, 0, b"", b"", answer["body"].encode(),
    )  # fmt: skip
    assert rotation_proof(new_key, entry, new_key.key_id).hex() == answers["rotation_proof"]
    rotation = read_rotation(entry)
    assert rotation is not None
    assert rotation.proven_by(new_key, entry)
    for changed in (
        entry._replace(seq=entry.seq + 1),
        entry._replace(prev_tag=bytes(32)),
        entry._replace(chain_id=bytes(16)),
        entry._replace(key_id=bytes(8)),
    ):
        assert not rotation.proven_by(new_key, changed)
    assert not rotation.proven_by(KEY, entry)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"5",
        b"null",
        b"{}",
        b'{"new_key_id":"00"}',
        b'{"new_key_id":"0011223344556677","proof":"00"}',
        b'{"new_key_id":1,"proof":2}',
        b'{"new_key_id":"zz","proof":"zz"}',
        b'{"new_key_id":"0011223344556677","proof":"%s","x":1}' % (b"00" * 32),
    ],
)
def test_a_body_that_is_no_rotation(body: bytes):
    """A key entry of any other shape names no new key, and raises nothing."""
    entry = seal.seal_entries(empty_head(), [seal.draft("key", body)], KEY, 1).entries[0]
    assert read_rotation(entry) is None
    assert genesis_key_id(entry) is None


# --- formulas, straight from the specification -----------------------------------------------


def lp(*items: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(item)) + item for item in items)


def plain_header(entry: Entry) -> bytes:
    return DOMAIN + b"entry\0" + lp(
        entry.chain_id, struct.pack(">Q", entry.seq), struct.pack(">I", entry.epoch),
        entry.key_id, entry.kind.encode(), struct.pack(">Q", entry.sealed_at_unix_nano),
        entry.fmt.encode(), entry.body_hash, entry.prev_tag, entry.trace_id, entry.span_id,
        entry.name.encode(), struct.pack(">Q", entry.start_unix_nano),
        struct.pack(">Q", entry.end_unix_nano), entry.dedup_key,
    )  # fmt: skip


WORD = st.text(st.characters(max_codepoint=127), max_size=64)
NUMBER = st.integers(0, 2**63 - 1)


def octets(*sizes: int) -> st.SearchStrategy[bytes]:
    return st.sampled_from(sizes).flatmap(lambda size: st.binary(min_size=size, max_size=size))


ENTRIES = st.builds(
    Entry,
    octets(16), NUMBER, st.integers(0, 2**32 - 1), octets(8), WORD, NUMBER, WORD, octets(32),
    octets(32), octets(16, 0), octets(8, 0), st.text(st.characters(exclude_categories=("Cs",))),
    NUMBER, NUMBER, octets(32, 0), octets(32), st.binary(max_size=100),
)  # fmt: skip


@given(ENTRIES)
def test_header_tag_and_leaf_follow_the_formulas(entry: Entry):
    """For any columns, packed at once or item by item, the octets are the specification's."""
    header = seal.entry_header(entry)
    assert header == plain_header(entry)
    assert seal.entry_header(tuple(entry)) == header
    key = KEY.chain_key(entry.chain_id)
    assert seal.entry_tag(header, key) == hmac.new(key, header, sha256).digest()
    assert seal.entry_leaf(header, entry.tag) == sha256(b"\0" + header + entry.tag).digest()
    assert seal.body_hash(entry.body) == sha256(DOMAIN + b"body\0" + entry.body).digest()


@given(ENTRIES, st.sampled_from([name for name in Entry._fields if name not in {"tag", "body"}]))
def test_every_column_is_in_the_header(entry: Entry, column: str):
    """No two entries that differ in a column have one header."""
    value = getattr(entry, column)
    if isinstance(value, int):
        other: Any = value ^ 1
    elif isinstance(value, str):
        other = chr(ord(value[0]) ^ 1) + value[1:] if value else "x"
    else:
        other = bytes([value[0] ^ 1]) + value[1:] if value else b"x"
    assert seal.entry_header(entry._replace(**{column: other})) != seal.entry_header(entry)


def test_no_character_can_move_across_a_border():
    """Items stand behind their lengths, so that two rows never share a header."""
    entry = seal.seal_entries(empty_head(), [span()], KEY, 1).entries[0]
    left = entry._replace(kind="ab", fmt="c")
    right = entry._replace(kind="a", fmt="bc")
    assert seal.entry_header(left) != seal.entry_header(right)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("seq", 1.5),
        ("seq", "1"),
        ("seq", None),
        ("seq", -1),
        ("epoch", 2**32),
        ("kind", None),
        ("kind", b"span"),
        ("name", "\ud800"),
        ("name", None),
        ("trace_id", None),
        ("trace_id", "x" * 16),
        ("dedup_key", "x" * 32),
        ("dedup_key", 5),
        ("start_unix_nano", 0.0),
        ("prev_tag", "x" * 32),
    ],
)
def test_a_header_cannot_be_packed_from_wrong_types(column: str, value: Any):
    """The fast path of verifying relies on it: only columns of the right types make a header."""
    entry = seal.seal_entries(empty_head(), [span()], KEY, 1).entries[0]
    with pytest.raises((struct.error, TypeError, AttributeError, UnicodeEncodeError)):
        seal.entry_header(entry._replace(**{column: value}))


@given(st.binary(min_size=32, max_size=32), st.text(st.characters(exclude_categories=("Cs",))))
def test_the_heads_mac_follows_the_formula(tag: bytes, name: str):
    """A head's MAC covers all of its columns, under the key of its last entry."""
    head = ChainHead(CHAIN_ID, name, 7, 0, KEY.key_id, tag, b"x" * 32, b"")
    message = DOMAIN + b"head\0" + lp(
        CHAIN_ID, name.encode(), struct.pack(">Q", 7), struct.pack(">I", 0), KEY.key_id, tag,
        b"x" * 32,
    )  # fmt: skip
    mac = hmac.new(KEY.chain_key(CHAIN_ID), message, sha256).digest()
    assert seal.head_mac(head, KEY.chain_key(CHAIN_ID)) == mac
    sealed = head._replace(mac=mac)
    assert seal.head_holds(sealed, KEY)
    assert not seal.head_holds(sealed, HmacKey(bytes(range(1, 33))))
    for change in (
        {"seq": 8},
        {"epoch": 1},
        {"name": name + "x"},
        {"tree": b"y" * 32},
        {"tag": bytes(31) + b"\1"},
        {"chain_id": bytes(16)},
        {"key_id": bytes(8)},
    ):
        assert not seal.head_holds(sealed._replace(**change), KEY)


# --- opening and appending -------------------------------------------------------------------


def test_a_new_chain_begins_with_its_genesis():
    """The genesis names chain, time, key and library; the first drafts stand behind it."""
    batch = seal.open_chain("default", CHAIN_ID, KEY, [span(1), span(2)], 1_700_000_000)
    genesis, first, second = batch.entries
    assert genesis.kind == "genesis"
    assert genesis.fmt == "genesis/1"
    assert genesis.prev_tag == bytes(32)
    assert canonical.loads(genesis.body) == {
        "chain": "default",
        "created_unix_nano": "1700000000",
        "key_id": KEY.key_id.hex(),
        "library": f"bijotel/{__version__}",
    }
    assert genesis_key_id(genesis) == KEY.key_id
    assert (genesis.trace_id, genesis.span_id, genesis.name, genesis.dedup_key) == (
        b"",
        b"",
        "",
        b"",
    )
    assert (genesis.start_unix_nano, genesis.end_unix_nano) == (0, 0)
    assert [entry.seq for entry in batch.entries] == [0, 1, 2]
    assert (first.prev_tag, second.prev_tag) == (genesis.tag, first.tag)
    assert batch.head.tag == second.tag
    assert len(batch.head.tree) == 64
    assert seal.head_holds(batch.head, KEY)


def test_a_chain_may_begin_empty():
    """The genesis alone is a chain."""
    batch = seal.open_chain("x" * 200, CHAIN_ID, KEY, [], 1)
    assert (len(batch.entries), batch.head.seq) == (1, 0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "expected 1 to 200 characters without NUL, got 0"),
        ("x" * 201, "expected 1 to 200 characters without NUL, got 201"),
        ("a\0b", "without NUL, got 3"),
        ("a\ud800", "chain name: holds a lone surrogate"),
    ],
    ids=range(4),
)
def test_chain_names(name: str, message: str):
    """A name that a head record cannot carry is refused."""
    with pytest.raises(ConfigurationError, match=message):
        seal.open_chain(name, CHAIN_ID, KEY, [], 1)


def test_a_body_over_the_limit_is_refused():
    """16 MiB are sealed, one byte more is not."""
    longest = span(body=bytes(seal.MAX_BODY_BYTES))
    assert seal.seal_entries(empty_head(), [longest], KEY, 1).head.seq == 0
    longer = span(body=bytes(seal.MAX_BODY_BYTES + 1))
    with pytest.raises(
        ConfigurationError, match="body of 16777217 bytes: expected at most 16777216"
    ):
        seal.seal_entries(empty_head(), [longer], KEY, 1)


def test_drafts_that_are_no_span():
    """Each known kind has one format and none of a span's columns."""
    for kind, fmt in seal.KNOWN_FORMATS.items():
        draft = seal.draft(kind, b"{}")
        assert draft == Draft(kind, fmt, b"", b"", "", 0, 0, b"", b"{}", seal.body_hash(b"{}"))
