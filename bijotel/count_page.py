"""Pages of counts, mapped into memory: what a process has taken and settled, however it ends.

Writing into a mapped page costs the application a fraction of a microsecond and survives the
process. A page is locked for as long as its process lives; one that can be locked is a process's
of the past. Pages are not sealed: whoever can write to the folder can make one lie, which is part
of what nobody can prove before it is sealed.

Source: docs/explanation/durability.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

from bijotel.errors import VerificationError
from bijotel.seal import length_prefixed

_log = logging.getLogger("bijotel")

_MAGIC: Final = b"bijotel-page/1\n\0"
# taken, time of the last one, settled, records in the spool that are settled, time of making
_COUNTS = Struct("<QQQQQ")
_TWO_COUNTS = Struct("<QQ")
_TAKEN: Final = len(_MAGIC)
_SETTLED: Final = _TAKEN + _TWO_COUNTS.size
_NAME_AT: Final = _TAKEN + _COUNTS.size
_PAGE_BYTES: Final = 4096


class CountPage:
    """The page of this process."""

    def __init__(self, path: Path, chain: str) -> None:
        """Make a page that nobody finds before it is complete and locked.

        A crash in between leaves a file under the other name, which nobody reads.

        Raises:
            OSError: it cannot be made.
        """
        now = time.time_ns()
        octets = _MAGIC + _COUNTS.pack(0, now, 0, 0, now) + length_prefixed(chain.encode())
        unfinished = path.with_suffix(".new")
        descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # In full: a page that the disk has no block for would end the process (SIGBUS).
            os.write(descriptor, octets.ljust(_PAGE_BYTES, b"\0"))
            self._mapped = mmap.mmap(descriptor, _PAGE_BYTES)
            unfinished.rename(path)
        except (OSError, ValueError) as error:  # ValueError: the disk took a part only
            os.close(descriptor)
            unfinished.unlink(missing_ok=True)
            raise OSError(f"{path}: cannot be made: {error}") from None
        self.path = path
        self._descriptor = descriptor

    def count_taken(self, taken: int) -> None:
        """Note how many spans were taken so far."""
        _TWO_COUNTS.pack_into(self._mapped, _TAKEN, taken, time.time_ns())

    def count_settled(self, settled: int, spooled: int) -> None:
        """Note how many of them are sealed, in the spool, or on record as lost.

        Args:
            settled: All of these.
            spooled: Records in the spool's file that are among them, sealed or not.
        """
        _TWO_COUNTS.pack_into(self._mapped, _SETTLED, settled, spooled)

    def close(self) -> None:
        """Let go of the page, which another process may read from then on."""
        self._mapped.close()
        os.close(self._descriptor)


@dataclass
class LeftPage:
    """The page of a process of the past, locked by this one."""

    path: Path
    descriptor: int
    taken: int
    settled: int
    spooled: int
    first_unix_nano: int
    last_unix_nano: int

    def settle(self) -> None:
        """Note that all is on record, so that a start that ends here does not say it again."""
        self.settled = self.taken
        os.pwrite(self.descriptor, _TWO_COUNTS.pack(self.taken, self.spooled), _SETTLED)

    def remove(self) -> None:
        """Remove the page."""
        try:
            self.path.unlink(missing_ok=True)
        finally:
            os.close(self.descriptor)


def left_pages(folder: Path, chain: str) -> Iterator[LeftPage]:
    """Lock the pages that processes of the past have left for a chain, oldest first."""
    for path in sorted(folder.glob("*.page"), key=_last_change):
        descriptor = _lock(path)
        if descriptor is None:
            continue
        try:
            page = _read(path, descriptor, chain)
        except (OSError, VerificationError) as error:
            _log.error("bijotel: %s: %s; left as it is", path, error)
            page = None
        if page is None:
            os.close(descriptor)
        else:
            yield page


def holds_pages(folder: Path) -> bool:
    """Tell whether processes have left something in a folder, or are at work in it."""
    return next(folder.glob("*.page"), None) is not None


def _read(path: Path, descriptor: int, chain: str) -> LeftPage | None:
    """Read a page; None when it is one of another chain."""
    octets = os.pread(descriptor, _PAGE_BYTES, 0)
    if len(octets) != _PAGE_BYTES or not octets.startswith(_MAGIC):
        raise VerificationError("no page of counts")
    if not octets[_NAME_AT:].startswith(length_prefixed(chain.encode())):
        return None
    taken, last, settled, spooled, first = _COUNTS.unpack_from(octets, _TAKEN)
    return LeftPage(path, descriptor, taken, settled, spooled, first, last)


def _lock(path: Path) -> int | None:
    """Lock a page for as long as the descriptor stays open; None when its owner lives."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    if os.fstat(descriptor).st_nlink == 0:  # someone else has just dealt with it
        os.close(descriptor)
        return None
    return descriptor


def _last_change(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # removed meanwhile
        return 0
