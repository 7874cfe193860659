"""Opens what trace files are in practice: plain, gzip or zstd, text or length-prefixed messages.

What a file is shows in its first bytes, never in its name.
"""

from __future__ import annotations

import gzip
import io
import zlib
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO

from bijotel.beginnings import beginning
from bijotel.errors import UnavailableError
from bijotel.traces.objects import MAX_OBJECT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SQLITE = b"SQLite format 3\0"


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open a trace file, unpacked, at its first byte.

    Raises:
        UnavailableError: The file is missing, empty, unreadable, a database or packed with
            zstd where Python has no decoder for it; also while reading on, when the packed data
            ends too early.
    """
    try:
        with path.open("rb") as raw:
            stream = _unpacked(path, raw)
            head, stream = beginning(stream, len(_SQLITE))
            if not head:
                raise UnavailableError(f"{path}: the file is empty")
            if head.startswith(_SQLITE):
                raise UnavailableError(f"{path}: is a database; use --db")
            yield stream
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnavailableError(f"{path}: cannot be read: {reason}") from error


def is_prefixed(stream: io.BufferedReader) -> bool:
    """Tell whether length-prefixed messages follow; text never begins with such a byte."""
    return stream.peek(1)[:1] < b"\x09"


def messages(
    stream: BinaryIO, skip: Callable[[int, str], None], path: Path
) -> Iterator[tuple[int, bytes]]:
    """Give the messages of a length-prefixed file, numbered from 1.

    Each follows its length as four big-endian bytes; the Collector packs each by itself when
    it is told to compress.
    """
    number = 0
    while prefix := stream.read(4):
        number += 1
        size = int.from_bytes(prefix, "big")
        if size > MAX_OBJECT_BYTES:
            skip(number, f"a message of {size} bytes, more than {MAX_OBJECT_BYTES}")
            return
        octets = stream.read(size)
        if len(prefix) < 4 or len(octets) < size:
            skip(number, "a message that is not whole")
            return
        yield number, _zstd(path).decompress(octets) if octets.startswith(_ZSTD) else octets


def _unpacked(path: Path, raw: io.BufferedReader) -> io.BufferedReader:
    head, raw = beginning(raw, 4)
    if head.startswith(_GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=raw), 1 << 20)
    if head.startswith(_ZSTD):
        return io.BufferedReader(_zstd(path).ZstdFile(raw), 1 << 20)
    return raw


def _zstd(path: Path) -> ModuleType:
    try:
        return import_module("compression.zstd")
    except ImportError:
        raise UnavailableError(
            f"{path}: packed with zstd, which Python reads from 3.14 on; unpack it with `zstd -d`"
        ) from None
