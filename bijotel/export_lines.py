"""The lines of an export, plain or compressed with gzip, as a stream.

How many lines of a damaged gzip file a reader still gets hangs on the size of its buffers. So
that every verifier gives the same verdict, whoever finds a fault asks for the damage of the whole
file, and what was read before it does not count.

Source: RFC 1952; docs/spec (export).
"""

from __future__ import annotations

import zlib
from io import BufferedReader, RawIOBase
from typing import Any, Final

from bijotel.beginnings import beginning
from bijotel.entry_line import MAX_LINE_BYTES
from bijotel.errors import UnavailableError
from bijotel.note import EvidenceError

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31
"""zlib's number for the largest window behind a gzip header, with the checksum compared."""
_CHUNK_BYTES: Final = 64 * 1024
_UNPACKED_BYTES: Final = 8 * _CHUNK_BYTES


class ExportLines:
    """An iterator over the lines of a file, without their newlines.

    Raises while it is read:
        EvidenceError: ``malformed-export``: damaged compression, or a line over the limit.
        UnavailableError: the file cannot be read.
    """

    def __init__(self, source: BufferedReader) -> None:
        """Take a file, to be read once from where it stands."""
        self._source = source
        self._reader: BufferedReader | None = None
        self._is_packed = False

    def __iter__(self) -> ExportLines:
        """Give the lines that are left."""
        return self

    def __next__(self) -> bytes:
        """Give the next line."""
        line = self._read(MAX_LINE_BYTES + 1)
        if not line:
            raise StopIteration
        if not line.endswith(b"\n"):
            what = "over the limit" if len(line) > MAX_LINE_BYTES else "without a final newline"
            raise EvidenceError(f"export: a line {what}", "malformed-export", "line")
        return line[:-1]

    def damage(self) -> EvidenceError | None:
        """Read a compressed file to its end, and tell whether its compression is damaged."""
        try:
            while self._is_packed and self._read(_CHUNK_BYTES, whole_line=False):
                pass
        except EvidenceError as error:
            return error
        return None

    def _read(self, most_bytes: int, *, whole_line: bool = True) -> bytes:
        try:
            if self._reader is None:
                octets, self._reader = beginning(self._source, len(_GZIP_MAGIC))
                if octets == _GZIP_MAGIC:
                    self._is_packed = True
                    self._reader = BufferedReader(_Unpacked(self._reader), _UNPACKED_BYTES)
            read = self._reader.readline if whole_line else self._reader.read
            return read(most_bytes)
        except zlib.error as error:
            what = f"export: cannot be decompressed: {error}"
            raise EvidenceError(what, "malformed-export", "file") from None
        except OSError as error:
            raise UnavailableError(f"export: cannot be read: {error.strerror or error}") from None


class _Unpacked(RawIOBase):
    """What one gzip member holds. Whatever stands behind it is damage: no browser reads on."""

    def __init__(self, source: BufferedReader) -> None:
        self._source = source
        self._member = zlib.decompressobj(wbits=_GZIP_WINDOW)
        self._damage = ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; 0 at the end. Damage is found again by every further read."""
        if self._damage:
            raise zlib.error(self._damage)
        try:
            octets = self._next(len(buffer))
        except zlib.error as error:
            self._damage = str(error)
            raise
        buffer[: len(octets)] = octets
        return len(octets)

    def _next(self, most_bytes: int) -> bytes:
        while not self._member.eof:
            packed = self._member.unconsumed_tail or self._source.read(_CHUNK_BYTES)
            octets = self._member.decompress(packed, most_bytes)
            if octets:
                return octets
            if not packed and not self._member.eof:
                raise zlib.error("the file ends before the compressed data does")
        if self._member.unused_data or self._source.read(1):
            raise zlib.error("something stands behind the compressed data")
        return b""
