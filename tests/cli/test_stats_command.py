"""``bijotel stats``: counts in one pass, whatever the rows hold."""

from __future__ import annotations

from bijotel import canonical
from bijotel.model import Status
from tests.cli.conftest import (
    CHAIN_HEX,
    SEALED_AT,
    append,
    body,
    gap,
    span,
    tamper,
)


def _fill(path):
    append(
        path,
        [
            span(11, attributes={"gen_ai.request.model": "other\x1b"}, status=Status("ERROR")),
            span(12, attributes={"bijotel.blocked": True}),
            span(13, attributes={"bijotel.policy.warning": "w", "gen_ai.request.model": None}),
            gap(3),
            gap(4),
            gap(None, "process-ended"),
        ],
        sealed_at=SEALED_AT + 10**9,
    )


def test_the_counts(bijotel, db):
    """Everything that a chain holds, by kind."""
    _fill(db)
    size = db.stat().st_size
    assert bijotel("stats", "--db", db) == (
        0,
        f"""\
chain default ({CHAIN_HEX})
  entries:            12
  first sealed:       2023-11-14T22:15:00.000000000Z
  last sealed:        2023-11-14T22:15:01.000000000Z
  kinds:              8 span, 3 gap, 1 genesis
  models:             6 gpt-test, 1 other\\x1b
  status:             6 ALLOWED, 1 BLOCKED, 1 WARN
  span status:        7 OK, 1 ERROR
  gap queue-full:     7 spans lost (2 gap entries)
  gap process-ended:  0 spans lost (1 gap entries, 1 of unknown size)
database: {size} bytes
""",
        "",
    )


def test_the_json_document(bijotel, db):
    """The same as one document."""
    _fill(db)
    document = bijotel("stats", "--db", db, "--json").document
    assert document == {
        "store": str(db),
        "bytes": {"database": db.stat().st_size},
        "spool": {"files": 0, "bytes": 0, "unsettled": 0},
        "chains": [
            {
                "chain": CHAIN_HEX,
                "name": "default",
                "entries": 12,
                "malformed": 0,
                "unreadable": 0,
                "first_sealed_at_unix_nano": str(SEALED_AT),
                "last_sealed_at_unix_nano": str(SEALED_AT + 10**9),
                "kinds": {"genesis": 1, "span": 8, "gap": 3},
                "models": {"gpt-test": 6, "other\\x1b": 1},
                "status": {"ALLOWED": 6, "BLOCKED": 1, "WARN": 1},
                "span_status": {"OK": 7, "ERROR": 1},
                "gaps": [
                    {"reason": "queue-full", "entries": 2, "spans": 7, "unknown": 0},
                    {"reason": "process-ended", "entries": 1, "spans": 0, "unknown": 1},
                ],
            }
        ],
    }


def test_a_chain_of_a_genesis_alone(bijotel, tmp_path):
    """Nothing is counted as none."""
    path = append(tmp_path / "chain.db")
    out = bijotel("stats", "--db", path).out
    assert "  entries:            1\n" in out
    assert "  models:             none\n" in out


def test_malformed_rows_and_bodies_are_counted(bijotel, db):
    """They stop nothing, and are told apart from what could be read."""
    odd_gap = body("gap", {"count": "many", "reason": ["\x1b"]})
    append(db, [odd_gap, body("gap", {"x": 1})])
    tamper(db, "UPDATE entries SET name = NULL WHERE seq = 1")
    tamper(db, "UPDATE entries SET body = x'ff' WHERE seq = 2")
    tamper(db, "UPDATE entries SET body = ? WHERE seq = 3", canonical.dumps([1]))
    result = bijotel("stats", "--db", db)
    assert result.code == 0
    assert "  malformed:          1 rows\n" in result.out
    assert "  unreadable:         3 bodies\n" in result.out
    assert '  gap ["\\u001b"]:     0 spans lost (1 gap entries, 1 of unknown size)\n' in result.out
    assert "  kinds:              4 span, 2 gap, 1 genesis\n" in result.out


def test_hostile_names_are_cut(bijotel, db):
    """A name of a megabyte does not fill the screen or the memory."""
    append(db, [span(9, attributes={"gen_ai.request.model": "m" * 1_000_000})])
    models = bijotel("stats", "--db", db, "--json").document["chains"][0]["models"]
    assert models == {"gpt-test": 5, "m" * 200: 1}


def test_one_chain_of_several(bijotel, db):
    """``--chain`` picks, without it all are counted."""
    append(db, [span(1)], chain="second", chain_id=b"2" * 16)
    names = [each["name"] for each in bijotel("stats", "--db", db, "--json").document["chains"]]
    assert names == ["default", "second"]
    document = bijotel("stats", "--db", db, "--chain", "second", "--json").document
    assert [each["entries"] for each in document["chains"]] == [2]


def test_a_chain_without_a_head_is_counted_by_its_id(bijotel, db):
    """The rows are there even if nobody names them."""
    tamper(db, "DELETE FROM heads")
    result = bijotel("stats", "--db", db, "--chain", CHAIN_HEX)
    assert result.code == 0
    assert result.out.startswith(f"chain (no name) ({CHAIN_HEX})\n  entries:            6\n")


def test_the_write_ahead_log_is_measured_too(bijotel, db):
    """What is not copied back yet belongs to the store's size."""
    import sqlite3

    writer = sqlite3.connect(db)
    writer.execute("UPDATE heads SET name = name")
    writer.commit()
    sizes = bijotel("stats", "--db", db, "--json").document["bytes"]
    assert sizes["write-ahead log"] > 0
    writer.close()
