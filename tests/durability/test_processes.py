"""Every way in which a process is born or ends keeps every span, each once."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

from bijotel import verify_chain
from bijotel.canonical import loads
from tests.processor.conftest import KEY, entries, spans

pytestmark = pytest.mark.fork

SETUP = """
import os, signal, sys, threading, time
from opentelemetry.sdk.trace import TracerProvider
from bijotel import install
db = sys.argv[1]
provider = TracerProvider()
processor = install(provider, store=db, key=bytes(range(32)))
tracer = provider.get_tracer("t")
def chat(name):
    tracer.start_span(name, attributes={"gen_ai.operation.name": "chat"}).end()
"""


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "chain.db"


def run(db: Path, code: str, *, expect: int = 0, setup: str = SETUP) -> str:
    """Run a program with the processor installed; its exit code and standard error count."""
    program = db.with_name("program.py")
    program.write_text(setup + textwrap.dedent(code))
    done = subprocess.run(
        [sys.executable, str(program), str(db)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == expect, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def names(db: Path) -> list[str]:
    """Names of the sealed spans of a chain that verifies."""
    return [span.name for span in spans(db)]


def test_children_and_parent_write_while_it_forks(db: Path):
    """Four children of a busy parent: all spans, each once, and no child hangs."""
    run(
        db,
        """
        stop = threading.Event()
        def busy():
            number = 0
            while not stop.is_set():
                chat(f"parent {number}"); number += 1
                time.sleep(0.001)
            chat(f"count {number}")
        thread = threading.Thread(target=busy); thread.start()
        children = []
        for child in range(4):
            time.sleep(0.02)
            pid = os.fork()
            if pid == 0:
                for number in range(25):
                    chat(f"child {child} {number}")
                assert processor.force_flush(30000)
                os._exit(0)
            children.append(pid)
        for pid in children:
            assert os.waitpid(pid, 0)[1] == 0
        stop.set(); thread.join()
        """,
    )
    sealed = Counter(names(db))
    assert max(sealed.values()) == 1
    for child in range(4):
        assert sum(name.startswith(f"child {child} ") for name in sealed) == 25
    (count,) = (int(name.split()[1]) for name in sealed if name.startswith("count "))
    assert sum(name.startswith("parent ") for name in sealed) == count
    assert [entry.kind for entry in entries(db)].count("gap") == 0


@pytest.mark.slow
def test_forks_in_the_middle_of_commits(db: Path):
    """Forty children of a parent that never stops committing; half end without cleaning up."""
    run(
        db,
        """
        stop = threading.Event()
        def busy(thread):
            number = 0
            while not stop.is_set():
                chat(f"parent {thread} {number}"); number += 1
                if number % 20 == 0:
                    processor.force_flush()
            chat(f"count {thread} {number}")
        threads = [threading.Thread(target=busy, args=(n,)) for n in range(2)]
        for thread in threads: thread.start()
        for round in range(5):
            children = []
            for child in range(8):
                pid = os.fork()
                if pid == 0:
                    for number in range(5):
                        chat(f"child {round} {child} {number}")
                    if child % 2:
                        sys.exit(0)
                    assert processor.force_flush(30000)
                    os._exit(0)
                children.append(pid)
            for pid in children:
                assert os.waitpid(pid, 0)[1] == 0
        stop.set()
        for thread in threads: thread.join()
        """,
    )
    connection = sqlite3.connect(db)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    sealed = Counter(names(db))
    assert max(sealed.values()) == 1
    assert sum(name.startswith("child ") for name in sealed) == 200
    counts = [name.split() for name in sealed if name.startswith("count ")]
    for _, thread, count in counts:
        assert sum(name.startswith(f"parent {thread} ") for name in sealed) == int(count)
    assert "gap" not in {entry.kind for entry in entries(db)}


def test_a_forked_child_that_exits_normally_flushes(db: Path):
    """A child that returns from main seals what it ended, without being asked."""
    run(
        db,
        """
        chat("before")
        if os.fork() == 0:
            chat("child")
            sys.exit(0)
        assert os.wait()[1] == 0
        chat("after")
        """,
    )
    assert sorted(names(db)) == ["after", "before", "child"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pool_children_that_are_recycled(db: Path, method: str):
    """Ten tasks, each in a child of its own that is then retired: ten spans."""
    run(
        db,
        f"""
        import multiprocessing
        def work(number):
            chat(f"task {{number}}")
            return os.getpid()
        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            with context.Pool(2, maxtasksperchild=1) as pool:
                pids = pool.map(work, range(10), chunksize=1)
                pool.close(); pool.join()
            assert len(set(pids)) == 10
        """,
    )
    assert sorted(names(db)) == sorted(f"task {number}" for number in range(10))
    assert "gap" not in {entry.kind for entry in entries(db)}


def test_prefork_workers_share_a_chain(db: Path):
    """As gunicorn does: the application is loaded once, then workers are forked and stopped."""
    run(
        db,
        """
        def worker(number):
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            for request in range(20):
                chat(f"worker {number} request {request}")
            os.kill(os.getppid(), signal.SIGUSR1)
            while True:
                time.sleep(1)
        ready = []
        signal.signal(signal.SIGUSR1, lambda *_: ready.append(1))
        pids = []
        for number in range(3):
            pid = os.fork()
            if pid == 0:
                try:
                    worker(number)
                finally:
                    provider.shutdown()
                    os._exit(0)
            pids.append(pid)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and len(ready) < 3:
            time.sleep(0.2)
            if len(ready) < 3 and time.monotonic() > deadline - 28:
                break  # signals may coalesce; the workers are done long before
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        for pid in pids:
            os.waitpid(pid, 0)
        """,
    )
    sealed = names(db)
    assert len(sealed) == len(set(sealed)) == 60


def test_sigterm_without_a_handler_leaves_the_loss_on_record(db: Path):
    """An unhandled SIGTERM loses the queue at most; the next start says how many."""
    run(
        db,
        """
        chat("sealed"); processor.force_flush()
        import sqlite3
        blocker = sqlite3.connect(db, isolation_level=None); blocker.execute("BEGIN IMMEDIATE")
        for number in range(4):
            chat(f"lost {number}")
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)
        """,
        expect=-signal.SIGTERM,
    )
    run(db, 'chat("next")')
    assert names(db) == ["sealed", "next"]
    (gap,) = (loads(entry.body) for entry in entries(db) if entry.kind == "gap")
    assert (gap["count"], gap["reason"]) == (4, "process-ended")


def test_sigterm_with_a_handler_that_exits_loses_nothing(db: Path):
    """The application's own handler, as in most servers: everything queued is sealed."""
    run(
        db,
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
        for number in range(200):
            chat(f"chat {number}")
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)
        """,
        expect=3,
    )
    assert names(db) == [f"chat {number}" for number in range(200)]


def test_two_processors_and_a_fork(db: Path):
    """A provider that was set up twice, in parent and child: every span once."""
    run(
        db,
        """
        from bijotel import HmacChainSpanProcessor
        provider.add_span_processor(HmacChainSpanProcessor(db, key=bytes(range(32))))
        for number in range(50): chat(f"parent {number}")
        if os.fork() == 0:
            for number in range(50): chat(f"child {number}")
            sys.exit(0)
        assert os.wait()[1] == 0
        """,
    )
    assert sorted(names(db)) == sorted(
        f"{who} {n}" for who in ("parent", "child") for n in range(50)
    )


def test_commit_mode_survives_a_kill(db: Path):
    """In ``commit`` mode a span whose end returned is in the chain, whatever comes next."""
    setup = SETUP.replace(
        "key=bytes(range(32))",
        "key=bytes(range(32)), durability='commit', commit_timeout_millis=30000",
    )
    out = run(
        db,
        """
        for number in range(20):
            chat(f"chat {number}")
            print(number, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        setup=setup,
        expect=-signal.SIGKILL,
    )
    acknowledged = [int(line) for line in out.split()]
    assert names(db)[: len(acknowledged)] == [f"chat {number}" for number in acknowledged]


def test_an_exit_without_a_shutdown_flushes(db: Path):
    """A provider that nobody shuts down, as in a notebook or a script, loses nothing."""
    setup = SETUP.replace("TracerProvider()", "TracerProvider(shutdown_on_exit=False)")
    run(db, 'for number in range(50): chat(f"chat {number}")', setup=setup)
    assert names(db) == [f"chat {number}" for number in range(50)]


def test_the_exit_code_is_the_applications(db: Path):
    """An exit with the store down takes five seconds, of however many processors, and its code."""
    started = time.monotonic()
    run(
        db,
        """
        chat("first"); processor.force_flush()
        for chain in "abc":
            install(provider, store=db, key=bytes(range(32)), chain=chain)
        import sqlite3
        blocker = sqlite3.connect(db, isolation_level=None); blocker.execute("BEGIN IMMEDIATE")
        chat("second")
        sys.exit(42)
        """,
        expect=42,
    )
    assert time.monotonic() - started < 9  # starting Python included
    run(db, 'chat("third")')
    assert names(db) == ["first", "second", "third"]


def test_two_writers_of_one_file(db: Path):
    """Eight processes with two threads each on one file: contiguous, complete, each span once."""
    program = db.with_name("writer.py")
    program.write_text(
        SETUP
        + textwrap.dedent(
            """
            def work(thread):
                for number in range(100):
                    chat(f"{os.getpid()} {thread} {number}")
            threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            """
        )
    )
    children = [
        subprocess.Popen([sys.executable, str(program), str(db)], stderr=subprocess.PIPE)
        for _ in range(8)
    ]
    for child in children:
        _, errors = child.communicate(timeout=90)
        assert child.returncode == 0, errors.decode()
    sealed = names(db)
    assert len(sealed) == len(set(sealed)) == 1600
    report = verify_chain(db, KEY, deep=True)
    assert report.ok
    assert report.checked["entries"] == 1601


def test_force_flush_means_committed(db: Path):
    """A serverless handler that flushed may be frozen and killed: its spans are there."""
    code = SETUP + textwrap.dedent(
        """
        for number in range(10): chat(f"chat {number}")
        print(processor.force_flush(20000), flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        """
    )
    program = db.with_name("handler.py")
    program.write_text(code)
    child = subprocess.Popen([sys.executable, str(program), str(db)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"True\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert names(db) == [f"chat {number}" for number in range(10)]
