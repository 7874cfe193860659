"""The list itself: every row of it has a test that is named after it."""

from __future__ import annotations

import re
from collections import Counter

from tests.conftest import ROOT

ROWS = 60


def test_every_row_has_a_test_of_its_name():
    """``test_row_NN_...`` somewhere below ``tests``, for each row and for no other."""
    texts = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    rows = Counter(int(row) for text in texts for row in re.findall(r"def test_row_(\d+)_", text))
    assert rows.pop(0) == 1  # the honest chain
    assert sorted(rows) == list(range(1, ROWS + 1))


def test_the_list_has_so_many_rows(shared):
    """A row that is added to the list needs a test."""
    text = (shared / "attacks.md").read_text("utf-8")
    found = [int(row) for row in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    assert found == list(range(1, ROWS + 1))
