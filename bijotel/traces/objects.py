"""The JSON objects of a stream of text, each with the number of its line.

Objects stand one a line, or printed over many lines, or several run together, among other text.
A line is first tried as a whole, which is all that a file of JSON lines needs. Where that fails
and an object begins, its end is found by counting brackets outside strings, so that the cost
stays linear on any input. An object that never ends is reported at its first line, and the lines
that it seemed to hold are read each by itself.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from bijotel.traces import jsontext

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

MAX_OBJECT_BYTES = 128 * 1024 * 1024
"""A longer line or object is reported and skipped."""

PLAIN_TEXT = "not JSON"
"""The reason given for a line of other text, which in a console capture is no fault."""

_BRACKET = re.compile(rb'["{}\[\]]')
_IN_STRING = re.compile(rb'["\\]')
_BREAKS = frozenset({b"", b"[", b"]"})


class Found(NamedTuple):
    """One JSON object or array."""

    line: int
    octets: bytes
    value: Any


class _Broken(Exception):  # noqa: N818 - a turn of the scan, not an error to anyone outside
    """What was begun cannot be JSON."""


def read_objects(
    stream: BinaryIO,
    skip: Callable[[int, str], None],
    recognises: Callable[[Any], bool],
) -> Generator[Found, None, bool]:
    """Give every JSON object or array of a stream.

    Args:
        stream: Read once, from front to back.
        skip: Called with the number of each line that holds no whole object, and the reason.
        recognises: Tells an object of a known form. Such an object on a line of its own ends
            an object that was begun before it and is not whole.

    Returns:
        Whether the stream holds nothing but white space.
    """
    lines = _Lines(stream, skip)
    while line := lines.read():
        bare = _bare(line)
        if bare in _BREAKS:
            continue
        value = _decoded(bare)
        if lines.given_back:
            if recognises(value):
                yield Found(lines.number, bare, value)
        elif value is not None:
            yield Found(lines.number, bare, value)
        elif _begins(bare):
            yield from _over_lines(lines, bare + b"\n", skip, recognises)
        else:
            skip(lines.number, PLAIN_TEXT)
    return lines.blank


class _Lines:
    """The lines of a stream with their numbers, some of which may be given back."""

    def __init__(self, stream: BinaryIO, skip: Callable[[int, str], None]) -> None:
        self._stream = stream
        self._skip = skip
        self._returned: BinaryIO = BytesIO()
        self.given_back = False
        self.number = 0
        """Of the line that was read last."""
        self.blank = True
        """Whether all lines so far are white space."""

    def read(self) -> bytes:
        """Give the next line, empty at the end."""
        self.number += 1
        line = self._returned.readline()
        self.given_back = bool(line)
        if line:
            return line
        line = self._stream.readline(MAX_OBJECT_BYTES + 1)
        while len(line) > MAX_OBJECT_BYTES:
            self._skip(self.number, f"longer than {MAX_OBJECT_BYTES} bytes")
            while line and not line.endswith(b"\n"):
                line = self._stream.readline(MAX_OBJECT_BYTES)
            self.number += 1
            self.blank = False
            line = self._stream.readline(MAX_OBJECT_BYTES + 1)
        self.blank = self.blank and not line.strip()
        return line

    def give_back(self, text: bytes, after: int) -> None:
        """Read these lines again, which follow line ``after``."""
        self._returned = BytesIO(text)
        self.number = after


def _bare(line: bytes) -> bytes:
    return line.strip().removeprefix(b"\xef\xbb\xbf").removesuffix(b",")


def _begins(bare: bytes) -> bool:
    return bare.startswith((b"{", b"["))


def _decoded(octets: bytes) -> Any:
    """Give the object or array that the octets are, else None."""
    if not _begins(octets) or not octets.endswith((b"}", b"]")):
        return None
    try:
        return jsontext.loads(octets)
    except ValueError:
        return None


def _over_lines(
    lines: _Lines,
    text: bytes,
    skip: Callable[[int, str], None],
    recognises: Callable[[Any], bool],
) -> Iterator[Found]:
    """Read on from a line on which an object begins and which is not one object as a whole."""
    first, head, depth = lines.number, len(text), 0
    gathered = bytearray()
    while True:
        before = len(gathered)
        gathered += text
        try:
            end, depth = _end_of_value(text, depth)
        except _Broken:
            break
        if depth == 0:
            octets = bytes(gathered[: before + end])
            value = _decoded(octets)
            if value is None:
                break
            yield Found(first, octets, value)
            text = _bare(text[end:].lstrip(b", \t")) + b"\n"
            first, head, gathered = lines.number, len(text), bytearray()
            if _begins(text):
                continue
            if text.strip() not in _BREAKS:
                skip(lines.number, PLAIN_TEXT)
            return
        text = lines.read()
        known = text.lstrip().startswith(b"{") and recognises(_decoded(_bare(text)))
        if known or not text or len(gathered) + len(text) > MAX_OBJECT_BYTES:
            gathered += text
            break
    skip(first, "a JSON object that is not whole")
    lines.give_back(bytes(gathered[head:]), first)


def _end_of_value(text: bytes, depth: int) -> tuple[int, int]:
    """Find where the value that is open ``depth`` deep closes, and how deep the end is."""
    position = 0
    while found := _BRACKET.search(text, position):
        position = found.end()
        mark = found[0]
        if mark == b'"':
            position = _end_of_string(text, position)
        elif mark in b"{[":
            depth += 1
        else:
            depth -= 1
            if depth <= 0:
                return position, 0
    if depth == 0:
        raise _Broken
    return position, depth


def _end_of_string(text: bytes, position: int) -> int:
    while found := _IN_STRING.search(text, position):
        if found[0] == b'"':
            return found.end()
        position = found.end() + 1
    raise _Broken  # a string never goes over the end of a line
