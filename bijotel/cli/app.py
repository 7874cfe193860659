"""The command ``bijotel``: runs one command and turns every end of it into an exit code.

0 fine, 1 findings, 2 asked wrongly, 3 could not check, 130 interrupted. An error that nobody
foresaw is 3: it must never read as "fine" or as "tampered". Each error is one line on standard
error and, with ``--json``, one document on standard output.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click

from bijotel._version import __version__
from bijotel.cli.audit import audit
from bijotel.cli.checkpoint import checkpoint
from bijotel.cli.consistency import consistency
from bijotel.cli.dedup import dedup
from bijotel.cli.export import export
from bijotel.cli.import_ import import_command
from bijotel.cli.inspect import inspect
from bijotel.cli.keygen import keygen
from bijotel.cli.list import list_entries
from bijotel.cli.match import match
from bijotel.cli.output import error_document, fill_missing_streams
from bijotel.cli.prove import prove
from bijotel.cli.regression import regression
from bijotel.cli.report import report
from bijotel.cli.rotate_key import rotate_key
from bijotel.cli.seal import seal
from bijotel.cli.session import COULD_NOT_CHECK, INTERRUPTED, USAGE, Session, wants_json
from bijotel.cli.stats import stats
from bijotel.cli.text import escape
from bijotel.cli.verify import verify
from bijotel.cli.verify_export import verify_export_command
from bijotel.cli.verify_proof import verify_proof_command
from bijotel.errors import BijotelError

DEBUG_VARIABLE = "BIJOTEL_DEBUG"
"""When set, an error's traceback is printed too."""


@click.group(no_args_is_help=False)
@click.version_option(__version__, prog_name="bijotel")
def cli() -> None:
    """Verify, inspect, list, audit and watch sealed RAG provenance.

    Exit codes: 0 fine, 1 findings, 2 asked wrongly, 3 could not check.
    """


for _command in (
    verify,
    inspect,
    list_entries,
    stats,
    audit,
    regression,
    dedup,
    report,
    checkpoint,
    prove,
    verify_proof_command,
    consistency,
    export,
    verify_export_command,
    rotate_key,
    import_command,
    seal,
    match,
    keygen,
):
    cli.add_command(_command)


def main() -> int:
    """Run the command line of this process and return its exit code."""
    return run(sys.argv[1:])


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; never raises."""
    fill_missing_streams()
    session = Session(wants_json(arguments))
    try:
        _invoke(arguments, session)
    except BrokenPipeError:
        # The reader has seen enough. What was found is still what was found.
        session.output.abandon()
        return session.verdict
    except (KeyboardInterrupt, click.Abort):
        _say(session, "interrupted")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last line of defence
        return _fail(session, error)
    return session.verdict


def _invoke(arguments: Sequence[str], session: Session) -> None:
    try:
        with cli.make_context("bijotel", list(arguments), obj=session) as context:
            cli.invoke(context)
    except click.exceptions.Exit as request:
        session.verdict = request.exit_code
    session.output.flush()


def _fail(session: Session, error: Exception) -> int:
    code, message, exit_code = _describe(error)
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    try:
        if session.json and not session.output.answered:
            session.output.document(error_document(code, message))
        session.output.flush()
    except OSError:
        session.output.abandon()
    _say(session, f"error: {escape(message)}")
    return exit_code


def _describe(error: Exception) -> tuple[str, str, int]:
    """Give an error's code word, its message and the exit code."""
    if isinstance(error, BijotelError):
        return error.code, str(error), error.exit_code
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        hint = f" (see: {context.command_path} --help)" if context else ""
        return "usage", f"{error.format_message()}{hint}", USAGE
    if isinstance(error, OSError):
        return "unavailable", str(error), COULD_NOT_CHECK
    message = f"{type(error).__name__}: {error} (set {DEBUG_VARIABLE}=1 for the traceback)"
    return "internal", message, COULD_NOT_CHECK


def _say(session: Session, text: str) -> None:
    try:
        session.messages.line(text)
        session.messages.flush()
    except OSError:
        session.messages.abandon()
