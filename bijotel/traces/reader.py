"""Reads trace files of any form and size and gives their traces.

Two passes: the first finds the objects and divides them by trace id, the second turns the parts
of one trace at a time into records. A trace may be spread over any number of lines, files and
forms in any order.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

from bijotel.errors import UnavailableError
from bijotel.traces import console, files, jaeger, jsontext, otlp, protobuf
from bijotel.traces.grouping import Gathering, Part
from bijotel.traces.model import LogRecord, SkippedLine, Trace
from bijotel.traces.objects import PLAIN_TEXT, Found, read_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from io import BufferedReader
    from pathlib import Path

    from bijotel.model import SpanRecord


class Form(Protocol):
    """What a module gives that reads one form of trace object."""

    def recognises(self, value: dict[str, Any], /) -> bool:
        """Tell whether an object has this form."""
        ...

    def fault(self, value: dict[str, Any], /) -> str:
        """Say where an object has a value of a wrong type; empty when it has none."""
        ...

    def split(self, value: dict[str, Any], /) -> dict[str, dict[str, Any]]:
        """Divide an object by trace id into objects of this form."""
        ...

    def records(self, value: dict[str, Any], /) -> Iterator[SpanRecord | LogRecord]:
        """Read the records of an object, whole or divided."""
        ...


_FORMS: tuple[Form, ...] = (otlp, console, jaeger)
_NO_FORM = "no spans or log records in a form that is known"
_BESIDE_SPANS = frozenset({PLAIN_TEXT, _NO_FORM})
_WAITING_LINES = 10_000


def read_traces(
    paths: Iterable[Path],
    *,
    skipped: Callable[[SkippedLine], None] = lambda _: None,
    counted: Callable[[int], None] = lambda _: None,
) -> Iterator[Trace]:
    """Read trace files and give their traces in the order of first appearance.

    Memory stays bounded by the largest trace; a temporary file of about the input's size is
    used. What can be read is read and given: the error about a file that could not be comes last.

    Args:
        paths: Plain, gzip or zstd; OTLP/JSON in lines or documents, length-prefixed OTLP
            protobuf, Console exporter output among other text, Jaeger JSON.
        skipped: Called for each line that could not be read.
        counted: Called once, with the number of traces, before the first is given.

    Raises:
        UnavailableError: A file is missing, empty or unreadable; raised after the traces of the
            other files were given.
        ConfigurationError: A protobuf file, and the extra ``otlp`` is not installed.
    """
    for parts in gather_parts(paths, skipped=skipped, counted=counted):
        trace = assemble_trace(parts)
        if trace is not None:
            yield trace


def gather_parts(
    paths: Iterable[Path],
    *,
    skipped: Callable[[SkippedLine], None],
    counted: Callable[[int], None],
) -> Iterator[list[Part]]:
    """Do the first half of :func:`read_traces`: give the parts of each trace, still encoded.

    They can be pickled, so that other processes may do the second half.
    """
    failed: list[UnavailableError] = []
    with closing(Gathering()) as gathering:
        for path in paths:
            failed += _read_file(path, gathering, skipped)
        counted(gathering.finish())
        yield from gathering.traces()
    if failed:
        raise UnavailableError("; ".join(map(str, failed)))


def assemble_trace(parts: list[Part]) -> Trace | None:
    """Do the second half: make one trace of its parts, None when they hold no record of it."""
    trace_id = parts[0].trace_id.hex()
    records = [
        record
        for part in parts
        for record in _FORMS[part.form].records(jsontext.loads(part.octets))
        if record.trace_id == trace_id
    ]
    return _trace(trace_id, records) if records else None


def group_records(records: Iterable[SpanRecord | LogRecord]) -> Iterator[Trace]:
    """Group records that are at hand, such as those of a chain, by trace.

    All of them are held in memory. Traces come in the order of first appearance.
    """
    by_trace: dict[str, list[SpanRecord | LogRecord]] = {}
    for record in records:
        by_trace.setdefault(record.trace_id, []).append(record)
    for trace_id, held in by_trace.items():
        yield _trace(trace_id, held)


def _read_file(
    path: Path, gathering: Gathering, skipped: Callable[[SkippedLine], None]
) -> list[UnavailableError]:
    other = _OtherText(str(path), skipped)
    try:
        with files.opened(path) as stream:
            for found in _objects(path, stream, other.skip):
                values = found.value if isinstance(found.value, list) else [found.value]
                for value in values:
                    form = _form(value)
                    if form is None:
                        other.skip(found.line, _NO_FORM)
                    else:
                        other.settle(console_capture=_FORMS[form] is console)
                        _divide(found, value, form, gathering, other.skip)
    except UnavailableError as error:
        return [error]
    finally:
        other.settle(console_capture=False)
    return []


class _OtherText:
    """Reports what is skipped, once a line; text beside printed spans is expected and no fault."""

    def __init__(self, file: str, skipped: Callable[[SkippedLine], None]) -> None:
        self._file = file
        self._skipped = skipped
        self._waiting: list[SkippedLine] = []
        self._console: bool | None = None
        self._told = 0
        """The last line that was reported."""

    def skip(self, line: int, reason: str) -> None:
        """Report one line, or wait until it is clear whether it is a fault."""
        skipped = SkippedLine(self._file, line, reason)
        if reason not in _BESIDE_SPANS or self._console is False:
            self._tell(skipped)
        elif self._console is None:
            self._waiting.append(skipped)
            if len(self._waiting) > _WAITING_LINES:
                self.settle(console_capture=False)

    def settle(self, *, console_capture: bool) -> None:
        """Decide what the file is, by its first object; later calls change nothing."""
        if self._console is None:
            self._console = console_capture
            for skipped in () if console_capture else self._waiting:
                self._tell(skipped)
            self._waiting.clear()

    def _tell(self, skipped: SkippedLine) -> None:
        if skipped.line != self._told:
            self._told = skipped.line
            self._skipped(skipped)


def _objects(
    path: Path, stream: BufferedReader, skip: Callable[[int, str], None]
) -> Iterator[Found]:
    if not files.is_prefixed(stream):
        if (yield from read_objects(stream, skip, lambda value: _form(value) is not None)):
            raise UnavailableError(f"{path}: the file is empty but for white space")
        return
    for number, octets in files.messages(stream, skip, path):
        is_json = octets[:1] == b"{"
        decode = jsontext.loads if is_json else protobuf.message
        try:
            value = decode(octets)
        except ValueError as error:
            skip(number, str(error))
            continue
        yield Found(number, octets if is_json else b"", value)


def _form(value: Any) -> int | None:
    if isinstance(value, dict):
        for number, form in enumerate(_FORMS):
            if form.recognises(value):
                return number
    return None


def _divide(
    found: Found,
    value: dict[str, Any],
    form: int,
    gathering: Gathering,
    skip: Callable[[int, str], None],
) -> None:
    if fault := _FORMS[form].fault(value):
        skip(found.line, fault)
    parts = _FORMS[form].split(value)
    if parts.pop("", None):
        skip(found.line, "a span without a valid trace id")
    # An object of one trace, the usual line, is kept as it stands.
    whole = found.octets if len(parts) == 1 and value is found.value else b""
    for trace_id, part in parts.items():
        try:
            octets = whole or jsontext.dumps(part)
        except ValueError as error:
            skip(found.line, str(error))
            return
        gathering.add(Part(bytes.fromhex(trace_id), form, octets))


def _trace(trace_id: str, records: Iterable[SpanRecord | LogRecord]) -> Trace:
    """Put a trace together; a span that came twice, as after a retry, counts once."""
    spans: list[SpanRecord] = []
    by_id: dict[str, list[SpanRecord]] = {}
    logs: list[LogRecord] = []
    for record in records:
        if isinstance(record, LogRecord):
            logs.append(record)
            continue
        known = by_id.setdefault(record.span_id, [])
        if record not in known:
            known.append(record)
            spans.append(record)
    logs.sort(key=lambda log: log.time_unix_nano or 0)
    return Trace(trace_id, tuple(spans), tuple(logs))
