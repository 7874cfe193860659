"""Patience with a store that another writer holds, and its end."""

from __future__ import annotations

import pytest

from bijotel.errors import UnavailableError
from bijotel.stores.base import StoreBusyError
from bijotel.stores.retry import patiently


def test_it_tries_again_until_the_store_is_free():
    """What the attempt returns is returned."""
    left = [StoreBusyError("busy"), StoreBusyError("busy")]

    def attempt() -> str:
        if left:
            raise left.pop()
        return "done"

    assert patiently(attempt) == "done"
    assert left == []


def test_patience_ends():
    """A store that stays busy is unavailable; the message says for how long."""

    def attempt() -> None:
        raise StoreBusyError("chain.db: database is locked")

    with pytest.raises(
        UnavailableError, match=r"database is locked \(still, after 0\.01 seconds\)"
    ):
        patiently(attempt, 0.01)


def test_other_errors_are_not_tried_again():
    """Only a busy store may be free later."""
    attempts = []

    def attempt() -> None:
        attempts.append(1)
        raise UnavailableError("gone")

    with pytest.raises(UnavailableError, match="gone"):
        patiently(attempt)
    assert attempts == [1]
