"""Lives and deaths of a process that seals, many a second: each is a fork of this one.

Run as a module with a task in JSON as its argument; prints lines of JSON. The process itself has
no thread and no processor, so that it may fork and trace.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import random
import signal
import sqlite3
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider

import bijotel.processor
from bijotel import HmacChainSpanProcessor, verify_chain
from bijotel.canonical import loads
from bijotel.stores import sqlite
from bijotel.stores.open import open_store
from tests.faults import injection
from tests.stores.chains import MASTER, entries

QUEUE = 6
KILL = 0

Task = dict[str, Any]


class Counts:
    """How many spans each thread of each process has ended; they outlive the processes.

    Behind the counts stand the names of spans whose end returned after their commit.
    """

    SLOTS = 64
    BYTES = 64 * 1024

    def __init__(self, path: str = "") -> None:
        if not path:
            self._page = mmap.mmap(-1, self.BYTES)
            return
        with open(path, "a+b") as file:
            file.truncate(self.BYTES)
            self._page = mmap.mmap(file.fileno(), self.BYTES)

    def put(self, slot: int, number: int) -> None:
        struct.pack_into("<Q", self._page, 8 * slot, number)

    def all(self) -> list[int]:
        return list(struct.unpack_from(f"<{self.SLOTS}Q", self._page))

    def acknowledge(self, name: str) -> None:
        start = self._page.find(b"\0", 8 * self.SLOTS)
        octets = f"{name}\n".encode()
        self._page[start : start + len(octets)] = octets

    def acknowledged(self) -> list[str]:
        names = self._page[8 * self.SLOTS :].partition(b"\0")[0]
        return names.decode().splitlines()


class Host:
    """An application with the processor, and a count of its spans."""

    def __init__(self, store: str, counts: Counts, **options: Any) -> None:
        self._counts = counts
        self.processor = HmacChainSpanProcessor(store, key=MASTER, **options)
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(self.processor)
        self._tracer = self.provider.get_tracer("t")

    def chat(self, slot: int, number: int) -> None:
        """End a span; the count says so once that has returned."""
        name = f"{os.getpid()} {slot} {number}"
        self._tracer.start_span(name, attributes={"gen_ai.operation.name": "chat"}).end()
        self._counts.put(slot, number + 1)
        if slot == 0 and number < 200 and not self.processor.stats().stalled:
            self._counts.acknowledge(name)


def fork(work: Callable[[], None]) -> int:
    """Start a function in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(99)
    return child


def ended(child: int) -> int:
    """Wait for a process; its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def say(document: Task) -> None:
    print(json.dumps(document), flush=True)


# --- a life, and what became of its spans ----------------------------------------------------


def life(store: str, mode: str, counts: Counts, *, end: bool = True) -> None:
    """Seal, meet a locked store, spool, seal what was spooled, and end: all ways of writing."""
    host = Host(store, counts, durability=mode, commit_timeout_millis=50, max_queue_size=QUEUE)
    for number in range(3):
        host.chat(0, number)
        host.processor.force_flush(1000)
    blocker = None
    with suppress(sqlite3.Error):  # it may meet the fault as well
        blocker = sqlite3.connect(store, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
    for number in range(3, 11):
        host.chat(0, number)
        deadline = time.monotonic() + 0.3
        while len(host.processor._writer._queue) > 3 and time.monotonic() < deadline:
            time.sleep(0.002)
    if not end:
        os.kill(os.getpid(), signal.SIGKILL)
    if blocker is not None:
        blocker.close()
    host.processor.force_flush(2000)
    for number in range(11, 13):
        host.chat(0, number)
    host.processor.shutdown()


def next_start(store: str, counts: Counts, **options: Any) -> None:
    """Start again, end one span, seal what is left, and end."""
    host = Host(store, counts, **options)
    host.chat(Counts.SLOTS - 1, 0)
    if not host.processor.force_flush(30_000):
        raise AssertionError(f"not flushed: {host.processor.stats()}")
    host.processor.shutdown()


def judge(store: str, counts: Counts, mode: str = "queued") -> Task:
    """What became of the spans of a store, by its own chain.

    In ``commit`` mode a span whose end did not wait for its commit is none that can be lost.
    """
    report = verify_chain(store, MASTER, deep=True)
    found = entries(open_store(store))
    names = Counter(entry.name for entry in found if entry.kind == "span")
    gaps = [loads(entry.body) for entry in found if entry.kind == "gap"]
    spans = sum(counts.all())
    lost = max(0, spans - len(names))
    if mode == "commit":
        lost = sum(name not in names for name in counts.acknowledged())
    return {
        "spans": spans,
        "lost": lost,
        "recorded": sum(gap["count"] or 0 for gap in gaps),
        "unknown": sum(gap["count"] is None for gap in gaps),
        "reasons": sorted({gap["reason"] for gap in gaps}),
        "duplicated": sum(names.values()) - len(names),
        "findings": [finding.code for finding in report.findings],
        "contiguous": [entry.seq for entry in found] == list(range(len(found))),
    }


# --- tasks -----------------------------------------------------------------------------------


def kill_points(task: Task) -> None:
    """Die, or meet an error, at one call after another, until a life has none left."""
    number = task["first"]
    while True:
        with tempfile.TemporaryDirectory(prefix="bijotel-fault-", dir=task["folder"]) as folder:
            if not _one_fault(Path(folder), task, number):
                return
        number += task["step"]


def _one_fault(folder: Path, task: Task, number: int) -> bool:
    store, counts = str(folder / "chain.db"), Counts()
    fault = KILL if task["fault"] == "kill" else getattr(errno, task["fault"])
    last = number + task["lasting"]

    def decide(call: injection.Call) -> int | None:
        return fault if number <= call.number < last else None

    if task["life"] == "first":
        code, calls = injection.run(lambda: life(store, task["mode"], counts), decide)
    else:
        ended(fork(lambda: life(store, task["mode"], counts, end=False)))
        code, calls = injection.run(lambda: next_start(store, counts), decide)
    if len(calls) < number:
        return False
    again = ended(fork(lambda: next_start(store, counts)))
    left = {path.suffix for path in (folder / "chain.db-spool").glob("*")} & {".page", ".spool"}
    place = {"call": calls[number - 1].name, "number": number}
    say(
        {
            **place,
            "code": code,
            "next_code": again,
            "left": sorted(left),
            **judge(store, counts, task["mode"]),
        }
    )
    return True


def random_kills(task: Task) -> None:
    """One chain, many lives of two threads each, every one ended by SIGKILL at a random moment."""
    chance = random.Random(task["seed"])
    with tempfile.TemporaryDirectory(prefix="bijotel-fault-", dir=task["folder"]) as folder:
        store, spans, acknowledged = str(Path(folder) / "chain.db"), 0, []
        for _ in range(task["loops"]):
            counts = Counts()
            child = fork(lambda counts=counts: _busy(store, task["mode"], counts))
            time.sleep(chance.uniform(0.005, 0.15))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            for slot in range(2):
                number = counts.all()[slot]
                spans += number
                acknowledged += [f"{child} {slot} {n}" for n in range(number)]
        counts = Counts()
        again = ended(fork(lambda: next_start(store, counts)))
        found = judge(store, counts)
        # Both modes: what was acknowledged is every span whose end returned.
        sealed = {entry.name for entry in entries(open_store(store))}
        missing = sum(name not in sealed for name in acknowledged)
        say({**found, "spans": spans + 1, "lost": missing, "next_code": again})


def _busy(store: str, mode: str, counts: Counts) -> None:
    """End spans on two threads until killed."""
    host = Host(store, counts, durability=mode, commit_timeout_millis=60_000)

    def work(slot: int) -> None:
        for number in range(10**9):
            host.chat(slot, number)
            if mode == "queued":
                time.sleep(0.0002)

    threading.Thread(target=work, args=(1,), daemon=True).start()
    work(0)


def load(task: Task) -> None:
    """Many processes with threads on one store; the store's own fate is the caller's business."""
    counts = Counts()
    started = time.monotonic()

    def work(host: Host, slot: int) -> None:
        for number in range(task["spans"]):
            host.chat(slot, number)
            if task["pause"]:
                time.sleep(task["pause"])

    def run(process: int) -> None:
        options = {"durability": task["mode"], "spool": task["spool"]}
        host = Host(task["store"], counts, commit_timeout_millis=task["wait"], **options)
        slots = [process * task["threads"] + thread for thread in range(task["threads"])]
        threads = [threading.Thread(target=work, args=(host, slot)) for slot in slots]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not host.processor.force_flush(60_000):
            raise AssertionError(f"not flushed: {host.processor.stats()}")
        host.processor.shutdown()

    children = [fork(lambda process=process: run(process)) for process in range(task["processes"])]
    codes = [ended(child) for child in children]
    seconds = time.monotonic() - started
    again = ended(fork(lambda: next_start(task["store"], counts, spool=task["spool"])))
    found = judge(task["store"], counts)
    say({**found, "codes": codes, "next_code": again, "seconds": round(seconds, 2)})


def end(task: Task) -> None:
    """Seal some spans, leave others in the queue, and end in one of all ways."""
    options = {"durability": task["mode"], "commit_timeout_millis": 60_000}
    host = Host(task["store"], Counts(task["counts"]), **options)
    for number in range(20):
        host.chat(0, number)
    if not host.processor.force_flush():
        raise AssertionError("not flushed")
    if task["how"] == "SIGTERM, handled":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for number in range(20, 120):
        host.chat(0, number)
    if task["how"].startswith("SIGTERM"):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)
    if task["how"] == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    if task["how"] == "os._exit":
        os._exit(0)
    sys.exit(0)


def recover(task: Task) -> None:
    """The next start after an ``end``, and the verdict."""
    counts = Counts(task["counts"])
    again = ended(fork(lambda: next_start(task["store"], counts)))
    say({**judge(task["store"], counts), "next_code": again})


def main() -> None:
    """Do the task of the command line."""
    # Only patience is made shorter here: a busy store is met after 20 ms instead of 250, and a
    # server that does not answer is given up after a second.
    sqlite.BUSY_SECONDS = 0.02
    bijotel.processor.SHUTDOWN_SECONDS = 2.0
    task = json.loads(sys.argv[1])
    if task.get("store", "").startswith("postgresql"):
        from bijotel.stores import postgres, postgres_connection

        postgres.ANSWER_SECONDS, postgres_connection.CONNECT_SECONDS = 1.0, 2
    tasks = (kill_points, random_kills, load, end, recover)
    {work.__name__: work for work in tasks}[task["task"]](task)


if __name__ == "__main__":
    main()
