"""Exports: known answers, ranges, gzip, and attacks 45, 53 and 54 with and without the secret."""

from __future__ import annotations

import base64
import errno
import gzip
import io
import json
import random
import stat
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.checkpoint import sign_checkpoint, verify_checkpoint
from bijotel.entry_line import MAX_LINE_BYTES, parse_entry_line
from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.export import write_export
from bijotel.export_check import verify_export
from bijotel.export_lines import ExportLines
from bijotel.keys import HmacKey, KeyRing
from bijotel.note import EvidenceError
from bijotel.output_files import new_file
from bijotel.range_proof import ranges_of
from bijotel.seal import body_hash, seal_entries
from bijotel.signing import generate_signing_key
from bijotel.verifier_key import parse_verifier_key
from tests.conftest import MASTER_KEY, ROOT
from tests.evidence.chains import (
    RING,
    TIME,
    TOOL,
    Chain,
    chain_of,
    check_export,
    codes,
    our_verdict,
    span,
    tool_verdict,
)

CHAIN = chain_of(61)
SIZE = 60


@pytest.fixture(scope="module")
def note(signer):
    return CHAIN.note(SIZE, signer)


def _export(note, ranges=None, chain=CHAIN, size=SIZE):
    output = io.BytesIO()
    wanted = ranges or ((0, size - 1),)
    entries = [chain.entries[seq] for first, last in wanted for seq in range(first, last + 1)]
    count = write_export(output, note, entries, chain.node, ranges)
    assert count == len(entries)
    return output.getvalue()


@pytest.fixture(scope="module")
def whole(note):
    return _export(note)


@pytest.fixture(scope="module")
def part(note):
    return _export(note, ((3, 9), (17, 17), (40, 58)))


def _agree(octets, keys, **options):
    """Both verifiers give the same verdict, with and without the secret; return it."""
    ours, theirs = our_verdict(octets, keys, **options), tool_verdict(octets, keys, **options)
    sealed = our_verdict(octets, keys, ring=RING, **options)
    assert ours[0] == theirs[0] == sealed[0]
    return ours[1], theirs[1], sealed[1]


# --- making and accepting ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ranges"), [("export_all", None), ("export_part", ((3, 4), (6, 6)))]
)
def test_known_exports_are_made_and_verified(known, vkey, master_key, name, ranges):
    """The known exports verify, and writing their entries again gives the same octets."""
    octets = known[name].encode()
    chain_id = bytes.fromhex(known["head_seq_8"]["chain_id"])
    entries = [parse_entry_line(line, chain_id) for line in octets.splitlines()[1:]]
    proof = iter(json.loads(octets.splitlines()[0])["proof"])
    output = io.BytesIO()
    checkpoint = known["checkpoint_9"].encode()
    write_export(output, checkpoint, entries, lambda *_: bytes.fromhex(next(proof)), ranges)
    assert output.getvalue() == octets
    ring = KeyRing(master_key, bytes.fromhex(known["new_master_key"]))
    for keys in (None, ring):
        report = check_export(octets, [vkey], ring=keys, partial=True)
        assert codes(report) == []
        assert report.checked["tags"] == (len(entries) if keys else 0)


def test_a_whole_export_passes_and_says_what_it_covers(whole, vkey, note):
    """No finding; the report names ranges, size, keys, kinds and what was not checked."""
    report = check_export(whole, [vkey], checkpoint=note)
    assert report.ok
    assert report.checked == {
        "entries": 60,
        "tags": 0,
        "ranges": [[0, 59]],
        "size": 60,
        "keys": [f"{vkey.name}+{vkey.key_hash.hex()}"],
    }
    (chain,) = report.chains
    assert (chain.chain, chain.entries, chain.last_seq) == (CHAIN.entries[0].chain_id.hex(), 60, 59)
    assert chain.kinds == {"genesis": 1, "span": 59}
    assert report.not_checked == (
        "entries sealed after the checkpoint of size 60",
        "tags (they need the HMAC secret)",
    )
    with_secret = check_export(whole, [vkey], ring=RING)
    assert with_secret.ok
    assert with_secret.checked["tags"] == 60
    assert with_secret.not_checked == ("entries sealed after the checkpoint of size 60",)
    assert _agree(whole, [vkey]) == ("", "", "")


def test_part_of_a_log_needs_to_be_asked_for(part, vkey):
    """Without partial it is a finding that names the ranges; with it, a pass that names them."""
    report = check_export(part, [vkey])
    assert codes(report) == [("export-partial", None, "ranges")]
    assert "entries 3 to 9, 17 to 17, 40 to 58 of 60" in report.findings[0].message
    assert _agree(part, [vkey]) == ("export-partial",) * 3
    accepted = check_export(part, [vkey], partial=True)
    assert accepted.ok
    assert accepted.checked["ranges"] == [[3, 9], [17, 17], [40, 58]]
    assert "entries outside the ranges" in accepted.not_checked
    assert _agree(part, [vkey], partial=True) == ("", "", "")


@given(st.integers(1, 60), st.data())
def test_any_ranges_of_any_size_pass(signer, vkey, size, data):
    """Whatever is exported proves itself to both verifiers."""
    ranges = ranges_of(sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1))))
    octets = _export(CHAIN.note(size, signer), ranges, size=size)
    assert _agree(octets, [vkey], partial=True) == ("", "", "")


def test_a_secret_of_another_chain_takes_nothing_away(whole, vkey):
    """Tags of keys outside the ring are named, not doubted: the signature already holds."""
    report = check_export(whole, [vkey], ring=KeyRing(bytes(range(1, 33))))
    assert report.ok
    assert report.checked["tags"] == 0
    (notice,) = report.notices
    assert notice.code == "key-unknown"
    assert notice.message.startswith("tags of 60 entries not checked: key ")


def test_compressed_exports_pass_and_damaged_ones_do_not(tmp_path, whole, note, vkey):
    """The suffix .gz compresses, the same octets every time; damage is a finding."""
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        with new_file(tmp_path / name) as output:
            write_export(output, note, CHAIN.entries[:SIZE], CHAIN.node)
    packed = (tmp_path / "a.jsonl.gz").read_bytes()
    assert packed == (tmp_path / "b.jsonl.gz").read_bytes()
    assert gzip.decompress(packed) == whole
    assert check_export(packed, [vkey], ring=RING).ok


def _damages(whole):
    """Cut, flipped, or with something behind it: each kind at many places.

    Not in the ten octets of the header, where a time, say, can be changed unnoticed.
    """
    packed = gzip.compress(whole)
    for place in range(10, len(packed), 7):
        yield packed[:place]
        yield packed[:place] + bytes([packed[place] ^ 0x10]) + packed[place + 1 :]
    yield packed[:-1]
    for behind in (b"\0", b"\n", packed, gzip.compress(b"")):
        yield packed + behind


def test_damaged_compression_is_the_whole_verdict(whole, vkey):
    """Wherever it is, and however much of the file could still be read before it."""
    for damaged in _damages(whole):
        report = check_export(damaged, [vkey])
        assert report.exit_code == 1
        assert codes(report) == [("malformed-export", None, "file")]
        assert report.findings[0].message.startswith("export: cannot be decompressed: ")
        assert tool_verdict(damaged, [vkey]) == (1, "malformed-export")


def test_a_false_export_is_told_from_a_damaged_file(whole, vkey):
    """Sound compression of false entries: what is wrong with them is named, as in a plain file."""
    lines = whole.splitlines(keepends=True)
    for false in (b"".join(lines[:-1]), b"".join([*lines[:9], *lines[10:]]), lines[1], b"", b"\n"):
        packed = gzip.compress(false)
        assert codes(check_export(packed, [vkey])) == codes(check_export(false, [vkey])) != []
        assert tool_verdict(packed, [vkey]) == tool_verdict(false, [vkey])


def test_damage_behind_a_false_entry_is_found(whole, vkey):
    """The file is read on to its end, past the fault and past a line over the limit."""
    long_line = b"x" * (MAX_LINE_BYTES + 1)
    for false in (b"no header\n" + bytes(10**6), long_line + b"\n" + whole):
        packed = gzip.compress(false)
        assert codes(check_export(packed, [vkey])) != [("malformed-export", None, "file")]
        for damaged in (packed[:-8] + bytes(8), packed + b"\0"):
            assert codes(check_export(damaged, [vkey])) == [("malformed-export", None, "file")]


@pytest.mark.parametrize(("more", "column"), [(0, "header"), (1, "line")])
def test_the_limit_of_a_line_is_exact(vkey, more, column):
    """A line of 64 MiB is read, and said to be no header; of one octet more it is said itself."""
    packed = gzip.compress(b"x" * (MAX_LINE_BYTES + more) + b"\n")
    assert codes(check_export(packed, [vkey])) == [("malformed-export", None, column)]
    assert tool_verdict(packed, [vkey]) == (1, "malformed-export")


def test_the_longest_line_that_is_allowed_is_an_entry(vkey, whole, monkeypatch):
    """Both verifiers count without the newline."""
    longest = max(map(len, whole.splitlines()))
    for most, verdict in ((longest, (0, "")), (longest - 1, (1, "malformed-export"))):
        monkeypatch.setattr("bijotel.export_lines.MAX_LINE_BYTES", most)
        monkeypatch.setattr(TOOL, "MAX_LINE", most)
        assert our_verdict(whole, [vkey]) == tool_verdict(whole, [vkey]) == verdict


def test_what_stands_behind_the_fault_is_not_read_by_lines(vkey, monkeypatch):
    """A small file may unpack to very many lines of nothing."""
    octets = []
    read = ExportLines._read
    monkeypatch.setattr(
        ExportLines, "_read", lambda *args, **how: octets.append(read(*args, **how)) or octets[-1]
    )
    packed = gzip.compress(b"no header\n" + b"\n" * 10**6)
    assert codes(check_export(packed, [vkey])) == [("malformed-export", None, "header")]
    assert 10 < len(octets) < 100


def test_the_tool_stops_at_the_end_of_the_packed_data(whole):
    """Whatever stands behind it is refused unread, however long it is."""
    packed = gzip.compress(whole)
    file = io.BytesIO(packed + bytes(10**6))
    with pytest.raises(TOOL.EvidenceError, match="not one whole gzip member"):
        TOOL.unpacked(file, io.BytesIO())
    assert file.tell() <= len(packed) + 8192


class _Source(io.RawIOBase):
    """A pipe that hands out its octets one at a time and then, if it has a fault, raises it."""

    def __init__(self, octets, fault=None):
        self._octets = iter(octets)
        self._fault = fault

    def readable(self):
        return True

    def readinto(self, buffer):
        octet = next(self._octets, None)
        if octet is None and self._fault:
            raise self._fault
        if octet is None:
            return 0
        buffer[:1] = bytes([octet])
        return 1


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pipe_may_be_slow(whole, vkey, pack):
    """How much of a file arrives at once says nothing about what it is."""
    assert verify_export(io.BufferedReader(_Source(pack(whole))), [vkey]).ok


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (OSError("connection lost"), "connection lost"),
    ],
)
@pytest.mark.parametrize("begun", [b"", b"\x1f", b"\x1f\x8b", b"{}"])
def test_a_file_that_cannot_be_read_is_not_called_false(vkey, begun, fault, reason):
    """Reading fails, sooner or later: nothing was checked, and the reason is given."""
    with pytest.raises(UnavailableError, match=f"^export: cannot be read: {reason}$"):
        verify_export(io.BufferedReader(_Source(begun, fault)), [vkey])


# --- files ---------------------------------------------------------------------------------------


def test_a_file_gets_its_name_only_when_all_went_well(tmp_path, whole, note, signer):
    """A store that lies leaves the file that was there before, and nothing else."""
    path = tmp_path / "evidence.jsonl"
    with new_file(path) as output:
        write_export(output, note, CHAIN.entries[:SIZE], CHAIN.node)
    assert path.read_bytes() == whole
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lies = [*CHAIN.entries[:59], CHAIN.entries[59]._replace(name="x")]
    with (
        pytest.raises(EvidenceError, match="checkpoint of size 60: expected root"),
        new_file(path) as output,
    ):
        write_export(output, note, lies, CHAIN.node)
    assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_our_error(tmp_path, monkeypatch):
    """No such folder, and a disk that fills while the file is written."""
    with (
        pytest.raises(UnavailableError, match="cannot be written: No such file"),
        new_file(tmp_path / "nowhere" / "a.jsonl"),
    ):
        pass
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left")))
    with (
        pytest.raises(UnavailableError, match=r"a\.jsonl: cannot be written: No space left"),
        new_file(tmp_path / "a.jsonl") as output,
    ):
        output.write(b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("entries", "code", "message"),
    [
        (lambda e: e[:59], "seq-gap", "entry 59 is missing, the end was found"),
        (lambda e: e[:7] + e[8:], "seq-gap", "entry 7 is missing, entry 8 was found"),
        (lambda e: [*e[:7], e[7]._replace(body=b"{}"), *e[8:]], "body-hash-mismatch", "entry 7"),
        (lambda e: [*e[:7], e[7]._replace(chain_id=bytes(16)), *e[8:]], "wrong-chain", "entry 7"),
        (lambda e: [*e[:7], e[7]._replace(tag=bytes(32)), *e[8:]], "checkpoint-mismatch", "root"),
    ],
)
def test_a_store_that_lies_yields_no_export(note, entries, code, message):
    """What the checkpoint does not sign is not given out."""
    with pytest.raises(EvidenceError, match=message) as caught:
        write_export(io.BytesIO(), note, entries(CHAIN.entries[:SIZE]), CHAIN.node)
    assert caught.value.code == code


@pytest.mark.parametrize("ranges", [((0, 60),), ((5, 4),), ((3, 4), (5, 6)), ((9, 9), (3, 3))])
def test_ranges_beyond_the_checkpoint_are_asked_wrongly(note, ranges):
    """Only entries below the checkpoint's size can be exported."""
    with pytest.raises(ConfigurationError, match="export: range"):
        write_export(io.BytesIO(), note, CHAIN.entries, CHAIN.node, ranges)


# --- attacks -------------------------------------------------------------------------------------


def _edit(octets, seq, **changes):
    """Change members of the entry ``seq`` within its line, canonically."""
    lines = octets.split(b"\n")
    for place, line in enumerate(lines[1:-1], 1):
        members = json.loads(line)
        if members["seq"] == seq:
            members |= changes
            text = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            lines[place] = text.encode()
            return b"\n".join(lines)
    raise AssertionError(seq)


EDITS = {
    "body": "{}",
    "dedup_key": "11" * 32,
    "end_unix_nano": "7",
    "epoch": 1,
    "fmt": "span/2",
    "key_id": "22" * 8,
    "kind": "gap",
    "name": "other",
    "sealed_at_unix_nano": str(TIME - 31),
    "span_id": "33" * 8,
    "start_unix_nano": "0",
    "trace_id": "44" * 16,
}
IN_THE_BODY = {"dedup_key", "end_unix_nano", "name", "span_id", "start_unix_nano", "trace_id"}


@pytest.mark.parametrize("name", sorted(EDITS))
@pytest.mark.parametrize("export", ["whole", "part"])
def test_an_edited_column_never_passes(request, vkey, export, name):
    """Attacks 45 and 53: without the secret the root differs, with it the entry is named."""
    octets = _edit(request.getfixturevalue(export), 50, **{name: EDITS[name]})
    ours, theirs, _ = _agree(octets, [vkey], partial=True)
    assert ours == theirs == "checkpoint-mismatch"
    report = check_export(octets, [vkey], partial=True)
    assert codes(report) == [("checkpoint-mismatch", None, "ranges")]
    sealed = codes(check_export(octets, [vkey], partial=True, ring=RING))
    assert sealed[-1] == ("checkpoint-mismatch", None, "ranges")
    if name != "key_id":  # a key that is not in the ring has no tag to check
        code = "column-mismatch" if name in IN_THE_BODY else "tag-mismatch"
        assert sealed[:-1] == [(code, 50, name)]


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"tag": "55" * 32}, "tag"),
        ({"kind": "gap"}, "kind"),
        ({"fmt": "span/2"}, "fmt"),
        ({"epoch": 4294967295}, "epoch"),
        ({"sealed_at_unix_nano": "1"}, "sealed_at_unix_nano"),
        ({"sealed_at_unix_nano": str(TIME + 51)}, None),
        ({"body": "{}"}, "body"),
    ],
)
def test_the_secret_names_the_column(whole, vkey, changes, column):
    """With the tag checks the diagnosis of a chain is that of its export."""
    found = codes(check_export(_edit(whole, 50, **changes), [vkey], ring=RING))
    assert ("tag-mismatch", 50, column) in found


def test_an_edited_tag_breaks_the_link(whole, vkey):
    """Without the secret the successor's link tells where."""
    octets = _edit(whole, 50, tag="55" * 32)
    report = check_export(octets, [vkey])
    assert codes(report) == [
        ("link-mismatch", 51, "prev_tag"),
        ("checkpoint-mismatch", None, "ranges"),
    ]
    assert _agree(octets, [vkey]) == ("link-mismatch", "link-mismatch", "tag-mismatch")
    first = _edit(whole, 0, prev_tag="55" * 32)
    assert codes(check_export(first, [vkey]))[0] == ("link-mismatch", 0, "prev_tag")
    assert _agree(first, [vkey]) == ("link-mismatch",) * 3


@pytest.mark.parametrize(
    ("ranges", "partial", "code"),
    [
        (None, False, "link-mismatch"),
        (((0, 5),), True, "link-mismatch"),
        (((4, 8),), True, "link-mismatch"),
        (((0, 1), (4, 5)), True, "link-mismatch"),
        (((0, 3), (5, 8)), True, ""),  # the entry before it is not there to be compared with
        (((5, 8),), True, ""),
        (((0, 4), (6, 8)), True, ""),
    ],
)
def test_a_signed_chain_that_does_not_hang_together(signer, vkey, ranges, *, partial, code):
    """A key holder seals entry 5 behind a tag that no entry has, and signs that."""
    key, before = HmacKey(MASTER_KEY), chain_of(5)
    elsewhere = before.heads[-1]._replace(tag=b"\xee" * 32)
    batch = seal_entries(elsewhere, [span(n) for n in range(5, 9)], key, TIME + 5)
    chain = Chain([*before.entries, *batch.entries], [batch.head])
    assert (chain.entries[5].seq, chain.entries[5].prev_tag) == (5, b"\xee" * 32)
    note = sign_checkpoint(batch.head, RING, [signer])
    octets = _export(note, ranges, chain, size=9)
    assert _agree(octets, [vkey], partial=partial) == (code,) * 3
    found = codes(check_export(octets, [vkey], partial=partial))
    assert found == ([("link-mismatch", 5, "prev_tag")] if code else [])


def _rows(change):
    def apply(octets):
        header, *rows = octets.splitlines(keepends=True)
        return header + b"".join(change(rows))

    return apply


REARRANGED = {
    "removed": (_rows(lambda rows: rows[:50] + rows[51:]), "seq-gap", 50),
    "reordered": (_rows(lambda rows: [*rows[:50], rows[51], rows[50], *rows[52:]]), "seq-gap", 50),
    "repeated": (_rows(lambda rows: [*rows[:50], rows[49], *rows[50:]]), "seq-repeat", 49),
    "head cut": (_rows(lambda rows: rows[10:]), "seq-gap", 0),
    "tail cut": (_rows(lambda rows: rows[:50]), "truncated", 50),
    "last one cut": (_rows(lambda rows: rows[:-1]), "truncated", 59),
    "emptied": (_rows(lambda rows: []), "truncated", 0),
    "nothing left": (lambda octets: b"", "truncated", 0),
    "repeated at the end": (_rows(lambda rows: [*rows, rows[59]]), "seq-repeat", 59),
    "line cut": (lambda octets: octets[:-9], "malformed-export", 59),
    "newline cut": (lambda octets: octets[:-1], "malformed-export", 59),
    "empty line": (lambda octets: octets + b"\n", "malformed-entry", 60),
    "empty line within": (_rows(lambda r: [*r[:9], b"\n", *r[9:]]), "malformed-entry", 9),
    "CRLF": (_rows(lambda r: [*r[:9], r[9][:-1] + b"\r\n", *r[10:]]), "malformed-entry", 9),
    "white space": (_rows(lambda r: [*r[:9], b" " + r[9], *r[10:]]), "malformed-entry", 9),
    "BOM": (_rows(lambda r: [b"\xef\xbb\xbf" + r[0], *r[1:]]), "malformed-entry", 0),
}


@pytest.mark.parametrize("name", sorted(REARRANGED))
def test_rearranged_entries_never_pass(whole, vkey, name):
    """Attack 45: the place is named, with and without the secret, by both verifiers."""
    change, code, seq = REARRANGED[name]
    octets = change(whole)
    assert _agree(octets, [vkey]) == (code,) * 3
    report = check_export(octets, [vkey])
    assert (report.findings[0].code, report.findings[0].seq) == (code, seq)
    assert _agree(octets, [vkey], partial=True)[0] == code


def test_an_added_entry_never_passes(vkey, whole, signer):
    """A genuine later entry behind the last one that the header names."""
    later = _export(CHAIN.note(61, signer), size=61).splitlines(keepends=True)[-1]
    report = check_export(whole + later, [vkey])
    assert codes(report) == [("checkpoint-mismatch", 60, "seq")]
    assert _agree(whole + later, [vkey]) == ("checkpoint-mismatch",) * 3


def test_renumbered_entries_never_pass(whole, vkey):
    """Entry 50 removed and the later ones renumbered: the link, the tag or the root tells."""
    header, *rows = whole.splitlines()
    moved = []
    for row in rows[:50] + rows[51:]:
        members = json.loads(row)
        members["seq"] = len(moved)
        text = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        moved.append(text.encode())
    octets = b"\n".join([header, *moved]) + b"\n"
    report = check_export(octets, [vkey])
    assert codes(report)[0] == ("link-mismatch", 50, "prev_tag")
    assert codes(check_export(octets, [vkey], ring=RING))[0] == ("link-mismatch", 50, "prev_tag")
    assert _agree(octets, [vkey]) == ("link-mismatch",) * 3


def test_a_wholly_replaced_file_never_passes(vkey, whole):
    """Another chain under another signing key, and the same with the genuine checkpoint."""
    stranger = generate_signing_key(vkey.name)
    other = chain_of(60, key=bytes(range(1, 33)), drafts=[span(n + 7) for n in range(1, 60)])
    note = sign_checkpoint(other.heads[-1], KeyRing(bytes(range(1, 33))), [stranger])
    replaced = _export(note, chain=other)
    assert _agree(replaced, [vkey]) == ("checkpoint-signature",) * 3
    header = whole.splitlines(keepends=True)[0]
    rows = replaced.splitlines(keepends=True)[1:]
    assert _agree(header + b"".join(rows), [vkey]) == ("checkpoint-mismatch",) * 3


def test_a_cut_export_that_was_proven_anew_is_partial(note, vkey):
    """Attack 54: anyone can cut a whole export and prove the rest; it never counts as whole."""
    octets = _export(note, ((0, 30),))
    assert codes(check_export(octets, [vkey])) == [("export-partial", None, "ranges")]
    assert check_export(octets, [vkey], partial=True).ok


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h | {"ranges": []},
        lambda h: h | {"ranges": [[0, 60]]},
        lambda h: h | {"ranges": [[0, 30], [31, 59]]},
        lambda h: h | {"ranges": [[0, 30], [20, 59]]},
        lambda h: h | {"ranges": [[59, 0]]},
        lambda h: h | {"ranges": [[-1, 59]]},
        lambda h: h | {"ranges": [[0, 59, 1]]},
        lambda h: h | {"ranges": [["0", "59"]]},
        lambda h: h | {"ranges": [[False, 59]]},
        lambda h: h | {"ranges": "0-59"},
        lambda h: h | {"ranges": None},
        lambda h: h | {"proof": ["00" * 32]},
        lambda h: h | {"proof": ["00" * 31]},
        lambda h: h | {"proof": ["AA" * 32]},
        lambda h: h | {"proof": [7]},
        lambda h: h | {"proof": None},
        lambda h: h | {"format": "bijotel-export/2"},
        lambda h: h | {"checkpoint": None},
        lambda h: h | {"extra": 1},
        lambda h: {k: v for k, v in h.items() if k != "proof"},
        lambda h: [h],
        lambda h: 7,
        lambda h: "c",
        lambda h: None,
    ],
)
def test_malformed_headers_are_refused(whole, vkey, change):
    """What is not exactly a header of this format, sound and in order."""
    header, _, rows = whole.partition(b"\n")
    text = json.dumps(
        change(json.loads(header)), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    octets = text.encode() + b"\n" + rows
    assert _agree(octets, [vkey]) == ("malformed-export",) * 3


def test_no_changed_octet_of_an_export_passes(vkey, signer):
    """The mutation matrix: every octet of header and entries changed in turn."""
    generator = random.Random(7)
    part = _export(CHAIN.note(9, signer), ((2, 3), (6, 6)), size=9)
    for place in range(len(part)):
        change = generator.choice([1, 2, 4, 16, 32, 64, 128])
        octets = part[:place] + bytes([part[place] ^ change]) + part[place + 1 :]
        ours, theirs = (
            our_verdict(octets, [vkey], partial=True),
            tool_verdict(octets, [vkey], partial=True),
        )
        assert ours[0] == theirs[0] == 1, place
        assert ours[1] not in {"export-partial", "format-unknown"}, place


MATRIX = ["flip", "shorter", "longer", "null", "type", "neighbour"]


@pytest.mark.parametrize("change", MATRIX)
def test_no_changed_member_of_an_export_passes(whole, vkey, change):
    """The mutation matrix: every member of every tenth line in each of six ways."""
    lines = whole.splitlines()
    for number in range(1, len(lines), 10):
        members, neighbour = json.loads(lines[number]), json.loads(lines[number - 1 or 2])
        for name, value in members.items():
            text = isinstance(value, str)
            if change == "flip":
                new = (chr(ord(value[:1] or "0") ^ 1) + value[1:]) if text else value ^ 1
            elif change == "shorter":
                new = value[:-1] if text else -1
            elif change == "longer":
                new = value + "0" if text else value * 10 + 1
            elif change == "null":
                new = None
            elif change == "type":
                new = 7 if text else str(value)
            else:
                new = neighbour[name]
            if new == value:
                continue
            row = json.dumps(
                members | {name: new}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
            )
            octets = b"\n".join([*lines[:number], row.encode(), *lines[number + 1 :]]) + b"\n"
            ours, theirs, sealed = _agree(octets, [vkey])
            report = check_export(octets, [vkey], ring=RING)
            places = {number - 1, number, None, new if name == "seq" else None}
            assert report.findings[0].seq in places, (number, name)
            assert "" not in {ours, theirs, sealed}, (number, name)


# --- the reader's own checkpoint -----------------------------------------------------------------


def test_the_readers_own_checkpoint_must_be_equal(whole, note, vkey, signer):
    """Another size, another root of the same size, another chain, one not signed by the key."""
    assert check_export(whole, [vkey], checkpoint=note).ok
    fork = chain_of(60, drafts=[span(n, name="forked") for n in range(1, 60)])
    elsewhere = chain_of(60, chain_id=b"\x22" * 16)
    cases = [
        (CHAIN.note(59, signer), "checkpoint-mismatch", "size"),
        (fork.note(60, signer), "checkpoint-inconsistent", "size"),
        (elsewhere.note(60, signer), "checkpoint-origin", "origin line"),
        (CHAIN.note(60, generate_signing_key(vkey.name)), "checkpoint-signature", "note"),
        (b"x", "malformed-note", "note"),
    ]
    for own, code, where in cases:
        assert codes(check_export(whole, [vkey], checkpoint=own)) == [(code, None, where)]
    report = check_export(whole, [vkey], checkpoint=fork.note(60, signer))
    assert "they prove misconduct" in report.findings[0].message


# --- the rest ------------------------------------------------------------------------------------


def test_a_newer_format_is_not_fine(vkey, signer):
    """An entry of a format that this version does not know: sound, but exit code 3."""
    drafts = [span(1), span(2, fmt="span/9"), span(3, kind="new", fmt="new/1")]
    chain = chain_of(4, drafts=drafts)
    octets = _export(chain.note(4, signer), chain=chain, size=4)
    report = check_export(octets, [vkey])
    assert codes(report) == [("format-unknown", 2, "fmt")]
    assert report.findings[0].last_seq == 3
    assert report.exit_code == 3
    assert _agree(octets, [vkey]) == ("format-unknown",) * 3
    edited = _edit(octets, 1, name="x")
    assert codes(check_export(edited, [vkey])) == [("checkpoint-mismatch", None, "ranges")]


def test_without_a_key_nothing_is_checked(whole):
    """Our format needs the public key."""
    with pytest.raises(ConfigurationError, match="at least one is required to check an export"):
        check_export(whole, [])


@given(st.binary(max_size=300))
def test_any_bytes_give_a_report(vkey, octets):
    """No exception leaves the verifier, and nothing passes."""
    report = check_export(octets, [vkey])
    assert report.exit_code == 1
    if not octets.startswith(b"\x1f\x8b"):
        assert tool_verdict(octets, [vkey])[0] == 1


@given(st.data())
def test_any_edit_of_an_export_gives_a_report(part, vkey, data):
    """Cut, doubled and replaced octets: found by both verifiers, or nothing was changed."""
    octets = bytearray(part)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(octets)))
        octets[place : place + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=3))
    ours = our_verdict(bytes(octets), [vkey], partial=True)
    theirs = tool_verdict(bytes(octets), [vkey], partial=True)
    assert ours[0] == theirs[0] == (0 if bytes(octets) == part else 1)


def test_memory_stays_flat(signer, vkey, tmp_path):
    """An export of 20 MB is written and verified within a few."""
    body = b'{"attributes":{"x":"' + b"y" * 20_000 + b'"}}'
    drafts = [span(n, body=body, body_hash=body_hash(body)) for n in range(1, 1000)]
    chain = chain_of(1000, drafts=drafts)
    del drafts
    path = tmp_path / "e.jsonl"
    note = chain.note(1000, signer)
    tracemalloc.start()
    try:
        with new_file(path) as output:
            write_export(output, note, chain.entries, chain.node)
        with path.open("rb") as file:
            assert verify_export(file, [vkey], ring=RING).ok
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 20_000_000
    assert peak < 2_000_000


def test_the_tool_runs_alone(tmp_path, known, vkey):
    """As a command, in isolation: its exit codes are 0, 1 and 2, and it imports nothing of ours."""
    tool = ROOT / "tools" / "verify_evidence.py"
    files = {
        "all.jsonl": known["export_all"],
        "part.jsonl": known["export_part"],
        "x.tlog-proof": known["tlog_proof"],
        "signing.pub": f"{vkey}\n",
        "bad.jsonl": known["export_all"].replace("chat m", "chat n", 1),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    packed = gzip.compress(known["export_all"].encode())
    (tmp_path / "all.jsonl.gz").write_bytes(packed)
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[:-9])
    (tmp_path / "damaged.jsonl.gz").write_bytes(packed[:-8] + bytes(8))
    runs = [
        (["all.jsonl"], 0, "HOLDS  entries 0 to 8 of example.com/audit/"),
        (["all.jsonl.gz"], 0, "HOLDS  entries 0 to 8"),
        (["part.jsonl"], 1, "FALSE  export-partial: entries 3 to 4, 6 to 6 of 9 only"),
        (["part.jsonl", "--partial"], 0, "HOLDS  entries 3 to 4, 6 to 6"),
        (["x.tlog-proof"], 0, "HOLDS  entry 4 of"),
        (["bad.jsonl"], 1, "FALSE  checkpoint-mismatch"),
        (["signing.pub"], 1, "FALSE  malformed-export"),
        (["cut.jsonl.gz"], 1, "FALSE  malformed-export: not one whole gzip member"),
        (["damaged.jsonl.gz"], 1, "FALSE  malformed-export: Error -3 while decompressing data"),
        (["nowhere"], 2, ""),
    ]
    for arguments, code, text in runs:
        command = [sys.executable, "-I", str(tool), *arguments, "--pubkey", "signing.pub"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, text in done.stdout) == (code, True), (arguments, done)
    (tmp_path / "no.pub").write_bytes(b"\xff no key\n")
    for key, message in (
        ("no.pub", "'no.pub' is no verifier key: expected NAME+HASH+KEY of a known type"),
        (f"{vkey}".replace("8536d1c3", "8536D1C3"), "is no verifier key: expected"),
        (f"{vkey}"[:-4], "is no verifier key: expected NAME+HASH+KEY of a known type"),
        ("nowhere.pub", "No such file or directory: 'nowhere.pub'"),
    ):
        command = [sys.executable, "-I", str(tool), "all.jsonl", "--pubkey", key]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, message in done.stderr) == (2, True), (key, done)
    source = tool.read_text()
    assert "import bijotel" not in source
    assert "from bijotel" not in source
    assert len(source.splitlines()) < 300


def test_both_verifiers_refuse_the_same_keys(shared):
    """The bad verifier keys of the published vectors, and names that no key can have."""
    vectors = json.loads((shared / "vectors/notes/signed-note-vectors.json").read_text())
    for line in vectors["bad_vkeys"]:
        with pytest.raises(ValueError, match="verifier key"):
            TOOL.read_key(line)
    for vector in vectors["vectors"]:
        for line in vector["vkeys"]:
            key = parse_verifier_key(line)
            assert TOOL.read_key(line) == (key.name, key.key_hash, key.algorithm, key.public_key)


def test_both_verifiers_judge_published_checkpoints_alike(shared):
    """Origin rule included: none of the published logs is one of our chains."""
    vectors = json.loads((shared / "vectors/notes/signed-note-vectors.json").read_text())["vectors"]
    for vector in vectors:
        if not vector["vkeys"]:
            continue
        octets = base64.b64decode(vector["note_b64"])
        keys = [parse_verifier_key(line) for line in vector["vkeys"]]
        with pytest.raises(EvidenceError) as ours:
            verify_checkpoint(octets, keys)
        with pytest.raises(TOOL.EvidenceError) as theirs:
            TOOL.read_checkpoint(octets, [TOOL.read_key(line) for line in vector["vkeys"]])
        assert str(theirs.value).startswith(f"{ours.value.code}: "), vector["name"]
        if "checkpoint" in vector:
            assert ours.value.code == "checkpoint-origin"
