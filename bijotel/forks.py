"""What happens to a writer when its process forks.

A SQLite connection that is open at the fork leaves its in-process table of locks to the child,
whose later commits may then vanish without an error. So the store is at rest and closed while
the process forks; parent and child open their own connections afterwards. What the parent had
queued stays the parent's.

Source: https://sqlite.org/howtocorrupt.html section 2.6.
"""

from __future__ import annotations

import abc
import os
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

    from bijotel.ledger import Ledger
    from bijotel.sealer import Sealer


class Forkable(abc.ABC):
    """The parts of a writer that a fork must find at rest."""

    _at_work: threading.Lock
    _sealer: Sealer
    _ledger: Ledger

    @abc.abstractmethod
    def _begin(self) -> None:
        """Start with nothing queued, on a connection of one's own."""

    def before_fork(self) -> None:
        """Wait for the running transaction and close the store."""
        self._at_work.acquire()
        self._sealer.store.release()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._at_work.release()

    def after_fork_in_child(self) -> None:
        """Start anew, with nothing of the parent's."""
        ledger = self._ledger
        self._begin()
        ledger.abandon()


def survive_forks(writer: Forkable) -> None:
    """Register a writer's hooks without keeping it alive."""
    if not hasattr(os, "register_at_fork"):
        return
    reference = weakref.ref(writer)

    def call(hook: str) -> None:
        if (living := reference()) is not None:
            getattr(living, hook)()

    os.register_at_fork(
        before=lambda: call("before_fork"),
        after_in_parent=lambda: call("after_fork_in_parent"),
        after_in_child=lambda: call("after_fork_in_child"),
    )
