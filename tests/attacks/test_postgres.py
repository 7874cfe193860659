"""The attack list on PostgreSQL: the same rows, the same codes, the same places.

The tests of the other modules run here a second time with the same names, on a chain that is kept
in a database. What its types refuse is asserted here, and done again with the type altered. The
mutation matrix and the histories are in ``test_postgres_matrix``, row 33 is with the tests of the
store.

Of SQLite alone are row 20's empty file, row 31's mark of the file, row 50's stored tile and row
32, whose index is read around: PostgreSQL reads through its index, where a hidden row is a hole
(row 10). Rows 43, 45, 53 and 54 are about files of evidence, rows 52, 58 and 59 about what comes
before a store.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial, wraps
from typing import Any

import psycopg
import pytest

from bijotel.seal import seal_entries
from bijotel.stores.base import ENTRY_COLUMNS
from bijotel.stores.postgres import PostgresStore
from bijotel.stores.postgres_schema import COLUMNS
from bijotel.verify import verify_chain
from tests.attacks import evidence as helpers
from tests.attacks import (
    test_checkpoints,
    test_content,
    test_honest,
    test_limits,
    test_order,
    test_rotation,
    test_signing,
    test_tail,
)
from tests.attacks.evidence import KEY, Writer, first_finding, no_finding, span
from tests.attacks.postgres import PostgresEvidence, RefusedError, database, keep
from tests.postgres_server import new_database

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

MODULES = (
    test_checkpoints,
    test_content,
    test_honest,
    test_limits,
    test_order,
    test_rotation,
    test_signing,
    test_tail,
)
# Tests of the other modules that are about a file or written in SQLite's own words, and what
# stands in their place.
NOT_HERE = {
    "test_row_04_the_columns_are_those_of_the_schema": "test_the_columns_are_those_of_the_schema",
    "test_row_20_empty_file": "test_a_database_without_tables",
    "test_row_28_text_that_is_no_utf_8": "test_text_that_is_no_utf_8_is_refused",
    "test_row_29_half_a_gibibyte": "test_row_29_oversize",
    "test_row_29_half_a_gibibyte_of_text": "test_row_29_oversize",
    "test_row_29_head_columns": "test_row_29_long_head",
    "test_row_29_other_columns": "test_row_29_long_columns",
    "test_row_34_strip_all_tags": "test_all_tags_stripped",
    "test_row_47_verify_while_writing": "test_row_47_verify_while_writing",
    "test_a_dump_loaded_again_is_verifiable": "test_a_table_written_anew_is_verifiable",
    "test_other_tables_are_nobodys_business": "test_other_relations_are_nobodys_business",
    "test_vacuum_leaves_a_chain_verifiable": "test_a_table_written_anew_is_verifiable",
}


@pytest.fixture(scope="module")
def honest_url(postgres_server: str) -> Iterator[str]:
    """A genesis and 100 spans."""
    writer = Writer()
    writer.append(*map(span, range(1, 101)))
    yield from database(postgres_server, writer)


@pytest.fixture(scope="module")
def rotated_url(postgres_server: str) -> Iterator[str]:
    """The same, handed over to another key by entry 60."""
    writer = Writer()
    writer.append(*map(span, range(1, 60)))
    writer.rotate()
    writer.append(*map(span, range(61, 101)))
    yield from database(postgres_server, writer)


@pytest.fixture
def evidence(honest_url: str) -> Iterator[PostgresEvidence]:
    made = PostgresEvidence(honest_url)
    made.restore()
    yield made
    made.close()


@pytest.fixture
def rotated_evidence(rotated_url: str) -> Iterator[PostgresEvidence]:
    made = PostgresEvidence(rotated_url)
    made.restore()
    yield made
    made.close()


# --- what is said in other words here --------------------------------------------------------


def test_the_columns_are_those_of_the_schema(evidence: PostgresEvidence):
    """Row 4: a column that is added to the schema has to be added to the tests of columns."""
    found = evidence.sql(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'bijotel.entries'::regclass "
        "AND attnum > 0 ORDER BY attnum"
    )
    assert [name for (name,) in found] == list(ENTRY_COLUMNS) == list(COLUMNS["entries"])


def test_a_database_without_tables(evidence: PostgresEvidence):
    """Row 20: nothing is there, which is never "0 entries verified"."""
    evidence.sql("DROP SCHEMA bijotel CASCADE")
    report = evidence.verify()
    first_finding(report, "schema-missing", None, "entries")
    assert [finding.column for finding in report.findings] == ["entries", "heads"]


def test_text_that_is_no_utf_8_is_refused(evidence: PostgresEvidence):
    """Row 28: the server checks every text, and takes no zero octet."""
    for text in ("\ud800", "a\0b"):
        with pytest.raises((UnicodeEncodeError, psycopg.DataError)):
            evidence.sql("UPDATE entries SET name = ? WHERE seq = 50", text)
    no_finding(evidence.verify())


def test_all_tags_stripped(evidence: PostgresEvidence):
    """Row 34: tags and key ids emptied in every row."""
    evidence.sql("UPDATE entries SET tag = '', key_id = ''")
    first_finding(evidence.verify(), "type-mismatch", 0, "key_id", last_seq=100)


EATER = """
CREATE FUNCTION bijotel.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER eater BEFORE INSERT ON bijotel.entries
FOR EACH ROW EXECUTE FUNCTION bijotel.nothing()
"""
HIDING_VIEW = """
ALTER TABLE bijotel.entries RENAME TO hidden;
CREATE VIEW bijotel.entries AS SELECT * FROM bijotel.hidden WHERE seq <> 50
"""


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        ("ALTER TABLE bijotel.entries ADD COLUMN note text", "entries.note"),
        ("ALTER TABLE bijotel.entries DROP COLUMN dedup_key", "entries.dedup_key"),
        ("ALTER TABLE bijotel.heads ALTER COLUMN seq TYPE numeric", "heads.seq"),
        (EATER, "eater"),
        ("CREATE RULE eater AS ON DELETE TO bijotel.heads DO INSTEAD NOTHING", "eater"),
        (HIDING_VIEW, "entries"),
    ],
)
def test_row_31_objects_that_the_schema_lacks(
    evidence: PostgresEvidence, statement: str, column: str
):
    """A column, a trigger, a rule, a view in the table's place."""
    evidence.sql(statement)
    first_finding(evidence.verify(), "schema-mismatch", None, column)


def test_a_missing_index_is_a_notice(evidence: PostgresEvidence):
    """The rows are read without it, and prove themselves."""
    evidence.sql("DROP INDEX entries_by_prev_tag")
    report = evidence.verify()
    no_finding(report)
    assert [notice.code for notice in report.notices] == ["index-missing"]


def test_a_table_written_anew_is_verifiable(evidence: PostgresEvidence):
    """Rows deleted and put back, and the table packed: nothing is built on where a row lies."""
    rows = evidence.entries(20, 30)
    evidence.delete(20, 30)
    evidence.insert(*rows)
    evidence.sql("VACUUM FULL bijotel.entries")
    no_finding(evidence.verify(deep=True))


def test_other_relations_are_nobodys_business(evidence: PostgresEvidence):
    """Statistics, and a table that somebody else keeps in the database, are no fault."""
    evidence.sql("ANALYZE")
    evidence.sql("CREATE TABLE notes (text text)")
    report = evidence.verify()
    evidence.sql("DROP TABLE notes")
    no_finding(report)
    assert report.notices == ()


@pytest.mark.parametrize("size", [16 * 2**20 + 1, 128 * 2**20])
def test_row_29_oversize(evidence: PostgresEvidence, size: int):
    """A body over the limit is a finding, and its octets never leave the server."""
    evidence.sql(f"UPDATE entries SET body = decode(repeat('00', {size}), 'hex') WHERE seq = 50")
    finding = first_finding(evidence.verify(), "limit-exceeded", 50, "body")
    assert finding.found == f"{size} bytes"
    outcome = test_limits.verify_apart(evidence.path)
    assert outcome["finding"] == finding.as_dict()
    test_limits.limited_to_64_mebibytes(outcome)


@pytest.mark.parametrize("column", ["name", "kind", "tag", "prev_tag", "chain_id"])
def test_row_29_long_columns(evidence: PostgresEvidence, column: str):
    """A long value in any other column is of a wrong type, and costs no memory."""
    evidence.drop_indexes()
    long = f"repeat('00', {40 * 2**20})"
    value = long if column in {"name", "kind"} else f"decode({long}, 'hex')"
    evidence.sql(f"UPDATE entries SET {column} = {value} WHERE seq = 50")
    finding = first_finding(evidence.verify(), "type-mismatch", 50, column)
    outcome = test_limits.verify_apart(evidence.path)
    assert outcome["finding"] == finding.as_dict()
    test_limits.limited_to_64_mebibytes(outcome)


@pytest.mark.parametrize("column", ["tree", "mac"])
def test_row_29_long_head(evidence: PostgresEvidence, column: str):
    """A head of 128 MiB is no head."""
    evidence.sql(f"UPDATE heads SET {column} = decode(repeat('00', {128 * 2**20}), 'hex')")
    first_finding(evidence.verify(), "head-mismatch", None, "head")
    outcome = test_limits.verify_apart(evidence.path)
    assert outcome["finding"]["code"] == "head-mismatch"
    test_limits.limited_to_64_mebibytes(outcome)


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_row_46_boundary(honest_url: str, evidence: PostgresEvidence, workers: int):
    """Real worker processes say what one says, wherever the fault is."""
    for seq in (0, 1, 14, 50, 51, 99, 100):
        evidence.restore()
        evidence.set(seq, prev_tag=b"\xee" * 32)
        report = verify_chain(honest_url, KEY, workers=workers)
        first_finding(report, "link-mismatch", seq, "prev_tag")


def test_row_47_verify_while_writing(postgres_server: str):
    """What is appended during a verification is not looked at, and is no fault."""
    with new_database(postgres_server) as url:
        keep(url, Writer())
        writer = PostgresStore(url)
        stop = threading.Event()

        def write() -> None:
            number = 1
            while not stop.is_set():
                make = partial(seal_entries, drafts=[span(number)], key=KEY)
                writer.append("default", partial(make, sealed_at_unix_nano=number))
                number += 1

        thread = threading.Thread(target=write)
        thread.start()
        try:
            seen = [verify_chain(url, KEY, deep=True, workers=n) for n in (1, 2, 1, 2, 7, 1)]
        finally:
            stop.set()
            thread.join()
            writer.release()
        assert [report.findings for report in seen] == [()] * 6
        assert seen[-1].checked["entries"] > seen[0].checked["entries"]


def test_a_key_entry_is_honoured_here_too(rotated_evidence: PostgresEvidence):
    """Row 7: entries behind a rotation whose key is not given were not checked."""
    report = rotated_evidence.verify()
    first_finding(report, "key-unknown", 61, None, exit_code=3, last_seq=100)


# --- the tests of the other modules ----------------------------------------------------------


_secret = test_signing._secret


@pytest.fixture(autouse=True)
def _databases_in_place_of_files(
    postgres_server: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Where a test makes a file to attack, or to take rows from, it gets a database."""
    with ExitStack() as stack:
        urls: dict[Any, str] = {}

        def url_of(place: Any) -> str:
            if str(place).startswith("postgresql:"):
                return str(place)
            if place not in urls:
                urls[place] = stack.enter_context(new_database(postgres_server))
            return urls[place]

        monkeypatch.setattr(helpers, "SqliteStore", lambda path: PostgresStore(url_of(path)))
        for module in MODULES:
            if hasattr(module, "Evidence"):
                monkeypatch.setattr(module, "Evidence", lambda path: PostgresEvidence(url_of(path)))
            if hasattr(module, "SqliteStore"):
                monkeypatch.setattr(module, "SqliteStore", helpers.SqliteStore)
        yield


def _tests() -> Iterator[tuple[str, Callable[..., None]]]:
    for module in MODULES:
        for name, function in inspect.getmembers(module, inspect.isfunction):
            is_a_test = name.startswith("test_") and function.__module__ == module.__name__
            if is_a_test and name not in NOT_HERE and inspect.signature(function).parameters:
                yield f"{name}_{module.__name__.rpartition('_')[2]}", _or_refused(function)


def _or_refused(function: Callable[..., None]) -> Callable[..., None]:
    """Where the types refuse an attack, alter the type: then that is what is found."""

    @wraps(function)
    def test(**fixtures: Any) -> None:
        try:
            function(**fixtures)
        except RefusedError as refused:
            evidence = fixtures["evidence"]
            no_finding(evidence.verify())
            evidence.drop_indexes()
            evidence.force(refused)
            place = f"{refused.table}.{refused.column}"
            first_finding(evidence.verify(), "schema-mismatch", None, place)

    return test


globals().update(_tests())


def test_the_types_refuse_and_are_altered(evidence: PostgresEvidence):
    """What a column cannot hold is refused, and a column that can is found."""
    for columns in ({"body": 7}, {"epoch": "x"}, {"epoch": 0.5}, {"name": b"x"}):
        with pytest.raises(RefusedError):
            evidence.set(50, **columns)
    no_finding(evidence.verify())
    assert set(NOT_HERE.values()) <= globals().keys()
