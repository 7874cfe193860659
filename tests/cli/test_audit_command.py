"""``bijotel audit``: blocks, lines and documents, exit codes, chains; and what ``inspect`` says."""

from __future__ import annotations

import gzip
import json
import os
import pty
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from bijotel.stores.base import ENTRY_COLUMNS
from tests.audit.conftest import TRACE_ID, call, otlp_line, rerank, search, span, text
from tests.cli.conftest import (
    CHAIN_HEX,
    COMMAND,
    KEY_ID,
    OTHER_SECRET,
    append,
    clean_environment,
    gap,
    rag,
    source,
    tamper,
)
from tests.conftest import ROOT

A, B, C, D = (text(name * number) for number, name in enumerate("abcd", start=1))
OTHER_TRACE = "b" * 32


def pair(trace_id, *hits, used=()):
    """A search and the call that was given some of its hits."""
    return (
        search(1, *hits, trace_id=trace_id),
        call(2, "Context:", *used, trace_id=trace_id),
    )


@pytest.fixture
def traces(tmp_path):
    """A file of three traces: one good, one fair, one without a retrieval."""
    path = tmp_path / "traces.jsonl"
    lines = [
        otlp_line(*pair("a" * 32, A, B, used=[A, B])),
        otlp_line(*pair("b" * 32, A, B, C, D, used=[A, B])),
        otlp_line(call(2, "Hello", trace_id="c" * 32)),
    ]
    path.write_text("\n".join(lines))
    return path


# --- what is shown ---------------------------------------------------------------------------


def test_the_blocks(bijotel, traces):
    """One a trace with what is not good about it, and the session last."""
    assert bijotel("audit", traces) == (
        0,
        f"""\
PASS  100/100  trace {"a" * 32}
  precision    ████████████████████ 100.0
  efficiency   ████████████████████ 100.0
  uniqueness   ████████████████████ 100.0
  coverage     ████████████████████ 100.0
  passages     2 retrieved: 2 in prompt, 0 dropped, 0 cut, 0 unknown

WARN  65/100  trace {"b" * 32}
  precision    ██████████░░░░░░░░░░  50.0
  efficiency   ██████████░░░░░░░░░░  50.0
  uniqueness   ████████████████████ 100.0
  coverage     ████████████████████ 100.0
  passages     4 retrieved: 2 in prompt, 2 dropped, 0 cut, 0 unknown
  ! precision: 2 of 4 retrieved passages (no reranker is recorded) are in the prompt
  ! efficiency: 40 of 80 retrieved words reached the prompt
  → reduce top-k 4 -> 2
  → 40 of 80 retrieved words are wasted: retrieve less, or pass more

NOT APPLICABLE  trace {"c" * 32}: no retrieval recorded
  passages     0 retrieved: 0 in prompt, 0 dropped, 0 cut, 0 unknown

=== Session ===
traces:         3
audited:        2 (1 PASS, 1 WARN, 0 FAIL)
not applicable: 1
mean overall:   82.5
skipped lines:  0
""",
        "",
    )


def test_verbose_shows_all(bijotel, tmp_path):
    """Good findings, every passage with its place, and every call."""
    path = tmp_path / "t.jsonl"
    half = " ".join(B.split()[:12])
    hits = (A, " ".join(A.split()[:10]), B, C, "d0\x1b d1")
    spans = (search(1, *hits, scores=[0.9, 0.8, None, 0.0, 0.1]), call(2, A, half, "d0\x1b d1"))
    path.write_text(otlp_line(*spans))
    lines = bijotel("audit", path, "--verbose").out.split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith("  passage 0"))
    ids = [f"d-{hit[:24]}-{len(hit)}".replace("\x1b", "\\x1b") for hit in hits]
    assert lines[start : start + 6] == [
        f"  passage 0: included  {ids[0]}  place 0  score 0.900  rank 1",
        f"  passage 1: included  {ids[1]}  place 1  score 0.800  rank 2  inside passage 0",
        f"  passage 2: partial  {ids[2]}  containment 0.600  place 2  rank 3",
        f"  passage 3: absent  {ids[3]}  score 0.000  rank 4",
        f"  passage 4: unknown  {ids[4]}  score 0.100  rank 5  too-short",
        "  call 0000000000000002: answer",
    ]
    assert "  ✓ coverage: 3 of 4 passages carry a score" in lines
    assert "  · unknown: 1 left out of the scores: too-short" in lines


def test_a_passage_without_an_id_is_named_by_its_text(bijotel, tmp_path):
    """As far as it fits, with nothing in it that could steer a terminal."""
    path = tmp_path / "t.jsonl"
    attributes = {"gen_ai.operation.name": "retrieval"}
    attributes["gen_ai.retrieval.documents"] = json.dumps([{"content": f"\x1b[2J{A}"}])
    path.write_text(otlp_line(span(1, "retrieval", attributes), call(2, A)))
    out = bijotel("audit", path, "--verbose").out
    assert '"\\x1b[2Ja0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a1..."' in out


def test_compact_is_a_line_a_trace(bijotel, traces):
    """With every sub-score, or the reason."""
    out = bijotel("audit", traces, "--compact").out.split("\n")
    assert out[:4] == [
        f"PASS 100  {'a' * 32}  P 100.0  E 100.0  U 100.0  C 100.0  R     -",
        f"WARN  65  {'b' * 32}  P  50.0  E  50.0  U 100.0  C 100.0  R     -",
        f"N/A    -  {'c' * 32}  no retrieval recorded",
        "=== Session ===",
    ]


def test_the_json_document(bijotel, traces, tmp_path):
    """One document whatever else is said; the traces in order, the summary last."""
    with traces.open("a") as file:
        file.write('\n{"broken\n')
    result = bijotel("audit", traces, "--json")
    assert [each["verdict"] for each in result.document["traces"]] == [
        "PASS",
        "WARN",
        "NOT_APPLICABLE",
    ]
    assert result.document["summary"] == {
        "traces": 3,
        "audited": 2,
        "not_applicable": 1,
        "pass": 1,
        "warn": 1,
        "fail": 0,
        "mean_overall": 82.5,
        "skipped_lines": 1,
    }
    assert list(result.document) == ["traces", "summary"]
    assert (result.code, result.err) == (
        0,
        f"skipped: {traces}: line 4: a JSON object that is not whole\n",
    )


def test_only_one_trace(bijotel, traces):
    """In any case of its digits."""
    document = bijotel("audit", traces, "--json", "--trace", "B" * 32).document
    assert [each["trace_id"] for each in document["traces"]] == ["b" * 32]


def test_a_reranker_has_a_bar_of_its_own(bijotel, tmp_path):
    """And no advice about top-k."""
    path = tmp_path / "t.jsonl"
    hits = [A, B, C, D]
    path.write_text(otlp_line(search(1, *hits), rerank(2, hits, [D, A, B, C]), call(3, D)))
    out = bijotel("audit", path).out
    assert "  rerank gain  ██████████████████░░  87.5\n" in out
    assert "top-k" not in out


def test_the_reference_page_shows_what_is_printed(bijotel, tmp_path):
    """Its block, its code and its document are those of real traces."""
    page = (ROOT / "docs/reference/audit.md").read_text(encoding="utf-8")
    console, code, document = (
        page.split(f"```{language}\n")[1].split("```")[0]
        for language in ("console", "python", "json")
    )
    path = tmp_path / "traces.jsonl"
    hits = [text(name * number) for number, name in enumerate("abcdefghij", start=1)]
    path.write_text(otlp_line(*pair(TRACE_ID, *hits, used=hits[:3])))
    block = bijotel("audit", path).out.split("\n\n")[0]
    assert console == f"$ bijotel audit traces.jsonl\n{block}\n"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{TRACE_ID} WARN 51 \n"
    path.write_text(otlp_line(*pair(TRACE_ID, A, B, used=[A])))
    real, shown = bijotel("audit", path, "--json").document, json.loads(document)
    assert list(shown) == list(real)
    assert list(shown["summary"]) == list(real["summary"])
    for key, value in real["traces"][0].items():
        assert type(shown["traces"][0][key]) is type(value)
        if isinstance(value, list) and isinstance(value[0], dict):
            assert list(shown["traces"][0][key][0]) == list(value[0])
    assert list(shown["traces"][0]) == list(real["traces"][0])


# --- streams ---------------------------------------------------------------------------------


def test_a_narrow_code_page_gets_plain_signs(traces):
    """Nothing has to be escaped."""
    done = subprocess.run(
        [*COMMAND, "audit", str(traces)],
        capture_output=True,
        env=clean_environment(PYTHONIOENCODING="latin-1"),
        check=True,
    )
    assert b"  precision    ##########----------  50.0\n" in done.stdout
    assert b"  > reduce top-k 4 -> 2\n" in done.stdout


def test_colour_is_for_those_who_want_it(traces):
    """``FORCE_COLOR`` and ``NO_COLOR`` are heard."""
    coloured, plain = (
        subprocess.run(
            [*COMMAND, "audit", str(traces), "--compact"],
            capture_output=True,
            env=clean_environment(**variables),
            check=True,
        ).stdout
        for variables in ({"FORCE_COLOR": "1"}, {"FORCE_COLOR": "1", "NO_COLOR": "1"})
    )
    assert coloured.startswith(b"\x1b[32m\x1b[1mPASS\x1b[0m 100")
    assert b"\x1b" not in plain


def test_a_bar_on_a_terminal_while_long_input_is_read(tmp_path):
    """On standard error alone; the document is not touched by it."""
    path = tmp_path / "long.jsonl"
    noise = span(3, "step", {"note": "x" * 450_000}, trace_id="0" * 31 + "1")
    line = otlp_line(*pair("0" * 31 + "1", A, used=[A]), noise)
    with path.open("w") as file:
        for number in range(40):
            file.write(line.replace("0" * 31 + "1", f"{number + 1:032x}") + "\n")
    assert path.stat().st_size > 16_000_000
    master, slave = pty.openpty()
    done = subprocess.run(
        [*COMMAND, "audit", str(path), "--json"],
        stdout=subprocess.PIPE,
        stderr=slave,
        env=clean_environment(TERM="xterm", COLUMNS="100"),
        check=True,
    )
    os.close(slave)
    shown = os.read(master, 65536).decode()
    os.close(master)
    assert json.loads(done.stdout)["summary"]["traces"] == 40
    assert shown.startswith("\r\x1b[Kreading ...")
    assert " of 40 traces" in shown
    assert shown.endswith("\r\x1b[K")


def test_no_bar_for_short_input(tmp_path, traces):
    """Nor where standard error is no terminal, as all other tests here show."""
    master, slave = pty.openpty()
    subprocess.run(
        [*COMMAND, "audit", str(traces), "--json"],
        stdout=subprocess.PIPE,
        stderr=slave,
        env=clean_environment(TERM="xterm"),
        check=True,
    )
    os.write(slave, b"end")
    assert os.read(master, 100) == b"end"
    os.close(slave)
    os.close(master)


@pytest.mark.parametrize(("thresholds", "code"), [([], 0), (["--min-overall", "1"], 3)])
def test_a_reader_who_leaves_early_gets_no_pass(tmp_path, thresholds, code):
    """With a threshold, what was not looked at has not been held to it."""
    path = tmp_path / "many.jsonl"
    line = otlp_line(*pair("0" * 31 + "1", A, used=[A]))
    path.write_text("\n".join(line.replace("0" * 31 + "1", f"{n + 1:032x}") for n in range(3_000)))
    with subprocess.Popen(
        [*COMMAND, "audit", str(path), *thresholds],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    ) as process:
        os.read(process.stdout.fileno(), 100)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == code


def test_several_processes_make_no_difference(bijotel, traces, tmp_path, monkeypatch):
    """What long input is shared between comes out the same, errors included."""
    arguments = ("audit", traces, tmp_path / "missing", "--json", "--min-overall", "66")
    alone = bijotel(*arguments)
    monkeypatch.setattr("bijotel.cli.audit._SHARED_INPUT_BYTES", 0)
    monkeypatch.setattr("bijotel.cli.audit.usable_workers", lambda: 2)
    assert bijotel(*arguments) == alone
    assert alone.code == 1


# --- exit codes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 0),
        (["--min-overall", "65"], 0),
        (["--min-overall", "66"], 1),
        (["--min-precision", "50"], 0),
        (["--min-precision", "50.1"], 1),
        (["--min-overall", "60", "--min-precision", "60"], 1),
        (["--trace", "c" * 32], 0),
        (["--trace", "c" * 32, "--min-overall", "0"], 3),
    ],
)
def test_exit_codes(bijotel, traces, arguments, code):
    """Each trace is held to the threshold, not the mean, which is 82.5 here."""
    assert bijotel("audit", traces, *arguments).code == code
    assert bijotel("audit", traces, *arguments, "--json").code == code


def test_what_a_trace_misses_is_said(bijotel, traces):
    """In its block and on its line."""
    assert "\n  ✗ overall 65 is below 66\n" in bijotel("audit", traces, "--min-overall", "66").out
    out = bijotel("audit", traces, "--min-overall", "66", "--compact").out
    assert "R     -  overall 65 is below 66\n" in out


def test_a_file_that_cannot_be_read(bijotel, traces, tmp_path):
    """Exit 3 with its name, after what could be read was; the document says so too."""
    missing, empty = tmp_path / "missing.jsonl", tmp_path / "empty.jsonl"
    empty.touch()
    result = bijotel("audit", traces, missing, empty, "--json")
    message = f"{missing}: cannot be read: No such file or directory; {empty}: the file is empty"
    assert (result.code, result.err) == (3, f"error: {message}\n")
    assert result.document["summary"]["traces"] == 3
    assert result.document["error"] == {"code": "unavailable", "message": message}


def test_a_database_is_no_trace_file(bijotel, tmp_path):
    """Exit 3 with the option that reads it, not a complaint about each of its lines."""
    path = append(tmp_path / "chain.db", [call(1, A)])
    assert bijotel("audit", path) == (3, "", f"error: {path}: is a database; use --db\n")


def test_parts_of_a_wrong_type_are_named(bijotel, tmp_path):
    """Each line once with what is wrong in it; the trace beside them is audited."""
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"resourceSpans": 5}}\n{otlp_line(*pair(TRACE_ID, A, used=[A]))}\n[1, 2]\n')
    result = bijotel("audit", path)
    assert result.err.splitlines() == [
        f"skipped: {path}: line 1: resourceSpans: expected a list, got a number",
        f"skipped: {path}: line 3: no spans or log records in a form that is known",
    ]
    assert "skipped lines:  2\n" in result.out


def test_a_missed_threshold_outranks_an_unreadable_file(bijotel, traces, tmp_path):
    """1, not 3."""
    missing = tmp_path / "missing.jsonl"
    assert bijotel("audit", traces, missing, "--min-overall", "66").code == 1
    assert bijotel("audit", traces, missing, "--min-overall", "65").code == 3


def test_nothing_but_an_unreadable_file(bijotel, tmp_path):
    """The error is the whole answer."""
    missing = tmp_path / "missing.jsonl"
    message = f"{missing}: cannot be read: No such file or directory"
    assert bijotel("audit", missing) == (3, "", f"error: {message}\n")
    document = bijotel("audit", missing, "--json").document
    assert document == {"error": {"code": "unavailable", "message": message}}


def test_lines_that_do_not_parse_change_no_code(bijotel, tmp_path):
    """They are counted, the first ones named."""
    path = tmp_path / "t.jsonl"
    broken = "\n".join(["no json"] * 12)
    path.write_text(f"{otlp_line(*pair(TRACE_ID, A, used=[A]))}\n{broken}\n")
    result = bijotel("audit", path)
    assert result.code == 0
    assert "skipped lines:  12\n" in result.out
    lines = result.err.splitlines()
    assert lines[0] == f"skipped: {path}: line 2: not JSON"
    assert (len(lines), lines[-1]) == (11, "skipped: 2 more")


def test_a_file_without_any_trace(bijotel, tmp_path):
    """Nothing was audited: fine without a threshold, 3 with one."""
    path = tmp_path / "t.jsonl"
    path.write_text("nothing\n")
    assert bijotel("audit", path).code == 0
    assert bijotel("audit", path, "--min-overall", "1").code == 3
    assert bijotel("audit", path, "--json").document["traces"] == []


def test_packed_files_are_read(bijotel, traces, tmp_path):
    """What a file is shows in its bytes."""
    packed = tmp_path / "t.jsonl.gz"
    packed.write_bytes(gzip.compress(traces.read_bytes()))
    assert bijotel("audit", packed).out == bijotel("audit", traces).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected trace files or --db STORE, one of the two"),
        (["x.jsonl", "--db", "y.db"], "expected trace files or --db STORE, one of the two"),
        (["x.jsonl", "--trace", "xyz"], "--trace 'xyz': expected 32 hex digits"),
    ],
)
def test_asked_wrongly(bijotel, arguments, message):
    """Exit 2."""
    assert bijotel("audit", *arguments) == (2, "", f"error: {message}\n")


def test_a_trace_that_is_not_there(bijotel, traces):
    """Exit 2: it cannot be audited."""
    message = f"--trace {'d' * 32}: no such trace in the input"
    assert bijotel("audit", traces, "--trace", "d" * 32) == (2, "", f"error: {message}\n")


@pytest.mark.parametrize("number", ["-1", "101", "nan", "x"])
def test_a_threshold_is_a_number_from_0_to_100(bijotel, traces, number):
    """Exit 2 for any other."""
    assert bijotel("audit", traces, "--min-overall", number).code == 2


# --- JUnit -----------------------------------------------------------------------------------


def test_the_junit_file(bijotel, traces, tmp_path):
    """Beside what is shown."""
    path = tmp_path / "audit.xml"
    result = bijotel("audit", traces, "--min-overall", "70", "--junit", path)
    suite = ET.parse(path).getroot()
    assert [[each.get("message") for each in case] for case in suite] == [
        [],
        ["overall 65 is below 70"],
        ["no retrieval recorded"],
    ]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert result.out.endswith("skipped lines:  0\n")


def test_a_junit_file_that_cannot_be_written(bijotel, traces, tmp_path):
    """Exit 3 before anything is shown."""
    path = tmp_path / "no" / "audit.xml"
    message = f"{path}: cannot be written: No such file or directory"
    assert bijotel("audit", traces, "--junit", path) == (3, "", f"error: {message}\n")


# --- chains ----------------------------------------------------------------------------------


@pytest.fixture
def chain(tmp_path):
    """A chain of two traces and a gap: entries 0 to 5."""
    spans = [*pair(TRACE_ID, A, B, used=[A, B]), gap(1), *pair(OTHER_TRACE, C, D, used=[C])]
    return append(tmp_path / "chain.db", spans)


def test_a_chain_that_verifies(bijotel, secret, chain):
    """That is said first."""
    result = bijotel("audit", "--db", chain, "--compact")
    assert result.code == 0
    assert result.out.split("\n")[:3] == [
        "VERIFIED: all 6 entries verify",
        f"PASS 100  {TRACE_ID}  P 100.0  E 100.0  U 100.0  C 100.0  R     -",
        f"WARN  65  {OTHER_TRACE}  P  50.0  E  50.0  U 100.0  C 100.0  R     -",
    ]
    document = bijotel("audit", "--db", chain, "--json", "--trace", OTHER_TRACE)
    assert [each["trace_id"] for each in document.document["traces"]] == [OTHER_TRACE]
    assert document.err == "VERIFIED: all 6 entries verify\n"


@pytest.mark.parametrize(
    "change",
    ["name = 'x'", "body = 'x'", "sealed_at_unix_nano = 1", "tag = zeroblob(32)", "span_id = 7"],
)
def test_an_entry_that_does_not_verify_is_left_out(bijotel, secret, chain, change):
    """The retrieval of the second trace is gone, so nothing can be said about that trace."""
    tamper(chain, f"UPDATE entries SET {change} WHERE seq = 4")
    result = bijotel("audit", "--db", chain, "--compact")
    assert result.out.split("\n")[:3] == [
        "NOT ALL VERIFIED: 1 of 6 entries do not verify and are left out",
        f"PASS 100  {TRACE_ID}  P 100.0  E 100.0  U 100.0  C 100.0  R     -",
        f"N/A    -  {OTHER_TRACE}  no retrieval recorded",
    ]
    assert "skipped lines:  1\n" in result.out
    assert result.code == 0


def test_two_rows_of_one_place_are_both_left_out(bijotel, secret, chain):
    """Nobody can say which of them was sealed."""
    columns = ", ".join("{}" if name == "name" else name for name in ENTRY_COLUMNS)
    for index in ("entries_by_seq", "entries_by_prev_tag", "entries_by_span"):
        tamper(chain, f"DROP INDEX {index}")
    tamper(
        chain,
        f"INSERT INTO entries ({columns.format('name')}) "
        f"SELECT {columns.format(repr('other'))} FROM entries WHERE seq = 4",
    )
    out = bijotel("audit", "--db", chain, "--compact").out
    assert out.startswith("NOT ALL VERIFIED: 2 of 7 entries")


def test_the_last_entry_is_checked_too(bijotel, secret, chain):
    """Nothing follows it that could tell."""
    tamper(chain, "UPDATE entries SET name = 'x' WHERE seq = 5")
    assert bijotel("audit", "--db", chain).out.startswith("NOT ALL VERIFIED: 1 of 6 entries")


def test_unverified_scores_what_is_stored(bijotel, chain):
    """Without a key, and whatever was done to it; the first line says so."""
    tamper(chain, "UPDATE entries SET name = 'x' WHERE seq = 4")
    result = bijotel("audit", "--db", chain, "--unverified", "--compact")
    first, _, second = result.out.split("\n")[:3]
    assert first == "NOT VERIFIED: entries are scored as stored (--unverified)"
    assert second.startswith(f"WARN  65  {OTHER_TRACE}")
    shown = bijotel("audit", "--db", chain, "--unverified", "--json")
    assert shown.err == "NOT VERIFIED: entries are scored as stored (--unverified)\n"
    assert shown.document["summary"]["audited"] == 2


def test_without_a_key(bijotel, chain):
    """Exit 3 and how to go on."""
    message = (
        "no key given (--key, or BIJOTEL_HMAC_SECRET), so no entry can be verified; "
        "--unverified scores them as stored"
    )
    assert bijotel("audit", "--db", chain) == (3, "", f"error: {message}\n")


def test_with_the_wrong_key(bijotel, chain, monkeypatch):
    """Exit 3: no entry could be checked, so none was scored."""
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", OTHER_SECRET)
    message = f'{chain}: none of 6 entries verifies with the keys given; "bijotel verify" says why'
    assert bijotel("audit", "--db", chain) == (3, "", f"error: {message}\n")


def test_a_sealed_body_that_is_no_span(bijotel, secret, tmp_path):
    """It verifies and holds no trace."""
    from tests.cli.conftest import body

    path = append(tmp_path / "chain.db", [body("span", {"x": 1}), *pair(TRACE_ID, A, used=[A])])
    assert bijotel("audit", "--db", path, "--json").document["summary"]["traces"] == 1


# --- what inspect says about it --------------------------------------------------------------


def section(out):
    """Cut the section out of what was printed; None when it is not there."""
    parts = out.split("=== Context ===\n")
    return parts[1].split("\n\n===")[0].split("\n") if len(parts) == 2 else None


def test_inspect_a_call(bijotel, secret, chain):
    """Every passage of its trace with what became of it in this very prompt."""
    out = bijotel("inspect", "--db", chain, 5).out
    assert section(out) == [
        "1 of 2 sources reached the prompt of this call",
        f"  included  d-{C[:24]}-{len(C)}  place 0",
        f"  absent    d-{D[:24]}-{len(D)}",
    ]
    assert out.startswith(
        f"VERIFIED: entry 5 of chain default: body hash, tag and the link to entry 4 hold (key {KEY_ID})"
    )


def test_inspect_a_retrieval(bijotel, secret, chain):
    """Its own passages, by the calls for the answer."""
    assert section(bijotel("inspect", "--db", chain, 4).out) == [
        "1 of 2 sources reached the prompt of a call for the answer",
        f"  included  d-{C[:24]}-{len(C)}  place 0",
        f"  absent    d-{D[:24]}-{len(D)}",
    ]


def test_inspect_in_json(bijotel, secret, chain):
    """The same as a member of the document; null where there is nothing to say."""
    document = bijotel("inspect", "--db", chain, 5, "--json").document
    assert document["context"]["of"] == "call"
    assert document["context"]["left_out"] == 0
    assert [(each["status"], each["position"]) for each in document["context"]["sources"]] == [
        ("included", 0),
        ("absent", None),
    ]
    assert bijotel("inspect", "--db", chain, 3, "--json").document["context"] is None


def test_inspect_what_the_application_stated(bijotel, secret, tmp_path):
    """A stamp that knows the prompt is enough; one that does not says nothing."""
    sources = [source(), source(document_id="doc-2", chunk_index=3)]
    stated = rag(sources, **{"bijotel.rag.in_context": ["included", "absent"]})
    calls = [
        span(1, "chat", {"gen_ai.operation.name": "chat", **stated}),
        span(2, "chat", {"gen_ai.operation.name": "chat", **rag(sources)}, trace_id=OTHER_TRACE),
    ]
    path = append(tmp_path / "chain.db", calls)
    assert section(bijotel("inspect", "--db", path, 1).out) == [
        "1 of 2 sources reached the prompt of this call",
        "  included  doc-1#0  (as the application stated)",
        "  absent    doc-2#3  (as the application stated)",
    ]
    assert section(bijotel("inspect", "--db", path, 2).out) is None


def test_inspect_leaves_out_what_does_not_verify(bijotel, secret, tmp_path):
    """A second retrieval of the trace was changed."""
    spans = [search(1, A), search(2, B), call(3, A, B)]
    path = append(tmp_path / "chain.db", spans)
    tamper(path, "UPDATE entries SET name = 'x' WHERE seq = 1")
    assert section(bijotel("inspect", "--db", path, 3).out) == [
        "1 of 1 sources reached the prompt of this call",
        "left out: 1 entries of the trace that do not verify",
        f"  included  d-{B[:24]}-{len(B)}  place 0",
    ]
    assert section(bijotel("inspect", "--db", path, 1).out) is None


def test_inspect_without_a_key(bijotel, chain):
    """As stored, which the first line of the entry says."""
    out = bijotel("inspect", "--db", chain, 5).out
    assert out.startswith("NOT VERIFIED")
    assert section(out)[0] == "1 of 2 sources reached the prompt of this call"


def test_inspect_a_piece_and_an_unknown_one(bijotel, secret, tmp_path):
    """How much of it, and why not."""
    half = " ".join(A.split()[:12])
    path = append(tmp_path / "chain.db", [search(1, A, None), call(2, "Context:", half)])
    assert section(bijotel("inspect", "--db", path, 2).out) == [
        "1 of 2 sources reached the prompt of this call, 1 unknown",
        f"  partial   d-{A[:24]}-{len(A)}  containment 0.600  place 0",
        "  unknown   d1  (no text recorded)",
    ]


def test_inspect_in_a_very_long_trace(bijotel, secret, tmp_path):
    """Bounded: nothing is joined, and the rest of the entry is shown."""
    steps = [search(number, A) for number in range(1, 1_001)]
    path = append(tmp_path / "chain.db", [*steps, call(1_001, A)])
    result = bijotel("inspect", "--db", path, 1_001)
    assert (result.code, section(result.out)) == (0, None)
    assert CHAIN_HEX in result.out
