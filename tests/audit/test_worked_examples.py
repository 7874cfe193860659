"""The worked examples: real spans in, the scores of the table out.

All passages have 20 different words and a score, and there is one retrieval, unless said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from bijotel.audit import audit_trace
from bijotel.traces.reader import read_traces
from tests.audit.conftest import (
    call,
    genai_call,
    genai_search,
    otlp_line,
    rerank,
    search,
    text,
    trace,
)

A, B, C, X, Y, Z = map(text, "abcxyz")
TEN = [text(name * number) for number, name in enumerate("abcdefghij", start=1)]
FIVE, FOUR = TEN[:5], TEN[:4]
HEAD, SHARED, TAIL = text("head", 10), text("shared", 10), text("tail", 10)
"""``HEAD SHARED`` and ``SHARED TAIL`` share 10 of their 20 words."""
LEFT, RIGHT = f"{HEAD} {SHARED}", f"{SHARED} {TAIL}"
WORDS = text("w", 15).split()
ODD_ONE = " ".join([*WORDS[:7], "other", *WORDS[8:]])
"""Differs from the 15 words in one."""


def first(passage: str, size: int) -> str:
    return " ".join(passage.split()[:size])


class Example(NamedTuple):
    """One row of the table."""

    number: str
    hits: Sequence[str]
    prompt: Sequence[str]
    precision: float
    efficiency: float
    uniqueness: float
    coverage: float
    overall: int
    verdict: str
    scores: Sequence[float] | None = None
    advice: str = ""
    """The advice about top-k."""


EXAMPLES = [
    Example("1", TEN, TEN[:3], 30, 30, 100, 100, 51, "WARN", advice="reduce top-k 10 -> 3"),
    Example("2", FIVE, FIVE, 100, 100, 100, 0, 90, "PASS", scores=[None] * 5),
    Example("3", FOUR, FOUR[:3], 75, 75, 100, 100, 83, "PASS"),
    Example("4", FOUR, [], 0, 0, 100, 100, 30, "FAIL"),
    Example("5", [A, A, B, C], [A, B, C], 100, 100, 75, 100, 95, "PASS"),
    Example("6", [A, A, A, A], [A], 100, 100, 25, 100, 85, "PASS"),
    Example("7-merged", [LEFT, RIGHT], [f"{LEFT} {TAIL}"], 100, 100, 75, 100, 95, "PASS"),
    Example("7-each-whole", [LEFT, RIGHT], [LEFT, RIGHT], 100, 100, 75, 100, 95, "PASS"),
    Example(
        "8", [LEFT, RIGHT], [LEFT], 50, 66.67, 75, 100, 65, "WARN", advice="reduce top-k 2 -> 1"
    ),
    Example(
        "9", [A, first(A, 10)], [A], 50, 100, 66.67, 100, 73, "WARN", advice="reduce top-k 2 -> 1"
    ),
    Example("10", [A, B, C], [A, first(B, 12)], 66.67, 53.33, 100, 100, 73, "WARN"),
    Example(
        "11",
        [A, B, C],
        [A, first(B, 8)],
        33.33,
        46.67,
        100,
        100,
        57,
        "WARN",
        advice="reduce top-k 3 -> 1",
    ),
    Example("14", [" ".join(WORDS), ODD_ONE], [" ".join(WORDS), ODD_ONE], 100, 100, 50, 100, 90, "PASS"),
    Example(
        "16",
        [A, B, "a0 b0", X, Y],
        [A, B, "a0 b0"],
        50,
        50,
        100,
        100,
        65,
        "WARN",
        advice="reduce top-k 4 -> 2",
    ),
    Example(
        "17",
        [text("long", 100), *(text(f"short{n}x", 10) for n in range(4))],
        [text("long", 100)],
        20,
        71.43,
        100,
        100,
        59,
        "WARN",
        advice="reduce top-k 5 -> 1",
    ),
    Example("18", [X, X, Y, Y, Y, Z], [X, Y, Z], 100, 100, 50, 100, 90, "PASS"),
]  # fmt: skip


@pytest.mark.parametrize("dialect", ["openinference", "genai"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.number)
def test_one_retrieval(example: Example, dialect: str):
    """Every row without a reranker, in two vocabularies."""
    find, ask = (search, call) if dialect == "openinference" else (genai_search, genai_call)
    prompt = ("Answer from what follows.", *example.prompt)
    audit = audit_trace(trace(find(1, *example.hits, scores=example.scores), ask(2, *prompt)))
    assert audit.scores is not None
    assert (audit.verdict, audit.overall, audit.reason) == (example.verdict, example.overall, "")
    assert audit.scores.precision == pytest.approx(example.precision, abs=0.005)
    assert audit.scores.efficiency == pytest.approx(example.efficiency, abs=0.005)
    assert audit.scores.uniqueness == pytest.approx(example.uniqueness, abs=0.005)
    assert audit.scores.coverage == pytest.approx(example.coverage, abs=0.005)
    assert audit.scores.rerank_gain is None
    top_k = [advice for advice in audit.recommendations if "top-k" in advice]
    assert top_k == ([example.advice] if example.advice else [])


def test_example_4_says_that_none_was_used():
    """With no passage in the prompt, fewer of them are not the answer."""
    audit = audit_trace(trace(search(1, *FOUR), call(2, "Answer.")))
    assert audit.recommendations == (
        "none of the 4 retrieved passages (no reranker is recorded) is in the prompt: find out why",
    )


def test_example_12_a_reranker_that_changes_nothing():
    """Its output is the last stage, and there is no gain to speak of."""
    audit = audit_trace(trace(search(1, *FIVE), rerank(2, FIVE, FIVE), call(3, *FIVE[:3])))
    assert audit.scores is not None
    assert (audit.scores.precision, audit.scores.efficiency) == (60, 60)
    assert (audit.scores.uniqueness, audit.scores.coverage) == (100, 100)
    assert audit.scores.rerank_gain is None
    assert (audit.overall, audit.verdict) == (72, "WARN")
    assert audit.recommendations == ()
    notes = [f.text for f in audit.findings if f.subject == "rerank gain"]
    assert notes == ["left out: the order did not change"]


def test_example_13_a_reranker_that_lifts_the_last_two():
    """4 5 1 2 3, of which 4 and 5 are used: both rose by three places."""
    order = [FIVE[3], FIVE[4], *FIVE[:3]]
    audit = audit_trace(trace(search(1, *FIVE), rerank(2, FIVE, order), call(3, *order[:2])))
    assert audit.scores is not None
    assert (audit.scores.precision, audit.scores.efficiency) == (40, 40)
    assert (audit.scores.uniqueness, audit.scores.coverage) == (100, 100)
    assert audit.scores.rerank_gain == 87.5
    assert (audit.overall, audit.verdict) == (62, "WARN")
    assert not [advice for advice in audit.recommendations if "top-k" in advice]


def test_example_15_two_retrievers_that_agree():
    """What two searches both find is no repetition."""
    audit = audit_trace(trace(search(1, A, B), search(2, B, C), call(3, A, B, C)))
    assert audit.scores is not None
    assert (audit.scores.precision, audit.scores.efficiency) == (100, 100)
    assert (audit.scores.uniqueness, audit.scores.coverage) == (100, 100)
    assert (audit.overall, audit.verdict) == (100, "PASS")


def test_from_a_file(tmp_path):
    """Spans that went through OTLP/JSON score as those that did not."""
    spans = (search(1, A, A, B, C), call(2, A, B))
    path = tmp_path / "traces.jsonl"
    path.write_text(otlp_line(*spans))
    (read,) = read_traces([path])
    audit = audit_trace(read)
    assert audit.scores == audit_trace(trace(*spans)).scores
    assert audit.overall == 72  # .4 x 66.67 + .3 x 66.67 + .2 x 75 + .1 x 100 = 71.67
