"""A chain to attack, the attacker's tools, and a verification that asks several times.

The attacker can write to the file; that is what :class:`Evidence` does. Sealing with the key is
done by the functions whose name says so.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bijotel import canonical, seal
from bijotel.findings import Finding, Report
from bijotel.keys import HmacKey
from bijotel.model import ChainHead, Draft, Entry, SpanRecord
from bijotel.rotation import rotation_proof
from bijotel.seal import Batch
from bijotel.spans.encode import encode_record
from bijotel.stores.base import ENTRY_COLUMNS, HEAD_COLUMNS
from bijotel.stores.sqlite import SqliteStore
from bijotel.verify import verify_chain

MASTER, NEW_MASTER = bytes(range(32)), bytes(range(64, 96))
KEY, NEW_KEY = HmacKey(MASTER), HmacKey(NEW_MASTER)
CHAIN_ID = bytes.fromhex("00112233445566778899aabbccddeeff")
OTHER_CHAIN_ID = bytes.fromhex("ffeeddccbbaa99887766554433221100")
STARTED_AT = 1_700_000_000_000_000_000
SEALED_AT = 1_700_000_100_000_000_000
STEP = 1_000_000
"""Nanoseconds between two sealings."""
HOUR = 3_600_000_000_000

UNIQUE_GUARDS = ("entries_by_seq", "entries_by_prev_tag", "entries_by_span")
HEADER_COLUMNS = tuple(name for name in ENTRY_COLUMNS if name not in {"tag", "body"})


# --- the honest writer -----------------------------------------------------------------------


def span(number: int) -> Draft:
    """A model call with a prompt and an answer of its own."""
    return encode_record(
        SpanRecord(
            "chat m",
            kind="CLIENT",
            trace_id=f"{number:032x}",
            span_id=f"{number:016x}",
            start_time_unix_nano=STARTED_AT + number,
            end_time_unix_nano=STARTED_AT + number + 500,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": f"what is in document {number}?",
                "gen_ai.output.messages": f"document {number} is empty",
            },
        )
    )


def gap(count: int = 3) -> Draft:
    """A gap entry."""
    members = {
        "count": count,
        "first_unix_nano": "1",
        "last_unix_nano": "2",
        "reason": "queue-full",
    }
    return seal.draft("gap", canonical.dumps(members))


def rotation(head: ChainHead, key: HmacKey = KEY, new_key: HmacKey = NEW_KEY) -> Draft:
    """The key entry that stands behind a head and hands over to a new key."""
    place = Entry(
        head.chain_id, head.seq + 1, 0, key.key_id, "key", 0, "key/1", b"", head.tag, b"", b"",
        "", 0, 0, b"", b"", b"",
    )  # fmt: skip
    proof = rotation_proof(new_key, place, new_key.key_id)
    members = {"new_key_id": new_key.key_id.hex(), "proof": proof.hex()}
    return seal.draft("key", canonical.dumps(members))


class Writer:
    """Seals drafts one by one, each a step later than the one before."""

    def __init__(self, chain_id: bytes = CHAIN_ID, name: str = "default", key: HmacKey = KEY):
        batch = seal.open_chain(name, chain_id, key, [], SEALED_AT)
        self.entries = list(batch.entries)
        self.head = batch.head
        self.key = key

    def append(self, *drafts: Draft, at: int | None = None) -> None:
        """Seal drafts behind the head."""
        for draft in drafts:
            time = SEALED_AT + (self.head.seq + 1) * STEP if at is None else at
            batch = seal.seal_entries(self.head, [draft], self.key, time)
            self.entries += batch.entries
            self.head = batch.head

    def rotate(self, new_key: HmacKey = NEW_KEY) -> None:
        """Seal a genuine rotation; what follows is sealed with the new key."""
        self.append(rotation(self.head, self.key, new_key))
        self.key = new_key

    def store(self, path: Path) -> Path:
        """Append the chain to a file."""
        store = SqliteStore(path)
        store.append(self.head.name, lambda _head: Batch(tuple(self.entries), self.head))
        store.release()
        return path


def build(path: Path, spans: int = 100, **options: Any) -> Path:
    """Seal a chain of so many spans behind its genesis."""
    writer = Writer(**options)
    writer.append(*map(span, range(1, spans + 1)))
    return writer.store(path)


def reseal(entry: Entry, key: HmacKey = KEY, **changes: Any) -> Entry:
    """Change columns of an entry, hash its body again and seal it, as a holder of the key."""
    changed = entry._replace(**changes)
    changed = changed._replace(body_hash=seal.body_hash(changed.body))
    tag = seal.entry_tag(seal.entry_header(changed), key.chain_key(changed.chain_id))
    return changed._replace(tag=tag)


# --- the attacker ----------------------------------------------------------------------------


class Alone(SqliteStore):
    """A store that no other process can open, so that workers' ranges are read in this one."""

    def __init__(self, path: Path):
        super().__init__(path)
        self.address = None


class Evidence:
    """A store's file under attack."""

    def __init__(self, path: Path):
        self.path = path
        self._connection = sqlite3.connect(path, isolation_level=None)

    def copy(self, path: Path) -> Evidence:
        """Take a copy of the file as it is now."""
        self.settle()
        return Evidence(Path(shutil.copyfile(self.path, path)))

    def settle(self) -> None:
        """Put everything into the file itself and close it."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()
        self._connection = sqlite3.connect(self.path, isolation_level=None)

    def close(self) -> None:
        self._connection.close()

    def sql(self, statement: str, *values: Any) -> list[Any]:
        """Run one statement."""
        return self._connection.execute(statement, values).fetchall()

    def drop_guards(self) -> None:
        """Drop the unique indexes that stand in the way."""
        for name in UNIQUE_GUARDS:
            self.sql(f"DROP INDEX IF EXISTS {name}")

    def entry(self, seq: int, chain_id: bytes = CHAIN_ID) -> Entry:
        """Read one row that is in order."""
        columns = ", ".join(ENTRY_COLUMNS)
        query = f"SELECT {columns} FROM entries NOT INDEXED WHERE chain_id = ? AND seq = ?"
        (row,) = self.sql(query, chain_id, seq)
        return Entry._make(row)

    def entries(self, first: int = 0, last: int = 2**62) -> list[Entry]:
        """Read rows that are in order."""
        columns = ", ".join(ENTRY_COLUMNS)
        query = f"SELECT {columns} FROM entries WHERE seq BETWEEN ? AND ? ORDER BY seq"
        return [Entry._make(row) for row in self.sql(query, first, last)]

    def set(self, seq: int, /, **columns: Any) -> None:
        """Change columns of one row."""
        assignments = ", ".join(f"{name} = ?" for name in columns)
        self.sql(f"UPDATE entries SET {assignments} WHERE seq = ?", *columns.values(), seq)

    def put(self, seq: int, entry: Entry, /) -> None:
        """Replace one row."""
        self.set(seq, **entry._asdict())

    def insert(self, *entries: Entry) -> None:
        """Add rows."""
        marks = ", ".join("?" * len(ENTRY_COLUMNS))
        for entry in entries:
            self.sql(f"INSERT INTO entries ({', '.join(ENTRY_COLUMNS)}) VALUES ({marks})", *entry)

    def delete(self, first: int, last: int | None = None) -> None:
        """Delete rows."""
        self.sql("DELETE FROM entries WHERE seq BETWEEN ? AND ?", first, last or first)

    def shift(self, first: int, by: int) -> None:
        """Renumber rows from one on."""
        rows = self.sql("SELECT rowid, seq FROM entries WHERE seq >= ? ORDER BY seq", first)
        for rowid, seq in rows if by < 0 else reversed(rows):
            self.sql("UPDATE entries SET seq = ? WHERE rowid = ?", seq + by, rowid)

    def head(self) -> ChainHead:
        """Read the only head record."""
        (row,) = self.sql(f"SELECT {', '.join(HEAD_COLUMNS)} FROM heads")
        return ChainHead._make(row)

    def set_head(self, **columns: Any) -> None:
        """Change the head record."""
        assignments = ", ".join(f"{name} = ?" for name in columns)
        self.sql(f"UPDATE heads SET {assignments}", *columns.values())

    def seal_head(self, entry: Entry, key: HmacKey = KEY) -> None:
        """Make the head state this entry as the last one, as a holder of the key."""
        head = self.head()._replace(seq=entry.seq, tag=entry.tag, key_id=key.key_id)
        head = head._replace(tree=tree(self.entries(0, entry.seq)))
        head = head._replace(mac=seal.head_mac(head, key.chain_key(head.chain_id)))
        self.set_head(**head._asdict())

    # --- what the verifier says --------------------------------------------------------------

    def verify(self, *keys: Any, **options: Any) -> Report:
        """Verify with one, two and seven workers, and expect one report.

        Two workers are two processes. Seven read their ranges in this process, which takes a
        tenth of the time; ``test_workers`` starts seven processes for each kind of fault.
        """
        self.settle()
        ring = keys[0] if keys else KEY
        first = verify_chain(self.path, ring, **options)
        others = [verify_chain(self.path, ring, workers=2, **options)]
        others.append(verify_chain(Alone(self.path), ring, workers=7, **options))
        for other in others:
            assert other == first
        json.dumps(first.as_dict(), allow_nan=False)
        for finding in first.findings:
            assert finding.message
            assert "\n" not in finding.message
        return first


def tree(entries: Iterable[Entry]) -> bytes:
    """The right edge over these entries."""
    edge: list[bytes] = []
    for size, entry in enumerate(entries):
        leaf = seal.entry_leaf(seal.entry_header(entry), entry.tag)
        seal.merkle.extend(edge, size, leaf)
    return b"".join(edge)


def first_finding(
    report: Report,
    code: str,
    seq: int | None,
    column: str | None,
    *,
    exit_code: int = 1,
    last_seq: int | None = None,
) -> Finding:
    """Assert what the report's first finding is, and how a command would end."""
    assert report.findings, "nothing was found"
    finding = report.findings[0]
    assert (finding.code, finding.seq, finding.column) == (code, seq, column), finding.message
    assert finding.last_seq == (seq if last_seq is None else last_seq)
    assert report.exit_code == exit_code
    assert not report.ok
    return finding


def no_finding(report: Report) -> None:
    """Assert that nothing was found."""
    assert report.findings == ()
    assert report.ok
    assert report.exit_code == 0
