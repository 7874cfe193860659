"""What became of the spans that a processor took: the values that ``stats()`` returns."""

from __future__ import annotations

from typing import NamedTuple


class Stats(NamedTuple):
    """What became of the spans so far, in this process."""

    taken: int
    """Spans that were to be sealed."""
    sealed: int
    """Spans that are committed, or were committed before by another processor."""
    queued: int
    """Spans that wait in memory."""
    spooled: int
    """Spans that wait in the spool."""
    dropped: int
    """Spans that were lost; gap entries say so in the chain."""
    recovered: int
    """Spans that earlier processes had left in their spools."""
    errors: dict[str, int]
    """How often each kind of internal error happened."""
    stalled: bool
    """The store does not keep up, so ``on_end`` does not wait for commits until it does."""
