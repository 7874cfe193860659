"""Checkpoints that the processor makes: when, of what, and what happens when they cannot be made."""

from __future__ import annotations

import logging
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

import bijotel.processor
from bijotel import ConfigurationError, HmacChainSpanProcessor, canonical, verify_chain
from bijotel.checkpoint import parse_checkpoint, verify_checkpoint
from bijotel.signing import generate_signing_key, public_path, save_signing_keys
from tests.processor.conftest import CHAT, KEY, entries


@pytest.fixture(autouse=True)
def patience(provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take its time for the last commit."""
    monkeypatch.setattr(bijotel.processor, "SHUTDOWN_SECONDS", 10.0)


@pytest.fixture
def signing_key(tmp_path: Path) -> Path:
    path = tmp_path / "signing.pem"
    save_signing_keys((generate_signing_key("example.com/audit"), path))
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "newest.checkpoint"


def notes(db: Path) -> dict[int, bytes]:
    """The notes of the chain by the entry that holds them."""
    found = [entry for entry in entries(db) if entry.kind == "checkpoint"]
    return {entry.seq: canonical.loads(entry.body)["note"].encode() for entry in found}


def sizes(db: Path) -> dict[int, int]:
    return {seq: parse_checkpoint(note).size for seq, note in notes(db).items()}


def seal(provider: Any, processor: HmacChainSpanProcessor, count: int) -> None:
    """Seal spans one commit after the other."""
    tracer = provider.get_tracer("test")
    for number in range(count):
        tracer.start_span(f"chat {number}", attributes=CHAT).end()
        assert processor.force_flush()


def test_a_checkpoint_every_n_entries(make, provider, db, signing_key, out):
    """Each covers all that was committed before it, is in the chain, and the file has the newest."""
    processor = make(signing_key=f"file:{signing_key}", checkpoint_every=4, checkpoint_out=out)
    seal(provider, processor, 9)
    # The genesis and four spans, a checkpoint of them; then four spans and the next one.
    assert sizes(db) == {5: 5, 10: 10}
    assert out.read_bytes() == notes(db)[10]
    assert stat.S_IMODE(out.stat().st_mode) == 0o644
    report = verify_chain(db, KEY, checkpoints=[out], pubkeys=[public_path(signing_key)])
    assert report.ok
    assert report.not_checked == ("completeness of the tail behind entry 9",)
    assert report.notices == ()


def test_a_checkpoint_at_shutdown(make, provider, db, signing_key, out):
    """The last entries are covered too, and once is enough."""
    processor = make(signing_key=str(signing_key), checkpoint_out=out)
    seal(provider, processor, 3)
    assert sizes(db) == {}
    assert not out.exists()
    processor.shutdown()
    assert sizes(db) == {4: 4}
    assert out.read_bytes() == notes(db)[4]
    processor.shutdown()
    assert sizes(db) == {4: 4}


def test_nothing_new_needs_no_checkpoint(make, provider, db, signing_key):
    """Neither behind a checkpoint that covers all, nor by a process that sealed nothing."""
    processor = make(signing_key=signing_key, checkpoint_every=4)
    seal(provider, processor, 3)
    processor.shutdown()
    make(signing_key=signing_key, checkpoint_every=4).shutdown()
    assert sizes(db) == {4: 4}


def test_what_others_sealed_before_does_not_count(make, provider, db, signing_key):
    """A restart in a long chain waits for its own entries."""
    earlier = TracerProvider(shutdown_on_exit=False)
    earlier.add_span_processor(HmacChainSpanProcessor(db, key=KEY))
    seal(earlier, earlier, 6)
    earlier.shutdown()
    processor = make(signing_key=signing_key, checkpoint_every=2, content="digest")
    seal(provider, processor, 1)
    assert sizes(db) == {}
    seal(provider, processor, 1)
    assert sizes(db) == {9: 9}


def test_both_kinds_of_keys(make, provider, db, out):
    """An object that signs serves as well as a file, and two keys sign beside each other."""
    keys = [generate_signing_key(), generate_signing_key(algorithm=6)]
    processor = make(signing_key=keys, checkpoint_out=out)
    seal(provider, processor, 1)
    processor.shutdown()
    pubkeys = [key.verifier for key in keys]
    assert verify_checkpoint(out.read_bytes(), pubkeys).size == 2
    assert verify_chain(db, KEY, checkpoints=[out], pubkeys=pubkeys).ok


@pytest.mark.parametrize("durability", ["queued", "commit"])
def test_many_processors_keep_one_file(make, provider, db, signing_key, out, *, durability):
    """Whoever comes last, the file holds the longest checkpoint, and none contradicts another."""
    options = {"signing_key": signing_key, "checkpoint_every": 3, "checkpoint_out": out}
    processors = [make(**options, durability=durability, chain=chain) for chain in "aaa"]
    seal(provider, processors[0], 20)
    assert [processor.force_flush() for processor in processors] == [True] * 3
    for processor in processors:
        processor.shutdown()
        assert processor.stats().errors == {}
    assert parse_checkpoint(out.read_bytes()).size == max(sizes(db).values())
    report = verify_chain(
        db, KEY, checkpoints=[out, *notes(db).values()], pubkeys=[public_path(signing_key)]
    )
    assert report.findings == ()


def test_the_file_never_goes_back(make, provider, db, signing_key, out, *, tmp_path, caplog):
    """Attack 57: a store that was rolled back gets no newer checkpoint; its spans are sealed."""
    options = {"signing_key": signing_key, "checkpoint_every": 3, "checkpoint_out": out}
    processor = make(**options)
    seal(provider, processor, 2)
    processor.shutdown()
    older = Path(shutil.copyfile(db, tmp_path / "older.db"))
    processor = make(**options)
    seal(provider, processor, 4)
    processor.shutdown()
    newest = out.read_bytes()
    for suffix in ("-wal", "-shm"):
        Path(f"{db}{suffix}").unlink(missing_ok=True)
    shutil.copyfile(older, db)
    processor = make(**options)
    with caplog.at_level(logging.ERROR, "bijotel"):
        seal(provider, processor, 1)
        processor.shutdown()
    assert out.read_bytes() == newest
    assert processor.stats().errors == {"EvidenceError": 1}
    assert "EvidenceError while making a checkpoint: chain " in caplog.text
    assert "entries, the earlier checkpoint" in caplog.text
    assert [entry.kind for entry in entries(db)].count("span") == 3
    assert verify_chain(db, KEY).ok


def test_a_file_of_something_else_is_left_alone(make, provider, db, signing_key, out):
    """No checkpoint in it: it is not overwritten, and nothing is recorded."""
    out.write_text("precious")
    processor = make(signing_key=signing_key, checkpoint_out=out)
    seal(provider, processor, 1)
    processor.shutdown()
    assert out.read_text() == "precious"
    assert processor.stats().errors == {"ConfigurationError": 1}
    assert sizes(db) == {}


def test_a_signer_that_fails_costs_no_span(make, provider, db):
    """Whatever a signer of the application's raises, what was sealed stays sealed, once."""

    class Broken:
        verifier = generate_signing_key().verifier

        def sign(self, _message: bytes) -> bytes:
            raise RuntimeError("no connection to the key's service")

    processor = make(signing_key=Broken(), checkpoint_every=1)
    seal(provider, processor, 3)
    processor.shutdown()
    stats = processor.stats()
    assert (stats.sealed, stats.errors) == (3, {"RuntimeError": 4})
    assert [entry.kind for entry in entries(db)] == ["genesis", "span", "span", "span"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint_every": 5}, "checkpoint_every, checkpoint_out: need a signing_key"),
        ({"checkpoint_out": "x"}, "checkpoint_every, checkpoint_out: need a signing_key"),
        ({"signing_key": generate_signing_key(), "checkpoint_every": 0}, "at least 1, got 0"),
        ({"signing_key": "file:/nowhere/signing.pem"}, "signing key file /nowhere/signing.pem"),
        ({"signing_key": generate_signing_key(algorithm=6)}, "expected one Ed25519 key, then"),
        ({"signing_key": ()}, "expected one Ed25519 key, then"),
        (
            {"signing_key": (generate_signing_key("a"), generate_signing_key("b", 6))},
            "expected one name, got a, b",
        ),
    ],
)
def test_options_that_make_no_sense(make, options: dict[str, Any], message: str):
    """Said when the processor is made."""
    with pytest.raises(ConfigurationError, match=message):
        make(**options)
