"""What a machine may lack: tests that need it are skipped there, and say so; in CI they fail."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skip the test for want of something; with ``CI=true`` fail, so that nothing is passed over."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}, and CI=true")
    pytest.skip(what)
