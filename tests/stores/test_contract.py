"""The contract of ``stores.base.Store``, kept by every store."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from bijotel.errors import UnavailableError
from bijotel.model import ChainHead
from bijotel.seal import MAX_BODY_BYTES, Batch
from bijotel.stores.base import AlreadySealedError, Store, StoreBusyError
from bijotel.stores.open import open_store
from bijotel.stores.sqlite import SqliteStore
from bijotel.verify import verify_chain
from tests.conftest import ROOT
from tests.stores.chains import KEY, append, entries, names, sealing, span

CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from bijotel.stores.open import open_store
from tests.stores.chains import append
store, first = open_store(sys.argv[2]), int(sys.argv[3])
"""


def identity(number: int) -> tuple[bytes, bytes, bytes]:
    draft = span(number)
    return (draft.trace_id, draft.span_id, draft.body_hash)


def assert_sound(store: Store, spans: int) -> None:
    """The chain verifies, is contiguous, and holds so many spans behind its genesis."""
    report = verify_chain(store, KEY, deep=True)
    assert report.findings == ()
    assert report.checked["entries"] == spans + 1


def start(store: Store, code: str, first: int = 0) -> subprocess.Popen[bytes]:
    """Start another process that has the same store open."""
    program = CHILD + textwrap.dedent(code)
    command = [sys.executable, "-c", program, str(ROOT), str(store.address), str(first)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def finish(child: subprocess.Popen[bytes], code: int = 0) -> bytes:
    output, _ = child.communicate(timeout=60)
    assert child.returncode == code
    return output


# --- appending -------------------------------------------------------------------------------


def test_a_chain_begins_with_no_head(store: Store):
    """The first append sees no head, each later one the head that the last one left."""
    seen: list[ChainHead | None] = []

    def watching(numbers: list[int]):
        make = sealing([span(number) for number in numbers])

        def watched(head: ChainHead | None) -> Batch:
            seen.append(head)
            return make(head)

        return watched

    heads = [store.append("default", watching(numbers)) for numbers in ([0, 1], [2], [])]
    assert seen == [None, *heads[:2]]
    assert [head.seq for head in heads] == [2, 3, 3]
    assert names(store) == ["chat 0", "chat 1", "chat 2"]
    assert_sound(store, 3)


def test_what_is_stored_is_what_was_made(store: Store):
    """Every column comes back with its own type and value."""
    made: list[Batch] = []
    make = sealing([span(0, text="ü𝄞", big=2**70), span(1)])

    def watched(head: ChainHead | None) -> Batch:
        made.append(make(head))
        return made[-1]

    head = store.append("default", watched)
    assert tuple(entries(store)) == made[-1].entries
    assert made[-1].head == head
    with store.snapshot() as snapshot:
        assert [ChainHead._make(row) for row in snapshot.head_rows()] == [head]


def test_the_extremes_are_stored(store: Store):
    """The longest body, the largest times and the oddest names that the format allows."""
    body = b'{"x":"%s"}' % (b"x" * (MAX_BODY_BYTES - 8))
    drafts = [
        span(0)._replace(body=body, name="", start_unix_nano=2**63 - 1, end_unix_nano=0),
        span(1)._replace(name="\U0001f642\ufffd' \\ \t %s ?", dedup_key=b""),
    ]
    store.append("a" * 200, sealing(drafts, "a" * 200))
    long, odd = entries(store, "a" * 200)[1:]
    assert (long.body, long.name, long.start_unix_nano) == (body, "", 2**63 - 1)
    assert (odd.name, odd.dedup_key) == ("\U0001f642\ufffd' \\ \t %s ?", b"")


def test_chains_are_apart(store: Store):
    """Two chains of one store have their own entries and heads; spans may be in both."""
    append(store, 0, chain="b")
    append(store, 0, 1, chain="a")
    append(store, 2, chain="b")
    assert (names(store, "a"), names(store, "b")) == (["chat 0", "chat 1"], ["chat 0", "chat 2"])
    with store.snapshot() as snapshot:
        assert [row[1] for row in snapshot.head_rows()] == ["a", "b"]


# --- atomicity -------------------------------------------------------------------------------


def test_a_make_that_raises_stores_nothing(store: Store):
    """The caller's own exception comes through, and the store is as it was."""
    append(store, 0)

    def fail(_: ChainHead | None) -> Batch:
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        store.append("default", fail)
    with pytest.raises(KeyError, match="ours"):
        store.append("another", fail)
    append(store, 1)
    assert names(store) == ["chat 0", "chat 1"]
    assert_sound(store, 2)


def test_a_span_that_is_sealed_refuses_its_whole_batch(store: Store):
    """Nothing of the batch is stored, and the same batch without the span is."""
    append(store, 0, 1)
    with pytest.raises(AlreadySealedError):
        append(store, 2, 1, 3)
    assert names(store) == ["chat 0", "chat 1"]
    append(store, 2, 3)
    assert names(store) == ["chat 0", "chat 1", "chat 2", "chat 3"]
    assert_sound(store, 4)


def test_two_successors_of_one_head_are_refused(store: Store):
    """Whoever made entries of an older head cannot store them: no chain forks."""
    old = append(store, 0)
    append(store, 1)
    with pytest.raises(AlreadySealedError):
        store.append("default", lambda _: sealing([span(2)])(old))
    assert names(store) == ["chat 0", "chat 1"]


def test_the_guard_knows_a_span_by_its_ids_and_its_body(store: Store):
    """Another body under the same ids is another entry."""
    append(store, 0)
    store.append("default", sealing([span(0, another="body")]))
    assert names(store) == ["chat 0", "chat 0"]


def test_sealed_names_what_the_chain_holds(store: Store):
    """Asked for any number of spans, it gives those that are there."""
    head = append(store, 0, 1, 2)
    append(store, 5, chain="other")
    wanted = [identity(number) for number in (1, 2, 3, 5)]
    stranger = (identity(0)[0], identity(0)[1], bytes(32))
    assert store.sealed(head.chain_id, [*wanted, stranger]) == {identity(1), identity(2)}
    assert store.sealed(head.chain_id, []) == set()
    assert store.sealed(bytes(16), wanted) == set()


# --- isolation and repetition ----------------------------------------------------------------


def test_a_snapshot_shows_one_moment(store: Store):
    """What is appended while it is open is not in it."""
    append(store, 0)
    with store.snapshot() as snapshot:
        ((chain_id, _, seq, *_),) = snapshot.head_rows()
        append(store, 1)
        assert [row.columns[1] for row in snapshot.select(chain_id)] == [0, 1]
        assert snapshot.head_rows()[0][2] == seq == 1
    assert names(store) == ["chat 0", "chat 1"]


@contextmanager
def held(store: Store):
    """Hold the lock that an append needs, as another writer does."""
    if isinstance(store, SqliteStore):
        connection = sqlite3.connect(store.location, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.close()
        return
    import psycopg

    with psycopg.connect(str(store.address)) as other:
        other.execute("SELECT 1 FROM bijotel.heads FOR UPDATE")
        yield


def test_a_store_that_another_holds_is_busy(lasting_store: Store):
    """The attempt ends in a second, stores nothing, and may be repeated."""
    append(lasting_store, 0)
    make = sealing([span(1)])
    with held(lasting_store):
        for _ in range(2):
            with pytest.raises(StoreBusyError, match="lock"):
                lasting_store.append("default", make)
    assert names(lasting_store) == ["chat 0"]
    lasting_store.append("default", make)
    assert names(lasting_store) == ["chat 0", "chat 1"]


def test_threads_share_a_store(store: Store):
    """Eight threads: every append sees the head of another one, and none is lost."""
    append(store, 0)

    def work(thread: int) -> None:
        for number in range(20):
            append(store, 1 + thread * 20 + number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names(store)) == sorted(f"chat {number}" for number in range(161))
    assert_sound(store, 161)


def test_threads_with_stores_of_their_own(lasting_store: Store):
    """The same through six connections that begin the chain at the same time."""
    barrier = threading.Barrier(6)

    def work(thread: int) -> None:
        own = open_store(str(lasting_store.address))
        barrier.wait()
        for number in range(8):
            append(own, thread * 8 + number)
        own.release()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_sound(lasting_store, 48)


# --- durability, processes and forks ---------------------------------------------------------


def test_what_was_appended_survives_a_kill(lasting_store: Store):
    """A process that is killed right after an append has appended."""
    child = start(
        lasting_store,
        """
        for number in range(10):
            append(store, number)
            print(number, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    assert finish(child, -signal.SIGKILL).split() == [b"%d" % number for number in range(10)]
    assert_sound(lasting_store, 10)


def test_processes_share_a_chain(lasting_store: Store):
    """Four processes: the chain is contiguous and holds the spans of all."""
    code = "for number in range(25): append(store, first + number)"
    for child in [start(lasting_store, code, first) for first in (0, 25, 50, 75)]:
        finish(child)
    assert sorted(names(lasting_store)) == sorted(f"chat {number}" for number in range(100))
    assert_sound(lasting_store, 100)


def test_release_may_be_called_at_any_time(store: Store):
    """Before the first call, twice, and between two appends."""
    store.release()
    store.release()
    append(store, 0)
    store.release()
    append(store, 1)
    store.release()
    assert names(store) == ["chat 0", "chat 1"]


@pytest.mark.fork
def test_parent_and_child_go_on_after_a_fork(lasting_store: Store):
    """A store that was released before the fork is opened again by both."""
    append(lasting_store, 0)
    lasting_store.release()
    child = os.fork()
    if child == 0:
        try:
            append(lasting_store, 1)
            append(lasting_store, 2)
            lasting_store.release()
        finally:
            os._exit(0)
    append(lasting_store, 3)
    assert os.waitpid(child, 0)[1] == 0
    append(lasting_store, 4)
    assert sorted(names(lasting_store)) == [f"chat {number}" for number in range(5)]
    assert_sound(lasting_store, 5)


@pytest.mark.fork
def test_a_memory_store_is_copied_by_a_fork():
    """What a child appends stays the child's."""
    store = open_store(":memory:")
    append(store, 0)
    child = os.fork()
    if child == 0:
        append(store, 1)
        os._exit(len(names(store)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    append(store, 2)
    assert names(store) == ["chat 0", "chat 2"]


# --- what is refused -------------------------------------------------------------------------


def execute(store: Store, statement: str) -> None:
    """Change the tables as whoever can write to the database may."""
    if isinstance(store, SqliteStore):
        with sqlite3.connect(store.location) as connection:
            connection.execute(statement)
        connection.close()
        return
    import psycopg

    with psycopg.connect(str(store.address)) as connection:
        connection.execute(statement.replace(" heads", " bijotel.heads"))


def test_nothing_is_begun_beside_entries_without_a_head(lasting_store: Store):
    """A head that is gone is never made anew."""
    append(lasting_store, 0)
    append(lasting_store, 0, chain="other")
    execute(lasting_store, "DELETE FROM heads WHERE name = 'default'")
    with pytest.raises(UnavailableError, match="a chain without a head record"):
        append(lasting_store, 1)
    append(lasting_store, 1, chain="other")
    with lasting_store.snapshot() as snapshot:
        assert [row[1] for row in snapshot.head_rows()] == ["other"]


def test_where_nothing_is_nothing_is_read(lasting_store: Store):
    """A store that is not there yet is no empty chain."""
    with pytest.raises(UnavailableError):
        entries(lasting_store)


def test_what_a_store_says_of_itself(store: Store, tmp_path: Path):
    """A name for people, an address for processes, a folder for spools."""
    assert store.location in repr(store) or store.location == ":memory:"
    if store.location == ":memory:":
        assert (store.address, store.spool_folder) == (None, None)
        return
    assert open_store(str(store.address)).location == store.location
    assert store.spool_folder is not None
    assert store.spool_folder.name.endswith("-spool")


# --- reading ---------------------------------------------------------------------------------


def test_rows_are_selected_by_every_condition(store: Store):
    """Each condition and their combinations give the same rows in every store."""
    head = append(store, *range(10))
    chosen = span(4)
    questions = {
        (("seq", 5),): [5],
        (("seq_from", 8),): [8, 9, 10],
        (("seq_to", 1),): [0, 1],
        (("seq_from", 3), ("seq_to", 4)): [3, 4],
        (("trace_id", chosen.trace_id),): [5],
        (("span_id", chosen.span_id),): [5],
        (("kind", "genesis"),): [0],
        (("kind", "span"), ("seq_to", 2)): [1, 2],
        (("dedup_key", chosen.dedup_key),): [5],
        (("start_from", chosen.start_unix_nano + 4),): [9, 10],
        (("start_to", chosen.start_unix_nano - 3), ("kind", "span")): [1, 2],
        (("seq", 11),): [],
    }
    with store.snapshot() as snapshot:
        for conditions, expected in questions.items():
            found = [row.columns[1] for row in snapshot.select(head.chain_id, conditions)]
            assert found == expected, conditions
            newest = snapshot.select(head.chain_id, conditions, newest=True, limit=2)
            assert [row.columns[1] for row in newest] == expected[::-1][:2]
        assert list(snapshot.select(bytes(16))) == []


def test_all_ways_of_reading_agree(store: Store):
    """Scanning by place, in any parts, and reading by ``seq`` give the same rows."""
    for number in range(10):
        append(store, number, chain="ab"[number % 2])
    with store.snapshot() as snapshot:
        assert snapshot.faults() == ([], [])
        first, last = snapshot.places() or (0, 0)
        whole = [row.columns for row in snapshot.scan(first, last)]
        parts = [
            row.columns
            for low in range(first, last + 1, 2)
            for row in snapshot.scan(low, min(low + 1, last))
        ]
        ids = [row[0] for row in snapshot.head_rows()]
        ordered = [row.columns for chain_id in ids for row in snapshot.ordered(chain_id)]
        assert len(whole) == 12
        assert sorted(whole) == sorted(parts) == sorted(ordered)
        assert [snapshot.misplaced(chain_id) for chain_id in ids] == [[], []]
        assert [snapshot.unlisted(chain_id) for chain_id in ids] == [None, None]
        assert list(snapshot.strangers(ids)) == []
        assert list(snapshot.strangers(ids[:1])) == [(ids[1], seq) for seq in range(6)]
