"""Attacks on what comes before a store: rows 52, 58 and 59, in the application's own process."""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from bijotel import HmacChainSpanProcessor
from bijotel.canonical import loads
from bijotel.model import SpanRecord
from bijotel.spool_format import FIRST_MAC, read_header, read_records, write_record
from tests.attacks.evidence import span
from tests.durability.test_outbox import folder, run_child
from tests.processor.conftest import CHAT, db, entries, make, provider, spans

__all__ = ["db", "make", "provider"]

Make = Callable[..., HmacChainSpanProcessor]
WAITING = 5
PROMPT = "yes"


# --- spools ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a process that ended while five spans waited for the store."""
    top = tmp_path_factory.mktemp("ended")
    run_child(top / "chain.db", f"for n in range({WAITING}): chat(f'chat {{n}}')")
    return top


@pytest.fixture
def left_behind(ended: Path, db: Path) -> dict[Path, bytes]:
    """What that process left beside the store."""
    shutil.copytree(ended, db.parent, dirs_exist_ok=True)
    return {path: path.read_bytes() for path in folder(db).iterdir()}


def records_of(octets: bytes) -> tuple[bytes, list[bytes]]:
    """The header of a spool, and its records."""
    *_, size = read_header(octets)
    records = read_records(octets[size:], octets[:size], FIRST_MAC, b"no key")
    ends = list(itertools.accumulate((record.size for record in records), initial=size))
    return octets[:size], [octets[start:end] for start, end in itertools.pairwise(ends)]


def edit(_header: bytes, records: list[bytes]) -> list[bytes]:
    return [*records[:2], records[2].replace(b"chat 2", b"chat X"), *records[3:]]


def cut_out(_header: bytes, records: list[bytes]) -> list[bytes]:
    return [*records[:2], *records[3:]]


def reorder(_header: bytes, records: list[bytes]) -> list[bytes]:
    return [*records[:2], records[3], records[2], *records[4:]]


def forge(header: bytes, records: list[bytes]) -> list[bytes]:
    previous = records[-1][-32:]
    return [*records, write_record(span(9), header, previous, b"a key of the attacker's own")]


@pytest.mark.parametrize(
    ("change", "kept", "count"),
    [(edit, "0134", 1), (cut_out, "014", 1), (reorder, "01", 3), (forge, "01234", 1)],
)
def test_row_52_spool_tampered(
    left_behind: dict[Path, bytes],
    make: Make,
    db: Path,
    *,
    change: Callable[[bytes, list[bytes]], list[bytes]],
    kept: str,
    count: int,
):
    """A record edited, cut out, moved or forged: nothing of it is sealed, a gap is."""
    (path,) = (path for path in left_behind if path.suffix == ".spool")
    header, records = records_of(left_behind[path])
    assert len(records) == WAITING
    path.write_bytes(header + b"".join(change(header, records)))
    assert make().force_flush()
    names = [one.name for one in spans(db)]
    assert names == ["chat first", *(f"chat {number}" for number in kept)]
    (gap,) = (loads(entry.body) for entry in entries(db) if entry.kind == "gap")
    assert (gap["reason"], gap["count"]) == ("spool-damaged", count)


def test_row_52_old_spool_put_back(left_behind: dict[Path, bytes], make: Make, db: Path):
    """What was sealed before is not sealed again."""
    processor = make()
    assert processor.force_flush()
    processor.shutdown()
    sealed = entries(db)
    assert [entry.kind for entry in sealed] == ["genesis", *["span"] * (1 + WAITING)]
    for path, octets in left_behind.items():
        path.write_bytes(octets)
    assert make().force_flush()
    assert [entry for entry in entries(db) if entry.kind == "span"] == sealed[1:]


# --- what is private -------------------------------------------------------------------------


def ask(provider: TracerProvider, prompt: str) -> None:
    with provider.get_tracer("t").start_as_current_span("chat m", attributes=CHAT) as one:
        one.set_attribute("gen_ai.input.messages", prompt)
        one.add_event("gen_ai.content", {"text": prompt})


def files_below(top: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in top.rglob("*") if path.is_file()}


@pytest.mark.parametrize("down", [False, True], ids=["store", "spool"])
def test_row_58_digest_dictionary(
    provider: TracerProvider, make: Make, db: Path, down: bool, caplog: pytest.LogCaptureFixture
):
    """Whoever guesses the prompt finds nothing that confirms it in any file or log."""
    caplog.set_level(logging.DEBUG)
    processor = make(content="digest")
    ask(provider, PROMPT)
    assert processor.force_flush()
    if down:
        processor.shutdown()  # what comes now waits on the disk
        ask(provider, "no")
    files = files_below(db.parent)
    assert any(path.suffix == ".spool" for path in files) is down
    for text in (PROMPT, "no", *map(json.dumps, (PROMPT, "no"))):
        found = hashlib.sha256(text.encode())
        for needle in (found.digest(), found.hexdigest().encode(), json.dumps(text).encode()):
            assert all(needle not in octets for octets in files.values()), (text, needle)
        assert found.hexdigest() not in caplog.text


@pytest.mark.parametrize("down", [False, True], ids=["store", "spool"])
def test_row_59_redact_raises(
    provider: TracerProvider, make: Make, db: Path, down: bool, caplog: pytest.LogCaptureFixture
):
    """The hook's exception holds the prompt: it is in no store, spool or log."""
    caplog.set_level(logging.DEBUG)
    prompt = "my account number is 4711"

    def redact(record: SpanRecord) -> SpanRecord:
        raise ValueError(f"cannot redact {record.attributes['gen_ai.input.messages']}")

    processor = make(redact=redact)
    ask(provider, prompt)
    assert processor.force_flush()
    if down:
        processor.shutdown()
        ask(provider, prompt)
    files = files_below(db.parent)
    assert any(path.suffix == ".spool" for path in files) is down
    assert all(b"4711" not in octets for octets in files.values())
    assert "4711" not in caplog.text
    (one,) = spans(db)
    assert (one.withheld, one.attributes) == ("redact:ValueError", {})
