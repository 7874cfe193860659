"""How commands end: exit codes, usage errors, errors nobody foresaw, interrupts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import click
import pytest

from bijotel.cli import app
from bijotel.cli.app import cli
from tests.cli.conftest import COMMAND, clean_environment, installed


def test_no_command_is_a_usage_error(bijotel):
    """The bare command says on one line where help is."""
    assert bijotel() == (2, "", "error: Missing command. (see: bijotel --help)\n")


def test_an_unknown_option_is_a_usage_error(bijotel, db):
    """Click's own errors have code 2 and one line too."""
    result = bijotel("verify", "--db", db, "--fast")
    assert (result.code, result.out) == (2, "")
    # Click's own words differ between its versions.
    assert re.fullmatch(
        r"error: No such option.*--fast.* \(see: bijotel verify --help\)\n", result.err
    )


def test_a_usage_error_with_json_is_a_document(bijotel):
    """Arguments that cannot be parsed are answered in JSON when JSON was asked for."""
    result = bijotel("list", "--json")
    message = "Missing option '--db'. (see: bijotel list --help)"
    assert result.document == {"error": {"code": "usage", "message": message}}
    assert (result.code, result.err) == (2, f"error: {message}\n")


def test_a_usage_error_shows_arguments_escaped(bijotel):
    """An argument cannot steer the terminal that shows its error."""
    result = bijotel("ver\x1b[2Kify")
    assert result.code == 2
    assert "\x1b" not in result.err
    assert r"\x1b[2K" in result.err


@pytest.mark.parametrize(
    "arguments", [(), ("verify",), ("inspect",), ("list",), ("stats",), ("keygen",)]
)
def test_help_is_fine(bijotel, arguments):
    """Help goes to standard output with code 0."""
    result = bijotel(*arguments, "--help")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(" ".join(("Usage: bijotel", *arguments)))


def test_version(bijotel):
    """The version is that of the package."""
    from bijotel._version import __version__

    assert bijotel("--version") == (0, f"bijotel, version {__version__}\n", "")


@pytest.fixture
def broken(monkeypatch):
    """Add a command for a test that ends with a given exception."""

    def add(error: BaseException) -> None:
        def fail() -> None:
            raise error

        options = [click.Option(["--json"], is_flag=True, expose_value=False)]
        command = click.Command("broken", callback=fail, params=options)
        monkeypatch.setitem(cli.commands, "broken", command)

    return add


@pytest.mark.parametrize(
    "error", [ValueError("x\x1b"), RecursionError("deep"), EOFError(), SystemError("s")]
)
def test_an_error_nobody_foresaw_is_code_3(bijotel, broken, error):
    """It reads neither as fine nor as tampered, and is one line without a traceback."""
    broken(error)
    result = bijotel("broken")
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith(f"error: {type(error).__name__}: ")
    assert result.err.endswith("(set BIJOTEL_DEBUG=1 for the traceback)\n")
    assert result.err.count("\n") == 1
    assert "\x1b" not in result.err


def test_an_error_nobody_foresaw_with_json(bijotel, broken):
    """With --json it is a document as well."""
    broken(ValueError("x"))
    document = bijotel("broken", "--json").document
    assert document["error"]["code"] == "internal"
    assert document["error"]["message"].startswith("ValueError: x")


def test_debug_adds_the_traceback(bijotel, broken, monkeypatch):
    """The traceback is there for whoever asks."""
    monkeypatch.setenv("BIJOTEL_DEBUG", "1")
    broken(ValueError("x"))
    result = bijotel("broken")
    assert result.code == 3
    assert result.err.startswith("Traceback (most recent call last):")


def test_memory_and_disk_errors_are_code_3(bijotel, broken):
    """An error of the system says what the system says."""
    broken(OSError(28, "No space left on device", "x.db"))
    assert bijotel("broken") == (3, "", "error: [Errno 28] No space left on device: 'x.db'\n")


def test_an_interrupt_is_130(bijotel, broken):
    """Ctrl-C has the code that shells expect."""
    broken(KeyboardInterrupt())
    assert bijotel("broken") == (130, "", "interrupted\n")


def test_an_interrupted_process_ends_with_130(db, tmp_path):
    """The same from outside: a real signal, no traceback."""
    key_file = tmp_path / "key"
    os.mkfifo(key_file)
    with subprocess.Popen(
        [*COMMAND, "verify", "--db", str(db), "--key", f"file:{key_file}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    ) as process:
        # Opening returns when the command has opened the other end; it then waits for a key.
        with open(key_file, "wb"):
            process.send_signal(signal.SIGINT)
        # Closed now: a signal that came just before the read is noticed when that returns.
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")


def test_python_dash_m_is_the_same_command(db):
    """``python -m bijotel`` runs the command line."""
    done = subprocess.run(
        [sys.executable, "-m", "bijotel", "verify", "--db", str(db), "--json"],
        capture_output=True,
        env=clean_environment(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["ok"] is True


def test_the_installed_command_runs(db):
    """The entry point is installed and its code reaches the shell."""
    assert installed("verify", "--db", db).code == 0
    assert installed("verify", "--db", db, BIJOTEL_HMAC_SECRET="f0" * 16 + "0f" * 16).code == 1
    assert installed("verify", "--db", db, BIJOTEL_HMAC_SECRET="").code == 2
    assert installed("verify", "--db", f"{db}.no").code == 3


def test_the_command_line_needs_no_opentelemetry():
    """What verifies must run where no tracer is installed."""
    code = (
        "import sys, bijotel.cli; "
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'psycopg'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_main_runs_the_arguments_of_the_process(monkeypatch, capsys):
    """The entry point reads ``sys.argv`` and returns the exit code."""
    monkeypatch.setattr(sys, "argv", ["bijotel", "--version"])
    assert app.main() == 0
    assert capsys.readouterr().out.startswith("bijotel, version ")


def test_json_after_a_double_dash_is_an_argument(bijotel, db):
    """``--json`` behind ``--`` is no option."""
    result = bijotel("inspect", "--db", db, "--", "--json")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: '--json': expected the number of an entry")
