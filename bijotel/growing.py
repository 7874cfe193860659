"""What files have grown by: whole lines, or whole length-prefixed messages. The disk's edge.

A file is known by its inode, so that one that is renamed when a new one is begun goes on where
it was, and by how that part of it begins and ends, because a removed file's inode is used again.
Where reading stood is kept in memory only: who starts again reads again, and whoever seals must
know what he has sealed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from bijotel.errors import UnavailableError

PART_BYTES: Final = 16 * 1024 * 1024
"""About how much of a file is handed on at once; a longer line or message is handed on whole."""

# Files of one service may all begin alike for longer than that; they do not end alike.
_KNOWN_BYTES: Final = 1024
_PACKED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


@dataclass(frozen=True, slots=True)
class Part:
    """Whole lines, or whole messages, from within a file."""

    path: Path
    octets: bytes
    lines_before: int
    """Lines, or messages, of the file before these."""


@dataclass(slots=True)
class _Place:
    """How far a file was read, and how that part of it begins and ends."""

    at: int = 0
    lines: int = 0
    begins: bytes = b""
    ends: bytes = b""

    def is_in(self, file: BinaryIO) -> bool:
        """Tell whether this is the file that was read, and not shorter than it was then."""
        file.seek(0)
        begins = file.read(len(self.begins))
        file.seek(self.at - len(self.ends))
        return (begins, file.read(len(self.ends))) == (self.begins, self.ends)

    def advance(self, octets: bytes, lines: int) -> None:
        """Go on behind what was read."""
        self.at += len(octets)
        self.lines += lines
        self.begins = (self.begins + octets[:_KNOWN_BYTES])[:_KNOWN_BYTES]
        self.ends = (self.ends + octets[-_KNOWN_BYTES:])[-_KNOWN_BYTES:]


@dataclass(slots=True)
class GrowingFiles:
    """Files and the files of folders, and how far each was read."""

    paths: tuple[Path, ...]
    unread: dict[Path, str | None] = field(default_factory=dict)
    """What could not be read in the last round, and why; None: it is not there."""
    _places: dict[tuple[int, int], _Place] = field(default_factory=dict)

    def new_parts(self) -> Iterator[Part]:
        """Give what is new; a part counts as read once the next one is asked for.

        What cannot be read, or is packed and so does not grow, stands in ``unread`` and costs
        no other file. Whoever cannot deal with a part puts its path there as well; the part
        comes again in the next round.
        """
        self.unread = {}
        seen: set[tuple[int, int]] = set()
        for path in self._listed():
            yield from self._new_parts_of(path, seen)
        self._places = {file: place for file, place in self._places.items() if file in seen}

    def _listed(self) -> Iterator[Path]:
        for given in self.paths:
            try:
                yield from files_of(given)
            except UnavailableError as error:
                self.unread[given] = str(error)

    def _new_parts_of(self, path: Path, seen: set[tuple[int, int]]) -> Iterator[Part]:
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                seen.add((status.st_dev, status.st_ino))
                yield from self._read(path, file, (status.st_dev, status.st_ino))
        except FileNotFoundError:  # not there yet; or, of a folder, renamed or removed meanwhile
            if path in self.paths:
                self.unread[path] = None
        except OSError as error:
            self.unread[path] = f"{path}: cannot be read: {error.strerror}"

    def _read(self, path: Path, file: BinaryIO, inode: tuple[int, int]) -> Iterator[Part]:
        first = file.read(4)
        if first.startswith(_PACKED):
            self.unread[path] = f"{path}: is packed, so it does not grow; seal it by itself"
            return
        place = self._places.get(inode)
        if place is None or not place.is_in(file):  # emptied, or another file of that inode
            place = self._places[inode] = _Place()
        read = _whole_messages if first[:1] < b"\x09" else _whole_lines
        while True:
            file.seek(place.at)
            octets, lines = read(file)
            if not octets:
                return
            yield Part(path, octets, place.lines)
            if path in self.unread:
                return
            place.advance(octets, lines)


def files_of(path: Path) -> tuple[Path, ...]:
    """Give a file itself, or the files in a folder by name; not those in folders below.

    Raises:
        UnavailableError: the folder cannot be read.
    """
    try:
        if path.is_dir():
            return tuple(sorted(each for each in path.iterdir() if each.is_file()))
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be read: {error.strerror}") from None
    return (path,)


def _whole_lines(file: BinaryIO) -> tuple[bytes, int]:
    octets = b""
    while chunk := file.read(PART_BYTES):
        octets += chunk
        end = octets.rfind(b"\n") + 1
        if end:
            return octets[:end], octets.count(b"\n", 0, end)
    return b"", 0


def _whole_messages(file: BinaryIO) -> tuple[bytes, int]:
    """Read messages, each behind its length as four big-endian bytes."""
    start = file.tell()
    end, messages = start, 0
    size = os.fstat(file.fileno()).st_size
    while end - start < PART_BYTES:
        prefix = file.read(4)
        after = end + 4 + int.from_bytes(prefix, "big")
        if len(prefix) < 4 or after > size:
            break
        file.seek(after)
        end, messages = after, messages + 1
    file.seek(start)
    return file.read(end - start), messages
