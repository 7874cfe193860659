"""``bijotel list``: one line for each entry, pages, filters, JSON."""

from __future__ import annotations

import io
import json
import resource
import subprocess

import pytest

from bijotel.cli.output import Output
from bijotel.model import Status
from tests.cli.conftest import (
    CHAIN_HEX,
    COMMAND,
    append,
    clean_environment,
    gap,
    rag,
    source,
    span,
    tamper,
)

LIMIT_BYTES = 150 * 2**20
HEADER = (
    "     seq  time                      kind        status   sources       in      out         cost  model"
    "                 name"
)


@pytest.fixture
def mixed(tmp_path):
    """A chain with a plain call, a blocked RAG call, a call without tokens and a gap."""
    return append(
        tmp_path / "chain.db",
        [
            span(1),
            span(2, attributes={**rag([source()] * 3), "bijotel.blocked": True}, name="chat\nx"),
            span(
                3,
                attributes={
                    "gen_ai.usage.input_tokens": None,
                    "gen_ai.usage.output_tokens": None,
                    "gen_ai.response.model": "gpt-test-2026",
                },
                status=Status("ERROR"),
                trace_id=f"{1:032x}",
            ),
            gap(2),
        ],
    )


def test_the_table(bijotel, mixed):
    """A header, a line an entry, and what the lines are worth."""
    assert bijotel("list", "--db", mixed) == (
        0,
        f"""\
{HEADER}
       0  2023-11-14T22:15:00.000Z  genesis
       1  2023-11-14T22:13:20.000Z  span        ALLOWED        -      120       17            -  gpt-test              chat gpt-test
       2  2023-11-14T22:13:20.000Z  span        BLOCKED        3      120       17            -  gpt-test              chat\\nx
       3  2023-11-14T22:13:20.000Z  span        ALLOWED        -        -        -            -  gpt-test-2026         chat gpt-test
       4  2023-11-14T22:15:00.000Z  gap
5 listed as stored, not verified (see "bijotel verify")
""",
        "",
    )


def _seqs(result):
    return [line.split()[0] for line in result.out.splitlines()[1:-1]]


@pytest.mark.parametrize(
    ("options", "seqs", "more"),
    [
        (("--limit", 2), "01", "; more from --from 2 on"),
        (("--limit", 5), "01234", ""),
        (("--from", 3), "34", ""),
        (("--from", 1, "--limit", 2), "12", "; more from --from 3 on"),
        (("--newest",), "43210", ""),
        (("--newest", "--limit", 2), "43", "; more from --from 2 on"),
        (("--newest", "--from", 2), "210", ""),
        (("--oldest", "--from", 2**70), "", ""),
        (("--trace", f"{1:032X}"), "13", ""),
        (("--trace", f"{99:032x}"), "", ""),
        (("--chain", "default", "--limit", 1), "0", "; more from --from 1 on"),
        (("--chain", CHAIN_HEX, "--from", 4), "4", ""),
    ],
)
def test_pages_and_filters(bijotel, mixed, options, seqs, more):
    """The last line says where the next page begins."""
    result = bijotel("list", "--db", mixed, *options)
    assert (result.code, result.err) == (0, "")
    assert _seqs(result) == list(seqs)
    assert result.out.splitlines()[-1] == (
        f'{len(seqs)} listed as stored, not verified (see "bijotel verify"){more}'
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--trace", "xyz"), "--trace 'xyz': expected 32 hex digits"),
        (
            ("--limit", "0"),
            (
                "Invalid value for '--limit': 0 is not in the range 1<=x<=1000000000. "
                "(see: bijotel list --help)"
            ),
        ),
        (
            ("--from", "-1"),
            "Invalid value for '--from': -1 is not in the range x>=0. (see: bijotel list --help)",
        ),
    ],
)
def test_bad_options(bijotel, mixed, options, message):
    """Exit 2 with what was expected."""
    assert bijotel("list", "--db", mixed, *options) == (2, "", f"error: {message}\n")


def test_json_is_one_array_with_an_entry_a_line(bijotel, mixed):
    """Readable as a document and line by line."""
    result = bijotel("list", "--db", mixed, "--json")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert (lines[0], lines[-1]) == ("[", "]")
    assert [json.loads(line.rstrip(",")) for line in lines[1:-1]] == result.document
    assert result.document[2] == {
        "chain": CHAIN_HEX,
        "seq": 2,
        "kind": "span",
        "sealed_at_unix_nano": "1700000100000000000",
        "trace_id": f"{2:032x}",
        "span_id": f"{2:016x}",
        "name": "chat\nx",
        "start_unix_nano": "1700000000000000002",
        "end_unix_nano": "1700000000000005002",
        "model": "gpt-test",
        "source_count": 3,
        "input_tokens": 120,
        "output_tokens": 17,
        "status": "BLOCKED",
        "span_status": "OK",
        "cost": {"usd": None, "reason": "no price is known for gpt-test"},
    }
    assert result.document[3]["source_count"] is None
    assert result.document[3]["span_status"] == "ERROR"
    assert "model" not in result.document[4]


def test_json_of_nothing_is_an_empty_array(bijotel, mixed):
    """Not blank."""
    assert bijotel("list", "--db", mixed, "--json", "--from", 99).out == "[]\n"


def test_several_chains_are_listed_one_after_another(bijotel, mixed):
    """Each under its name, each with its own page."""
    append(mixed, [span(1)], chain="se\x1bcond", chain_id=b"2" * 16)
    out = bijotel("list", "--db", mixed, "--limit", 1).out.splitlines()
    assert out[0] == "chain default"
    assert out[4] == r"chain se\x1bcond"
    assert len(out) == 8
    document = bijotel("list", "--db", mixed, "--limit", 1, "--json").document
    assert [entry["chain"] for entry in document] == [CHAIN_HEX, "32" * 16]


def test_malformed_rows_are_listed_as_what_they_are(bijotel, mixed):
    """A tampered row ends nothing."""
    tamper(mixed, "UPDATE entries SET name = NULL WHERE seq = 1")
    tamper(mixed, "UPDATE entries SET body = x'7b7d' WHERE seq = 2")
    tamper(mixed, "UPDATE entries SET seq = 'x\x1b' WHERE seq = 4")
    result = bijotel("list", "--db", mixed)
    lines = result.out.splitlines()
    assert result.code == 0
    assert lines[2].split("  ")[-1].strip() == "malformed: name: expected text, found null"
    assert lines[3].endswith("chat\\nx  unreadable body: no span body: KeyError at 'status'")
    assert lines[5].startswith(r"   x\x1b ")
    document = bijotel("list", "--db", mixed, "--json").document
    assert document[1] == {
        "chain": CHAIN_HEX,
        "seq": 1,
        "fault": "name: expected text, found null",
    }
    assert document[4]["seq"] == "x\x1b"


def test_values_of_wrong_types_are_listed(bijotel, mixed):
    """Models and counts are shown as they are, and fit JSON."""
    odd = {
        "gen_ai.request.model": ["a\u202e", b"\0"],
        "gen_ai.usage.input_tokens": float("inf"),
        "gen_ai.usage.output_tokens": "\ud800",
        "bijotel.rag.source_count": 2**64,
    }
    append(mixed, [span(9, attributes=odd)])
    result = bijotel("list", "--db", mixed, "--from", 5)
    assert result.code == 0
    assert '["a\\u202e", {"$bytes": "AA=="}]' in result.out
    assert bijotel("list", "--db", mixed, "--from", 5, "--json").document[0]["source_count"] == {
        "$int": str(2**64)
    }


def test_an_error_in_between_ends_the_array_and_says_so(bijotel, db):
    """What was written stays one document that nobody takes for the whole."""
    append(db, [span(number, attributes={"big": "x" * 100_000}) for number in range(10, 40)])
    pages = db.stat().st_size // 4096
    with db.open("r+b") as file:
        for page in range(pages // 2, pages):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    result = bijotel("list", "--db", db, "--json")
    assert result.code == 3
    assert result.document[-1]["error"]["code"] == "unavailable"
    assert "cannot be read: database disk image is malformed" in result.err
    assert result.document[0]["seq"] == 0


def test_any_error_in_between_ends_the_array_and_says_so():
    """Also one of the program itself; after an interruption it is no document at all."""

    def written(error: BaseException) -> str:
        stream = io.StringIO()
        with pytest.raises(type(error)), Output(stream).array() as add:
            add({"seq": 0})
            raise error
        return stream.getvalue()

    assert json.loads(written(ValueError("no"))) == [
        {"seq": 0},
        {"error": {"code": "internal", "message": "ValueError: no"}},
    ]
    assert written(KeyboardInterrupt()) == written(BrokenPipeError()) == '[\n{"seq": 0}'


@pytest.mark.parametrize("limit", [0, 10**9 + 1, 2**63 - 1, 10**30])
def test_a_limit_beyond_any_chain_is_refused(bijotel, mixed, limit):
    """In one line; the largest one is no matter."""
    result = bijotel("list", "--db", mixed, "--limit", limit)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: Invalid value for '--limit': {limit} is not in the range")
    assert result.err.count("\n") == 1
    assert bijotel("list", "--db", mixed, "--limit", 10**9).code == 0


@pytest.mark.slow
def test_a_long_chain_is_streamed(tmp_path):
    """Lines come while rows are still being read, and memory stays flat."""
    path = tmp_path / "chain.db"
    for start in range(1, 1_401, 100):
        append(path, [span(n, attributes={"p": "x" * 120_000}) for n in range(start, start + 100)])
    assert path.stat().st_size > LIMIT_BYTES

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))

    with subprocess.Popen(
        [*COMMAND, "list", "--db", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        preexec_fn=limit,
    ) as process:
        first = process.stdout.readline()
        # All lines are more than the pipe holds, so the writer is still at it.
        assert process.poll() is None
        rest = process.stdout.read()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (0, b"")
    assert first.decode().rstrip("\n") == HEADER
    assert rest.count(b"\n") == 1_402
    assert len(rest) > 2 * 65_536
    path.unlink()
