"""The rules of the cases' README, written down as slowly and literally as possible.

Nothing here is shared with the package: tokens are cut character by character, runs are found by
looking at every pair of tokens, and the best choice of runs by trying every way to go on.
"""

from __future__ import annotations

import html
import re
import unicodedata
from functools import cache

UNSPACED = (
    "CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "CJK RADICAL", "KANGXI", "HIRAGANA", "KATAKANA",
    "IDEOGRAPHIC ", "THAI ", "LAO ", "KHMER ", "MYANMAR ",
)  # fmt: skip
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"


def is_word(char):
    return char.isalnum()


def is_mark(char):
    return unicodedata.category(char).startswith("M")


def is_invisible(char):
    return unicodedata.category(char) == "Cf" or "VARIATION SELECTOR" in unicodedata.name(char, "")


def stands_alone(char):
    name = unicodedata.name(char, "")
    return name.startswith(UNSPACED) and not char.isdecimal()


def undone(text):
    """Undo presentation: entities (also escaped twice), invisible characters, NFKC, dashes, case."""
    for _ in range(3):
        text = re.sub(r"&#?[0-9A-Za-z]+;", lambda entity: html.unescape(entity[0]), text)
    text = "".join(char for char in text if not is_invisible(char))
    text = unicodedata.normalize("NFKC", text)
    text = "".join("-" if char in DASHES else char for char in text)
    return text.casefold()


def tokens(text):
    """Cut a text into tokens, character by character."""
    text = undone(text)
    found, at = [], 0
    while at < len(text):
        start = at
        before = text[at - 1] if at else " "
        digit_next = at + 1 < len(text) and text[at + 1].isdecimal()
        if text[at] == "-" and digit_next and not (is_word(before) or is_mark(before)):
            at += 1
        if not is_word(text[at]):
            at = max(at, start + 1)
            continue
        if stands_alone(text[at]):
            at += 1
            while at < len(text) and is_mark(text[at]):
                at += 1
        else:
            while at < len(text):
                char = text[at]
                inner = (
                    char in ".," and text[at - 1].isdecimal() and text[at + 1 : at + 2].isdecimal()
                )
                if not ((is_word(char) and not stands_alone(char)) or is_mark(char) or inner):
                    break
                at += 1
        found.append(text[start:at])
    return found


def places(passage, prompt):
    """Every place where all tokens stand in a row."""
    size = len(passage)
    return [at for at in range(len(prompt) - size + 1) if prompt[at : at + size] == passage]


def least(size):
    return min(8, -(-size // 2))


def counted_runs(passage, prompt, *, closed=(), asked=()):
    """The counted runs (start, place, size) by R2 and R5.

    ``closed`` are prompt tokens that are no evidence, ``asked`` spans of the query.
    """
    n, m, minimum = len(passage), len(prompt), least(len(passage))

    def equal(i, j):
        return i < n and j < m and j not in closed and passage[i] == prompt[j]

    def reach(i, j):
        size = 0
        while equal(i + size, j + size):
            size += 1
        return size

    def is_evidence(i, j):
        back = 0
        while i > back and j > back and equal(i - back - 1, j - back - 1):
            back += 1
        first, last = j - back, j + reach(i, j)
        return not any(start <= first and last <= end for start, end in asked)

    @cache
    def best(i, j):
        """Most tokens in counted runs of passage[i:] and prompt[j:]."""
        if i >= n or j >= m:
            return 0
        return max(best(i + 1, j), best(i, j + 1), begin(i, j))

    @cache
    def begin(i, j):
        """The same when a run begins right here."""
        sizes = range(minimum, reach(i, j) + 1) if is_evidence(i, j) else ()
        return max((size + best(i + size, j + size) for size in sizes), default=0)

    for i in range(n, -1, -1):  # fills the caches from the end, so that nothing recurses deeply
        for j in range(m, -1, -1):
            best(i, j)
    chosen, i, j, left = [], 0, 0, best(0, 0)
    while left:
        start, place = next((a, b) for b in range(j, m) for a in range(i, n) if begin(a, b) == left)
        size = max(
            size
            for size in range(minimum, reach(start, place) + 1)
            if size + best(start + size, place + size) == left
        )
        chosen.append((start, place, size))
        i, j, left = start + size, place + size, left - size
    return chosen


def match(passages, prompt, *, query=None, truncated=False):
    """Status, containment, token spans, duplicate and cover for each passage of a plain prompt."""
    words = tokens(prompt)
    wanted = [tokens(passage) for passage in passages]
    question = tokens(query or "")
    asked = [(at, at + len(question)) for at in places(question, words)] if question else []

    def seen(span):
        return not any(start <= span[0] and span[1] <= end for start, end in asked)

    whole = [
        [span for at in places(want, words) if want and seen(span := (at, at + len(want)))]
        for want in wanted
    ]
    closed = {
        at
        for want, spans in zip(wanted, whole, strict=True)
        if len(want) >= 3
        for start, end in spans
        for at in range(start, end)
    }
    results = []
    for want, spans in zip(wanted, whole, strict=True):
        runs = counted_runs(want, words, closed=closed, asked=asked) if len(want) >= 3 else []
        pieces = [(place, place + size) for _, place, size in runs]
        if spans and len(want) < 3:
            results.append(("unknown", None, [], "too-short"))
        elif spans:
            results.append(("included", 1.0, spans, None))
        elif truncated and not (pieces and pieces[-1][1] >= len(words) - 1):
            results.append(("unknown", None, [], "prompt-truncated"))
        elif pieces:
            share = sum(size for _, _, size in runs) / len(want)
            results.append(("partial", share, pieces, None))
        else:
            results.append(("absent", 0.0, [], None))
    return results


def duplicates(passages):
    wanted = [tokens(passage) for passage in passages]
    return [
        next((at for at in range(index) if wanted[at] == want and want), None)
        for index, want in enumerate(wanted)
    ]


def covers(passages, results):
    """For each included passage the first longer one whose spans hold all of its spans."""
    sizes = [len(tokens(passage)) for passage in passages]
    found = []
    for index, (status, _, spans, _) in enumerate(results):
        found.append(
            next(
                (
                    other
                    for other, (its_status, _, its_spans, _) in enumerate(results)
                    if status == its_status == "included"
                    and sizes[other] > sizes[index]
                    and all(any(a <= s and e <= b for a, b in its_spans) for s, e in spans)
                ),
                None,
            )
        )
    return found
