"""What the stores hold, and what a pipeline puts into its prompt: the truth by construction.

Each passage has twenty words without punctuation, so that the share of a cut one is a plain
fraction, and no run of words in common with another. The fourth one lies far from the question.
"""

from __future__ import annotations

from collections.abc import Iterator

QUESTION = "How long does the grinder warranty last and does it cover the burrs?"
ANSWER = "Nine years."

WHOLE, CUT, DROPPED, FAR = "whole", "cut", "dropped", "far"
KEPT_WORDS = 13

TEXTS = {
    WHOLE: "The grinder warranty will last nine years from delivery when its owner keeps "
    "both paper receipt and original box safe",
    CUT: "Ceramic burrs wear slowly under warranty cover yet each grinder grinds about "
    "eighty kilos before their edges become visibly dull",
    DROPPED: "Under older terms no warranty would ever cover burrs because a grinder that "
    "old was sold without any written promise",
    FAR: "Tulip bulbs should be planted before frost comes since early roots need some "
    "weeks of mild soil to settle properly",
}


def into_prompt(found: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Give what the prompt gets of the passages that a store found, in their order."""
    assert set(found) == {WHOLE, CUT, DROPPED}, f"the store found {sorted(found)}"
    for name, text in found.items():
        if name == WHOLE:
            yield name, text
        elif name == CUT:
            yield name, " ".join(text.split()[:KEPT_WORDS])
