"""Chains of bijotel 2.x: every file of the interop folder, every column, and carrying over."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from bijotel import canonical
from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.keys import HmacKey, KeyRing
from bijotel.legacy.carry import carried_rows, check_carried, import_drafts
from bijotel.legacy.check import UNCOVERED, verify_database
from bijotel.legacy.export import (
    is_legacy_export,
    load_public_key,
    parse_export,
    verify_export,
)
from bijotel.legacy.rows import COLUMNS, LegacyRow, is_legacy_database, open_database
from bijotel.note import EvidenceError
from bijotel.seal import body_hash, draft, open_chain, seal_entries
from tests.conftest import MASTER_KEY

RING = KeyRing(MASTER_KEY)
WRONG = KeyRing(bytes(range(1, 33)))


@pytest.fixture
def interop(shared):
    return shared / "interop" / "bijotel-2.17"


@pytest.fixture
def database(interop, tmp_path):
    """A copy: SQLite may put its shared memory beside the file."""
    path = tmp_path / "old.db"
    shutil.copyfile(interop / "chain_vectors.db", path)
    return path


def _codes(report):
    return [(finding.code, finding.seq, finding.column) for finding in report.findings]


def _rows(path):
    with open_database(path) as rows:
        return list(rows)


# --- the database --------------------------------------------------------------------------------


def test_the_database_verifies_and_the_report_names_what_it_leaves_open(database):
    """Thirteen rows hold; columns that no hash covers and the tail are named."""
    before = database.read_bytes()
    report = verify_database(database, RING)
    assert report.ok
    assert report.checked == {"entries": 13, "format": "bijotel 2.x database"}
    assert (report.chains[0].entries, report.chains[0].last_seq) == (13, 13)
    open_columns, tail = report.not_checked
    for column in ("timestamp_ns", "trace_id", "span_id", "span_name", "span_kind", "seq"):
        assert column in open_columns
    assert "cannot show that the end was cut off" in tail
    assert report.notices == ()
    assert database.read_bytes() == before


def test_the_rows_are_the_published_ones(database, interop):
    """Bodies, hashes and tags of the vectors are what is read."""
    vectors = json.loads((interop / "canonical_and_chain_vectors.json").read_text())
    rows = _rows(database)
    for row, case in zip(rows, vectors["cases"], strict=False):
        assert row.canonical_body == base64.b64decode(case["canonical_b64"])
        for name in ("seq", "span_name", "span_kind", "canonical_hash", "prev_hash", "hmac_hash"):
            assert getattr(row, name) == case["row"][name]
        assert row.timestamp_ns == int(case["row"]["timestamp_ns"])
    assert len(rows) == len(vectors["cases"]) + 1
    assert rows[-1].hmac_hash == vectors["head_hash"]
    assert rows[-1].canonical_hash == vectors["append_event_row"]["canonical_hash"]


def test_the_old_inspection_of_entry_2_is_that_of_its_row(database, interop):
    """Every hash and id that the old tool printed is what is read now."""
    printed = dict(
        line.split(":", 1)
        for line in (interop / "inspect_seq2_expected.txt").read_text().splitlines()[1:10]
    )
    row = _rows(database)[1]._asdict()
    for name in set(printed) & set(COLUMNS):
        assert str(row[name]) == printed[name].strip()
    assert len(set(printed) & set(COLUMNS)) == 8


def _tamper(path, statement, *values):
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "UPDATE chain SET canonical_body = x'7b7d' WHERE seq = 5",
            ("body-hash-mismatch", 5, "canonical_body"),
        ),
        (
            "UPDATE chain SET canonical_hash = hmac_hash WHERE seq = 5",
            ("body-hash-mismatch", 5, "canonical_body"),
        ),
        (
            "UPDATE chain SET prev_hash = canonical_hash WHERE seq = 5",
            ("link-mismatch", 5, "prev_hash"),
        ),
        (
            "UPDATE chain SET hmac_hash = canonical_hash WHERE seq = 5",
            ("tag-mismatch", 5, "hmac_hash"),
        ),
        (
            "UPDATE chain SET hmac_hash = canonical_hash WHERE seq = 1",
            ("link-mismatch", 2, "prev_hash"),
        ),
        (
            "UPDATE chain SET hmac_hash = canonical_hash WHERE seq = 13",
            ("tag-mismatch", 13, "hmac_hash"),
        ),
        ("DELETE FROM chain WHERE seq = 5", ("seq-gap", 5, "seq")),
        ("DELETE FROM chain WHERE seq < 5", ("seq-gap", 1, "seq")),
        ("UPDATE chain SET seq = 99 WHERE seq = 13", ("seq-gap", 13, "seq")),
        ("UPDATE chain SET seq = -1 WHERE seq = 1", ("seq-repeat", -1, "seq")),
        ("DELETE FROM chain", ("truncated", 1, "seq")),
        (
            "UPDATE chain SET canonical_body = 'text' WHERE seq = 5",
            ("type-mismatch", 5, "canonical_body"),
        ),
        (
            "UPDATE chain SET canonical_hash = x'00' WHERE seq = 5",
            ("type-mismatch", 5, "canonical_hash"),
        ),
        (
            "UPDATE chain SET hmac_hash = upper(hmac_hash) WHERE seq = 5",
            ("type-mismatch", 5, "hmac_hash"),
        ),
        ("UPDATE chain SET prev_hash = '' WHERE seq = 1", ("type-mismatch", 1, "prev_hash")),
    ],
)
def test_tampered_rows_are_found(database, statement, expected):
    """Whatever the format covers is found, at the row where it is."""
    _tamper(database, statement)
    report = verify_database(database, RING)
    assert report.exit_code == 1
    assert expected in _codes(report)


def test_a_body_and_its_hash_changed_together_need_the_secret(database):
    """The tag covers the hash, and only the secret makes the tag."""
    body = b'{"name":"forged"}'
    _tamper(
        database,
        "UPDATE chain SET canonical_body = ?, canonical_hash = ? WHERE seq = 5",
        body,
        sha256(body).hexdigest(),
    )
    assert _codes(verify_database(database, RING)) == [("tag-mismatch", 5, "hmac_hash")]


def test_the_tag_of_the_first_row_is_not_mistaken_for_a_wrong_secret(database):
    """Which key it is, a later row tells; the first row is then the one that is false."""
    _tamper(database, "UPDATE chain SET hmac_hash = canonical_hash WHERE seq = 1")
    _tamper(
        database,
        "UPDATE chain SET prev_hash = (SELECT hmac_hash FROM chain WHERE seq = 1) WHERE seq = 2",
    )
    codes = _codes(verify_database(database, KeyRing(bytes(range(1, 33)), MASTER_KEY)))
    assert codes == [("tag-mismatch", 1, "hmac_hash")]


@pytest.mark.parametrize("column", UNCOVERED[1:])
def test_uncovered_columns_pass_and_are_named(database, column):
    """The right answer to an edit that the format cannot see: a pass that says so."""
    _tamper(database, f"UPDATE chain SET {column} = 'x' WHERE seq = 5")
    report = verify_database(database, RING)
    assert report.ok
    assert column in report.not_checked[0]
    noted = [notice.seq for notice in report.notices if column in notice.message]
    assert noted == ([5] if column in {"span_name", "span_kind", "timestamp_ns"} else [])


def test_the_wrong_secret_is_said_once(database):
    """One finding, not one for each row."""
    assert _codes(verify_database(database, WRONG)) == [("wrong-key", 1, "hmac_hash")]


def test_a_cut_tail_cannot_be_seen(database):
    """The format has nothing that says where the chain ends; the report does."""
    _tamper(database, "DELETE FROM chain WHERE seq > 7")
    report = verify_database(database, RING)
    assert report.ok
    assert report.chains[0].last_seq == 7
    assert any("tail" in text for text in report.not_checked)


def test_which_files_are_databases_of_that_version(database, tmp_path, interop):
    """The table tells; anything else is not one, and reading it is our error."""
    assert is_legacy_database(database)
    assert not is_legacy_database(tmp_path / "nowhere.db")
    assert not is_legacy_database(interop / "export_v1.json")
    other = tmp_path / "other.db"
    _tamper(other, "CREATE TABLE chain (seq INTEGER)")
    assert not is_legacy_database(other)
    for path in (tmp_path / "nowhere.db", interop / "export_v1.json", other, tmp_path):
        with pytest.raises(UnavailableError, match="cannot be read"), open_database(path) as rows:
            list(rows)


# --- exports -------------------------------------------------------------------------------------


@pytest.fixture
def public_key(interop):
    return load_public_key((interop / "ed25519_public.pem").read_bytes())


FILES = [
    "export_v1.json",
    "export_v1_segment_4_8.json",
    "export_v1_tampered_body.json",
    "export_v1_tampered_metadata.json",
    "export_v2.json",
    "export_v2_forged_without_any_key.json",
]


@pytest.mark.parametrize("name", FILES)
def test_with_the_secret_the_verdicts_are_the_old_ones(interop, name, public_key):
    """With the secret the old tool was right about what it covers."""
    verdicts = json.loads((interop / "expected_verdicts.json").read_text())
    assert sorted(verdicts["verdicts_of_bijotel_2.17.0"]) == FILES
    valid = verdicts["verdicts_of_bijotel_2.17.0"][name]["secret"][0]
    octets = (interop / name).read_bytes()
    assert is_legacy_export(octets)
    report = verify_export(octets, RING)
    assert report.ok == valid
    assert report.exit_code == (0 if valid else 1)
    assert UNCOVERED[1] in report.not_checked[0]
    if name.startswith("export_v2"):
        assert verify_export(octets, RING, public_key).ok == valid
        assert any("its own claim" in text for text in report.not_checked)


@pytest.mark.parametrize("name", FILES)
def test_without_the_secret_nothing_passes(interop, name, public_key):
    """The signature of version 2 covers nothing that the entries are tied to."""
    octets = (interop / name).read_bytes()
    for key in (None, public_key):
        report = verify_export(octets, None, key)
        assert not report.ok
        if name in {"export_v2.json", "export_v2_forged_without_any_key.json"}:
            assert _codes(report) == [("key-unknown", None, "chain_signature")]
            assert report.exit_code == 3
            assert "nothing in it can be trusted" in report.findings[0].message


def test_the_forged_export_is_seen_through(interop, public_key):
    """No key was used: with the secret it is wrong, whatever its signature says."""
    octets = (interop / "export_v2_forged_without_any_key.json").read_bytes()
    report = verify_export(octets, RING, public_key)
    assert _codes(report) == [("wrong-key", 1, "hmac_hash")]
    assert report.exit_code == 1


def test_the_tampered_body_is_named(interop):
    """One bit of the body of entry 2."""
    octets = (interop / "export_v1_tampered_body.json").read_bytes()
    assert _codes(verify_export(octets, RING)) == [("body-hash-mismatch", 2, "canonical_body")]
    assert ("body-hash-mismatch", 2, "canonical_body") in _codes(verify_export(octets))


def test_the_tampered_metadata_pass_with_the_columns_named(interop):
    """Edited columns that no hash covers: named as open, and those the body contradicts noted."""
    report = verify_export((interop / "export_v1_tampered_metadata.json").read_bytes(), RING)
    assert report.ok
    for column in ("timestamp_ns", "trace_id", "span_name"):
        assert column in report.not_checked[0]
    assert {(notice.code, notice.seq) for notice in report.notices} == {("column-mismatch", 2)}
    noted = " ".join(notice.message for notice in report.notices)
    assert "span_name" in noted
    assert "timestamp_ns" in noted


def test_a_segment_says_what_it_is(interop):
    """Entries 4 to 8 pass, and what lies around them is named as not checked."""
    report = verify_export((interop / "export_v1_segment_4_8.json").read_bytes(), RING)
    assert report.ok
    assert "entries before 4 and behind 8: this is a segment" in report.not_checked
    assert report.chains[0].entries == 5


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d | {"entries_count": 12}, ("truncated", None, "entries_count")),
        (lambda d: d | {"entries": d["entries"][:-1]}, ("truncated", None, "entries_count")),
        (lambda d: d | {"entries": d["entries"][:-1]}, ("head-mismatch", None, "head_hash")),
        (lambda d: d | {"entries": d["entries"][1:]}, ("seq-gap", 1, "seq")),
        (lambda d: d | {"entries": d["entries"][::-1]}, ("seq-gap", 1, "seq")),
        (lambda d: d | {"entries": []}, ("truncated", 1, "seq")),
        (lambda d: d | {"head_hash": "0" * 64}, ("head-mismatch", None, "head_hash")),
        (lambda d: d | {"chain_signature": "0" * 64}, ("head-mismatch", None, "chain_signature")),
        (lambda d: d | {"format": "bijotel-chain-v3"}, ("malformed-export", None, "format")),
        (lambda d: d | {"entries": d["entries"] + d["entries"][-1:]}, ("seq-repeat", 13, "seq")),
        (lambda d: d | {"entries": 7}, ("malformed-export", None, "file")),
        (lambda d: d | {"entries": [7]}, ("malformed-export", None, "file")),
        (lambda d: d | {"entries": [{}]}, ("malformed-export", None, "file")),
        (
            lambda d: d | {"entries": [d["entries"][0] | {"canonical_body_b64": "!"}]},
            ("malformed-export", None, "file"),
        ),
        (
            lambda d: {k: v for k, v in d.items() if k != "head_hash"},
            ("malformed-export", None, "file"),
        ),
        (lambda d: [d], ("malformed-export", None, "file")),
    ],
)
def test_edited_exports_never_pass(interop, change, expected):
    """Members of the header, entries gone, moved or doubled."""
    document = json.loads((interop / "export_v1.json").read_text())
    report = verify_export(json.dumps(change(document)).encode(), RING)
    assert report.exit_code == 1
    assert expected in _codes(report)


def test_a_member_that_stands_twice_is_refused(interop):
    """Two readers could read such a file differently."""
    octets = (interop / "export_v1.json").read_bytes()
    doubled = octets.replace(b'"version"', b'"entries_count": 1, "version"', 1)
    assert _codes(verify_export(doubled, RING)) == [("malformed-export", None, "file")]


@pytest.mark.parametrize(
    "signature",
    [None, 7, {}, {"public_key": "AAAA", "signature": "AAAA"}, {"public_key": 1, "signature": 2}],
)
def test_a_signature_that_is_not_the_keys(interop, public_key, signature):
    """Missing, malformed, of another key: a finding when the key was given."""
    document = json.loads((interop / "export_v2.json").read_text())
    document["ed25519_signature"] = signature
    report = verify_export(json.dumps(document).encode(), RING, public_key)
    assert _codes(report) == [("checkpoint-signature", None, "ed25519_signature")]
    other = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    genuine = (interop / "export_v2.json").read_bytes()
    assert _codes(verify_export(genuine, RING, other)) == [
        ("checkpoint-signature", None, "ed25519_signature")
    ]


def test_public_keys_are_pem_files(interop, public_key):
    """Anything else is asked wrongly."""
    assert len(public_key) == 32
    for octets in (b"", b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n", b"\xff"):
        with pytest.raises(ConfigurationError, match="expected an Ed25519 key in PEM"):
            load_public_key(octets)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_report(octets):
    """No exception leaves the verifier of exports, and nothing passes."""
    assert verify_export(octets, RING).exit_code == 1
    with pytest.raises(EvidenceError):
        parse_export(octets)


def test_a_huge_export_is_not_read():
    """The limit is checked before anything is parsed."""

    class Huge(bytes):
        def __len__(self):
            return (1 << 30) + 1

    with pytest.raises(EvidenceError, match="expected at most"):
        parse_export(Huge())


# --- carrying over -------------------------------------------------------------------------------


def _carry(rows):
    key = HmacKey(MASTER_KEY)
    batch = open_chain("default", bytes(16), key, import_drafts(rows), 5)
    return list(batch.entries)


def test_every_row_is_carried_over_and_read_back(database):
    """The new chain holds all rows as they were stored, and a closing entry."""
    rows = _rows(database)
    entries = _carry(rows)
    assert [entry.kind for entry in entries] == ["genesis"] + ["import"] * 14
    assert list(carried_rows(entries)) == rows
    assert check_carried(rows, entries) == 13
    closing = canonical.loads(entries[-1].body)
    assert closing == {"last_hash": rows[-1].hmac_hash, "rows": 13, "source": "bijotel-2"}


def test_the_known_import_entry_is_made(known):
    """The body of the known import entry, octet for octet."""
    stated = next(entry["body"] for entry in known["entries"] if entry["kind"] == "import")
    row = LegacyRow(**canonical.decode(json.loads(stated)["row"]))
    made = next(iter(import_drafts([row])))
    assert (made.kind, made.fmt, made.body.decode()) == ("import", "import/1", stated)


def test_other_entries_may_stand_between(database):
    """The import may be interrupted by a checkpoint, and the chain goes on behind it."""
    rows = _rows(database)
    drafts = list(import_drafts(rows))
    key = HmacKey(MASTER_KEY)
    batch = open_chain(
        "default", bytes(16), key, [*drafts[:4], draft("gap", b"{}"), *drafts[4:]], 5
    )
    more = seal_entries(batch.head, [draft("gap", b"{}")], key, 6)
    assert check_carried(rows, [*batch.entries, *more.entries]) == 13


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows, entries: (rows, entries[:5] + entries[6:]), "row 5 is not the one"),
        (lambda rows, entries: (rows, entries[:-1]), "13 rows without the closing entry"),
        (lambda rows, entries: (rows[:-1], entries), "row 13 is not the one"),
        (lambda rows, entries: (rows, entries[:-2] + entries[-1:]), "states 13 rows, 12 are there"),
        (lambda rows, entries: (rows, [entries[0], entries[2], entries[1], *entries[3:]]), "row 1"),
        (
            lambda rows, entries: (rows, [*entries[:3], _with(entries[3], b"{}"), *entries[4:]]),
            "is not from",
        ),
        (
            lambda rows, entries: (rows, [*entries[:3], _with(entries[3], b"7"), *entries[4:]]),
            "is not from",
        ),
        (
            lambda rows, entries: (rows, [*entries[:3], _with(entries[3], b"{"), *entries[4:]]),
            "import entry 3",
        ),
        (
            lambda rows, entries: (
                rows,
                [*entries[:3], _with(entries[3], b'{"row":{},"source":"bijotel-2"}')],
            ),
            "holds no row",
        ),
        (
            lambda rows, entries: (
                rows,
                [*entries[:3], _with(entries[3], b'{"row":7,"source":"bijotel-2"}')],
            ),
            "holds no row",
        ),
    ],
)
def test_a_lost_or_changed_row_is_noticed(database, change, message):
    """Whatever differs between the old rows and what was carried over."""
    rows = _rows(database)
    rows, entries = change(rows, _carry(rows))
    with pytest.raises(EvidenceError, match=message) as caught:
        check_carried(rows, entries)
    assert caught.value.code == "import-mismatch"
    assert caught.value.exit_code == 1


def _with(entry, body):
    return entry._replace(body=body, body_hash=body_hash(body))


VALUES = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
)


@given(st.lists(st.tuples(*[VALUES] * len(COLUMNS)), min_size=1, max_size=3))
def test_rows_of_any_values_survive(values):
    """Whatever SQLite can hold beside the tag comes back equal to what it was."""
    rows = [LegacyRow(*columns)._replace(hmac_hash="0" * 64) for columns in values]
    assert list(carried_rows(_carry(rows))) == rows


def test_text_that_is_no_utf8_survives(database):
    """An attacker's octets in a TEXT column are carried over exactly."""
    _tamper(database, "UPDATE chain SET span_name = CAST(x'ff41' AS TEXT) WHERE seq = 5")
    rows = _rows(database)
    assert rows[4].span_name == "\udcffA"
    assert check_carried(rows, _carry(rows)) == 13
