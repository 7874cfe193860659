"""Spans that could not be kept: counted until a sealed ``gap`` entry says so. Thread-safe.

Source: docs/spec (entry, kind ``gap``).
"""

from __future__ import annotations

import logging
import threading
import time
from typing import NamedTuple

from bijotel import canonical
from bijotel.model import Draft
from bijotel.seal import draft

_log = logging.getLogger("bijotel")


class Gap(NamedTuple):
    """How many spans were lost for one reason, and between which moments."""

    reason: str
    spans: int | None
    """None when nobody can tell."""
    first_unix_nano: int
    last_unix_nano: int

    def draft(self) -> Draft:
        """Make the entry that says so."""
        body = {
            "count": self.spans,
            "first_unix_nano": str(self.first_unix_nano),
            "last_unix_nano": str(self.last_unix_nano),
            "reason": self.reason,
        }
        return draft("gap", canonical.dumps(body))


class Losses:
    """The losses that no gap entry holds yet."""

    def __init__(self) -> None:
        """Start without a loss."""
        # A signal's handler may lose a span while its own thread is counting another one.
        self._lock = threading.RLock()
        self._gaps: dict[str, Gap] = {}
        self._told: set[str] = set()
        self.total = 0
        """All losses so far, on record or not."""

    @property
    def pending(self) -> bool:
        """True while a loss waits to be put on record."""
        return bool(self._gaps)

    def add(self, reason: str) -> None:
        """Count one lost span."""
        now = time.time_ns()
        if reason not in self._told:
            self._told.add(reason)
            _log.warning("bijotel: a span is lost (%s); more are counted, not logged", reason)
        with self._lock:
            self.total += 1
            gap = self._gaps.get(reason, Gap(reason, 0, now, now))
            self._gaps[reason] = gap._replace(spans=(gap.spans or 0) + 1, last_unix_nano=now)

    def take(self) -> list[Gap]:
        """Hand over what waits; the caller puts it on record, or back."""
        with self._lock:
            gaps, self._gaps = self._gaps, {}
        return list(gaps.values())

    def put_back(self, gaps: list[Gap]) -> None:
        """Return what could not be put on record."""
        with self._lock:
            for gap in gaps:
                later = self._gaps.get(gap.reason, gap._replace(spans=0))
                self._gaps[gap.reason] = gap._replace(
                    spans=(gap.spans or 0) + (later.spans or 0), last_unix_nano=later.last_unix_nano
                )
