"""Five thousand examples whose truth is known by construction."""

from __future__ import annotations

from random import Random

import pytest

from bijotel.context_matching import match_context
from tests.strategies import context_example

BATCH = 500


@pytest.mark.parametrize("first", range(0, 5_000, BATCH))
def test_no_disagreement(first: int):
    """Status, level, containment, reason, duplicates and coverage are what was made."""
    for seed in range(first, first + BATCH):
        example = context_example(Random(seed))
        matches = match_context(
            example.passages,
            example.prompt,
            query=example.query,
            prompt_truncated=example.truncated,
        )
        for match, truth in zip(matches, example.truths, strict=True):
            got = (match.status, match.level, match.reason, match.duplicate_of, match.covered_by)
            wanted = (truth.status, truth.level, truth.reason, truth.duplicate_of, truth.covered_by)
            assert got == wanted, f"seed {seed}: {match}, made as {truth}"
            assert match.containment == pytest.approx(truth.containment), f"seed {seed}"


def test_every_fate_occurs():
    """The examples are about something: each status, level and relation is frequent."""
    truths = [truth for seed in range(500) for truth in context_example(Random(seed)).truths]
    for status in ("included", "partial", "absent", "unknown"):
        assert sum(truth.status == status for truth in truths) > 100
    for level in ("verbatim", "normalized"):
        assert sum(truth.level == level for truth in truths) > 100
    assert sum(truth.covered_by is not None for truth in truths) > 10
    assert sum(truth.duplicate_of is not None for truth in truths) > 10
