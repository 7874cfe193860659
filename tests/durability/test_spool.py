"""A spool gives back what was put in, in order, and nothing that anyone else put there."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.errors import VerificationError
from bijotel.keys import HmacKey, KeyRing
from bijotel.model import Draft
from bijotel.seal import body_hash
from bijotel.spool import SpoolFile, adopt_spool
from bijotel.spool_format import FIRST_MAC, read_header, read_records, write_header, write_record

KEY = HmacKey(bytes(range(32)))
SPOOL_KEY = KEY.spool_key()
SPOOL_ID = b"\x5a" * 16


def draft(number: int, size: int = 10) -> Draft:
    body = b'{"n":%d,"x":"%s"}' % (number, b"x" * size)
    ids = number.to_bytes(16, "big"), number.to_bytes(8, "big")
    return Draft("span", "span/1", *ids, f"chat {number}", 1, 2, bytes(32), body, body_hash(body))


def spool(folder: Path) -> SpoolFile:
    return SpoolFile(folder / "a.spool", "default", SPOOL_ID, SPOOL_KEY)


def drain(file: SpoolFile, most: int = 3) -> list[Draft]:
    found = []
    while file.waiting_bytes:
        waiting = file.peek(most)
        assert waiting is not None
        assert waiting.damaged == 0
        found += waiting.drafts
        file.done(waiting)
    return found


def test_the_published_octets(data: Path):
    """Key, header and first record are those of the format's known answers."""
    known = json.loads((data / "known-answers-more.json").read_text())["spool"]
    header = write_header("default", SPOOL_ID)
    assert SPOOL_KEY.hex() == known["key"]
    assert header.hex() == known["header"]
    octets = bytes.fromhex(known["record_0"])
    (record,) = read_records(octets, header, FIRST_MAC, SPOOL_KEY)
    assert record.draft is not None
    assert record.draft.name == "chat m"
    assert write_record(record.draft, header, FIRST_MAC, SPOOL_KEY) == octets


def test_what_is_appended_comes_back_in_order(tmp_path: Path):
    """Appends of any size are read in batches of any size; an emptied file is removed."""
    file = spool(tmp_path)
    file.append([draft(0), draft(1)])
    file.append([draft(2)])
    file.append([draft(number) for number in range(3, 10)])
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert drain(file) == [draft(number) for number in range(10)]
    assert not file.path.exists()
    file.append([draft(10)])
    assert drain(file) == [draft(10)]


def test_a_record_longer_than_a_chunk(tmp_path: Path):
    """A body near the limit does not fit a read at once, and comes back whole."""
    file = spool(tmp_path)
    large = draft(1, size=9_000_000)
    file.append([draft(0), large, draft(2)])
    assert drain(file) == [draft(0), large, draft(2)]


def test_another_process_adopts_a_spool(tmp_path: Path):
    """What one process left is read by another one with the same key in its ring."""
    file = spool(tmp_path)
    file.append([draft(number) for number in range(5)])
    ring = KeyRing(bytes(range(1, 33)), KEY)
    adopted = adopt_spool(file.path, "default", ring)
    assert drain(adopted) == [draft(number) for number in range(5)]


def test_the_right_key_is_found_behind_a_damaged_record(tmp_path: Path):
    """An edited first record does not make the others unreadable for a ring of two keys."""
    file = spool(tmp_path)
    file.append([draft(number) for number in range(5)])
    octets = bytearray(file.path.read_bytes())
    octets[octets.index(b"chat 0")] ^= 1
    file.path.write_bytes(octets)
    adopted = adopt_spool(file.path, "default", KeyRing(bytes(range(1, 33)), KEY))
    waiting = adopted.peek(10)
    assert waiting is not None
    assert (waiting.drafts, waiting.damaged) == ([draft(number) for number in range(1, 5)], 1)


@pytest.mark.parametrize("header", [b"bijotel-sp", write_header("other", SPOOL_ID), b"x" * 99])
def test_a_spool_without_the_chains_header_is_damaged(tmp_path: Path, header: bytes):
    """A spool is its page's; one that does not name its chain holds nothing that can be read."""
    file = spool(tmp_path)
    file.append([draft(0)])
    octets = file.path.read_bytes()
    file.path.write_bytes(header + octets[len(write_header("default", SPOOL_ID)) :])
    adopted = adopt_spool(file.path, "default", KeyRing(KEY))
    assert adopted.waiting_bytes == file.path.stat().st_size
    assert adopted.peek(10) is None
    assert b"".join(adopted.rest()) == file.path.read_bytes()


def test_an_empty_file_holds_nothing(tmp_path: Path):
    """What a crash leaves between the making of a file and its first record."""
    (tmp_path / "a.spool").touch()
    adopted = adopt_spool(tmp_path / "a.spool", "default", KeyRing(KEY))
    assert adopted.waiting_bytes == 0


def test_a_file_that_somebody_removed_is_not_begun_in_its_middle(tmp_path: Path):
    """What was in it is gone, and nothing is appended behind a hole."""
    file = spool(tmp_path)
    file.append([draft(0)])
    file.path.unlink()
    with pytest.raises(FileNotFoundError):
        file.append([draft(1)])
    assert file.peek(10) is None
    assert b"".join(file.rest()) == b""
    file.remove()
    file.append([draft(1)])
    assert drain(file) == [draft(1)]


def test_a_failed_append_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Half a record, as a full disk leaves it, is overwritten by the next append."""
    file = spool(tmp_path)
    file.append([draft(0)])
    size = file.path.stat().st_size

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space left"):
            file.append([draft(1), draft(2)])
    assert file.waiting_bytes == size - len(write_header("default", SPOOL_ID))
    file.append([draft(3)])
    assert drain(file) == [draft(0), draft(3)]


def tampered(folder: Path, change: str) -> SpoolFile:
    """Write three records, change one, and adopt the file as a new process would."""
    file = spool(folder)
    file.append([draft(0), draft(1), draft(2)])
    octets = bytearray(file.path.read_bytes())
    header = read_header(bytes(octets))[2]
    size = (len(octets) - header) // 3
    first, second, third = (header + size * number for number in range(3))
    if change == "edit":
        octets[second + 60] ^= 1
    elif change == "forge":
        record = write_record(draft(9), write_header("default", SPOOL_ID), FIRST_MAC, b"k" * 32)
        octets[second:third] = record
    elif change == "cut out":
        del octets[second:third]
    elif change == "reorder":
        octets[first:third] = octets[second:third] + octets[first:second]
    elif change == "torn":
        del octets[-20:]
    file.path.write_bytes(octets)
    return adopt_spool(file.path, "default", KeyRing(KEY))


@pytest.mark.parametrize(
    ("change", "kept", "damaged"),
    [
        ("edit", [0, 2], 1),
        ("forge", [0], 2),
        ("cut out", [0], 1),
        ("reorder", [], 3),
        ("torn", [0, 1], 0),
    ],
)
def test_nothing_forged_comes_out(tmp_path: Path, change: str, kept: list[int], damaged: int):
    """A record that was edited, forged, cut out or moved is not given back, and is counted."""
    file = tampered(tmp_path, change)
    waiting = file.peek(10)
    assert waiting is not None
    assert waiting.drafts == [draft(number) for number in kept]
    assert waiting.damaged == damaged
    file.done(waiting)
    if change == "torn":
        assert file.waiting_bytes > 0
        assert file.peek(10) is None
        assert len(b"".join(file.rest())) == file.waiting_bytes
    else:
        assert not file.path.exists()


@given(st.binary(max_size=200))
def test_any_header_is_read_or_refused(octets: bytes):
    """No octets make the reader of a header raise anything else."""
    for start in (b"", b"bijotel-spool/1\n"):
        try:
            chain, spool_id, size = read_header(start + octets)
        except VerificationError:
            continue
        assert (start + octets)[:size] == write_header(chain, spool_id)


@given(st.binary(max_size=400))
def test_any_records_are_read_or_left(octets: bytes):
    """No octets make the reader of records raise, or give a draft that nobody sealed."""
    header = write_header("default", SPOOL_ID)
    genuine = write_record(draft(0), header, FIRST_MAC, SPOOL_KEY)
    for record in read_records(genuine + octets, header, FIRST_MAC, SPOOL_KEY):
        assert record.draft in {draft(0), None}
