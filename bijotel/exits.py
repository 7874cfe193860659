"""Commit when a process ends, also one of a pool, which runs no ``atexit`` function.

Forked children of ``multiprocessing`` end with ``os._exit`` after finalizers of their own, which
are cleared when a child starts; those of Celery after a signal of its own. Either package may be
loaded before or after us, or not at all.

Source: the ``Finalize`` class of ``multiprocessing.util``, Celery's ``worker_process_shutdown``,
docs/how-to/forking-servers.
"""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar

Call = Callable[[], None]
Owner = TypeVar("Owner")


def call_at_exit(owner: Owner, function: Callable[[Owner], object]) -> None:
    """Call a function of an object when the process ends, and when one forked from it does.

    Args:
        owner: Is not kept alive by this; once it is gone nothing is called.
        function: May be called several times.
    """
    reference = weakref.ref(owner)
    known: set[str] = set()

    def call() -> None:
        if (living := reference()) is not None:
            function(living)

    def look_for_pools() -> None:
        owner = reference()
        for name, register in _POOLS.items():
            module = sys.modules.get(name)
            if module is not None and owner is not None and name not in known:
                known.add(name)
                register(module, owner, call)

    atexit.register(call)
    look_for_pools()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=look_for_pools)


def _register_with_multiprocessing(util: Any, owner: object, call: Call) -> None:
    def finalize(_: object) -> None:
        util.Finalize(None, call, exitpriority=0)

    finalize(owner)
    util.register_after_fork(owner, finalize)


def _register_with_celery(signals: Any, _: object, call: Call) -> None:
    def shut_down(**_: object) -> None:
        call()

    signals.worker_process_shutdown.connect(shut_down, weak=False)


_POOLS: Final = {
    "multiprocessing.util": _register_with_multiprocessing,
    "celery.signals": _register_with_celery,
}
