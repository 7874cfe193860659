"""What the tree costs, and how fast checkpoints, proofs and exports are.

A chain of a million small entries is built once. Its checkpoint and its proofs are measured as
the commands make them, without the start of a process: with a snapshot of their own, the tiles
from the store, the checkpoint recorded in the chain and put into a file in place of an older one.
Exports are measured as commands in processes of their own, on realistic bodies; the floor of the
writing hashes the same rows and writes their bodies, that of the checking parses and hashes the
same lines.

``BIJOTEL_BENCH_ENTRIES`` makes the long chain shorter; the rows say how long it was.
"""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from unittest import mock

import orjson

from benchmarks.chains import KEY, SEALED_AT, build_chain, endless_drafts, extend_with
from benchmarks.table import Row, median_seconds, print_rows
from bijotel import seal
from bijotel.checkpoint import parse_checkpoint
from bijotel.checkpointing import Notary
from bijotel.keys import KeyRing
from bijotel.model import Draft, Entry
from bijotel.proof import make_proof, parse_proof
from bijotel.sealer import Sealer
from bijotel.signing import SigningKey, generate_signing_key
from bijotel.stores.base import ENTRY_COLUMNS, HEAD_COLUMNS
from bijotel.stores.sqlite import SqliteStore
from bijotel.stores.sqlite_schema import INDEXES
from bijotel.stores.sqlite_tiles import open_tiles
from bijotel.stores.tiles import with_tree
from bijotel.verify.leaves import leaf_reader, read_entries

ENTRIES = int(os.environ.get("BIJOTEL_BENCH_ENTRIES", "1_000_000"))
PROOFS = 200
CHECKPOINTS = 30
SMALL, LARGE = 2_500, 10_000
"""Entries of about 8 KB."""
_SECRET = {"BIJOTEL_HMAC_SECRET": bytes(range(32)).hex()}


def rows() -> list[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="bijotel-bench-") as name:
        folder = Path(name)
        return [*_append_rows(folder), *_long_chain_rows(folder), *_export_rows(folder)]


# --- the tree --------------------------------------------------------------------------------


@contextmanager
def _without_tree() -> Iterator[None]:
    """Leave out what the tree adds to an append: the leaf, the edge, and its place in the head."""
    # Plain functions: a mock would cost more than the tree.
    with (
        mock.patch.object(seal.merkle, "extend", lambda *_: None),  # noqa: PT008
        mock.patch.object(seal, "entry_leaf", lambda *_: b""),  # noqa: PT008
    ):
        yield


def _append_rows(folder: Path) -> list[Row]:
    return [
        _append_row(folder, "append with the tree, 256 in a transaction", 256, 24),
        _append_row(folder, "append with the tree, one in a transaction", 1, 300),
    ]


def _append_row(folder: Path, name: str, batch: int, rounds: int) -> Row:
    """Append turn by turn with the tree and without, to two chains that grow alike."""
    stores = [SqliteStore(folder / f"append-{batch}-{kind}.db") for kind in ("with", "without")]
    drafts = endless_drafts()
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for store, spent in zip(stores, times, strict=True):
            taken = list(islice(drafts, batch))
            started = time.perf_counter()
            if store is stores[0]:
                store.append("default", extend_with(taken))
            else:
                with _without_tree():
                    store.append("default", extend_with(taken))
            spent.append(time.perf_counter() - started)
    for store in stores:
        store.release()
    ours, floor = (statistics.median(spent) / batch * 1e6 for spent in times)
    return Row(
        name,
        f"{ours:.0f} us an entry",
        f"{floor:.0f} us (without the tree)",
        f"{ours / floor:.2f} x",
        "<= 1.15 x",
        ours <= 1.15 * floor,
    )


# --- a long chain ----------------------------------------------------------------------------


def _build_long(path: Path, entries: int) -> SqliteStore:
    """Seal a chain of small bodies; the indexes are made at the end, which is much faster."""
    store = SqliteStore(path)
    head = store.append("default", extend_with([]))
    store.release()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    guards = [name for name in INDEXES if name.startswith("entries")]
    for guard in guards:
        connection.execute(f"DROP INDEX {guard}")
    insert = f"INSERT INTO entries VALUES ({', '.join('?' * len(ENTRY_COLUMNS))})"
    drafts = _small_drafts()
    connection.execute("BEGIN")
    while head.seq + 1 < entries:
        taken = list(islice(drafts, min(10_000, entries - head.seq - 1)))
        batch = seal.seal_entries(head, taken, KEY, SEALED_AT)
        connection.executemany(insert, batch.entries)
        head = batch.head
    marks = ", ".join(f"{column} = ?" for column in HEAD_COLUMNS)
    connection.execute(f"UPDATE heads SET {marks}", head)
    for guard in guards:
        connection.execute(INDEXES[guard])
    connection.execute("COMMIT")
    connection.close()
    return store


def _small_drafts() -> Iterator[Draft]:
    body = b'{"name":"chat"}'
    body_hash = seal.body_hash(body)
    for number in count(1):
        ids = number.to_bytes(16, "big"), number.to_bytes(8, "big")
        yield Draft("span", "span/1", *ids, "chat", number, number + 1, bytes(32), body, body_hash)


def _long_chain_rows(folder: Path) -> list[Row]:
    store = _build_long(folder / "long.db", ENTRIES)
    signer = generate_signing_key()
    out = folder / "newest.checkpoint"
    sealer = Sealer(store, "default", KeyRing(KEY))
    notary = Notary(KeyRing(KEY), [signer], out)
    note = notary.publish(store, "default", lambda draft: sealer.append([draft]))
    # The first proof reads every row and leaves the tiles behind; shown, because it happens once.
    started = time.perf_counter()
    _prove(store, note, ENTRIES // 3)
    first = time.perf_counter() - started
    checkpoint = 1000 * median_seconds(
        lambda: notary.publish(store, "default", lambda draft: sealer.append([draft])), CHECKPOINTS
    )
    chosen = random.Random(1)
    times, longest = [], 0
    for _ in range(PROOFS):
        seq = chosen.randrange(ENTRIES)
        started = time.perf_counter()
        proof = _prove(store, note, seq)
        times.append(time.perf_counter() - started)
        longest = max(longest, len(proof) - (len(parse_proof(proof).extra) + 2) // 3 * 4)
    store.release()
    proving = 1000 * statistics.median(times)
    size = f"{ENTRIES:,} entries"
    return [
        Row(f"checkpoint, {size}", f"{checkpoint:.1f} ms", "", "", "<= 50 ms", checkpoint <= 50),
        Row(f"inclusion proof, {size}", f"{proving:.2f} ms", "", "", "<= 5 ms", proving <= 5),
        Row(
            f"proof without its entry, {size}", f"{longest} bytes", "", "", "<= 1536 bytes",
            longest <= 1536,
        ),
        Row("first proof of all, which makes the tiles", f"{first:.1f} s", "", "", "shown", True),
    ]  # fmt: skip


def _prove(store: SqliteStore, note: bytes, seq: int) -> bytes:
    checkpoint = parse_checkpoint(note)
    chain_id = checkpoint.chain_id
    with store.snapshot() as snapshot, open_tiles(store, chain_id) as tiles:
        (entry,) = read_entries(snapshot, chain_id, ((seq, seq),))
        leaves = leaf_reader(snapshot, chain_id)
        return with_tree(checkpoint.size, leaves, tiles, lambda node: make_proof(entry, note, node))


# --- exports ---------------------------------------------------------------------------------

_MEASURED = """
import re, sys, time
from bijotel.cli.app import run
started = time.perf_counter()
code = run(sys.argv[1:])
seconds = time.perf_counter() - started
peak = re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]
print(seconds, peak, file=sys.stderr)
sys.exit(code)
"""


def _command(*arguments: object) -> tuple[float, float]:
    """Run a command; give its seconds without the interpreter's start, and its peak in MB."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "BIJOTEL_HMAC_SECRET": ""},
    )
    seconds, peak = done.stderr.split()[-2:]
    return float(seconds), float(peak) / 1024


def _export_rows(folder: Path) -> list[Row]:
    signer = generate_signing_key()
    small = _exported(folder, SMALL, signer)
    large = _exported(folder, LARGE, signer)
    written, checked = large["export"], large["verify-export"]
    return [
        _rate_row("export", written, large["floor of export"], large["megabytes"]),
        _rate_row("verify-export", checked, large["floor of verify-export"], large["megabytes"]),
        _memory_row("export", small, large),
        _memory_row("verify-export", small, large),
    ]


def _exported(folder: Path, entries: int, signer: SigningKey) -> dict[str, float]:
    """Export a chain and check the export; give seconds, peaks and size by name."""
    database, export = folder / f"{entries}.db", folder / f"{entries}.jsonl"
    note, public = folder / f"{entries}.note", folder / "signing.pub"
    public.write_text(f"{signer.verifier}\n")
    store = SqliteStore(build_chain(database, entries))
    sealer = Sealer(store, "default", KeyRing(KEY))
    notary = Notary(KeyRing(KEY), [signer], note)
    notary.publish(store, "default", lambda draft: sealer.append([draft]))
    store.release()
    found: dict[str, float] = {}
    writing = ("export", "--db", database, "--checkpoint", note, "-o", export)
    checking = ("verify-export", export, "--pubkey", public)
    for arguments in (writing, checking):
        runs = [_command(*arguments) for _ in range(3)]
        found[arguments[0]] = statistics.median(seconds for seconds, _ in runs)
        found[f"peak of {arguments[0]}"] = max(peak for _, peak in runs)
    found["megabytes"] = export.stat().st_size / 1e6
    found["floor of export"] = median_seconds(lambda: _copy(database, folder / "copy"), 3)
    found["floor of verify-export"] = median_seconds(lambda: _parse(export), 3)
    return found


def _copy(database: Path, target: Path) -> None:
    connection = sqlite3.connect(database)
    with target.open("wb") as file:
        for row in connection.execute("SELECT * FROM entries"):
            entry = Entry._make(row)
            hashlib.sha256(entry.body).digest()
            file.write(entry.body)
        file.flush()
        os.fsync(file.fileno())
    connection.close()


def _parse(export: Path) -> None:
    with export.open("rb") as file:
        for line in file:
            members = orjson.loads(line)
            hashlib.sha256(members.get("body", "").encode()).digest()


def _rate_row(name: str, seconds: float, floor_seconds: float, megabytes: float) -> Row:
    rate, floor = megabytes / seconds, megabytes / floor_seconds
    return Row(
        f"{name}, {megabytes:.0f} MB",
        f"{rate:.0f} MB/s",
        f"{floor:.0f} MB/s",
        f"{rate / floor:.2f} x",
        ">= 50 MB/s",
        rate >= 50,
    )


def _memory_row(name: str, small: dict[str, float], large: dict[str, float]) -> Row:
    ours, before = large[f"peak of {name}"], small[f"peak of {name}"]
    return Row(
        f"{name}, peak memory at {large['megabytes']:.0f} MB",
        f"{ours:.0f} MB",
        f"{before:.0f} MB at {small['megabytes']:.0f} MB",
        f"{ours / before:.2f} x",
        "<= 1.1 x",
        ours <= 1.1 * before,
    )


if __name__ == "__main__":
    print_rows(rows())
