"""A process's place on the disk for what is not sealed yet: its spool and its counts.

Each process has a page of counts in the spool folder, and a spool beside it once it needs one. A
start adopts what processes of the past have left: spools are sealed, and spans that were taken
and never settled become a ``gap`` entry.

Source: docs/explanation/durability.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from bijotel.canonical import MAX_SAFE_INTEGER
from bijotel.count_page import CountPage, LeftPage, left_pages
from bijotel.gaps import Gap
from bijotel.keys import KeyRing
from bijotel.model import Draft
from bijotel.spool import SpoolFile, adopt_spool

_log = logging.getLogger("bijotel")

MAX_SPOOL_BYTES: Final = 1024**3
"""How long one process's spool may grow, by default: 1 GiB."""


class Delivery(NamedTuple):
    """What waited longest."""

    drafts: list[Draft]
    own: bool
    """False when an earlier process left it."""
    spans: int
    """How many of the drafts are spans."""
    finish: Callable[[], None]
    """To be called once the drafts are sealed."""


@dataclass
class _Left:
    """What one process of the past has left."""

    page: LeftPage
    spool: SpoolFile | None
    read: int = 0
    """Records that were read from the spool."""

    def gap(self) -> Gap | None:
        """Say what was lost, once the spool is read: what it held is not."""
        # It may have ended between flushing records to the disk and counting them.
        uncounted = max(0, self.read - self.page.spooled)
        lost = self.page.taken - self.page.settled - uncounted
        if lost <= 0:
            return None
        known = lost if lost <= MAX_SAFE_INTEGER else None
        return Gap("process-ended", known, self.page.first_unix_nano, self.page.last_unix_nano)

    def forget(self) -> None:
        """Remove what was left; nothing is removed before it is sealed."""
        try:
            if self.spool is not None:
                self.spool.remove()
        finally:
            self.page.remove()


class Outbox:
    """The spool and the counts of this process, and what earlier ones have left."""

    def __init__(self, folder: Path, chain: str, keys: KeyRing, max_bytes: int) -> None:
        """Make this process's page and adopt what was left behind.

        Raises:
            OSError: the folder cannot be written.
        """
        folder.mkdir(mode=0o700, exist_ok=True)
        spool_id = secrets.token_bytes(16)
        path = folder / f"{os.getpid()}-{spool_id.hex()[:16]}.page"
        self._page = CountPage(path, chain)
        key = keys.sealing.spool_key()
        self._own = SpoolFile(path.with_suffix(".spool"), chain, spool_id, key)
        self._max_bytes = max_bytes
        self.spooled = 0
        """How many drafts wait in our own spool."""
        self._left = list(_adopt(folder, chain, keys))

    # --- counts ------------------------------------------------------------------------------

    def count_taken(self, taken: int) -> None:
        """Note how many spans were taken so far."""
        self._page.count_taken(taken)

    def count_settled(self, settled: int) -> None:
        """Note how many of them are sealed, in the spool, or on record as lost."""
        self._page.count_settled(settled, self._own.file_records)

    # --- spools ------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """True when nothing waits, neither ours nor what was left behind."""
        return self._own.waiting_bytes == 0 and not self._left

    @property
    def has_room(self) -> bool:
        """True while our spool's file may grow."""
        return self._own.file_bytes < self._max_bytes

    def append(self, drafts: Sequence[Draft]) -> None:
        """Put drafts behind what waits.

        Raises:
            OSError: the disk is full, read-only or gone; nothing was appended.
        """
        self._own.append(drafts)
        self.spooled += len(drafts)

    def next(self, most: int) -> Delivery:
        """Give what waits longest; not to be called when nothing waits.

        Raises:
            OSError: a spool cannot be read.
        """
        if not self._left:
            return self._read(self._own, most, None)
        left = self._left[0]
        if left.spool is not None and left.spool.waiting_bytes > 0:
            return self._read(left.spool, most, left)
        gap = left.gap()
        if gap is not None:
            return Delivery([gap.draft()], False, 0, left.page.settle)
        return Delivery([], False, 0, self._forget_first)

    def close(self, *, settled: bool) -> None:
        """Let go of the page; it is removed when there is nothing left to say."""
        try:
            if settled and self._own.waiting_bytes == 0:
                self._own.remove()  # what a failed append may have left
                self._page.path.unlink(missing_ok=True)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the descriptors only, as the child of a fork does: the files are the parent's."""
        self._page.close()
        self._abandon_left()

    def _abandon_left(self) -> None:
        for left in self._left:
            os.close(left.page.descriptor)
        self._left = []

    def _forget_first(self) -> None:
        self._left.pop(0).forget()

    def _read(self, spool: SpoolFile, most: int, left: _Left | None) -> Delivery:
        now = time.time_ns()
        waiting = spool.peek(most)
        if waiting is None:  # torn by a crash, damaged or gone: nothing behind it can be read
            lost = self.spooled if left is None else None
            draft = Gap("spool-damaged", lost, now, now).draft()
            return Delivery([draft], left is None, 0, lambda: self._drop(spool, left))
        drafts = waiting.drafts
        if waiting.damaged:
            drafts = [*drafts, Gap("spool-damaged", waiting.damaged, now, now).draft()]

        def finish() -> None:
            if waiting.damaged:
                _set_aside(spool.path, [waiting.octets])
            records = len(waiting.drafts) + waiting.damaged
            if left is None:
                self.spooled -= records
            else:
                left.read += records
            spool.done(waiting)

        return Delivery(drafts, left is None, len(waiting.drafts), finish)

    def _drop(self, spool: SpoolFile, left: _Left | None) -> None:
        _set_aside(spool.path, spool.rest())
        if left is None:
            self.spooled = 0
        spool.remove()


def _adopt(folder: Path, chain: str, keys: KeyRing) -> Iterator[_Left]:
    """Find what processes of the past have left for a chain."""
    for page in left_pages(folder, chain):
        path = page.path.with_suffix(".spool")
        try:
            yield _Left(page, adopt_spool(path, chain, keys) if path.exists() else None)
        except OSError as error:
            _log.error("bijotel: %s: %s; left as it is", path, error)
            os.close(page.descriptor)


def _set_aside(path: Path, chunks: Iterable[bytes]) -> None:
    """Keep what could not be sealed beside the spools, for people to look at."""
    target = path.with_suffix(".damaged")
    with suppress(OSError):
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.writelines(chunks)
    _log.error("bijotel: part of %s does not verify; set aside in %s", path, target)
