"""The reference of the command line says what the command line says."""

from __future__ import annotations

import subprocess
import sys

from bijotel.cli.reference import render
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "reference" / "cli.md"


def test_the_reference_is_current():
    """``python -m bijotel.cli.reference > docs/reference/cli.md`` brings it up to date."""
    assert PAGE.read_text() == render()


def test_the_module_prints_the_page():
    """The command that makes the page prints all of it, whatever the terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "bijotel.cli.reference"],
        capture_output=True,
        env={"COLUMNS": "40"},
        check=True,
    )
    assert done.stdout.decode() == render()
