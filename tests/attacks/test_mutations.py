"""Every column of every row, changed in every way: found, at that row, without a traceback."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from bijotel.findings import Report
from bijotel.keys import KeyRing
from bijotel.seal import Batch
from bijotel.stores.base import ENTRY_COLUMNS, HEAD_COLUMNS
from bijotel.stores.memory import MemoryStore
from bijotel.verify import verify_chain
from tests.attacks.evidence import KEY, NEW_KEY, UNIQUE_GUARDS, Writer, gap, span

ROWS = 60
RING = KeyRing(KEY, NEW_KEY)
MUTATIONS = ("bit flip", "shorter", "longer", "null", "other type", "swap")


class Chain(NamedTuple):
    """A chain of 60 entries in memory: a genesis, spans, gaps and a rotation."""

    store: MemoryStore
    connection: sqlite3.Connection
    columns: dict[str, list[Any]]
    """The values of each column, by ``seq``."""


def sealed() -> Writer:
    """A genesis, spans, gaps and a rotation: 60 entries."""
    writer = Writer()
    for number in range(1, ROWS):
        if number == 40:
            writer.rotate()
        else:
            writer.append(gap(number) if number % 10 == 5 else span(number))
    return writer


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    writer = sealed()
    store = MemoryStore()
    store.append("default", lambda _head: Batch(tuple(writer.entries), writer.head))
    connection = store._connect()
    for name in (*UNIQUE_GUARDS, "heads_by_chain_id", "heads_by_name"):
        connection.execute(f"DROP INDEX {name}")
    values = zip(*writer.entries, strict=True)
    yield Chain(store, connection, dict(zip(ENTRY_COLUMNS, map(list, values), strict=True)))
    connection.close()


def mutated(value: Any, mutation: str) -> Any:
    """Change a value; some changes leave some values as they are, and are skipped by callers."""
    if mutation == "null":
        return None
    if isinstance(value, int):
        return {
            "bit flip": value ^ 1,
            "shorter": value // 256,
            "longer": value * 256 + 1 if value < 2**54 else 2**63 - 1,
            "other type": f"x{value}",
        }[mutation]
    if mutation == "other type":
        return value.encode() if isinstance(value, str) else value.hex()
    if mutation == "longer":
        return value + (b"\0" if isinstance(value, bytes) else "x")
    if mutation == "shorter" or not value:
        return value[:-1]
    middle = len(value) // 2
    if isinstance(value, bytes):
        return value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1 :]
    return value[:middle] + chr(ord(value[middle]) ^ 1) + value[middle + 1 :]


def is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def changes(values: list[Any], mutation: str) -> Iterator[tuple[int, list[tuple[int, Any]]]]:
    """The row meant, and what to write into which rows, for each row where it is a change."""
    for seq, value in enumerate(values):
        if mutation == "swap":
            other = seq + 1 if seq + 1 < len(values) else seq - 1
            new = [(seq, values[other]), (other, value)]
        else:
            new = [(seq, mutated(value, mutation))]
        if not is_same(new[0][1], value):
            yield seq, new


def write(chain: Chain, column: str, values: list[tuple[int, Any]]) -> None:
    # Rows stand in the file in the order of seq, so that rowid is seq + 1.
    for seq, value in values:
        chain.connection.execute(
            f"UPDATE entries SET {column} = ? WHERE rowid = ?", (value, seq + 1)
        )


def check(report: Report, mutation: str, column: str, new: list[tuple[int, Any]]) -> None:
    """Assert that the mutation was found at its row, and how a command would end."""
    assert report.findings, (mutation, column, new)
    assert report.exit_code == 1, (mutation, column, new, report.findings)
    first = report.findings[0]
    allowed: set[int | None] = {seq for seq, _ in new}
    if column == "seq":
        # The row may be named by the number that it has now; none when that is no number.
        allowed |= {value if isinstance(value, int) else None for _, value in new}
    assert first.seq in allowed, (mutation, column, new, report.findings)


@pytest.mark.slow
@pytest.mark.parametrize("column", ENTRY_COLUMNS)
def test_every_mutation_of_a_column_is_found(chain: Chain, column: str):
    """A flip, another length, NULL, another type, a neighbour's value: none goes undetected."""
    values = chain.columns[column]
    tried = 0
    for mutation in MUTATIONS:
        for seq, new in changes(values, mutation):
            before = [(place, values[place]) for place, _ in new]
            write(chain, column, new)
            try:
                check(verify_chain(chain.store, RING), mutation, column, new)
            finally:
                write(chain, column, before)
            assert new[0][0] == seq
            tried += 1
    assert verify_chain(chain.store, RING).findings == ()
    assert tried >= 2 * ROWS


@pytest.mark.parametrize("column", HEAD_COLUMNS)
def test_every_mutation_of_the_head_is_found(chain: Chain, column: str):
    """The head has one row, so that nothing can be swapped; all else is tried."""
    query = f"SELECT {column} FROM heads"
    ((value,),) = chain.connection.execute(query).fetchall()
    for mutation in MUTATIONS[:-1]:
        new = mutated(value, mutation)
        if is_same(new, value):
            assert (column, mutation) == ("epoch", "shorter")
            continue
        chain.connection.execute(f"UPDATE heads SET {column} = ?", (new,))
        try:
            report = verify_chain(chain.store, RING)
        finally:
            chain.connection.execute(f"UPDATE heads SET {column} = ?", (value,))
        assert report.exit_code == 1
        assert report.findings[0].code == "head-mismatch", (mutation, report.findings)
    assert verify_chain(chain.store, RING).findings == ()


def test_the_mutations_that_change_nothing():
    """What is left out is left out for a reason: an empty value has no bit and is not shorter."""
    assert mutated(b"", "shorter") == b""
    assert mutated("", "bit flip") == ""
    assert mutated(0, "shorter") == 0
    for value in (b"ab", "ab", 300):
        for mutation in MUTATIONS[:-1]:
            assert not is_same(mutated(value, mutation), value)
