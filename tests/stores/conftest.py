"""One store of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bijotel.stores.base import Store
from bijotel.stores.memory import MemoryStore
from bijotel.stores.open import open_store

POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)


def make(kind: str, request: pytest.FixtureRequest) -> Store:
    if kind == "memory":
        return MemoryStore()
    if kind == "sqlite":
        folder: Path = request.getfixturevalue("tmp_path")
        return open_store(folder / "chain.db")
    return open_store(request.getfixturevalue("postgres_url"))


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A new store of every kind."""
    made = make(request.param, request)
    yield made
    made.release()


@pytest.fixture(params=["sqlite", POSTGRES])
def lasting_store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A new store of every kind that outlives its process."""
    made = make(request.param, request)
    yield made
    made.release()
