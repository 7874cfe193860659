"""Attacks on the tables themselves and on their indexes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bijotel.errors import UnavailableError
from bijotel.stores.sqlite import SqliteStore
from bijotel.stores.sqlite_schema import INDEXES
from bijotel.verify import verify_chain
from tests.attacks.evidence import CHAIN_ID, KEY, Evidence, first_finding, no_finding


def rows_cannot_be_read(evidence: Evidence, table: str) -> None:
    report = evidence.verify()
    first_finding(report, "schema-mismatch", None, table)
    assert report.chains == ()


def test_row_31_column_added(evidence: Evidence):
    """A column behind ours does no harm to the reading of ours, and is named."""
    evidence.sql("ALTER TABLE entries ADD COLUMN note TEXT DEFAULT 'x'")
    evidence.set(50, name="other")
    report = evidence.verify()
    first_finding(report, "schema-mismatch", None, "entries.note")
    assert [finding.code for finding in report.findings] == ["schema-mismatch", "column-mismatch"]


def test_row_31_column_added_to_the_heads(evidence: Evidence):
    """The same for the head records."""
    evidence.sql("ALTER TABLE heads ADD COLUMN note TEXT")
    report = evidence.verify()
    first_finding(report, "schema-mismatch", None, "heads.note")
    assert len(report.findings) == 1


def test_row_31_columns_of_ours_under_another_layout(evidence: Evidence):
    """All of our columns and one more, but without the rowids that reading goes by."""
    (definition,) = evidence.sql("SELECT sql FROM sqlite_master WHERE name = 'entries'")[0]
    evidence.drop_guards()
    evidence.sql("DROP TABLE entries")
    evidence.sql(f"{definition[:-1]}, place PRIMARY KEY) WITHOUT ROWID")
    report = evidence.verify()
    first_finding(report, "schema-mismatch", None, "entries.place")
    assert [finding.column for finding in report.findings] == ["entries.place", "entries"]
    assert report.chains == ()


def test_row_31_column_dropped(evidence: Evidence):
    """A column of ours gone, and another one in its place."""
    evidence.sql("DROP INDEX entries_by_dedup_key")
    evidence.sql("ALTER TABLE entries DROP COLUMN dedup_key")
    rows_cannot_be_read(evidence, "entries")
    evidence.sql("ALTER TABLE entries ADD COLUMN note")
    report = evidence.verify()
    first_finding(report, "schema-mismatch", None, "entries.note")
    assert report.findings[1].column == "entries"


def test_row_31_column_renamed(evidence: Evidence):
    """A column of ours under another name."""
    evidence.sql("ALTER TABLE entries RENAME COLUMN tag TO label")
    report = evidence.verify()
    first_finding(report, "schema-mismatch", None, "entries.label")
    assert report.findings[1].column == "entries"


def test_row_31_column_type(evidence: Evidence):
    """A column with another affinity, which turns what is stored into something else."""
    evidence.sql("PRAGMA writable_schema = ON")
    evidence.sql("UPDATE sqlite_master SET sql = replace(sql, 'tag BLOB', 'tag TEXT')")
    rows_cannot_be_read(evidence, "entries")


@pytest.mark.parametrize("table", ["entries", "heads"])
def test_row_31_view(evidence: Evidence, table: str):
    """A view in the table's place, which shows what its maker wants."""
    evidence.sql(f"ALTER TABLE {table} RENAME TO kept")
    evidence.sql(f"CREATE VIEW {table} AS SELECT * FROM kept")
    rows_cannot_be_read(evidence, table)


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE TABLE entries AS SELECT * FROM kept",
        "CREATE VIRTUAL TABLE entries USING fts5(chain_id, seq, body)",
        "CREATE TABLE entries (seq INTEGER PRIMARY KEY, body BLOB)",
        "CREATE TABLE entries (a, chain_id, PRIMARY KEY (a)) WITHOUT ROWID",
    ],
    ids=["copy", "virtual", "primary key", "without rowid"],
)
def test_row_31_another_table(evidence: Evidence, definition: str):
    """A table of another definition under the table's name."""
    evidence.drop_guards()
    evidence.sql("ALTER TABLE entries RENAME TO kept")
    evidence.sql(definition)
    report = evidence.verify()
    assert "entries" in {finding.column for finding in report.findings}
    assert {finding.code for finding in report.findings} == {"schema-mismatch"}
    assert report.exit_code == 1
    assert report.chains == ()


@pytest.mark.parametrize(
    "trigger",
    [
        "CREATE TRIGGER eater AFTER INSERT ON entries BEGIN DELETE FROM entries WHERE seq = 50; END",
        "CREATE TRIGGER eater AFTER UPDATE ON heads BEGIN UPDATE entries SET name = 'x'; END",
    ],
    ids=["deletes", "alters"],
)
def test_row_31_trigger(evidence: Evidence, trigger: str):
    """A trigger, before it did anything."""
    evidence.sql(trigger)
    report = evidence.verify()
    first_finding(report, "schema-mismatch", None, "eater")
    assert len(report.findings) == 1


def test_row_31_application_id(evidence: Evidence):
    """Another application's mark on our tables buys no softer verdict."""
    evidence.sql("PRAGMA application_id = 7")
    first_finding(evidence.verify(), "schema-mismatch", None, "application_id")


def test_the_mark_wiped(evidence: Evidence):
    """No mark at all is what a dump that was loaded again has: a notice."""
    evidence.sql("PRAGMA application_id = 0")
    report = evidence.verify()
    no_finding(report)
    assert [notice.code for notice in report.notices] == ["application-id-missing"]


@pytest.mark.parametrize("index", INDEXES)
def test_a_missing_index_is_a_notice(evidence: Evidence, index: str):
    """Indexes guard and speed up; they prove nothing."""
    evidence.sql(f"DROP INDEX {index}")
    report = evidence.verify()
    no_finding(report)
    assert [notice.code for notice in report.notices] == ["index-missing"]
    assert f"index {index} is missing" in report.notices[0].message


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE INDEX entries_by_seq ON entries (kind)",
        "CREATE UNIQUE INDEX entries_by_seq ON entries (chain_id, seq) WHERE seq <> 50",
        "CREATE VIEW entries_by_seq AS SELECT 1 AS seq",
        "CREATE TABLE entries_by_seq (seq)",
    ],
    ids=["other columns", "partial", "view", "table"],
)
def test_row_32_index_redefined(evidence: Evidence, definition: str):
    """Something else under the name of an index of ours."""
    evidence.sql("DROP INDEX entries_by_seq")
    evidence.sql(definition)
    report = evidence.verify()
    first_finding(report, "schema-mismatch", None, "entries_by_seq")
    assert len(report.findings) == 1


def hide_in_index(evidence: Evidence, index: str, seq: int, *, key: int) -> int:
    """Edit the index's b-tree in the file so that a scan does not find an entry; count cells.

    The cell of the entry is made a copy of the one before it, so that the tree stays in order.
    """
    evidence.settle()
    (root, page_size) = (
        evidence.sql("SELECT rootpage FROM sqlite_master WHERE name = ?", index)[0][0],
        evidence.sql("PRAGMA page_size")[0][0],
    )
    evidence.close()
    octets = bytearray(evidence.path.read_bytes())
    edited = 0
    for page in leaves(octets, root, page_size):
        start = (page - 1) * page_size
        header = start + (100 if page == 1 else 0)
        count = int.from_bytes(octets[header + 3 : header + 5], "big")
        cells = [
            int.from_bytes(octets[header + 8 + 2 * n : header + 10 + 2 * n], "big")
            for n in range(count)
        ]
        records = [bytes(octets[start + cell : start + cell + 40]) for cell in cells]
        for place in range(1, count):
            if CHAIN_ID + bytes([key]) in records[place]:
                pointer = header + 8 + 2 * place
                octets[pointer : pointer + 2] = octets[pointer - 2 : pointer]
                edited += 1
    evidence.path.write_bytes(octets)
    return edited


def leaves(octets: bytes, page: int, page_size: int) -> list[int]:
    """The leaf pages below a page of an index's b-tree."""
    start = (page - 1) * page_size
    if octets[start] == 10:
        return [page]
    assert octets[start] == 2, "no page of an index"
    count = int.from_bytes(octets[start + 3 : start + 5], "big")
    children = [int.from_bytes(octets[start + 8 : start + 12], "big")]
    for number in range(count):
        place = start + 12 + 2 * number
        cell = start + int.from_bytes(octets[place : place + 2], "big")
        children.append(int.from_bytes(octets[cell : cell + 4], "big"))
    return [leaf for child in children for leaf in leaves(octets, child, page_size)]


def test_row_32_index_hides_row(evidence: Evidence):
    """An index edited so that a range scan skips 50: the row itself is there and sound."""
    assert hide_in_index(evidence, "entries_by_seq", 50, key=50) == 1
    edited = Evidence(evidence.path)
    scanned = edited.sql(
        "SELECT seq FROM entries INDEXED BY entries_by_seq WHERE chain_id = ? ORDER BY seq",
        CHAIN_ID,
    )
    assert (50,) not in scanned
    report = edited.verify()
    finding = first_finding(report, "index-corrupt", 50, "entries_by_seq")
    assert "the index by seq does not agree with the rows" in finding.message
    edited.close()


def test_row_32_index_hides_a_tampered_row(evidence: Evidence):
    """What the index hides is still read, by rowid."""
    evidence.set(50, name="other")
    assert hide_in_index(evidence, "entries_by_seq", 50, key=50) == 1
    edited = Evidence(evidence.path)
    first_finding(edited.verify(), "column-mismatch", 50, "name")
    edited.close()


def test_row_32_an_index_of_the_attackers(evidence: Evidence):
    """No reader takes another index than the one that was compared with the rows."""
    evidence.sql("DROP INDEX entries_by_seq")
    evidence.sql("CREATE INDEX quick ON entries (chain_id, seq)")
    assert hide_in_index(evidence, "quick", 50, key=50) == 1
    edited = Evidence(evidence.path)
    report = edited.verify()
    no_finding(report)
    assert [notice.code for notice in report.notices] == ["index-missing"]
    with SqliteStore(edited.path).snapshot() as snapshot:
        assert [row.columns[1] for row in snapshot.select(CHAIN_ID)] == list(range(101))
    edited.close()


def test_a_page_of_rows_overwritten_is_said(evidence: Evidence):
    """A file whose tables are sound and whose rows SQLite cannot reach could not be checked."""
    (root,) = evidence.sql("SELECT rootpage FROM sqlite_master WHERE name = 'entries'")[0]
    page_size = evidence.sql("PRAGMA page_size")[0][0]
    evidence.settle()
    evidence.close()
    octets = bytearray(evidence.path.read_bytes())
    octets[(root - 1) * page_size : root * page_size] = b"\xee" * page_size
    evidence.path.write_bytes(octets)
    with pytest.raises(UnavailableError, match=r"cannot be read: database disk image is malformed"):
        verify_chain(evidence.path, KEY)


def test_a_page_overwritten_is_said(evidence: Evidence):
    """A file that SQLite itself cannot read could not be checked."""
    evidence.settle()
    evidence.close()
    octets = bytearray(evidence.path.read_bytes())
    octets[4096:] = b"\xee" * (len(octets) - 4096)
    evidence.path.write_bytes(octets)
    with pytest.raises(UnavailableError, match="cannot be read: "):
        verify_chain(evidence.path, KEY)


@pytest.mark.parametrize(
    "content", [b"no database at all" * 100, b"\0" * 5000, b"SQLite format 3\0"]
)
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes):
    """Exit 3, not a finding: there is no store here."""
    path = tmp_path / "chain.db"
    path.write_bytes(content)
    with pytest.raises(UnavailableError, match=r"chain\.db: cannot be read: "):
        verify_chain(path, KEY)
    assert path.read_bytes() == content
