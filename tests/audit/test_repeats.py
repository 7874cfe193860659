"""Which words repeat earlier texts: by hand, and against a slow search for every run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bijotel.audit.repeats import Earlier, text_of
from bijotel.context_matching.runs import least_run

few_words = st.lists(st.sampled_from("abc"), max_size=30)


def earlier(*texts: str) -> Earlier:
    known = Earlier()
    for text in texts:
        known.add(text_of(text.split()))
    return known


def test_a_run_counts_from_the_least_number_of_words_on():
    """Three words in a row repeat where three are asked for, and not where four are."""
    known = earlier("a b c d e f")
    text = text_of(["x", "b", "c", "d", "y"])
    assert known.repeated_by(text, 3) == 3
    assert known.repeated_by(text, 4) == 0


def test_runs_that_overlap_count_each_word_once():
    """``a b c`` and ``b c d`` stand in different texts; four words repeat."""
    known = earlier("a b c", "b c d")
    assert known.repeated_by(text_of(["a", "b", "c", "d"]), 3) == 4


def test_no_run_goes_over_the_end_of_a_text():
    """The end of one text and the begin of the next are no neighbours."""
    assert earlier("a b", "c d").repeated_by(text_of(["a", "b", "c", "d"]), 3) == 0


def test_texts_added_later_are_seen():
    """Runs that were gathered for one text do not hide what comes after."""
    known = earlier("a b c")
    assert known.repeated_by(text_of(["x", "y", "z"]), 1) == 0
    known.add(text_of(["x", "y", "z"]))
    assert known.repeated_by(text_of(["x", "y", "z"]), 1) == 3
    assert known.repeated_by(text_of(["x", "y", "z"]), 3) == 3


def repeated_slowly(words: list[str], before: list[str], least: int) -> int:
    """Go along every diagonal of the two texts and mark each run that is long enough."""
    marked: set[int] = set()
    for shift in range(-len(words), len(before)):
        run: list[int] = []
        for at in range(len(words) + 1):
            if (
                at < len(words)
                and 0 <= at + shift < len(before)
                and words[at] == before[at + shift]
            ):
                run.append(at)
                continue
            if len(run) >= least:
                marked.update(run)
            run = []
    return len(marked)


@given(few_words, few_words)
def test_the_words_are_those_in_runs_that_are_long_enough(words, before):
    """For any two texts, with the least run that context matching asks for."""
    known = Earlier()
    known.add(text_of(before))
    if words:
        least = least_run(len(words))
        expected = repeated_slowly(words, before, least)
        assert known.repeated_by(text_of(words), least) == expected


@given(few_words, st.lists(few_words, max_size=4))
def test_resemblance_is_jaccards_index_of_shingles(words, texts):
    """Three fifths or more with any one earlier text; nothing resembles a text of two words."""

    def shingles(text: list[str]) -> set[tuple[str, ...]]:
        return {tuple(text[n : n + 3]) for n in range(len(text) - 2)}

    known = Earlier()
    for text in texts:
        known.add(text_of(text))
    mine = shingles(words)
    expected = any(
        mine and len(mine & shingles(text)) / len(mine | shingles(text)) >= 0.6 for text in texts
    )
    assert known.resembled_by(text_of(words)) == expected
