"""Key material: its sources, its names, its derivations. docs/spec (keys)."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import traceback
from pathlib import Path
from typing import Any

import pytest

from bijotel.errors import ConfigurationError
from bijotel.keys import (
    HmacKey,
    KeyRing,
    as_key_ring,
    default_source,
    expand,
    extract,
    load_key,
)
from bijotel.seal import entry_tag

MASTER = bytes(range(32))
OTHER = bytes(range(1, 33))
HEX = MASTER.hex()
KEY_ID = "db253c4328c8e7bb"


def vectors_of(text: str, *names: str) -> list[tuple[bytes, ...]]:
    """The vectors of a published file of ``name = hex`` lines, as columns of these names."""
    columns = [re.findall(rf"^{name}\s*=[ \t]*(.*)$", text, re.MULTILINE) for name in names]
    return [tuple(map(bytes.fromhex, row)) for row in zip(*columns, strict=True)]


def key_file(folder: Path, text: str = HEX, mode: int = 0o600) -> Path:
    path = folder / "secret"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    path.chmod(mode)
    return path


# --- published vectors and known answers -----------------------------------------------------


def test_rfc_4231_through_the_sealing_hmac(shared: Path):
    """The HMAC that seals entries gives the published tags, for keys within one block."""
    text = (shared / "vectors/hmac/rfc-4231-sha256.txt").read_text()
    vectors = vectors_of(text, "Key", "Msg", "MD")
    tried = 0
    for key, message, expected in vectors:
        assert extract(key, message) == expected
        if len(key) <= 64:
            assert entry_tag(message, key) == expected
            tried += 1
    assert (len(vectors), tried) == (6, 4)


def test_rfc_5869(shared: Path):
    """Extract gives each published PRK, and Expand the first 32 bytes of each published OKM."""
    text = (shared / "vectors/hkdf/rfc-5869-HKDF-SHA256.txt").read_text()
    vectors = vectors_of(text, "salt", "IKM", "info", "PRK", "OKM")
    assert len(vectors) == 3
    for salt, material, info, pseudo_random_key, output in vectors:
        assert extract(salt, material) == pseudo_random_key
        assert expand(pseudo_random_key, info) == output[:32]


def test_known_answers(data: Path):
    """Key ids and every derived key have their known values."""
    answers = json.loads((data / "known-answers.json").read_text())
    more = json.loads((data / "known-answers-more.json").read_text())
    chain_id = bytes.fromhex(answers["chain_id"])
    key = HmacKey(bytes.fromhex(answers["master_key"]))
    new_key = HmacKey(bytes.fromhex(more["new_master_key"]))
    assert key.key_id.hex() == answers["key_id"] == KEY_ID
    assert key.chain_key(chain_id).hex() == answers["K"][0]
    assert new_key.key_id.hex() == more["new_key_id"]
    assert new_key.chain_key(chain_id).hex() == more["new_K_0"]
    assert key.digest_key(chain_id).hex() == more["digest_key"]
    assert key.spool_key().hex() == more["spool"]["key"]
    assert extract(chain_id, MASTER).hex() == answers["S"][0]


def test_each_chain_has_its_own_key():
    """One secret serves many chains, none of which can speak for another."""
    key = HmacKey(MASTER)
    assert len({key.chain_key(bytes(15) + bytes([number])) for number in range(50)}) == 50


# --- key material ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("master", "message"),
    [
        (b"", "expected exactly 32 bytes, got 0 bytes"),
        (bytes(range(31)), "expected exactly 32 bytes, got 31 bytes"),
        (bytes(range(33)), "expected exactly 32 bytes, got 33 bytes"),
        (bytearray(MASTER), "expected exactly 32 bytes, got bytearray"),
        (HEX, "expected exactly 32 bytes, got str"),
        (None, "expected exactly 32 bytes, got NoneType"),
        (bytes(32), "all 32 bytes are equal"),
        (b"a" * 32, "all 32 bytes are equal"),
    ],
    ids=range(8),
)
def test_key_material_is_checked(master: Any, message: str):
    """A key is exactly 32 bytes and not one byte repeated."""
    with pytest.raises(ConfigurationError, match=message):
        HmacKey(master)


def test_a_key_shows_only_its_id():
    """Neither repr nor str, of the key or of its ring, shows key material."""
    key, ring = HmacKey(MASTER), KeyRing(MASTER, OTHER)
    assert repr(key) == str(key) == f"HmacKey({KEY_ID})"
    assert repr(ring) == f"KeyRing({KEY_ID}, {HmacKey(OTHER).key_id.hex()})"
    for shown in (repr(key), repr(ring), str(ring), f"{key}"):
        assert HEX not in shown
        assert repr(MASTER)[2:-1] not in shown


def test_keys_and_rings_can_be_pickled_and_copied():
    """Worker processes get the same keys, with the same order and derivations."""
    ring = KeyRing(MASTER, OTHER)
    for again in (pickle.loads(pickle.dumps(ring)), copy.deepcopy(ring), copy.copy(ring)):
        assert repr(again) == repr(ring)
        assert again.sealing.chain_key(bytes(16)) == ring.sealing.chain_key(bytes(16))


# --- sources ---------------------------------------------------------------------------------


def test_a_key_from_bytes_a_callable_or_a_key():
    """Raw bytes, a callable that gives them, and a key are taken as they are."""
    key = HmacKey(MASTER)
    assert load_key(MASTER).key_id == load_key(lambda: MASTER).key_id == key.key_id
    assert load_key(key) is key


def test_a_key_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    """env:NAME reads 64 hex digits of either case."""
    monkeypatch.setenv("MY_SECRET", HEX.upper())
    assert load_key("env:MY_SECRET").key_id.hex() == KEY_ID


@pytest.mark.parametrize("text", [HEX, HEX.upper(), HEX + "\n"])
def test_a_key_from_a_file(tmp_path: Path, text: str):
    """file:PATH reads 64 hex digits and at most one final newline."""
    assert load_key(f"file:{key_file(tmp_path, text)}").key_id.hex() == KEY_ID


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected 64 hex digits, got 0 characters"),
        (HEX[:-1], "expected 64 hex digits, got 63 characters$"),
        (HEX + "0", "got 65 characters$"),
        (HEX + "\n\n", "got 65 characters"),
        (HEX + "\r\n", "got 65 characters"),
        (" " + HEX, "got 65 characters"),
        ("0x" + HEX, "got 66 characters"),
        (HEX[:-1] + "g", "got 64 characters that are not all hex digits"),
        ("\uff11" * 64, "expected 64 hex digits"),
        ("\udcff" * 64, "got 64 characters that are not all hex digits"),
        ("é" * 32, "got 64 characters that are not all hex digits"),
        ("00" * 32, "all 32 bytes are equal"),
        (HEX * 100, "got 6400 characters"),
    ],
    ids=range(13),
)
def test_malformed_key_files(tmp_path: Path, text: str, message: str):
    """Every other content is refused, and the refusal shows none of it."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_key(f"file:{key_file(tmp_path, text)}")
    assert HEX[:16] not in str(caught.value)


@pytest.mark.parametrize("text", [HEX[:-1], HEX + "\n", "é" * 64, " " * 64, "00" * 32])
def test_malformed_environment(monkeypatch: pytest.MonkeyPatch, text: str):
    """A variable holds the digits alone, not even a newline behind them."""
    monkeypatch.setenv("MY_SECRET", text)
    with pytest.raises(ConfigurationError, match=r"HMAC key"):
        load_key("env:MY_SECRET")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o601, 0o602])
def test_a_key_file_is_its_owners_alone(tmp_path: Path, mode: int):
    """A file that others may read or write is refused, with its mode."""
    path = key_file(tmp_path, mode=mode)
    message = rf"HMAC key file {re.escape(str(path))}: mode is {mode:04o}, expected 0600"
    with pytest.raises(ConfigurationError, match=message):
        load_key(f"file:{path}")


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_modes_that_are_allowed(tmp_path: Path, mode: int):
    """Any mode is allowed that gives nothing to others."""
    assert load_key(f"file:{key_file(tmp_path, mode=mode)}").key_id.hex() == KEY_ID


def test_a_pipe_needs_no_mode():
    """A descriptor passed as a path (process substitution) has no mode to check."""
    reader, writer = os.pipe()
    try:
        os.write(writer, f"{HEX}\n".encode())
        os.close(writer)
        assert load_key(f"file:/dev/fd/{reader}").key_id.hex() == KEY_ID
    finally:
        os.close(reader)


def test_unreadable_key_files(tmp_path: Path):
    """A missing file, a directory and an impossible path are told apart in one line."""
    for path, reason in (
        (tmp_path / "none", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (tmp_path / "a\0b", "embedded null"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(ConfigurationError, match=f"HMAC key file .*: {reason}"):
            load_key(f"file:{path}")


@pytest.mark.parametrize("text", ["", "unset"])
def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch, text: str):
    """An empty variable is no key."""
    monkeypatch.setenv("MY_SECRET", "")
    name = "MY_SECRET" if text == "" else "MY_OTHER_SECRET"
    with pytest.raises(
        ConfigurationError, match=f"environment variable {name} is not set or empty"
    ):
        load_key(f"env:{name}")


@pytest.mark.parametrize(
    "source", [HEX, "", "env:", "file:", "vault:x", "env", 5, bytearray(MASTER), None]
)
def test_other_sources_are_refused(source: Any):
    """A key given as text, or anything else, is refused without being shown."""
    with pytest.raises(ConfigurationError, match="HMAC key source: expected env:NAME") as caught:
        load_key(source)
    assert HEX not in str(caught.value)


def test_a_callable_that_fails():
    """A failing callable is one error of ours; the cause is kept, its text is not repeated."""

    def fetch() -> bytes:
        raise TimeoutError("secret server said deadbeef")

    with pytest.raises(
        ConfigurationError, match="callable that gives it raised TimeoutError"
    ) as caught:
        load_key(fetch)
    assert "deadbeef" not in str(caught.value)
    assert isinstance(caught.value.__cause__, TimeoutError)
    with pytest.raises(ConfigurationError, match="expected exactly 32 bytes, got str"):
        load_key(lambda: HEX)  # type: ignore[arg-type, return-value]


# --- rings -----------------------------------------------------------------------------------


def test_the_first_key_of_a_ring_seals():
    """A ring keeps its order, finds keys by id, and holds each once."""
    ring = KeyRing(OTHER, MASTER, OTHER)
    assert ring.sealing.key_id == HmacKey(OTHER).key_id
    assert len(ring) == 2
    assert [key.key_id for key in ring] == [HmacKey(OTHER).key_id, HmacKey(MASTER).key_id]
    assert ring.get(bytes.fromhex(KEY_ID)) is not None
    assert ring.get(bytes(8)) is None


def test_a_ring_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Without sources the variable is read, then the file that the other variable names."""
    with pytest.raises(ConfigurationError, match="no HMAC key: set BIJOTEL_HMAC_SECRET"):
        KeyRing()
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET_FILE", str(key_file(tmp_path, OTHER.hex())))
    assert default_source().startswith("file:")
    assert KeyRing().sealing.key_id == HmacKey(OTHER).key_id
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", "")
    assert KeyRing().sealing.key_id == HmacKey(OTHER).key_id
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", HEX)
    assert as_key_ring(None).sealing.key_id.hex() == KEY_ID


def test_what_callers_pass_for_a_key():
    """A ring stays the same ring; one source becomes a ring of one."""
    ring = KeyRing(MASTER)
    assert as_key_ring(ring) is ring
    assert as_key_ring(MASTER).sealing.key_id.hex() == KEY_ID


def test_no_traceback_of_ours_shows_the_key(tmp_path: Path):
    """A refusal's traceback holds no key material either."""
    path = key_file(tmp_path, HEX + "ff")
    with pytest.raises(ConfigurationError) as caught:
        load_key(f"file:{path}")
    assert HEX[:32] not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
