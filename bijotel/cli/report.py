"""``bijotel report``: one HTML file about the decisions of a chain, for those who rather look."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import click

from bijotel._version import __version__
from bijotel.cli.analysis import counted, prices, prices_option
from bijotel.cli.evidence import output_option, read_note
from bijotel.cli.options import (
    chain_option,
    db_option,
    json_option,
    key_option,
    parse_id,
    ring_or_none,
)
from bijotel.cli.session import COULD_NOT_CHECK, Session
from bijotel.cli.text import escape
from bijotel.errors import ConfigurationError
from bijotel.output_files import check_target, new_file
from bijotel.report.make import Bound, Made, Request, make_report
from bijotel.report.reading import Outside
from bijotel.search import parse_time
from bijotel.signing import load_verifier_key

_SEQ: Final = re.compile(r"[0-9]{1,18}")


@click.command(short_help="Write an HTML report about the decisions of a chain.")
@db_option
@chain_option
@key_option
@click.option("--trace", metavar="ID", help="Only this trace (32 hex digits).")
@click.option(
    "--from",
    "first",
    metavar="SEQ|TIME",
    help="Begin with this entry, or with the first span that began then.",
)
@click.option(
    "--to",
    "last",
    metavar="SEQ|TIME",
    help="End with this entry, or with the last span that began before.",
)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Compare the chain with this checkpoint, and put a proof with each decision.",
)
@click.option(
    "--pubkey",
    "pubkeys",
    multiple=True,
    metavar="KEY",
    help="Verifier key, a line or a file; must have signed the checkpoint; may be repeated.",
)
@prices_option
@output_option
@json_option
@click.pass_obj
def report(
    session: Session,
    *,
    location: str,
    chain: str | None,
    keys: tuple[str, ...],
    trace: str | None,
    first: str | None,
    last: str | None,
    checkpoint: Path | None,
    pubkeys: tuple[str, ...],
    price_file: str | None,
    target: Path,
) -> None:
    """Write an HTML report about the decisions of a chain: one file, no network.

    It says first whether the whole chain verifies, then shows each decision: the question, the
    sources and where each stands in the prompt, the answer, and its proof. A chain that does not
    verify is reported too, and the page says so. The file holds what the chain holds, prompts
    and answers included (mode 0600); a name that ends in .gz compresses it.

    Exit codes: 0 verified; 1 the chain does not verify; 2 asked wrongly; 3 could not check (for
    example no key). The file is written with 0, 1 and 3, unless there is nothing to read.
    """
    check_target(target, (location, checkpoint, *pubkeys))
    session.verdict = COULD_NOT_CHECK
    write_page = _page_writer()
    request = Request(
        location=location,
        chain=chain,
        ring=ring_or_none(keys),
        trace_id=parse_id("--trace", trace),
        first=_bound("--from", first),
        last=_bound("--to", last),
        scope=_scope(trace, first, last),
        outside=_outside(checkpoint, pubkeys),
        made_at=f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ} by bijotel {__version__}",
        prices=prices(price_file),
    )
    with make_report(request) as made, new_file(target) as output:
        write_page(output, made.page, made.decisions.details())
    if made.page.report is not None:
        session.verdict = made.page.report.exit_code
    _say(session, made, target)


def _page_writer() -> Callable[..., None]:
    """Load what writes pages, which needs an extra."""
    try:
        from bijotel.report.page import write_page  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name not in {"jinja2", "markupsafe"}:
            raise
        raise ConfigurationError(
            "the extra 'report' is not installed; "
            "pip install '.[report]' in the folder of the repository"
        ) from None
    return write_page


def _bound(option: str, text: str | None) -> Bound | None:
    if text is None:
        return None
    if _SEQ.fullmatch(text):
        return Bound(int(text), is_time=False)
    before = option == "--to"
    return Bound(parse_time(text) - before, is_time=True)


def _scope(trace: str | None, first: str | None, last: str | None) -> str:
    if trace is not None and (first is not None or last is not None):
        raise ConfigurationError("expected --trace or --from and --to, one of the two")
    if trace is not None:
        return f"Trace {trace}"
    if first is None and last is None:
        return "All entries"
    ends = (("from", first), ("to", last))
    return f"Entries {' '.join(f'{word} {end}' for word, end in ends if end is not None)}"


def _outside(checkpoint: Path | None, pubkeys: tuple[str, ...]) -> Outside | None:
    if (checkpoint is None) != (not pubkeys):
        raise ConfigurationError("expected --checkpoint and --pubkey, both or none")
    if checkpoint is None:
        return None
    return Outside(read_note(checkpoint), tuple(map(load_verifier_key, pubkeys)))


def _say(session: Session, made: Made, target: Path) -> None:
    page = made.page
    word, style, rest = page.verdict
    if session.json:
        session.output.document(_document(made, target))
        return
    style = style if style != "plain" else "doubtful"
    session.output.line(f"{session.output.styled(word, style)}: {escape(rest)}")
    session.output.line(f"written: {escape(str(target))}: {counted(len(page.rows), 'decision')}")


def _document(made: Made, target: Path) -> dict[str, Any]:
    verification = made.page.report
    return {
        "file": str(target),
        "chain": made.page.chain,
        "decisions": len(made.page.rows),
        "verification": None if verification is None else verification.as_dict(),
    }
