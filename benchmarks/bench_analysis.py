"""What it takes to compute something out of a chain of 50,000 entries of about 8 KB.

The floor is reading the rows in order and parsing each body. Verifying has figures of its own;
here it is left out, except where it is named.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import orjson

from benchmarks.chains import CHAIN_ID, build_chain
from benchmarks.table import Row, print_rows
from bijotel.cost import Prices, Rates
from bijotel.dedup import Groups
from bijotel.dimensions import DIMENSIONS, Collector, find_dimensions
from bijotel.keys import KeyRing
from bijotel.search import Search
from bijotel.stores.open import open_store
from bijotel.verified import VerifiedChain, skim, verify_to_read

ENTRIES = 50_000
FEWER = 10_000
MANY = 1_000_000
PAGE = 20
PRICES = Prices({"gpt-test-2026": Rates(Decimal(3), Decimal(15))})


def _seconds(path: Path, work: Callable[[VerifiedChain], object]) -> float:
    """The processor time of the best of three runs over an unverified chain.

    Nothing here waits, and so neighbours on the machine do not count.
    """
    times = []
    with open_store(path).snapshot() as snapshot:
        for _ in range(3):
            chain = verify_to_read(snapshot, CHAIN_ID, None, location=str(path), unverified=True)
            started = time.process_time()
            work(chain)
            times.append(time.process_time() - started)
    return min(times)


def _floor(chain: VerifiedChain) -> int:
    return sum(len(orjson.loads(row.columns[-1])) for row in chain.snapshot.select(chain.chain_id))


def _measure(*names: str) -> Callable[[VerifiedChain], object]:
    def work(chain: VerifiedChain) -> None:
        collector = Collector(
            find_dimensions(names), price=lambda span, counted: PRICES.cost(span, counted).usd
        )
        for entry, record in chain.spans(skim):
            collector.add(entry.seq, record)
        for series in collector.finish():
            series.judge(collector.selection)

    return work


def _group(chain: VerifiedChain) -> None:
    with closing(Groups(PRICES)) as groups:
        for entry, record in chain.spans(skim):
            groups.add(entry, record)
        for _ in groups.repeated():
            pass


def _find_document(chain: VerifiedChain) -> None:
    search = Search(document="sha256:none")
    for entry in chain.entries():
        if search.may_fit(entry.body) and search.fits(skim(entry.body), ()):
            raise AssertionError("there is no such document")


def _multiply(path: Path) -> int:
    """Make a million small entries of one, a second apart; give the start of the middle one.

    Only the indexes that a search by time uses are kept: random ids take long to index.
    """
    with closing(sqlite3.connect(path)) as database:
        for name in ("prev_tag", "span", "span_id", "dedup_key"):
            database.execute(f"DROP INDEX entries_by_{name}")
        others = "chain_id, kind, fmt, body_hash, prev_tag, trace_id, span_id, name, dedup_key, tag"
        ((start,),) = database.execute("SELECT start_unix_nano FROM entries WHERE seq = 1")
        database.execute(
            f"WITH RECURSIVE s(n) AS (SELECT ?1 + 1 UNION ALL SELECT n + 1 FROM s WHERE n < ?2) "
            f"INSERT INTO entries (seq, start_unix_nano, end_unix_nano, body, {others}) "
            f"SELECT n, ?3 + n * 1000000000, ?3 + n * 1000000000, x'7b7d', {others} "
            "FROM s, (SELECT * FROM entries WHERE seq = 1)",
            (FEWER, MANY, start),
        )
        database.commit()
    return int(start) + MANY // 2 * 10**9


def _page_rows(path: Path) -> list[Row]:
    """Measure a page of entries by time: what the begin, the middle and the end of a chain cost."""
    middle = _multiply(path)
    questions = (
        ("from the beginning on", 0, False),
        ("from the beginning on, newest first", 0, True),
        ("from the middle on", middle, False),
        ("from the middle on, newest first", middle, True),
    )
    found = []
    with open_store(path).snapshot() as snapshot:
        for words, since, newest in questions:
            conditions = Search(since_unix_nano=since).conditions()
            times = []
            for _ in range(3):
                started = time.process_time()
                rows = list(snapshot.select(CHAIN_ID, conditions, limit=PAGE, newest=newest))
                times.append(time.process_time() - started)
                assert len(rows) == PAGE
            milliseconds = 1000 * min(times)
            found.append(
                Row(
                    f"{PAGE} of {MANY:,} entries {words}",
                    f"{milliseconds:.1f} ms",
                    "-",
                    "-",
                    "<= 100 ms",
                    milliseconds <= 100,
                )
            )
    return found


def _verify(path: Path) -> float:
    with open_store(path).snapshot() as snapshot:
        started = time.process_time()
        chain = verify_to_read(snapshot, CHAIN_ID, KeyRing(bytes(range(32))), location=str(path))
        seconds = time.process_time() - started
        assert not chain.caveat
    return seconds


def _memory(path: Path) -> float:
    """The peak of a process of its own that judges every dimension, in MiB."""
    code = (
        "import json, resource, sys; from bijotel.cli.app import run; "
        "code = run(['regression', '--db', sys.argv[1], '--unverified', '--json']); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert len(json.loads(done.stdout)) == len(DIMENSIONS)
    return int(done.stderr.split()[-1]) / 1024


def _row(name: str, seconds: float, floor: float, most: float | None) -> Row:
    return Row(
        name,
        f"{seconds:.2f} s",
        f"{floor:.2f} s",
        f"{seconds / floor:.1f} x",
        "none" if most is None else f"<= {most:g} s",
        most is None or seconds <= most,
    )


def rows() -> list[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="bijotel-bench-") as name:
        few = build_chain(Path(name, "few.db"), FEWER + 1)
        path = build_chain(Path(name, "chain.db"), ENTRIES + 1)
        floor = _seconds(path, _floor)
        found = [
            _row(
                f"dimension {one} of {ENTRIES:,} entries", _seconds(path, _measure(one)), floor, 1.5
            )
            for one in ("duration", "rag_source_count", "rag_top_score", "input_tokens", "cost")
        ]
        found += [
            _row("all dimensions in one pass", _seconds(path, _measure()), floor, None),
            _row("groups of repeated calls", _seconds(path, _group), floor, None),
            _row("verifying first", _verify(path), floor, None),
        ]
        rate = ENTRIES / _seconds(path, _find_document)
        small, large = _memory(few), _memory(path)
        pages = _page_rows(few)
    return [
        *found,
        *pages,
        Row(
            "search for a document",
            f"{rate:,.0f} entries/s",
            f"{ENTRIES / floor:,.0f} entries/s",
            f"{rate * floor / ENTRIES:.1f} x",
            ">= 50,000 entries/s",
            rate >= 50_000,
        ),
        Row(
            f"peak memory, {ENTRIES:,} entries against {FEWER:,}",
            f"{large:.0f} MiB",
            f"{small:.0f} MiB",
            f"{large / small:.2f} x",
            "<= 1.2 x",
            large <= 1.2 * small,
        ),
    ]


if __name__ == "__main__":
    print_rows(rows())
