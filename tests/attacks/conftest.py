"""One chain of 100 spans for all attacks, copied for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.evidence import Evidence, Writer, build, span


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    """A chain of a genesis and 100 spans; its head is entry 100."""
    evidence = Evidence(build(tmp_path_factory.mktemp("honest") / "chain.db"))
    yield evidence
    evidence.close()


@pytest.fixture(scope="session")
def rotated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    """The same chain, whose entry 60 hands over to a new key."""
    writer = Writer()
    writer.append(*map(span, range(1, 60)))
    writer.rotate()
    writer.append(*map(span, range(61, 101)))
    evidence = Evidence(writer.store(tmp_path_factory.mktemp("rotated") / "chain.db"))
    yield evidence
    evidence.close()


@pytest.fixture
def evidence(honest: Evidence, tmp_path: Path) -> Iterator[Evidence]:
    """A copy of the honest chain, to be attacked."""
    copy = honest.copy(tmp_path / "chain.db")
    yield copy
    copy.close()


@pytest.fixture
def rotated_evidence(rotated: Evidence, tmp_path: Path) -> Iterator[Evidence]:
    """A copy of the rotated chain, to be attacked."""
    copy = rotated.copy(tmp_path / "chain.db")
    yield copy
    copy.close()
