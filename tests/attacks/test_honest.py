"""What must not be taken for an attack, and reading beside a writer."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bijotel.model import SpanRecord
from bijotel.seal import Batch
from bijotel.spans.decode import decode_record
from bijotel.spans.encode import encode_record
from bijotel.stores.sqlite import SqliteStore
from bijotel.verify import verify_chain
from tests.attacks.evidence import (
    HOUR,
    KEY,
    SEALED_AT,
    STEP,
    Evidence,
    Writer,
    first_finding,
    no_finding,
    span,
)

WRITE = """
import json, sys, time
sys.path[:0] = json.loads(sys.argv[1])
from tests.attacks.evidence import KEY, seal, span
from bijotel.stores.sqlite import SqliteStore
store = SqliteStore(sys.argv[2])
for number in range(1000, 100_000):
    store.append("default", lambda head: seal.seal_entries(head, [span(number)], KEY, time.time_ns()))
    print(number, flush=True)
"""


def test_row_47_verify_while_writing(evidence: Evidence):
    """Honest appends during verifying: no finding, and the head seen at the start is covered."""
    evidence.settle()
    evidence.close()
    command = [sys.executable, "-c", WRITE, json.dumps([str(Path.cwd())]), str(evidence.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        try:
            assert writer.stdout.readline() == b"1000\n"
            deadline = time.monotonic() + 4
            seen: list[int] = []
            while len(seen) < 8 or time.monotonic() < deadline:
                before = head_seq(evidence.path)
                report = verify_chain(evidence.path, KEY, workers=1 + len(seen) % 2)
                no_finding(report)
                (chain,) = report.chains
                assert chain.entries == (chain.last_seq or 0) + 1
                assert before <= (chain.last_seq or 0) <= head_seq(evidence.path)
                seen.append(chain.last_seq or 0)
                if len(seen) > 200:
                    break
            assert seen[-1] > seen[0] > 100, "the writer did not write"
        finally:
            writer.kill()
    after = Evidence(evidence.path)
    no_finding(after.verify())
    after.close()


def head_seq(path: Path) -> int:
    with SqliteStore(path).snapshot() as snapshot:
        return int(snapshot.head_rows()[0][2])


def test_row_47_rows_beyond_the_head_at_the_start(evidence: Evidence):
    """What stands beyond the head in the same moment is no honest append."""
    writer = Writer()
    writer.append(*map(span, range(1, 96)))
    evidence.set_head(**writer.head._asdict())
    first_finding(evidence.verify(), "head-mismatch", None, "head")


def test_row_48_honest_clock_step(tmp_path: Path):
    """The wall clock goes back an hour: a notice, no finding."""
    writer = Writer()
    writer.append(*map(span, range(1, 50)))
    for number in range(50, 101):
        writer.append(span(number), at=SEALED_AT + number * STEP - HOUR)
    evidence = Evidence(writer.store(tmp_path / "chain.db"))
    report = evidence.verify()
    no_finding(report)
    assert [(notice.code, notice.seq) for notice in report.notices] == [("clock-step", 50)]
    assert "the wall clock was set back before it was sealed" in report.notices[0].message
    evidence.close()


def test_row_48_a_step_at_every_entry(tmp_path: Path):
    """Every step is noted, wherever workers divide the rows."""
    writer = Writer()
    for number in range(1, 41):
        writer.append(span(number), at=SEALED_AT - number)
    evidence = Evidence(writer.store(tmp_path / "chain.db"))
    report = evidence.verify()
    no_finding(report)
    assert [notice.seq for notice in report.notices] == list(range(1, 41))
    evidence.close()


UNSAFE: dict[str, Any] = {
    "big": 2**60,
    "nan": float("nan"),
    "inf": [float("inf"), float("-inf")],
    "half \ud83d": "half \ud83d",
    "NUL": "a\0b",
    "long": "x" * 1_000_000,
    "bytes": b"\x00\xff",
    "nested": {"a": [{"b": {"$c": (1, 2.5, None, True)}}]},
    "double": 1e20,
}


def test_row_49_unsafe_values(tmp_path: Path):
    """Values that other tools lose are sealed, verified and come back as they were."""
    records = [
        SpanRecord(
            key, trace_id=f"{number:032x}", span_id=f"{number:016x}", attributes={key: value}
        )
        for number, (key, value) in enumerate(UNSAFE.items(), 1)
    ]
    writer = Writer()
    writer.append(*map(encode_record, records))
    evidence = Evidence(writer.store(tmp_path / "chain.db"))
    no_finding(evidence.verify(deep=True))
    with SqliteStore(evidence.path).snapshot() as snapshot:
        rows = list(snapshot.select(writer.head.chain_id, [("kind", "span")]))
    for row, (key, value) in zip(rows, UNSAFE.items(), strict=True):
        back = decode_record(row.columns[16])
        assert back.name == key
        ((_, got),) = back.attributes.items()
        assert repr(got) == repr(value).replace("(1, 2.5, None, True)", "[1, 2.5, None, True]")
    evidence.close()


def test_nfc_and_nfd_differ(tmp_path: Path):
    """Two spellings of one name are two pieces of evidence, and one cannot stand for the other."""
    writer = Writer()
    for number, name in enumerate(("caf\u00e9.pdf", "cafe\u0301.pdf"), 1):
        writer.append(
            encode_record(
                SpanRecord(
                    name, trace_id=f"{number:032x}", span_id=f"{1:016x}", attributes={"id": name}
                )
            )
        )
    assert writer.entries[1].dedup_key != writer.entries[2].dedup_key
    evidence = Evidence(writer.store(tmp_path / "chain.db"))
    no_finding(evidence.verify(deep=True))
    evidence.set(1, name="cafe\u0301.pdf")
    first_finding(evidence.verify(), "column-mismatch", 1, "name")
    evidence.close()


def test_vacuum_leaves_a_chain_verifiable(evidence: Evidence):
    """VACUUM renumbers rowids; nothing of ours is built on them."""
    evidence.sql("CREATE TABLE other (x)")
    evidence.sql("DROP TABLE other")
    rows = evidence.entries(20, 30)
    evidence.delete(20, 30)
    evidence.insert(*rows)
    evidence.sql("VACUUM")
    no_finding(evidence.verify(deep=True))


def test_a_dump_loaded_again_is_verifiable(evidence: Evidence, tmp_path: Path):
    """SQL text and back, as with sqlite3's .dump: the octets are the same."""
    evidence.settle()
    source = sqlite3.connect(evidence.path)
    target = sqlite3.connect(tmp_path / "loaded.db")
    target.executescript("\n".join(source.iterdump()))
    source.close()
    target.close()
    loaded = Evidence(tmp_path / "loaded.db")
    report = loaded.verify(deep=True)
    no_finding(report)
    assert [notice.code for notice in report.notices] == ["application-id-missing"]
    loaded.close()


def test_other_tables_are_nobodys_business(evidence: Evidence):
    """Statistics of SQLite, and a table that somebody else keeps in the file, are no fault."""
    evidence.sql("ANALYZE")
    evidence.sql("CREATE TABLE notes (text)")
    report = evidence.verify()
    no_finding(report)
    assert report.notices == ()


def test_batches_and_single_appends_are_the_same(tmp_path: Path):
    """However the entries came, the report says the same of them."""
    writer = Writer()
    writer.append(*map(span, range(1, 30)))
    path = tmp_path / "chain.db"
    store = SqliteStore(path)
    heads = Writer()
    store.append("default", lambda _head: Batch(tuple(heads.entries), heads.head))
    for number in range(1, 30):
        heads.append(span(number))
        store.append("default", lambda _head: Batch(tuple(heads.entries[-1:]), heads.head))
    store.release()
    evidence = Evidence(path)
    report = evidence.verify(deep=True)
    no_finding(report)
    assert [tuple(entry) for entry in evidence.entries()] == [tuple(e) for e in writer.entries]
    evidence.close()
