"""Append to a store that other writers hold for a while: patience with a limit."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from bijotel.errors import UnavailableError
from bijotel.stores.base import StoreBusyError

PATIENCE_SECONDS: Final = 10.0

Result = TypeVar("Result")


def pauses(longest_seconds: float = 0.25) -> Iterator[float]:
    """Lengths of pauses between attempts: doubling up to a limit, with jitter.

    Without jitter, writers that were refused together would come back together.
    """
    pause = 0.001
    while True:
        yield random.uniform(pause / 2, pause)  # noqa: S311 - jitter, not a secret
        pause = min(pause * 2, longest_seconds)


def patiently(attempt: Callable[[], Result], patience_seconds: float = PATIENCE_SECONDS) -> Result:
    """Append, and try again while another writer holds the store.

    Raises:
        UnavailableError: the store stayed busy.
        BijotelError: whatever else ``attempt`` raises.
    """
    deadline = time.monotonic() + patience_seconds
    for pause in pauses():
        try:
            return attempt()
        except StoreBusyError as error:
            if time.monotonic() + pause > deadline:
                raise UnavailableError(
                    f"{error} (still, after {patience_seconds:g} seconds)"
                ) from None
        time.sleep(pause)
    raise AssertionError("pauses never end")
