"""A thousand random honest histories: no false alarm, and every entry where it was put."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from bijotel import seal
from bijotel.keys import HmacKey, KeyRing
from bijotel.model import ChainHead, Draft
from bijotel.seal import Batch
from bijotel.stores.memory import MemoryStore
from bijotel.stores.sqlite import SqliteStore
from bijotel.verify import verify_chain
from tests.attacks.evidence import HOUR, SEALED_AT, Alone, gap, rotation, span

KEYS = [HmacKey(bytes(range(first, first + 32))) for first in range(0, 160, 20)]
RING = KeyRing(*KEYS)


class History:
    """What one or more honest writers do to a store, and a model of what it then holds."""

    def __init__(self, number: int, open_store: Callable[[], SqliteStore]):
        self.random = random.Random(number)
        self.open_store = open_store
        self.stores = [open_store() for _ in range(self.random.randint(1, 4))]
        self.chains: dict[str, list[bytes]] = {}
        self.keys: dict[str, int] = {}
        self.now = SEALED_AT
        self.spans = 0

    def run(self) -> None:
        """Do some steps."""
        actions = [self.append] * 6 + [self.rotate, self.restart, self.set_clock, self.vacuum]
        for _ in range(self.random.randint(1, 14)):
            self.random.choice(actions)()
        if not self.chains:
            self.append()

    def append(self) -> None:
        """One writer seals what is waiting, in one transaction."""
        drafts = [self.draft() for _ in range(self.random.randint(0, 5))]
        self.commit(self.chain_name(), lambda _head: drafts)

    def draft(self) -> Draft:
        if self.random.random() < 0.1:
            return gap(self.random.randint(1, 100))
        self.spans += 1
        return span(self.spans)

    def rotate(self) -> None:
        """Hand over to a key that was not used before."""
        name = self.chain_name()
        old = self.keys.get(name, 0)
        if name in self.chains and old + 1 < len(KEYS):
            self.commit(name, lambda head: [rotation(head, KEYS[old], KEYS[old + 1])])
            self.keys[name] = old + 1

    def restart(self) -> None:
        """One writer stops and another one starts."""
        place = self.random.randrange(len(self.stores))
        self.stores[place].release()
        self.stores[place] = self.open_store()

    def set_clock(self) -> None:
        """The wall clock is corrected, by much or little, forward or back."""
        self.now += self.random.choice([1, -1]) * self.random.choice([1, 10**9, HOUR])

    def vacuum(self) -> None:
        """Somebody tidies the file up."""
        if self.chains:
            self.stores[0]._connect().execute("VACUUM")

    def chain_name(self) -> str:
        return "default" if self.random.random() < 0.8 else "other"

    def commit(self, name: str, make_drafts: Callable[[ChainHead], list[Draft]]) -> None:
        key = KEYS[self.keys.get(name, 0)]
        self.now += self.random.randint(0, 1000)

        def make(head: ChainHead | None) -> Batch:
            if head is not None:
                drafts = make_drafts(head)
                return seal.seal_entries(head, drafts, key, self.now) if drafts else Batch((), head)
            drafts = make_drafts(ChainHead(b"", name, -1, 0, b"", b"", b"", b""))
            return seal.open_chain(name, self.random.randbytes(16), key, drafts, self.now)

        bodies: list[bytes] = []

        def make_and_remember(head: ChainHead | None) -> Batch:
            batch = make(head)
            bodies[:] = [entry.body for entry in batch.entries]
            return batch

        self.random.choice(self.stores).append(name, make_and_remember)
        self.chains.setdefault(name, []).extend(bodies)

    def check(self, location: SqliteStore) -> None:
        """Verify as any verifier would, and compare the rows with the model."""
        workers = self.random.randint(1, 8)
        report = verify_chain(location, RING, workers=workers, deep=self.random.random() < 0.3)
        assert report.findings == ()
        assert {notice.code for notice in report.notices} <= {"clock-step", "key-unused"}
        entries = {chain.name: chain.entries for chain in report.chains}
        assert entries == {name: len(bodies) for name, bodies in self.chains.items()}
        with location.snapshot() as snapshot:
            for chain_id, name, *_ in snapshot.head_rows():
                rows = snapshot.select(chain_id)
                assert [row.columns[16] for row in rows] == self.chains[name]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 900, 100))
def test_histories_in_memory(first: int):
    """Nine hundred histories of one store object, which several writers share."""
    for number in range(first, first + 100):
        store = MemoryStore()
        history = History(number, lambda store=store: store)
        history.run()
        history.check(store)
        store._connect().close()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(900, 1000, 50))
def test_histories_in_files(tmp_path: Path, first: int):
    """A hundred histories of one file, which several writers and restarts share."""
    for number in range(first, first + 50):
        path = tmp_path / f"{number}.db"
        history = History(number, lambda path=path: SqliteStore(path))
        history.run()
        history.check(Alone(path))
        for store in history.stores:
            store.release()
        path.unlink()


def test_the_histories_are_varied():
    """Rotations, second chains, clock steps and gaps do occur."""
    seen = set()
    for number in range(60):
        store = MemoryStore()
        history = History(number, lambda store=store: store)
        history.run()
        report = verify_chain(store, RING)
        seen |= {kind for chain in report.chains for kind in chain.kinds}
        seen |= {notice.code for notice in report.notices}
        seen |= {chain.name for chain in report.chains}
        store._connect().close()
    assert seen == {
        "genesis", "span", "gap", "key", "clock-step", "key-unused", "default", "other",
    }  # fmt: skip
