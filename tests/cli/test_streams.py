"""What readers of the output are: pipes that close, terminals, files, narrow code pages."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest

from tests.cli.conftest import (
    COMMAND,
    append,
    clean_environment,
    installed,
    rag,
    source,
    span,
    tamper,
)
from tests.requirements import missing

LONG_ID = "sha256:" + "ab" * 32


@pytest.fixture
def rich_chain(tmp_path):
    """A chain with a RAG call whose texts are long and of several scripts."""
    call = span(
        1,
        name="naïve 日本 ✓ " + "long " * 30,
        attributes=rag([source(document_id=LONG_ID, retriever="naïve 日本 ✓")]),
    )
    return append(tmp_path / "chain.db", [call])


@pytest.fixture
def tampered(db):
    """A chain whose entry 3 was changed."""
    tamper(db, "UPDATE entries SET name = 'naïve 日本 ✓\x1b' WHERE seq = 3")
    return db


def on_terminal(*arguments, **variables) -> tuple[int, str]:
    """Run the installed command with a terminal of 100 columns as its standard output."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=subprocess.PIPE,
        env=clean_environment(**{"TERM": "xterm-256color", "COLUMNS": "100", **variables}),
    ) as process:
        os.close(slave)
        octets = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            octets += part
        os.close(master)
        assert process.stderr.read() == b""
    return process.returncode, octets.decode().replace("\r\n", "\n")


def closed_pipe(*arguments, read_bytes: int = 0) -> tuple[int, bytes]:
    """Run the installed command with a reader who leaves early; give code and standard error."""
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    ) as process:
        if read_bytes:
            os.read(process.stdout.fileno(), read_bytes)
        process.stdout.close()
        errors = process.stderr.read()
    return process.returncode, errors


# --- closed pipes ----------------------------------------------------------------------------


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_verify_keeps_its_verdict_when_nobody_reads(db, json):
    """A reader who has gone does not make a sound chain doubtful."""
    assert closed_pipe("verify", "--db", db, *json) == (0, b"")


@pytest.mark.parametrize("json", [(), ("--json",)])
@pytest.mark.parametrize("command", [("verify",), ("inspect", "3")])
def test_a_bad_verdict_outlives_the_reader(tampered, command, json):
    """Exit 1, not the pipe's code."""
    assert closed_pipe(command[0], "--db", tampered, *command[1:], *json) == (1, b"")


@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("stats",), ("inspect", "1")])
def test_other_commands_end_silently(db, arguments):
    """Exit 0 and nothing on standard error."""
    assert closed_pipe(arguments[0], "--db", db, *arguments[1:]) == (0, b"")


def test_a_reader_who_leaves_in_the_middle(tmp_path):
    """As ``| head -1`` does."""
    path = append(tmp_path / "chain.db", [span(number) for number in range(1, 3_000)])
    assert closed_pipe("list", "--db", path, read_bytes=100) == (0, b"")
    assert closed_pipe("list", "--db", path, "--json", read_bytes=100) == (0, b"")


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("verify", "--help")])
def test_help_that_nobody_reads(arguments):
    """Click's own output ends as silently."""
    assert closed_pipe(*arguments) == (0, b"")


def test_an_error_keeps_its_code_when_nobody_reads(db):
    """The document has no reader, the line on standard error has."""
    code, errors = closed_pipe("inspect", "--db", db, "99", "--json")
    assert (code, errors.decode()) == (
        2,
        "error: entry 99: not in chain default, which has entries 0 to 5\n",
    )


def test_closed_standard_error(db):
    """An error that cannot be told still has its code."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*COMMAND, "inspect", "--db", str(db), "99"],
        stdout=subprocess.PIPE,
        stderr=write,
        env=clean_environment(),
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize(("closed", "code"), [(">&-", 0), (">&- 2>&-", 0), ("<&- >&- 2>&-", 0)])
def test_missing_streams(db, closed, code):
    """A process that was started without streams verifies all the same."""
    done = subprocess.run(
        ["sh", "-c", f'"$0" verify --db "$1" {closed}', *COMMAND, str(db)],
        capture_output=True,
        env=clean_environment(),
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


def test_a_full_disk_is_no_verdict(db, tampered):
    """What could not be written was not delivered: exit 3 and one line."""
    if not os.path.exists("/dev/full"):
        missing("no device that is always full")
    for arguments in (("verify",), ("verify", "--json"), ("list",)):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [*COMMAND, arguments[0], "--db", str(db), *arguments[1:]],
                stdout=full,
                stderr=subprocess.PIPE,
                env=clean_environment(),
                check=False,
            )
        assert (done.returncode, done.stderr) == (3, b"error: [Errno 28] No space left on device\n")


# --- colour and width ------------------------------------------------------------------------


def test_a_terminal_gets_colour(db, tampered):
    """Verdicts and headings are coloured where a person looks."""
    code, out = on_terminal("verify", "--db", db)
    assert code == 1
    assert out.startswith("\x1b[31m\x1b[1mFAILED\x1b[0m: chain default (")
    assert r"naïve 日本 ✓\x1b" in out
    code, out = on_terminal("inspect", "--db", db, "1")
    assert code == 0
    assert out.startswith("\x1b[32m\x1b[1mVERIFIED\x1b[0m: entry 1")
    assert "\x1b[1m=== Span Metadata ===\x1b[0m\n" in out


@pytest.mark.parametrize(
    ("variables", "colour"),
    [
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_on_a_terminal(db, variables, colour):
    """An empty variable counts as unset."""
    code, out = on_terminal("verify", "--db", db, **variables)
    assert code == 0
    assert ("\x1b" in out) is colour


@pytest.mark.parametrize(
    ("variables", "colour"),
    [
        ({}, False),
        ({"FORCE_COLOR": ""}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"COLUMNS": "40"}, False),
    ],
)
@pytest.mark.parametrize("arguments", [("verify",), ("inspect", "1"), ("stats",), ("list",)])
def test_colour_in_a_pipe(db, arguments, variables, colour):
    """No escape octet in a file, unless it was asked for."""
    append(db, [span(1)], chain="second", chain_id=b"2" * 16)
    result = installed(arguments[0], "--db", db, *arguments[1:], "--chain", "default", **variables)
    assert result.code == 0
    expected = colour and arguments[0] != "list"  # a single chain's list has no heading
    assert ("\x1b" in result.out) is expected


def test_json_never_has_colour(db):
    """Not even when it is forced."""
    result = installed("verify", "--db", db, "--json", FORCE_COLOR="1")
    assert result.document["ok"] is True
    assert "\x1b" not in result.out


def test_nothing_is_cut_in_a_pipe(rich_chain):
    """Long ids and names are whole, however few columns are said to be there."""
    out = installed("inspect", "--db", rich_chain, "1", COLUMNS="40").out
    assert f"  source 1: doc={LONG_ID}  chunk=0  retriever=naïve 日本 ✓  sim=0.890\n" in out
    listed = installed("list", "--db", rich_chain, COLUMNS="40").out
    assert "naïve 日本 ✓ " + "long " * 29 + "long" in listed


def test_a_terminal_is_not_overrun(rich_chain):
    """List lines fit, wide characters counted as two; digests are shortened."""
    from rich.cells import cell_len

    _, out = on_terminal("list", "--db", rich_chain, NO_COLOR="1")
    lines = out.splitlines()
    assert max(map(cell_len, lines)) == 100
    assert lines[2].endswith("...")
    _, out = on_terminal("inspect", "--db", rich_chain, "1", NO_COLOR="1")
    assert "  source 1: doc=sha256:abababababab...  chunk=0  " in out
    assert f'\\"document_id\\": \\"{LONG_ID}\\"' in out  # the body is whole


def test_a_very_narrow_terminal(rich_chain):
    """Two columns are enough not to fail."""
    code, out = on_terminal("list", "--db", rich_chain, COLUMNS="2", NO_COLOR="1")
    assert (code, out.splitlines()[0]) == (0, "...")


# --- code pages ------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["cp1252", "ascii", "cp437", "utf-8"])
def test_a_narrow_code_page_changes_no_verdict(rich_chain, tampered, page):
    """What it cannot print is escaped."""
    bad = installed("verify", "--db", tampered, PYTHONIOENCODING=page, encoding=page)
    assert (bad.code, bad.err) == (1, "")
    assert "FAILED: chain default" in bad.out
    good = installed("inspect", "--db", rich_chain, "1", PYTHONIOENCODING=page, encoding=page)
    assert (good.code, good.err) == (0, "")
    word = "naïve 日本 ✓".encode(page, "backslashreplace").decode(page)
    assert f"retriever={word}  sim=0.890" in good.out
    listed = installed("list", "--db", rich_chain, PYTHONIOENCODING=page, encoding=page)
    assert (listed.code, listed.err) == (0, "")
    assert word in listed.out


@pytest.mark.parametrize("page", ["cp1252", "ascii"])
def test_json_is_the_same_on_every_code_page(rich_chain, page):
    """It is written in ASCII."""
    arguments = ("inspect", "--db", rich_chain, "1", "--json")
    narrow = installed(*arguments, PYTHONIOENCODING=page, encoding="ascii")
    assert narrow == installed(*arguments)
    assert narrow.document["entry"]["name"].startswith("naïve 日本 ✓")


def test_an_error_on_a_narrow_code_page(tmp_path):
    """The line on standard error is escaped too."""
    result = installed(
        "verify", "--db", tmp_path / "日本.db", PYTHONIOENCODING="ascii", encoding="ascii"
    )
    assert result.code == 3
    assert result.err == f"error: {tmp_path}/\\u65e5\\u672c.db: no such file\n"


def test_the_plain_locale(rich_chain):
    """``LC_ALL=C`` without anything else."""
    result = installed("inspect", "--db", rich_chain, "1", LC_ALL="C", PYTHONUTF8="0")
    assert (result.code, result.err) == (0, "")
