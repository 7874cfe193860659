"""Every published case of context matching, one test each."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from bijotel.context_matching import match_context

FILE = Path(__file__).resolve().parent.parent / "data" / "context-matching.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))


def core(text: str) -> str:
    """Strip from both ends all that is not a letter, digit or combining mark."""
    counts = [unicodedata.category(char)[0] in "LMN" for char in text]
    if True not in counts:
        return ""
    return text[counts.index(True) : len(text) - counts[::-1].index(True)]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict):
    """The named fields are equal, containment within 0.03; the regions show the named texts."""
    matches = match_context(
        case["passages"],
        case["prompt"],
        query=case.get("query"),
        prompt_truncated=case.get("prompt_truncated", False),
    )
    assert len(matches) == len(case["expect"])
    for match, expected in zip(matches, case["expect"], strict=True):
        got = {name: getattr(match, name) for name in expected}
        if expected.get("containment") is not None:
            assert got.pop("containment") == pytest.approx(expected["containment"], abs=0.03)
            expected = {name: value for name, value in expected.items() if name != "containment"}
        assert got == expected
    for match, slices in zip(matches, case.get("slices", ()), strict=False):
        if slices is not None:
            shown = [core(matches.text[start:end]) for start, end in match.regions]
            assert shown == [core(text) for text in slices]


def test_the_cases_are_the_published_ones(shared: Path):
    """The copy in this project says the same as the published file."""
    published = shared / "cases" / "context-matching.json"
    assert published.read_bytes() == FILE.read_bytes()
