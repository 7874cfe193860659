"""Context matching beside a literal loop ``passage in prompt`` on the same data in the same run.

Passages are 1 KB (1,000 characters), the prompt 200 KB; words are drawn from a skewed vocabulary
as in running text. ``absent``: no passage is in the prompt; ``present``: all stand there letter by
letter, at any place; ``mixed``: half of them do, one in ten of those with its white space changed.
The last row has no floor to compare with but a limit, 1.5 seconds a MB of prompt and passages.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from statistics import median
from time import perf_counter

from benchmarks.table import Row, print_rows
from bijotel.context_matching import match_context

PASSAGE = 1_000
PROMPT = 200_000
REPEATS = 5


def rows() -> list[Row]:
    """Measure everything."""
    found = []
    latin = _Writer("abcdefghijklmnopqrstuvwxyz", 1, 11)
    for count, allowed in ((1_000, 3.0), (10_000, 2.0)):
        found += _compare(f"ASCII, {count:,} passages", latin, count, allowed)
    for name, writer in {
        "accented": _Writer("abcdeiorstuéèüñç", 1, 11),
        "Cyrillic": _Writer(_letters(0x430, 32), 1, 11),
        "Hindi": _Writer(_syllables(_letters(0x915, 20), " ािीुे्"), 1, 4),
        "Thai": _Writer(_syllables(_letters(0xE01, 46), " าะีัุ่้"), 2, 3, gap=""),
        "Chinese": _Writer(_letters(0x4E00, 3_000), 1, 3, gap=""),
    }.items():
        found += _compare(f"{name}, 1,000 passages", writer, 1_000, 20.0)
    found.append(_repetitive())
    return found


class _Writer:
    """Makes random running text in one alphabet."""

    def __init__(self, letters: Sequence[str], shortest: int, longest: int, gap: str = " ") -> None:
        self._random = random.Random(20)
        self._gap = gap
        self._words = [
            "".join(self._random.choices(letters, k=self._random.randint(shortest, longest)))
            for _ in range(8_000)
        ]
        # Without spaces eight neighbouring letters are but two words: those must be rare.
        self._weights = [1 / (rank + 2) if gap else 1 for rank in range(len(self._words))]

    def text(self, size: int) -> str:
        pieces: list[str] = []
        length = 0
        while length < size:
            chosen = self._random.choices(self._words, self._weights, k=self._random.randint(6, 18))
            pieces.append(self._gap.join(chosen).capitalize() + self._random.choice(".,;?"))
            length += len(pieces[-1]) + 1
        return " ".join(pieces)[:size]

    def data(self, count: int, kind: str) -> tuple[list[str], str]:
        prompt = self.text(PROMPT)
        if kind == "absent":
            return [self.text(PASSAGE) for _ in range(count)], prompt
        passages = []
        for number in range(count):
            if kind == "mixed" and number % 2:
                passages.append(self.text(PASSAGE))
                continue
            start = prompt.find(" ", self._random.randrange(len(prompt) - 2 * PASSAGE)) + 1
            passage = prompt[start : prompt.find(" ", start + PASSAGE - 12)]
            if kind == "mixed" and number % 20 == 0:
                passage = passage.replace(" ", "\n")
            passages.append(passage)
        return passages, prompt


def _syllables(letters: str, vowels: str) -> list[str]:
    return [f"{letter}{vowel}".strip() for letter in letters for vowel in vowels]


def _letters(first: int, count: int) -> str:
    return "".join(map(chr, range(first, first + count)))


def _compare(name: str, writer: _Writer, count: int, allowed: float) -> list[Row]:
    found = []
    for kind in ("absent", "present", "mixed"):
        passages, prompt = writer.data(count, kind)
        matches = match_context(passages, prompt)
        literal = [
            match.level == "verbatim"
            for match, passage in zip(matches, passages, strict=True)
            if passage in prompt
        ]
        assert all(literal), f"{name}, {kind}: a literal passage was not found"
        ours, floor = _medians(passages, prompt)
        found.append(
            Row(
                f"context: {name}, {kind}",
                f"{ours * 1e3:.1f} ms",
                f"{floor * 1e3:.1f} ms",
                f"{ours / floor:.2f}",
                f"<= {allowed:g} x",
                ours / floor <= allowed,
            )
        )
    return found


def _repetitive() -> Row:
    prompt = "a:" * 500_000
    passages = [f"{'a:' * 1_000}b {number}" for number in range(200)]
    megabytes = (len(prompt) + sum(map(len, passages))) / 1e6
    ours, floor = _medians(passages, prompt)
    rate = ours / megabytes
    return Row(
        "context: one token again and again",
        f"{rate:.2f} s/MB",
        f"{floor / megabytes:.2f} s/MB",
        f"{ours / floor:.2f}",
        "<= 1.5 s/MB",
        rate <= 1.5,
    )


def _medians(passages: list[str], prompt: str) -> tuple[float, float]:
    """Time both in turns, so that both meet the same moments of a busy machine."""
    jobs = (partial(match_context, passages, prompt), partial(_literal_loop, passages, prompt))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEATS):
        for job, seconds in zip(jobs, times, strict=True):
            started = perf_counter()
            job()
            seconds.append(perf_counter() - started)
    return median(times[0]), median(times[1])


def _literal_loop(passages: list[str], prompt: str) -> list[bool]:
    return [passage in prompt for passage in passages]


if __name__ == "__main__":
    print_rows(rows())
