"""A passage is never settled as absent by its letters when it shares a run of tokens."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.context_matching import counted_runs, match_context
from bijotel.context_matching.letters import Letters
from bijotel.context_matching.normalize import plain
from bijotel.context_matching.tokens import words

THAI = "กขคงจชซญดตถทนบปผ"
MARKS = "ัิุ่้"
HAN = "".join(map(chr, range(0x4E00, 0x4E00 + 400)))
OTHER = " \n.,;-·—\u200b\0_a7é🙂\ud83d"

PIECES = st.text(st.sampled_from(THAI + MARKS + OTHER), max_size=40)
SHARED = st.text(st.sampled_from(THAI + MARKS), min_size=8, max_size=60)


def shares_a_run(passage: str, prompt: str) -> bool:
    return bool(counted_runs(words(passage), words(prompt)))


def may_share(passage: str, prompt: str) -> bool:
    return Letters(plain(prompt)).may_share_run(plain(passage))


@given(PIECES, PIECES, SHARED, PIECES, PIECES)
def test_a_shared_run_is_never_missed(before: str, after: str, shared: str, left: str, right: str):
    """Whatever stands around it and between its letters."""
    spaced = " ".join(shared)
    for passage in (f"{left}{shared}{right}", f"{left}{spaced}{right}"):
        prompt = f"{before}{shared}{after}"
        if shares_a_run(passage, prompt):
            assert may_share(passage, prompt)


def test_a_shared_run_is_never_missed_where_letters_are_many():
    """With two octets for each letter a run is found wherever it begins and ends."""
    chance = Random(1)
    for size in range(8, 30):
        shared = "".join(chance.choices(HAN, k=size))
        for _ in range(20):
            left, right = ("".join(chance.choices(HAN, k=chance.randrange(20))) for _ in range(2))
            prompt = f"{HAN} {shared}，{HAN[::-1]}"
            passage = f"{left}{shared[: size // 2]} {shared[size // 2 :]}{right}"
            if len(words(passage)) >= 16:
                assert shares_a_run(passage, prompt)
                assert may_share(passage, prompt)


@pytest.mark.parametrize(
    ("prompt", "passage"),
    [
        ("กขคงจชซญ" * 9, "ดตถทนบปผ" * 4),
        (HAN, HAN[::-1]),
        ("ก่ข้คัง" * 20, "ปผบนทถตด" * 3),
        (HAN, "กขคงจชซญดตถทนบปผ" * 2),
    ],
)
def test_other_letters_settle_it(prompt: str, passage: str):
    """Nothing is shared, and that is certain."""
    assert not may_share(passage, prompt)
    (match,) = match_context([passage], prompt)
    assert (match.status, match.containment) == ("absent", 0.0)


def test_short_passages_are_not_settled():
    """Runs of fewer than eight tokens count in them."""
    assert may_share("กขคงจชซญดตถทนบป", "ฟภมยรลวศ" * 9)
    assert not may_share("กขคงจชซญดตถทนบปผ", "ฟภมยรลวศ" * 9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("กขคงจชซญ" * 9, True),
        (f"Answer in {HAN}.", True),
        ("Answer the question: " * 20 + "กขคงจชซญ", False),
        ("Здравствуйте", False),
        ("𠀀𠀁𠀂" + HAN, False),
        ("", False),
    ],
)
def test_where_letters_are_tokens(text: str, expected: bool):
    """Most letters of the text count, and none may lie beyond the first plane."""
    assert Letters(text).are_tokens is expected
