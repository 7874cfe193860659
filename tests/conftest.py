"""Fixtures that every test module may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres_server import mortal_server, postgres_server, postgres_url
from tests.requirements import missing

__all__ = ["mortal_server", "postgres_server", "postgres_url"]

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(__file__).resolve().parent / "data"
MASTER_KEY = bytes(range(32))

settings.register_profile(
    "dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci",
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")


@pytest.fixture(autouse=True)
def _no_ambient_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the developer's own settings out of the tests."""
    for name in list(os.environ):
        if name.startswith("BIJOTEL_"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of published vectors beside the project; required when ``CI=true``."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        missing("the folder of published vectors is not beside the project")
    return folder


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of test data that ships with the project."""
    return DATA


@pytest.fixture
def master_key() -> bytes:
    """A key for tests: the bytes 0 to 31."""
    return MASTER_KEY
