"""``bijotel inspect``: the verdict first, then everything that the entry holds."""

from __future__ import annotations

import json

import pytest

from bijotel import canonical
from bijotel.keys import HmacKey
from bijotel.model import Status
from bijotel.rotation import rotation_proof
from bijotel.seal import body_hash, draft
from bijotel.stores.sqlite import SqliteStore
from tests.cli.conftest import (
    CHAIN_HEX,
    CHAIN_ID,
    KEY_ID,
    MASTER_KEY,
    OTHER_SECRET,
    append,
    body,
    gap,
    rag,
    source,
    span,
    tamper,
)

OTHER_KEY = HmacKey(bytes.fromhex(OTHER_SECRET))


def _row(path, seq):
    """Read a row as it is stored, by the names of its columns."""
    with SqliteStore(path).snapshot() as snapshot:
        row = next(snapshot.select(CHAIN_ID, (("seq", seq),)))
    from bijotel.model import Entry

    return Entry._make(row.columns)


def _section(out, title):
    """Cut one section out of what was printed."""
    text = out.split(f"=== {title} ===\n")[1]
    return text.split("\n\n===")[0].rstrip("\n").split("\n")


def _provenance(bijotel, path, **changes):
    """Print the provenance of a span with these properties, appended as the last entry."""
    seq = append(path, [span(77, **changes)]) and bijotel("stats", "--db", path, "--json")
    last = seq.document["chains"][0]["entries"] - 1
    result = bijotel("inspect", "--db", path, last)
    assert result.code == 0
    return _section(result.out, "RAG Provenance")


def test_a_rag_call_in_full(bijotel, secret, tmp_path):
    """All of what is printed for a call, in order."""
    sources = [source(document_id="sha256:abc1", similarity_score=0.89), source(chunk_index=4)]
    call = span(1, attributes=rag(sources), parent_span_id="00000000000000ff")
    path = append(tmp_path / "chain.db", [call])
    row = _row(path, 1)
    assert bijotel("inspect", "--db", path, "1") == (
        0,
        f"""\
VERIFIED: entry 1 of chain default: body hash, tag and the link to entry 0 hold (key {KEY_ID})

=== Span Metadata ===
seq:                 1
chain_id:            {CHAIN_HEX} (default)
kind:                span
fmt:                 span/1
sealed_at_unix_nano: 1700000100000000000 (2023-11-14T22:15:00.000000000Z)
epoch:               0
key_id:              {KEY_ID}
trace_id:            00000000000000000000000000000001
span_id:             0000000000000001
name:                chat gpt-test
start_unix_nano:     1700000000000000001 (2023-11-14T22:13:20.000000001Z)
end_unix_nano:       1700000000000005001 (2023-11-14T22:13:20.000005001Z)
parent_span_id:      00000000000000ff
span_kind:           CLIENT
span_status:         OK
model:               gpt-test
input_tokens:        120
output_tokens:       17
dedup_key:           {row.dedup_key.hex()}
body_hash:           {row.body_hash.hex()}
prev_tag:            {row.prev_tag.hex()}
tag:                 {row.tag.hex()}

=== Status: ALLOWED ===
Cost (real): unknown (no price is known for gpt-test)
Asked:       once

=== RAG Provenance ===
source_count:   2
retriever:      qdrant
embedding:      text-embedding-3-small
context_tokens: 720
  source 1: doc=sha256:abc1  chunk=0  retriever=qdrant  sim=0.890
  source 2: doc=doc-1  chunk=4  retriever=qdrant  sim=0.890

=== Canonical Body ({len(row.body)} bytes, as stored) ===
{row.body.decode()}
""",
        "",
    )


def test_a_span_id_finds_its_entry(bijotel, secret, db):
    """A span id of 16 hex digits, in any case, is as good as the number."""
    append(db, [span(9, span_id="00000000000000ab")])
    assert bijotel("inspect", "--db", db, "00000000000000AB") == bijotel("inspect", "--db", db, 6)


def test_an_ambiguous_span_id_lists_its_entries(bijotel, secret, db):
    """Exit 2: two entries have it, so their numbers are given."""
    append(db, [span(3, name="other")], chain="second", chain_id=b"2" * 16)
    result = bijotel("inspect", "--db", db, f"{3:016x}")
    message = (
        "span id 0000000000000003: several entries have it, ask by seq: 3 in chain default, "
        "1 in chain second"
    )
    assert result == (2, "", f"error: {message}\n")
    assert bijotel("inspect", "--db", db, f"{3:016x}", "--chain", "second").code == 0


def test_a_span_id_with_very_many_entries_lists_some(bijotel, secret, db):
    """The line stays short however many there are."""
    append(db, [span(50, name=f"n{number}") for number in range(30)])
    result = bijotel("inspect", "--db", db, f"{50:016x}")
    assert result.code == 2
    assert result.err.endswith("24 in chain default, 25 in chain default and more\n")


def test_an_unknown_span_id(bijotel, secret, db):
    """Exit 2 with what there is."""
    message = "span id 00000000000000ff: no such entry in chain default, which has entries 0 to 5"
    assert bijotel("inspect", "--db", db, f"{255:016x}") == (2, "", f"error: {message}\n")


@pytest.mark.parametrize("seq", ["6", "9223372036854775807", "9999999999999999999"])
def test_an_unknown_seq(bijotel, secret, db, seq):
    """Exit 2 with the range that exists."""
    message = f"entry {seq}: not in chain default, which has entries 0 to 5"
    assert bijotel("inspect", "--db", db, seq) == (2, "", f"error: {message}\n")
    result = bijotel("inspect", "--db", db, seq, "--json")
    assert result.document == {"error": {"code": "configuration", "message": message}}


@pytest.mark.parametrize("text", ["4_2", "0x1", "+1", "1.0", "", " 1", "٣", "abc", "1" * 20])
def test_what_is_no_seq_is_refused(bijotel, secret, db, text):
    """Numbers are read strictly."""
    message = f"{text!r}: expected the number of an entry or a span id of 16 hex digits"
    assert bijotel("inspect", "--db", db, "--", text) == (2, "", f"error: {message}\n")


def test_several_chains_must_be_told_apart(bijotel, secret, db):
    """Exit 2: a number alone is not enough."""
    append(db, [span(1)], chain="second", chain_id=b"2" * 16)
    message = "the store has 2 chains, name one of them: default, second"
    assert bijotel("inspect", "--db", db, 1) == (2, "", f"error: {message}\n")
    assert "of chain second:" in bijotel("inspect", "--db", db, 1, "--chain", "32" * 16).out


# --- does this entry verify? -----------------------------------------------------------------


def test_without_a_key_nothing_is_a_fact(bijotel, db):
    """Exit 0, and the first line says that nothing was verified."""
    result = bijotel("inspect", "--db", db, 2)
    assert result.code == 0
    assert result.out.startswith(
        "NOT VERIFIED: entry 2 of chain default: no key given (--key, or BIJOTEL_HMAC_SECRET): "
        "what follows is shown as stored\n\n=== Span Metadata ===\n"
    )
    verification = bijotel("inspect", "--db", db, 2, "--json").document["verification"]
    assert verification == {"verdict": "not-verified", "findings": []}


@pytest.mark.parametrize("with_key", [True, False])
def test_a_changed_body_is_said_first(bijotel, db, monkeypatch, with_key):
    """Exit 1, with and without a key: the hash needs none."""
    if with_key:
        monkeypatch.setenv("BIJOTEL_HMAC_SECRET", MASTER_KEY.hex())
    changed = _row(db, 3).body.replace(b"question", b"Question")
    tamper(db, "UPDATE entries SET body = ? WHERE seq = 3", changed)
    result = bijotel("inspect", "--db", db, 3)
    first, second, *rest = result.out.split("\n")
    assert result.code == 1
    assert first == (
        "DOES NOT VERIFY: entry 3 of chain default: what follows is shown as stored and is not "
        "to be trusted"
    )
    assert second.startswith("  body-hash-mismatch: entry 3, column body: the body does not have ")
    assert changed.decode() in rest
    document = bijotel("inspect", "--db", db, 3, "--json").document
    assert document["verification"]["verdict"] == "false"
    assert [each["code"] for each in document["verification"]["findings"]] == ["body-hash-mismatch"]
    assert document["body"] == changed.decode()


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("UPDATE entries SET name = 'x' WHERE seq = 3", "column-mismatch: entry 3, column name"),
        (
            "UPDATE entries SET tag = zeroblob(32) WHERE seq = 3",
            "tag-mismatch: entry 3, column tag",
        ),
        (
            "UPDATE entries SET prev_tag = randomblob(32) WHERE seq = 3",
            "link-mismatch: entry 3, column prev_tag",
        ),
        ("UPDATE entries SET key_id = x'0102030405060708' WHERE seq = 3", "key-order: entry 3"),
        (
            "UPDATE entries SET epoch = 4294967295 WHERE seq = 3",
            "tag-mismatch: entry 3, column epoch",
        ),
        ("UPDATE entries SET name = NULL WHERE seq = 3", "type-mismatch: entry 3, column name"),
        ("UPDATE entries SET body = 'text' WHERE seq = 3", "type-mismatch: entry 3, column body"),
        ("UPDATE entries SET body = zeroblob(16777217) WHERE seq = 3", "limit-exceeded: entry 3"),
        ("UPDATE entries SET kind = x'31' WHERE seq = 3", "type-mismatch: entry 3, column kind"),
        ("UPDATE entries SET tag = 'x' WHERE seq = 3", "type-mismatch: entry 3, column tag"),
        ("DELETE FROM entries WHERE seq = 2", "seq-gap: entry 2: "),
        (
            "UPDATE entries SET kind = 'gap' WHERE seq = 3",
            "tag-mismatch: entry 3, column kind",
        ),
    ],
)
def test_every_change_is_named_and_shown(bijotel, secret, db, statement, finding):
    """Exit 1, the column by name, and the entry all the same, without a traceback."""
    tamper(db, statement)
    result = bijotel("inspect", "--db", db, 3)
    assert (result.code, result.err) == (1, "")
    lines = result.out.split("\n")
    assert lines[0].startswith("DOES NOT VERIFY: entry 3 of chain default")
    assert lines[1].startswith(f"  {finding}")
    assert "seq:                 3" in lines
    assert (
        bijotel("inspect", "--db", db, 3, "--json").document["verification"]["verdict"] == "false"
    )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET name = 'x' WHERE seq = 2",
        "UPDATE entries SET key_id = x'0102030405060708' WHERE seq = 2",
        "UPDATE entries SET key_id = x'0102030405060708', name = NULL WHERE seq = 2",
        "UPDATE entries SET body = zeroblob(10) WHERE seq = 2",
        "UPDATE entries SET tag = zeroblob(31) WHERE seq = 4",
        "DELETE FROM entries WHERE seq = 4",
        "DELETE FROM heads",
    ],
)
def test_a_fault_elsewhere_is_not_this_entrys(bijotel, secret, db, statement):
    """The neighbour that was changed is to blame, as it is for ``verify``."""
    tamper(db, statement)
    result = bijotel("inspect", "--db", db, 3, "--chain", CHAIN_HEX)
    assert result.code == 0
    assert result.out.startswith(
        f"VERIFIED: entry 3 of chain {CHAIN_HEX if 'heads' in statement else 'default'}"
    )


def test_the_last_entry_is_judged_by_the_head(bijotel, secret, db):
    """A proven head knows the last entry's tag."""
    tamper(db, "UPDATE entries SET tag = zeroblob(32) WHERE seq = 5")
    out = bijotel("inspect", "--db", db, 5).out
    assert "tag-mismatch: entry 5, column tag: the tag does not hold: the successor confirms" in out


def test_a_repeated_seq_is_no_sound_entry(bijotel, secret, db):
    """Exit 1: there must be one row with this number."""
    tamper(db, "DROP INDEX entries_by_seq")
    tamper(db, "DROP INDEX entries_by_prev_tag")
    tamper(db, "DROP INDEX entries_by_span")
    tamper(db, "INSERT INTO entries SELECT * FROM entries WHERE seq = 3")
    result = bijotel("inspect", "--db", db, 3)
    assert result.code == 1
    assert "  seq-repeat: entry 3, column seq: a second row has this seq" in result.out


def test_an_entry_that_is_gone(bijotel, secret, db):
    """Exit 1: the head counts it."""
    tamper(db, "DELETE FROM entries WHERE seq = 3")
    message = "seq-gap: entry 3 is missing: the head says that entry 5 is the last"
    assert bijotel("inspect", "--db", db, 3) == (1, "", f"error: {message}\n")


def test_a_wrong_key(bijotel, db, monkeypatch):
    """Exit 1, as ``verify`` says it: the wrong secret, or another chain."""
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", OTHER_SECRET)
    result = bijotel("inspect", "--db", db, 3)
    assert result.code == 1
    assert result.out.split("\n")[1].startswith("  wrong-key: entry 0: the chain was not sealed ")


def test_a_rotated_key_that_is_not_given(bijotel, db, monkeypatch, secret):
    """Exit 3: the chain is known, this entry's key is not."""
    _rotate(db)
    append(db, [span(70)], key=OTHER_KEY)
    result = bijotel("inspect", "--db", db, 7)
    assert result.code == 3
    assert result.out.startswith(
        "NOT VERIFIED: entry 7 of chain default: what follows is shown as stored\n"
        f"  key-unknown: entry 7: sealed with key {OTHER_KEY.key_id.hex()}, which is not in the "
        "ring: not checked"
    )
    monkeypatch.setenv("NEW", OTHER_SECRET)
    both = ("--key", "env:BIJOTEL_HMAC_SECRET", "--key", "env:NEW")
    assert bijotel("inspect", "--db", db, 7, *both).code == 0
    assert bijotel("inspect", "--db", db, 6, *both).code == 0
    # The new key alone knows the chain by its head; an older entry's key is not given.
    assert bijotel("inspect", "--db", db, 3, "--key", "env:NEW").code == 3


def test_the_old_key_after_a_rotation(bijotel, db, monkeypatch, secret):
    """Exit 1: a key that was left never returns."""
    _rotate(db)
    append(db, [span(70)])
    assert "  key-order: entry 7, column key_id: " in bijotel("inspect", "--db", db, 7).out


def _rotate(path):
    """Seal a key entry that hands the chain over to the other key."""
    row = _row(path, 5)
    following = row._replace(seq=6, prev_tag=row.tag)
    proof = rotation_proof(OTHER_KEY, following, OTHER_KEY.key_id)
    append(path, [body("key", {"new_key_id": OTHER_KEY.key_id.hex(), "proof": proof.hex()})])


def test_an_entry_of_a_newer_format(bijotel, secret, db):
    """Exit 3: sealed, but not by what this version knows; shown as it is."""
    append(db, [draft("gap", canonical.dumps({"x": 1}))._replace(kind="novel", fmt="novel/1")])
    result = bijotel("inspect", "--db", db, 6)
    assert result.code == 3
    assert "  format-unknown: entry 6, column kind: kind novel, format novel/1" in result.out
    assert result.out.endswith('=== Canonical Body (7 bytes, as stored) ===\n{"x":1}\n')


# --- what it shows ---------------------------------------------------------------------------


def test_entries_that_are_no_spans(bijotel, secret, db):
    """Genesis and gap have columns and a body, but no status and no sources."""
    append(db, [gap(3)])
    for seq, kind in ((0, "genesis"), (6, "gap")):
        result = bijotel("inspect", "--db", db, seq)
        assert result.code == 0
        assert f"kind:                {kind}\n" in result.out
        assert "=== Entry Metadata ===" in result.out
        assert "=== Status" not in result.out
        assert "=== RAG" not in result.out
    assert (
        '{"count":3,"first_unix_nano":"1","last_unix_nano":"2","reason":"queue-full"}' in result.out
    )
    assert (
        "body hash, tag and the link of the first entry hold"
        in bijotel("inspect", "--db", db, 0).out
    )


@pytest.mark.parametrize(
    ("attributes", "status"),
    [
        ({}, "ALLOWED"),
        ({"bijotel.blocked": True}, "BLOCKED"),
        ({"bijotel.blocked": True, "bijotel.policy.warning": "w"}, "BLOCKED"),
        ({"bijotel.blocked": False, "bijotel.policy.warning": "w"}, "WARN"),
        ({"bijotel.policy.warning": ""}, "WARN"),
        ({"bijotel.blocked": "true"}, "ALLOWED"),
        ({"bijotel.blocked": 1}, "ALLOWED"),
    ],
)
def test_status(bijotel, secret, db, attributes, status):
    """Blocked when it is true, a warning when it is there, else allowed."""
    append(db, [span(9, attributes=attributes)])
    result = bijotel("inspect", "--db", db, 6)
    assert f"=== Status: {status} ===\n" in result.out
    assert bijotel("inspect", "--db", db, 6, "--json").document["status"] == status


def test_a_warning_is_shown(bijotel, secret, db):
    """With its text, on one line."""
    append(db, [span(9, attributes={"bijotel.policy.warning": "too\nmuch"})])
    assert r"Warning:     too\nmuch" in bijotel("inspect", "--db", db, 6).out


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({}, "no price is known for gpt-test"),
        ({"gen_ai.request.model": None}, "the span names no model"),
        ({"gen_ai.usage.output_tokens": None}, "the span reports no output tokens"),
    ],
)
def test_an_unknown_cost_has_a_reason_and_is_never_zero(bijotel, secret, db, attributes, reason):
    """No price, no model, no tokens."""
    append(db, [span(9, attributes=attributes)])
    assert _section(bijotel("inspect", "--db", db, 6).out, "Status: ALLOWED") == [
        f"Cost (real): unknown ({reason})",
        "Asked:       once",
    ]
    document = bijotel("inspect", "--db", db, 6, "--json").document
    assert document["cost"] == {"usd": None, "reason": reason}


def test_a_known_cost_is_shown_with_all_digits(bijotel, secret, db, tmp_path):
    """From the price list, or from a file of one's own."""
    append(db, [span(9, attributes={"gen_ai.request.model": "gpt-4o"})])
    assert "Cost (real): $0.00047\n" in bijotel("inspect", "--db", db, 6).out
    own = tmp_path / "prices.toml"
    own.write_text('[models."gpt-4o"]\ninput = 1\noutput = 0\n')
    result = bijotel("inspect", "--db", db, 6, "--prices", own, "--json")
    assert result.document["cost"] == {"usd": 0.00012, "reason": None}


def test_the_group_of_an_entry(bijotel, secret, db):
    """How often the same was asked, first and last; the time does not matter."""
    append(db, [span(2, start_time_unix_nano=1, trace_id="ab" * 16)])
    assert (
        "Asked:       2 times, entries 2 to 6, as stored\n" in bijotel("inspect", "--db", db, 2).out
    )
    assert bijotel("inspect", "--db", db, 6, "--json").document["same_dedup_key"] == {
        "count": 2,
        "first_seq": 2,
        "last_seq": 6,
    }
    assert bijotel("inspect", "--db", db, 0, "--json").document["same_dedup_key"] is None


def test_no_provenance(bijotel, secret, db):
    """Absent attributes mean that this was no RAG call."""
    assert _section(bijotel("inspect", "--db", db, 1).out, "RAG Provenance") == [
        "none recorded: the span has no bijotel.rag.* attribute"
    ]


def test_an_empty_retrieval_is_not_no_retrieval(bijotel, secret, db):
    """Zero sources are recorded and shown."""
    assert _provenance(bijotel, db, attributes=rag([])) == [
        "source_count:   0",
        "retriever:      qdrant",
        "embedding:      text-embedding-3-small",
        "context_tokens: 720",
    ]


def test_at_most_five_sources_are_listed(bijotel, secret, db):
    """The rest is counted."""
    lines = _provenance(bijotel, db, attributes=rag([source(chunk_index=n) for n in range(8)]))
    assert lines[4:] == [
        *(f"  source {n + 1}: doc=doc-1  chunk={n}  retriever=qdrant  sim=0.890" for n in range(5)),
        "  ... and 3 more",
    ]
    lines = _provenance(bijotel, db, attributes=rag([source()] * 5))
    assert len(lines) == 9


def test_odd_sources_are_shown_as_they_are(bijotel, secret, db):
    """Nulls, text, whole numbers, missing and nested values, members that are no object."""
    sources = [
        source(similarity_score=None, document_id=17, chunk_index="x"),
        source(similarity_score="high", retriever=None, document_id=["a", 1]),
        {},
        "just text\n",
        [None],
    ]
    assert _provenance(bijotel, db, attributes=rag(sources))[4:] == [
        "  source 1: doc=17  chunk=x  retriever=qdrant  sim=null",
        '  source 2: doc=["a", 1]  chunk=0  retriever=null  sim=high',
        "  source 3: doc=null  chunk=null  retriever=null  sim=null",
        '  source 4: "just text\\n"',
        "  source 5: [null]",
    ]


def test_sources_recorded_as_a_structure(bijotel, secret, db):
    """A list is as good as its JSON."""
    lines = _provenance(
        bijotel, db, attributes={**rag([]), "bijotel.rag.sources": [source(), source()]}
    )
    assert lines[4] == "  source 1: doc=doc-1  chunk=0  retriever=qdrant  sim=0.890"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('[{"document_id": "a', 'no list, as recorded: [{"document_id": "a'),
        ('{"a": 1}', 'no list, as recorded: {"a": 1}'),
        ("", "no list, as recorded:"),
        ("[" * 100_000, "no list, as recorded: " + "[" * 100_000),
        ("[" * 600 + "]" * 600, "no list, as recorded: " + "[" * 600 + "]" * 600),
        (7, "no list, as recorded: 7"),
        (b"\0", 'no list, as recorded: {"$bytes": "AA=="}'),
        ("\x1b[2J", r"no list, as recorded: \x1b[2J"),
    ],
)
def test_a_list_that_cannot_be_read_is_shown_as_it_is(bijotel, secret, db, value, expected):
    """Cut or strange JSON is no error."""
    lines = _provenance(bijotel, db, attributes={**rag([]), "bijotel.rag.sources": value})
    assert lines[4].rstrip() == f"sources:        {expected}"


def test_attributes_outweigh_what_was_inherited(bijotel, secret, db):
    """One by one, and what came from the scope is said to."""
    lines = _provenance(
        bijotel,
        db,
        attributes={"bijotel.rag.retriever_id": "mine"},
        inherited=rag([source()]),
    )
    assert lines == [
        "source_count:   1",
        "retriever:      mine",
        "embedding:      text-embedding-3-small",
        "context_tokens: 720",
        "note:           carried to this call from the scope around it (inherited)",
        "  source 1: doc=doc-1  chunk=0  retriever=qdrant  sim=0.890",
    ]


def test_the_inherited_list_stands_in_for_a_cut_one(bijotel, secret, db):
    """The tracer cut the span's own copy; the whole one is in the body as well."""
    whole = rag([source(document_id="whole")])
    cut = {**whole, "bijotel.rag.sources": whole["bijotel.rag.sources"][:20]}
    lines = _provenance(bijotel, db, attributes=cut, inherited=whole)
    assert lines[4:] == [
        "note:           the span's own list is cut; this is the inherited one",
        "  source 1: doc=whole  chunk=0  retriever=qdrant  sim=0.890",
    ]


def test_a_list_without_its_digest_says_so(bijotel, secret, db):
    """The recorded SHA-256 shows that the list was cut or changed before it was sealed."""
    lines = _provenance(
        bijotel, db, attributes=rag([source()], **{"bijotel.rag.sources_sha256": "00" * 32})
    )
    assert lines[4] == (
        "note:           the list does not have its recorded SHA-256: it was cut or changed"
    )


def test_a_bounded_list_says_so(bijotel, secret, db):
    """How many there were stands beside how many are recorded."""
    lines = _provenance(bijotel, db, attributes=rag([source()], **{"bijotel.rag.sources_total": 9}))
    assert lines[4] == "note:           the list was bounded when it was recorded: 1 of 9"


def test_values_of_wrong_types_are_shown(bijotel, secret, db):
    """Nothing in the attributes can bring a traceback."""
    lines = _provenance(
        bijotel,
        db,
        attributes={
            "bijotel.rag.source_count": "three",
            "bijotel.rag.retriever_id": ["a", None],
            "bijotel.rag.embedding_model": float("nan"),
            "bijotel.rag.total_context_tokens": 2**70,
            "gen_ai.request.model": {"a": b"\0"},
            "gen_ai.usage.input_tokens": "many",
            "gen_ai.usage.output_tokens": -1.5,
        },
    )
    assert lines == [
        "source_count:   three",
        'retriever:      ["a", null]',
        'embedding:      {"$float": "NaN"}',
        'context_tokens: {"$int": "1180591620717411303424"}',
    ]
    result = bijotel("inspect", "--db", db, 6)
    assert 'model:               {"a": {"$bytes": "AA=="}}\n' in result.out
    assert "input_tokens:        many\n" in result.out
    document = bijotel("inspect", "--db", db, 6, "--json").document
    assert document["model"] == {"a": {"$bytes": "AA=="}}
    assert document["provenance"]["embedding_model"] == {"$float": "NaN"}


def test_keyed_digests_are_shown_as_what_they_are(bijotel, secret, db):
    """A value that the chain does not hold stands there as its digest."""
    digest = {"$digest": {"bytes": 3, "hmac": "ab" * 32}}
    body_value = json.loads(_row(db, 5).body)
    body_value["attributes"]["bijotel.rag.retriever_id"] = digest
    body_value["status"] = {"code": "ERROR", "description": digest}
    octets = canonical.dumps(body_value)
    append(db, [draft("gap", octets)._replace(kind="span", fmt="span/1")])
    out = bijotel("inspect", "--db", db, 6).out
    lines = _section(out, "RAG Provenance")
    assert lines[1] == "retriever:      digest:abababab... (3 bytes)"
    assert "\nspan_status:         ERROR digest:abababab... (3 bytes)\n" in out


def test_digests_of_document_ids_read_alike_everywhere(bijotel, secret, db):
    """In digest mode a source is named by the same short digest where it is listed and judged."""
    digest = {"$digest": {"bytes": 73, "hmac": "3a5a1f15" + "0" * 56}}
    stamps = rag([source(document_id=digest), source(document_id="doc-2", chunk_index=4)])
    append(db, [span(9, attributes={**stamps, "bijotel.rag.in_context": ["included", "absent"]})])
    out = bijotel("inspect", "--db", db, 6).out
    name = "digest:3a5a1f15... (73 bytes)"
    listed = [line for line in _section(out, "RAG Provenance") if "source " in line]
    assert listed[0] == f"  source 1: doc={name}  chunk=0  retriever=qdrant  sim=0.890"
    assert listed[1].startswith("  source 2: doc=doc-2  ")
    assert _section(out, "Context") == [
        "1 of 2 sources reached the prompt of this call",
        f"  included  {name}#0  (as the application stated)",
        "  absent    doc-2#4  (as the application stated)",
    ]
    context = bijotel("inspect", "--db", db, 6, "--json").document["context"]
    full = f"digest:3a5a1f15{'0' * 56} (73 bytes)#0"
    assert [each["id"] for each in context["sources"]] == [full, "doc-2#4"]


def test_stored_text_stays_on_its_line(bijotel, secret, db):
    """Names, statuses, ids and bodies cannot fake a line or steer a terminal."""
    evil = "a\r\x1b[2KVERIFIED\n=== Status: ALLOWED ===\u202e\x9b"
    append(
        db,
        [
            span(
                9,
                name=evil,
                status=Status("ERROR", evil),
                attributes={
                    "gen_ai.request.model": evil,
                    "bijotel.blocked": True,
                    **rag([source(document_id=evil, retriever=evil)]),
                },
            )
        ],
    )
    out = bijotel("inspect", "--db", db, 6).out
    escaped = r"a\r\x1b[2KVERIFIED\n=== Status: ALLOWED ===\u202e\x9b"
    assert f"\nname:                {escaped}\n" in out
    assert f"\nspan_status:         ERROR {escaped}\n" in out
    assert f"  source 1: doc={escaped}  chunk=0  retriever={escaped}  sim=0.890\n" in out
    assert not set(out) & set("\r\x1b\u202e\x9b")
    assert [line for line in out.split("\n") if line.startswith("=== Status")] == [
        "=== Status: BLOCKED ==="
    ]


def test_a_body_with_invisible_characters_is_still_json(bijotel, secret, db):
    """They are shown as JSON escapes, and the title says that this was done."""
    append(db, [span(9, name="\u202e\x7f")])
    out = bijotel("inspect", "--db", db, 6).out
    octets = _row(db, 6).body
    title = f"=== Canonical Body ({len(octets)} bytes, invisible characters as JSON escapes) ==="
    printed = out.split(title)[1].strip()
    assert "\\u202e\\u007f" in printed
    assert json.loads(printed) == json.loads(octets)


def test_a_body_that_cannot_be_read_is_still_shown(bijotel, secret, db):
    """A tampered body is no reason to show nothing."""
    octets = b'{"a": 1, \xff\x1b}'
    tamper(
        db, "UPDATE entries SET body = ?, body_hash = ? WHERE seq = 3", octets, body_hash(octets)
    )
    result = bijotel("inspect", "--db", db, 3)
    assert result.code == 1
    assert "body:                cannot be read: not JSON: " in result.out
    assert "=== Status" not in result.out
    assert result.out.endswith('{"a": 1, \\xff\\u001b}\n')
    assert bijotel("inspect", "--db", db, 3, "--json").document["body"] == {
        "$bytes": "eyJhIjogMSwg/xt9"
    }


def test_a_withheld_body_says_why(bijotel, secret, db):
    """What was too long to seal is not there."""
    append(db, [span(9, attributes={"big": "x" * (16 * 1024 * 1024)})])
    assert "withheld:            size\n" in bijotel("inspect", "--db", db, 6).out


def test_dropped_counts_and_origin_are_shown(bijotel, secret, db):
    """What the tracer dropped, and that the span came from a file."""
    from bijotel.model import Dropped

    append(db, [span(9, dropped=Dropped(2, 0, 1), via="file")])
    out = bijotel("inspect", "--db", db, 6).out
    assert "dropped_attributes:  2\n" in out
    assert "dropped_links:       1\n" in out
    assert "dropped_events" not in out
    assert "via:                 file\n" in out


def test_the_json_document(bijotel, secret, tmp_path):
    """Every column, the provenance as recorded, and the body as its own text."""
    path = append(tmp_path / "chain.db", [span(1, attributes=rag([source(), "odd"]))])
    row = _row(path, 1)
    document = bijotel("inspect", "--db", path, 1, "--json").document
    assert document["verification"] == {"verdict": "verified", "findings": []}
    assert document["entry"] == {
        "chain_id": CHAIN_HEX,
        "seq": 1,
        "epoch": 0,
        "key_id": KEY_ID,
        "kind": "span",
        "sealed_at_unix_nano": "1700000100000000000",
        "fmt": "span/1",
        "body_hash": row.body_hash.hex(),
        "prev_tag": row.prev_tag.hex(),
        "trace_id": f"{1:032x}",
        "span_id": f"{1:016x}",
        "name": "chat gpt-test",
        "start_unix_nano": "1700000000000000001",
        "end_unix_nano": "1700000000000005001",
        "dedup_key": row.dedup_key.hex(),
        "tag": row.tag.hex(),
    }
    assert document["provenance"] == {
        "source_count": 2,
        "retriever": "qdrant",
        "embedding_model": "text-embedding-3-small",
        "context_tokens": 720,
        "sources": [source(), {"malformed": '"odd"'}],
        "unreadable": None,
        "notes": [],
    }
    assert document["body"].encode() == row.body
    assert (document["chain"], document["chain_name"]) == (CHAIN_HEX, "default")
    assert (document["span_status"], document["input_tokens"], document["output_tokens"]) == (
        "OK",
        120,
        17,
    )


def test_the_json_document_of_a_malformed_row(bijotel, secret, db):
    """It is JSON whatever the columns hold."""
    tamper(db, "UPDATE entries SET name = NULL, epoch = 1.5, body = 'x' WHERE seq = 3")
    document = bijotel("inspect", "--db", db, 3, "--json").document
    assert document["entry"]["name"] is None
    assert document["entry"]["epoch"] == "1.5"
    assert document["body"] is None
    assert document["status"] is None


# --- finding entries -------------------------------------------------------------------------


def test_rows_that_cannot_be_placed_are_no_neighbours(bijotel, secret, db):
    """A row whose number is no integer is passed over: it is not the entry that was asked for."""
    tamper(db, "UPDATE entries SET seq = 2.5 WHERE seq = 4")
    result = bijotel("inspect", "--db", db, 3)
    assert result.code == 0
    assert result.out.startswith("VERIFIED: entry 3 of chain default")


def test_malformed_head_records_name_no_chain(bijotel, secret, db):
    """The sound ones are used; the malformed are for ``verify`` to report."""
    tamper(db, "INSERT INTO heads (chain_id, name) VALUES (x'00', 'odd')")
    tamper(db, "INSERT INTO heads (chain_id, name) VALUES (zeroblob(16), NULL)")
    assert bijotel("inspect", "--db", db, 3).code == 0


def test_a_fault_beside_the_tables_is_no_reason_not_to_look(bijotel, secret, db):
    """A trigger is for ``verify`` to report; the rows can be read."""
    tamper(db, "CREATE TRIGGER t AFTER INSERT ON entries BEGIN SELECT 1; END")
    assert bijotel("inspect", "--db", db, 3).code == 0


def test_a_chain_without_rows(bijotel, secret, db):
    """Exit 2 for a number that even the head does not count."""
    append(db, [span(1)], chain="second", chain_id=b"2" * 16)
    tamper(db, "DELETE FROM entries WHERE chain_id = ?", b"2" * 16)
    message = "entry 9: not in chain second, which is empty"
    assert bijotel("inspect", "--db", db, 9, "--chain", "second") == (2, "", f"error: {message}\n")


def test_an_entry_beyond_the_head_is_judged_by_itself(bijotel, secret, db, tmp_path):
    """Its own tag says that it was sealed, whatever the head says."""
    old = tmp_path / "old.db"
    old.write_bytes(db.read_bytes())
    append(db, [span(9)])
    head = _head(old)
    tamper(db, "UPDATE heads SET seq = ?, tag = ?, tree = ?, mac = ?", *head)
    assert bijotel("inspect", "--db", db, 6).code == 0
    assert bijotel("verify", "--db", db).code == 1


def _head(path):
    with SqliteStore(path).snapshot() as snapshot:
        row = snapshot.head_rows()[0]
    return row[2], *row[5:]
