"""What became of each span: counted in memory and, while there is an outbox, on its page.

The writer decides what happens to a span. Here it is counted, and handed to this process's
outbox when it has to wait on the disk. Without an outbox (none is wanted, or its folder cannot
be written) everything stays in memory, and an attempt to spool fails.

Source: docs/explanation/durability.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence

from bijotel.gaps import Gap, Losses
from bijotel.model import Draft
from bijotel.outbox import Delivery, Outbox
from bijotel.stats import Stats

_log = logging.getLogger("bijotel")


class Ledger:
    """The counts of one writer in one process."""

    def __init__(self, open_outbox: Callable[[], Outbox] | None) -> None:
        """Start at zero; the outbox is opened by :meth:`open`."""
        self._open_outbox = open_outbox
        self._outbox: Outbox | None = None
        # A signal's handler may end a span while its own thread is counting another one.
        self.counting = threading.RLock()
        """Held while the counts of taken and settled spans change."""
        self.losses = Losses()
        self.spooled = 0
        self._taken = self._sealed = self._recovered = 0
        # Sealed, in the spool, or on record as lost; the page counts from ``_base`` on.
        self._settled = self._base = 0
        self._errors: Counter[str] = Counter()

    # --- the disk ----------------------------------------------------------------------------

    def open(self) -> None:
        """Open the outbox, if there is to be one and it can be written."""
        if self._outbox is not None or self._open_outbox is None:
            return
        try:
            outbox = self._open_outbox()
        except OSError as error:
            self.note_error(error, "opening the spool")
            return
        with self.counting:
            self._base = self._settled
            outbox.count_taken(self._taken - self._base)
            self.spooled = 0  # what an earlier outbox of ours held was just adopted
            self._outbox = outbox

    def close(self) -> None:
        """Close the outbox; what waits in it is for the next start."""
        with self.counting:
            outbox, self._outbox = self._outbox, None
        if outbox is not None:
            outbox.close(settled=self._settled == self._taken)

    def abandon(self) -> None:
        """Close the outbox's descriptors only: in the child of a fork the files are not ours."""
        if self._outbox is not None:
            self._outbox.abandon()

    @property
    def waits_on_disk(self) -> bool:
        """True while something is in a spool, or an earlier process's is to be looked at."""
        return self.spooled > 0 or (self._outbox is not None and not self._outbox.is_empty)

    @property
    def is_full(self) -> bool:
        """True when there is a spool that may not grow."""
        return self._outbox is not None and not self._outbox.has_room

    def spool(self, drafts: Sequence[Draft]) -> None:
        """Move drafts to the disk.

        Raises:
            OSError: there is no place, or it cannot be written; nothing was moved.
        """
        if not drafts:
            return
        self.open()
        if self._outbox is None or not self._outbox.has_room:
            raise OSError("the spool has no room" if self._outbox else "there is no spool")
        self._outbox.append(drafts)
        self.spooled = self._outbox.spooled
        self.settle(len(drafts))

    def next_spooled(self, most: int) -> Delivery | None:
        """Give what waits longest on the disk; None when nothing does.

        Raises:
            OSError: a spool cannot be read.
        """
        self.open()
        if self._outbox is None or self._outbox.is_empty:
            return None
        return self._outbox.next(most)

    # --- counts ------------------------------------------------------------------------------

    def take(self) -> None:
        """Count a span that is to be sealed; the caller holds ``counting``."""
        self._taken += 1
        if self._outbox is not None:
            self._outbox.count_taken(self._taken - self._base)

    def settle(self, count: int) -> None:
        """Count spans that are sealed, in the spool, or on record as lost."""
        with self.counting:
            self._settled += count
            if self._outbox is not None:
                self._outbox.count_settled(self._settled - self._base)

    def seal(self, spans: int, gaps: Sequence[Gap]) -> None:
        """Count spans that are committed, and those that gap entries put on record."""
        self._sealed += spans
        self.settle(spans + sum(gap.spans or 0 for gap in gaps))

    def deliver(self, delivery: Delivery) -> None:
        """Count what is committed of a spool, and take it off the disk."""
        if delivery.own:
            self._sealed += delivery.spans
        else:
            self._recovered += delivery.spans
        try:
            delivery.finish()
        except OSError as error:  # sealed again by the next start, and skipped there
            self.note_error(error, "removing a spool")
        self.spooled = self._outbox.spooled if self._outbox is not None else 0
        self.settle(0)  # the spool's file may be another one now

    def note_error(self, error: BaseException, doing: str) -> None:
        """Count an internal error, and log the first of each kind."""
        kind = type(error).__name__
        self._errors[kind] += 1
        if self._errors[kind] == 1:
            _log.error("bijotel: %s while %s: %s", kind, doing, error)

    def stats(self, queued: int, *, stalled: bool) -> Stats:
        """Give all counts."""
        return Stats(
            taken=self._taken,
            sealed=self._sealed,
            queued=queued,
            spooled=self.spooled,
            dropped=self.losses.total,
            recovered=self._recovered,
            errors=dict(self._errors),
            stalled=stalled,
        )
