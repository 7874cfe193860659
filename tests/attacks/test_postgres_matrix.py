"""PostgreSQL in bulk: the mutation matrix and random honest histories.

Every column is changed in every way as in ``test_mutations``, in rows of each kind and at both
ends: ten of the sixty, because a verification of a database takes twenty times as long as one in
memory. The histories are some of those of ``test_histories``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from bijotel.keys import KeyRing
from bijotel.model import Entry
from bijotel.stores.base import ENTRY_COLUMNS, HEAD_COLUMNS
from bijotel.stores.postgres import PostgresStore
from bijotel.verify import verify_chain
from tests.attacks.evidence import KEY, NEW_KEY, UNIQUE_GUARDS, Writer
from tests.attacks.postgres import Alone, PostgresEvidence, RefusedError, database
from tests.attacks.test_histories import RING as HISTORY_RING
from tests.attacks.test_histories import History
from tests.attacks.test_mutations import MUTATIONS, changes, check, is_same, mutated, sealed
from tests.postgres_server import new_database

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

RING = KeyRing(KEY, NEW_KEY)
PLACES = {0, 1, 5, 15, 30, 39, 40, 41, 58, 59}
"""Genesis, spans, gaps, the key entry and its neighbours, the last ones."""


@pytest.fixture(scope="module")
def chain(postgres_server: str) -> Iterator[tuple[PostgresEvidence, Alone, Writer]]:
    """The chain of ``test_mutations`` in a database, without the unique indexes."""
    writer = sealed()
    for url in database(postgres_server, writer):
        evidence = PostgresEvidence(url)
        for name in (*UNIQUE_GUARDS, "heads_by_chain_id", "heads_by_name"):
            evidence.sql(f"DROP INDEX {name}")
        yield evidence, Alone(url), writer
        evidence.close()


def write(evidence: PostgresEvidence, column: str, values: list[tuple[Entry, Any]]) -> None:
    """Write the very values into a column of rows, which are told by what is not written."""
    for entry, value in values:
        other = "tag" if column != "tag" else "body_hash"
        where = f"encode({other}, 'hex') = '{getattr(entry, other).hex()}'"
        evidence.put_values("entries", where, {column: value})


@pytest.mark.parametrize("column", ENTRY_COLUMNS)
def test_every_mutation_of_a_column_is_found(
    chain: tuple[PostgresEvidence, Alone, Writer], column: str
):
    """A flip, another length, NULL, a neighbour's value: found; another type: refused."""
    evidence, store, writer = chain
    values = [getattr(entry, column) for entry in writer.entries]
    found, refused = dict.fromkeys(MUTATIONS, 0), dict.fromkeys(MUTATIONS, 0)
    for mutation in MUTATIONS:
        for seq, new in changes(values, mutation):
            if seq not in PLACES:
                continue
            try:
                write(evidence, column, [(writer.entries[place], value) for place, value in new])
                check(verify_chain(store, RING), mutation, column, new)
                found[mutation] += 1
            except RefusedError:
                refused[mutation] += 1
            write(evidence, column, [(writer.entries[place], values[place]) for place, _ in new])
    assert verify_chain(store, RING).findings == ()
    assert found["null"] == len(PLACES)
    assert refused == dict.fromkeys(MUTATIONS, 0) | {"other type": len(PLACES)}
    assert sum(found.values()) >= 2 * len(PLACES)


@pytest.mark.parametrize("column", HEAD_COLUMNS)
def test_every_mutation_of_the_head_is_found(
    chain: tuple[PostgresEvidence, Alone, Writer], column: str
):
    """All but the swap, as the head has one row."""
    evidence, store, writer = chain
    value = getattr(writer.head, column)
    for mutation in MUTATIONS[:-1]:
        new = mutated(value, mutation)
        if is_same(new, value):
            assert (column, mutation) == ("epoch", "shorter")
            continue
        try:
            evidence.set_head(**{column: new})
        except RefusedError:
            assert mutation == "other type"
            continue
        report = verify_chain(store, RING)
        evidence.set_head(**{column: value})
        assert report.exit_code == 1
        assert report.findings[0].code == "head-mismatch", (mutation, report.findings)
    assert verify_chain(store, RING).findings == ()


# --- histories -------------------------------------------------------------------------------


class PostgresHistory(History):
    """A history of a database."""

    def vacuum(self) -> None:
        """Somebody tidies the tables up."""
        store = self.stores[0]
        assert isinstance(store, PostgresStore)
        if self.chains:
            with psycopg.connect(store.address or "", autocommit=True) as connection:
                connection.execute("VACUUM bijotel.entries")


def test_honest_histories(postgres_server: str):
    """Restarts, rotations, several writers and chains, gaps, clock steps: no false alarm."""
    seen: set[str] = set()
    with (
        new_database(postgres_server) as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        for number in range(1000, 1040):
            history = PostgresHistory(number, lambda: PostgresStore(url))  # type: ignore[arg-type, return-value]
            history.run()
            history.check(Alone(url))  # type: ignore[arg-type]
            report = verify_chain(Alone(url), HISTORY_RING)
            seen |= {kind for chain in report.chains for kind in chain.kinds}
            seen |= {notice.code for notice in report.notices}
            for store in history.stores:
                store.release()
            connection.execute("DROP SCHEMA bijotel CASCADE")
    assert seen == {"genesis", "span", "gap", "key", "clock-step", "key-unused"}
