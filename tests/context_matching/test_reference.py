"""The fast matcher against the slow one, on random soups of few tokens and of many scripts."""

from __future__ import annotations

from itertools import chain
from random import Random

import pytest

from bijotel.context_matching import counted_runs, match_context, tokenize
from bijotel.context_matching.normalize import Plain, plain, traced
from bijotel.context_matching.tokens import words
from tests.context_matching import reference

BATCH = 150
PIECES = (
    *"abAB019.,-  \n_*|'\"\\{}&;#\x00\x1d\x1f",
    "&amp;", "&lt;", "&#39;", "&eacute;", "&amp;amp;", "&#x27;", "&amp;lt;", "&bogus;", "&amp;bogus;",
    "é", "e\u0301", "\u0301", "ﬁ", "½", "²", "①", "ß", "İ", "Σ", "ς", "ı", "\u0345", "ᾳ", "\u0327",
    "\u00ad", "\u200b", "\u200d", "\ufeff", "\u202e", "\ufe0f", "\u2013", "\u2014", "\u2212", "\u2011",
    "…", "’", "“", "´", "¨", "\u00a0", "\u3000", "Ａ", "５", "．", "，", "－", "™", "㎏", "℃", "№", "ﷺ",
    "ｶ", "ﾞ", "が", "カ", "会", "議", "々", "〇", "ー", "ｰ", "中", "ส", "วั", "ำ", "๕", "ກ", "ຳ",
    "क", "ि", "़", "्", "한", "ᄒ", "ᅡ", "ᆫ", "ㄱ", "ㅏ", "א", "ָ", "၁", "က", "្", "ក",
    "\ud83d", "\udc00", "😀", "🏻", "\U0001d54f", "\U00020000", "\U00011103", "\u0340", "\u1e9b\u0323",
)  # fmt: skip


ALPHABETS = {" ": "abcdefghijklmnopz", "": "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午"}


def soup(random: Random, gap: str) -> tuple[list[str], str, str | None, bool]:
    """Passages that are stretches of the prompt, put together, torn and turned round."""
    *letters, other = ALPHABETS[gap]
    letters = letters[: random.choice((1, 2, 3, 4, 8, 16))]
    prompt = random.choices(letters, k=random.randint(1, 60))
    passages = []
    for _ in range(random.randint(1, 4)):
        passage: list[str] = []
        for _ in range(random.randint(1, 3)):
            start = random.randrange(len(prompt))
            passage += prompt[start : start + random.randint(1, 20)]
            passage += random.choices((*letters, other), k=random.choice((0, 0, 1, 3)))
        if random.random() < 0.3:
            del passage[random.randrange(len(passage)) :][: random.randint(1, 4)]
        passages.append(gap.join(passage))
    query = None
    if random.random() < 0.4:
        start = random.randrange(len(prompt))
        query = gap.join(prompt[start : start + random.randint(1, 20)])
    return passages, gap.join(prompt), query, random.random() < 0.2


@pytest.mark.parametrize("gap", ALPHABETS)
@pytest.mark.parametrize("first", range(0, 300, BATCH))
def test_matches(first: int, gap: str):
    """Status, containment, places, reason, duplicates and coverage agree."""
    for seed in range(first, first + BATCH):
        passages, prompt, query, truncated = soup(Random(seed), gap)
        matches = match_context(passages, prompt, query=query, prompt_truncated=truncated)
        wanted = reference.match(passages, prompt, query=query, truncated=truncated)
        # One letter a token and the same gap after each, so that offsets are known.
        step = 1 + len(gap)
        got = [
            (
                match.status,
                match.containment,
                [(start // step, (end + len(gap)) // step) for start, end in match.regions],
                match.reason,
            )
            for match in matches
        ]
        assert got == wanted, f"seed {seed}"
        assert [match.covered_by for match in matches] == reference.covers(passages, wanted)
        assert [match.duplicate_of for match in matches] == reference.duplicates(passages)


def test_counted_runs():
    """The runs of two token sequences are those of the slow search."""
    for seed in range(150):
        random = Random(seed)
        letters = "abcd"[: random.randint(1, 4)]
        passage = random.choices(letters, k=random.randint(1, 40))
        text = random.choices(letters, k=random.randint(1, 50))
        assert list(counted_runs(passage, text)) == reference.counted_runs(passage, text)


def test_counted_runs_among_many_copies():
    """Headings and footers that the text repeats again and again change nothing."""
    for seed in range(150):
        random = Random(seed)
        parts = [
            [f"{letter}{number}" for number in range(random.randint(4, 12))]
            for letter in "abcd"[: random.randint(1, 4)]
        ]
        passage = [*chain.from_iterable(parts), *parts[0][: random.choice((0, 0, 9))]]
        text: list[str] = []
        for _ in range(random.randint(2, 10)):
            start = random.randrange(len(passage))
            piece = passage[start : start + random.randint(2, 14)]
            text += random.choice((parts[0], parts[0], random.choice(parts), piece))
            text += random.choice(([], ["z"]))
        assert list(counted_runs(passage, text)) == reference.counted_runs(passage, text)


@pytest.mark.parametrize("first", range(0, 8_000, 2_000))
def test_tokens(first: int):
    """Words, offsets and the two ways to undo presentation agree in all scripts."""
    for seed in range(first, first + 2_000):
        random = Random(seed)
        text = "".join(random.choices(PIECES, k=random.randint(1, 14)))
        tokens = tokenize(text)
        assert list(tokens.words) == words(text) == reference.tokens(text), ascii(text)
        assert traced(Plain(text)).text == plain(text), ascii(text)
        assert tokens.starts == sorted(tokens.starts)
        assert tokens.ends == sorted(tokens.ends)
        spans = zip(tokens.starts, tokens.ends, strict=True)
        assert all(0 <= start < end <= len(text) for start, end in spans), ascii(text)
