"""``bijotel audit``: score which retrieved passages reached the prompt, trace by trace."""

from __future__ import annotations

import math
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, Protocol

import click

from bijotel.audit import TraceAudit, audit_trace
from bijotel.audit.report import JsonReport, JUnitReport, Summary, Thresholds
from bijotel.audit.workers import audits_of, usable_workers
from bijotel.cli.audit_blocks import block, compact, signs_for, summary_lines
from bijotel.cli.chain_traces import gather, traces_of
from bijotel.cli.options import chain_option, json_option, key_option, parse_id, ring_or_none
from bijotel.cli.output import Output, error_document
from bijotel.cli.progress import Progress
from bijotel.cli.session import COULD_NOT_CHECK, FINDINGS, FINE, Session
from bijotel.cli.text import escape
from bijotel.errors import BijotelError, ConfigurationError, UnavailableError
from bijotel.keys import SECRET_VARIABLE, KeyRing
from bijotel.output_files import PUBLIC, new_file
from bijotel.traces.grouping import Gathering
from bijotel.traces.model import SkippedLine
from bijotel.traces.reader import gather_parts

_LONG_INPUT_BYTES: Final = 16_000_000
"""From which on a bar is worth its place."""
_SHARED_INPUT_BYTES: Final = 32_000_000
"""From which on starting other processes is worth the time."""
_SKIPPED_SHOWN: Final = 10
_AS_STORED: Final = "entries are scored as stored (--unverified)"


class _Score(click.FloatRange):
    """A number from 0 to 100; what is no number is in no range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


_SCORE: Final = _Score(0, 100)


@click.command(short_help="Score which retrieved passages reached the prompt.")
@click.argument("paths", nargs=-1, metavar="[TRACES]...", type=click.Path(path_type=Path))
@click.option("--db", "location", metavar="STORE", help="Audit a chain: a path or a URL.")
@chain_option
@key_option
@click.option("--unverified", is_flag=True, help="Score entries of a chain that do not verify too.")
@click.option("--trace", metavar="ID", help="Only this trace (32 hex digits).")
@click.option("--min-overall", type=_SCORE, metavar="N", help="Exit 1 when a trace scores less.")
@click.option("--min-precision", type=_SCORE, metavar="N", help="The same for the precision.")
@click.option(
    "--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write a JUnit file too."
)
@click.option("--verbose", is_flag=True, help="Show all findings, passages and calls.")
@click.option("--compact", "short", is_flag=True, help="Show one line a trace.")
@json_option
@click.pass_obj
def audit(
    session: Session,
    *,
    paths: tuple[Path, ...],
    location: str | None,
    chain: str | None,
    keys: tuple[str, ...],
    unverified: bool,
    trace: str | None,
    min_overall: float | None,
    min_precision: float | None,
    junit: Path | None,
    verbose: bool,
    short: bool,
) -> None:
    """Score which retrieved passages reached the prompt, trace by trace.

    TRACES are OTLP/JSON lines, OTLP protobuf, Console exporter output or Jaeger JSON, also
    packed. Of a chain only the entries that verify are scored. A trace without a retrieval, a
    prompt or passage text is not applicable: no score, and why.

    Exit codes: 0 whatever the scores when no threshold is given; 1 a trace misses a threshold;
    2 asked wrongly; 3 a file could not be read, or a threshold is given and no trace could be
    audited (1 outranks 3).
    """
    if bool(paths) == (location is not None):
        raise ConfigurationError("expected trace files or --db STORE, one of the two")
    thresholds = Thresholds(min_overall, min_precision)
    printer: _Printer = _Text(session.output, verbose=verbose, short=short)
    if session.json:
        printer = _Json(session.output)
    with ExitStack() as stack:
        size = sum(map(_size, paths))
        long = location is not None or size >= _LONG_INPUT_BYTES
        progress = Progress(session.messages, wanted=long)
        stack.callback(progress.clear)
        run = _Run(session, thresholds, printer, progress)
        if junit is not None:
            run.junit = _junit(junit, (location, *paths), thresholds, stack)
        progress.say("reading ...")
        trace_id = parse_id("--trace", trace)
        wanted = None if trace_id is None else trace_id.hex()
        if location is None:
            audits = _of_files(
                run, paths, wanted, usable_workers() if size >= _SHARED_INPUT_BYTES else 0
            )
        else:
            ring = None if unverified else _ring(keys)
            audits = _of_chain(run, location, chain, ring, wanted)
        run.go(stack.enter_context(closing(audits)))


class _Printer(Protocol):
    """How audits are shown."""

    def begin(self, messages: Output, line: str) -> None:
        """Say first what the traces are worth."""
        ...

    def add(self, audit: TraceAudit, missed: tuple[str, ...]) -> None:
        """Show one trace."""
        ...

    def end(self, summary: Summary, error: BijotelError | None) -> None:
        """Show what all came to; ``error`` kept them from being all."""
        ...


class _Text:
    """For people."""

    def __init__(self, output: Output, *, verbose: bool, short: bool) -> None:
        self._output = output
        self._verbose, self._short = verbose, short
        self._signs = signs_for(sys.stdout.encoding)

    def begin(self, _messages: Output, line: str) -> None:
        self._output.line(line)

    def add(self, audit: TraceAudit, missed: tuple[str, ...]) -> None:
        dress = self._output.styled
        if self._short:
            self._output.line(compact(audit, missed, dress))
            return
        lines = block(audit, missed, verbose=self._verbose, signs=self._signs, dress=dress)
        for line in lines:
            self._output.line(line)

    def end(self, summary: Summary, error: BijotelError | None) -> None:
        if summary.traces or error is None:
            for line in summary_lines(summary, self._output.styled):
                self._output.line(line)


class _Json:
    """For machines; what is no part of the document goes to standard error."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._report: JsonReport | None = None

    def begin(self, messages: Output, line: str) -> None:
        messages.line(line)

    def add(self, audit: TraceAudit, _missed: tuple[str, ...]) -> None:
        self._opened().add(audit)

    def end(self, summary: Summary, error: BijotelError | None) -> None:
        failed = None if error is None else error_document(error.code, str(error))
        self._opened().end(summary, failed)

    def _opened(self) -> JsonReport:
        """Begin the document with the first thing that is in it."""
        if self._report is None:
            self._output.answered = True
            self._report = JsonReport(self._output.line)
        return self._report


class _Run:
    """One session: takes traces, shows their audits, and comes to an exit code."""

    junit: JUnitReport | None = None

    def __init__(
        self,
        session: Session,
        thresholds: Thresholds,
        printer: _Printer,
        progress: Progress,
    ) -> None:
        self.session = session
        self._printer = printer
        self.summary = Summary()
        self._thresholds = thresholds
        self.progress = progress
        self._missed = False
        self._lines = 0
        # Until all is read: a reader who leaves early must not take this for a pass.
        session.verdict = COULD_NOT_CHECK if thresholds.given else FINE

    def begin(self, line: str, traces: int, left_out: int) -> None:
        """Say first what the traces are worth, how many there are, and what is not in them."""
        self.summary.skipped_lines += left_out
        self.progress.clear()
        self.progress.begin(traces)
        self._printer.begin(self.session.messages, line)

    def skip(self, line: SkippedLine) -> None:
        """Note a line that could not be read."""
        self.summary.skipped_lines += 1
        self._lines += 1
        if self._lines <= _SKIPPED_SHOWN:
            self.progress.clear()
            self.session.messages.line(escape(f"skipped: {line}"))

    def go(self, audits: Iterator[TraceAudit]) -> None:
        """Show all audits and come to a verdict."""
        error: BijotelError | None = None
        try:
            for audit in audits:
                self.progress.step()
                self._show(audit)
        except BijotelError as caught:
            if not self.summary.traces:
                raise
            error = caught
        self.progress.clear()
        if self._lines > _SKIPPED_SHOWN:
            self.session.messages.line(f"skipped: {self._lines - _SKIPPED_SHOWN} more")
        self.session.verdict = self._verdict(error)
        if self.junit is not None:
            self.junit.end()
        self._printer.end(self.summary, error)
        if error is not None:
            self.session.messages.line(f"error: {escape(str(error))}")

    def _show(self, audit: TraceAudit) -> None:
        missed = self._thresholds.missed_by(audit)
        if missed:
            self._missed = True
            self.session.verdict = FINDINGS
        self.summary.add(audit)
        if self.junit is not None:
            self.junit.add(audit)
        if self.session.output.is_terminal:
            self.progress.clear()
        self._printer.add(audit, missed)

    def _verdict(self, error: BijotelError | None) -> int:
        if self._missed:
            return FINDINGS
        if error is not None:
            return error.exit_code
        unaudited = self._thresholds.given and not self.summary.audited
        return COULD_NOT_CHECK if unaudited else FINE


def _of_files(
    run: _Run, paths: tuple[Path, ...], wanted: str | None, workers: int
) -> Generator[TraceAudit, None, None]:
    parts = gather_parts(paths, skipped=run.skip, counted=run.progress.begin)
    if wanted is None:
        yield from audits_of(parts, workers)
    else:
        chosen = (each for each in parts if each[0].trace_id.hex() == wanted)
        yield from _some(audits_of(chosen, 0), wanted)


def _of_chain(
    run: _Run, location: str, chain: str | None, ring: KeyRing | None, wanted: str | None
) -> Generator[TraceAudit, None, None]:
    """Audit the traces of a chain, after saying what they are worth."""
    styled = run.session.output.styled
    with closing(Gathering()) as gathering:
        found = gather(location, chain, ring, gathering)
        left_out = found.entries - found.sound
        if not found.sound:
            raise UnavailableError(
                f"{location}: none of {found.entries} entries verifies with the keys given; "
                '"bijotel verify" says why'
            )
        if ring is None:
            word, text = styled("NOT VERIFIED", "doubtful"), _AS_STORED
        elif left_out:
            word = styled("NOT ALL VERIFIED", "bad")
            text = f"{left_out} of {found.entries} entries do not verify and are left out"
        else:
            word, text = styled("VERIFIED", "good"), f"all {found.entries} entries verify"
        run.begin(f"{word}: {text}", gathering.finish(), left_out)
        traces = traces_of(gathering)
        if wanted is None:
            yield from map(audit_trace, traces)
        else:
            chosen = (each for each in traces if each.trace_id == wanted)
            yield from _some(map(audit_trace, chosen), wanted)


def _some(audits: Iterable[TraceAudit], wanted: str) -> Iterator[TraceAudit]:
    """Give the audits of one trace, of which there must be some."""
    found = False
    for audit in audits:
        found = True
        yield audit
    if not found:
        raise ConfigurationError(f"--trace {wanted}: no such trace in the input")


def _ring(keys: tuple[str, ...]) -> KeyRing:
    ring = ring_or_none(keys)
    if ring is None:
        raise UnavailableError(
            f"no key given (--key, or {SECRET_VARIABLE}), so no entry can be verified; "
            "--unverified scores them as stored"
        )
    return ring


def _junit(
    path: Path, inputs: Iterable[str | Path | None], thresholds: Thresholds, stack: ExitStack
) -> JUnitReport:
    octets = stack.enter_context(new_file(path, PUBLIC, inputs=inputs))
    text = TextIOWrapper(octets, encoding="utf-8")
    stack.callback(text.detach)  # writes what is left
    return JUnitReport(text, thresholds)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
