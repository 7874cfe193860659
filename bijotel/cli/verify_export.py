"""``bijotel verify-export``: check an export with public keys alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import click

from bijotel.beginnings import beginning
from bijotel.cli.evidence import read_note
from bijotel.cli.options import json_option, key_option, ring_or_none
from bijotel.cli.session import COULD_NOT_CHECK, Session
from bijotel.cli.text import escape
from bijotel.cli.verdicts import print_report
from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.evidence_files import read_evidence
from bijotel.export_check import verify_export
from bijotel.findings import Report
from bijotel.keys import KeyRing
from bijotel.legacy import export as legacy
from bijotel.signing import load_verifier_key


@click.command("verify-export", short_help="Check an export with public keys alone.")
@click.option(
    "--pubkey",
    "pubkeys",
    multiple=True,
    metavar="KEY",
    help="Verifier key, a line or a file; every one given must have signed. For an export of "
    "bijotel 2.x: a PEM file.",
)
@click.option("--partial", is_flag=True, help="Accept an export of a part of the log.")
@click.option(
    "--checkpoint",
    "note_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Your own copy of the checkpoint; size and root must be equal.",
)
@key_option
@json_option
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_obj
def verify_export_command(
    session: Session,
    *,
    pubkeys: tuple[str, ...],
    partial: bool,
    note_path: Path | None,
    keys: tuple[str, ...],
    file: Path,
) -> None:
    """Check that FILE holds exactly what the owner of the public key vouched for.

    Needs no database and no network. --pubkey is required; the HMAC secret, when it is given,
    only adds a check of the tags. Exports of bijotel 2.x are checked by that version's formulas,
    which need the secret.

    Exit codes: 0 nothing found, 1 findings, 2 asked wrongly (no --pubkey), 3 could not check.
    """
    session.verdict = COULD_NOT_CHECK
    ring = ring_or_none(keys)
    with _opened(file) as (octets, source):
        if legacy.is_legacy_export(octets):
            report = _verify_legacy(source, ring, pubkeys)
        else:
            if not pubkeys:
                raise ConfigurationError(
                    "--pubkey is required: without it an export proves nothing"
                )
            report = verify_export(
                source,
                tuple(load_verifier_key(each) for each in pubkeys),
                ring=ring,
                partial=partial,
                checkpoint=None if note_path is None else read_note(note_path),
            )
    session.verdict = report.exit_code
    if session.json:
        session.output.document(report.as_dict())
        return
    if ranges := _ranges(report):
        session.output.line(f"PARTIAL: {ranges}")
    print_report(session.output, report, f"export {escape(str(file))}")


@contextmanager
def _opened(file: Path) -> Iterator[tuple[bytes, BufferedReader]]:
    """Open a file; give how it begins, and the whole of it."""
    with ExitStack() as stack:
        try:
            begun = beginning(stack.enter_context(file.open("rb")), 1024)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UnavailableError(f"{file}: cannot be read: {reason}") from None
        yield begun


def _verify_legacy(
    source: BufferedReader, ring: KeyRing | None, pubkeys: tuple[str, ...]
) -> Report:
    if len(pubkeys) > 1:
        raise ConfigurationError("--pubkey: an export of bijotel 2.x has one public key at most")
    public_key = None
    if pubkeys:
        path = Path(pubkeys[0].removeprefix("file:"))
        public_key = legacy.load_public_key(read_evidence(path, 65536))
    return legacy.verify_export(source.read(legacy.MAX_EXPORT_BYTES + 1), ring, public_key)


def _ranges(report: Report) -> str:
    """Name the ranges of an export of a part of a log; empty for a whole one."""
    checked: Mapping[str, Any] = report.checked
    if "ranges" not in checked or checked["ranges"] == [[0, checked["size"] - 1]]:
        return ""
    shown = ", ".join(f"{first} to {last}" for first, last in checked["ranges"])
    return f"entries {shown} of {checked['size']}"
