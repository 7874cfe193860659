"""One file in which drafts wait for a store that cannot be written. The disk's edge.

Records are appended at the end, flushed to the disk, and taken from the front; the file is
removed once everything in it is sealed. After a crash in between, records are sealed a second
time and the store's guard skips them. Whose file it is, is ``outbox``'s business.

Source: docs/spec (spool), docs/explanation/durability.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from bijotel.errors import VerificationError
from bijotel.keys import KeyRing
from bijotel.model import Draft
from bijotel.spool_format import (
    FIRST_MAC,
    MAX_PAYLOAD_BYTES,
    Record,
    read_header,
    read_records,
    write_header,
    write_record,
)

_CHUNK_BYTES: Final = 4 * 1024 * 1024
_HEADER_BYTES: Final = 64 * 1024
_RECORDS_TRIED: Final = 64


class Waiting(NamedTuple):
    """Records from the front of a spool."""

    drafts: list[Draft]
    """Those that verify."""
    damaged: int
    """How many of the others there are."""
    octets: bytes
    """All of them, as they stand in the file."""
    mac: bytes
    """Of the last one."""


class SpoolFile:
    """A spool of one chain."""

    def __init__(self, path: Path, chain: str, spool_id: bytes, key: bytes) -> None:
        """Name a spool that this process alone uses; the file is made by the first append.

        Args:
            path: The file.
            chain: The chain's name.
            spool_id: 16 bytes, drawn for this file.
            key: See :meth:`bijotel.keys.HmacKey.spool_key`.
        """
        self.path = path
        self._header = write_header(chain, spool_id)
        self._key = key
        self._forget()

    def _forget(self) -> None:
        self._read_at = self._written = len(self._header)
        self._read_mac = self._write_mac = FIRST_MAC
        self.file_records = 0
        """How many records this process has put into the file, read or not."""

    @property
    def waiting_bytes(self) -> int:
        """How many bytes of records wait."""
        return self._written - self._read_at

    @property
    def file_bytes(self) -> int:
        """How long the file is; it shrinks only when nothing waits any more."""
        return self._written

    def append(self, drafts: Iterable[Draft]) -> None:
        """Append drafts and flush them to the disk; on an error nothing is appended.

        Raises:
            OSError: the disk is full, read-only or gone.
        """
        mac, parts = self._write_mac, []
        for draft in drafts:
            parts.append(write_record(draft, self._header, mac, self._key))
            mac = parts[-1][-len(mac) :]
        new = self._written == len(self._header)
        start, octets = (0, [self._header, *parts]) if new else (self._written, parts)
        # A file that somebody removed is not begun anew in its middle.
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if new else 0)
        descriptor = os.open(self.path, flags, 0o600)
        try:
            # What an earlier, failed append left behind the last whole record goes.
            os.ftruncate(descriptor, start)
            _write_all(descriptor, b"".join(octets), start)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if new:
            _flush_folder(self.path.parent)
        self._written = start + sum(map(len, octets))
        self._write_mac = mac
        self.file_records += len(parts)

    def peek(self, most: int) -> Waiting | None:
        """Read the first records that wait; None when what is left is no whole record.

        Raises:
            OSError: the file cannot be read.
        """
        records: list[Record] = []
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(self._read_at)
            octets = file.read(min(self.waiting_bytes, _CHUNK_BYTES))
            records = self._parse(octets, most)
            if not records:  # one that is longer than a chunk, or none
                octets += file.read(MAX_PAYLOAD_BYTES)
                records = self._parse(octets, 1)
        if not records:
            return None
        drafts = [record.draft for record in records if record.draft is not None]
        size = sum(record.size for record in records)
        return Waiting(drafts, len(records) - len(drafts), octets[:size], records[-1].mac)

    def rest(self) -> Iterator[bytes]:
        """Read what waits, whole records or not, chunk by chunk."""
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(self._read_at)
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk

    def done(self, waiting: Waiting) -> None:
        """Count records as sealed; an emptied file is removed."""
        self._read_at += len(waiting.octets)
        self._read_mac = waiting.mac
        if self.waiting_bytes == 0:
            self.remove()

    def remove(self) -> None:
        """Remove the file; a later append starts it anew."""
        self.path.unlink(missing_ok=True)
        self._forget()

    def _parse(self, octets: bytes, most: int) -> list[Record]:
        found = read_records(octets, self._header, self._read_mac, self._key)
        return [record for record, _ in zip(found, range(most), strict=False)]


def adopt_spool(path: Path, chain: str, keys: KeyRing) -> SpoolFile:
    """Open a spool that a process of the past has left for a chain.

    One that has no header of that chain holds nothing that can be read, and says so as any
    damaged one does.

    Raises:
        OSError: the file cannot be read.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        octets = file.read(_HEADER_BYTES)
    try:
        name, spool_id, _ = read_header(octets)
    except VerificationError:
        name, spool_id = "", b""
    spools = [SpoolFile(path, chain, spool_id, key.spool_key()) for key in keys]
    for spool in spools:
        spool._written = size  # noqa: SLF001 - this function is its other maker
        if name != chain:
            spool._read_at = 0  # noqa: SLF001
    return max(spools, key=_readable)


def _readable(spool: SpoolFile) -> int:
    """Count the records that verify among the first ones: with the right key nearly all."""
    waiting = spool.peek(_RECORDS_TRIED) if spool.waiting_bytes > 0 else None
    return len(waiting.drafts) if waiting is not None else 0


def _flush_folder(folder: Path) -> None:
    """Flush a new file's name to the disk, without which its content would be out of reach."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, octets: bytes, at: int) -> None:
    view = memoryview(octets)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written
