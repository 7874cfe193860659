"""Rules that the published cases leave open or only touch."""

from __future__ import annotations

import pickle
import time

import pytest

from bijotel.context_matching import ContextMatches, PassageMatch, match_context
from bijotel.context_matching.match import MAX_PROMPT

LONG = "alder birch cedar dogwood elm fir ginkgo hazel ironwood juniper katsura larch"


def test_escapes_in_running_text():
    r"""A value dumped into a sentence is whole once ``\n`` and ``\u00e9`` are undone, twice too."""
    passage = 'Le café\nferme à "six"\nheures.'
    once = r"Tool said: Le caf\u00e9\nferme \u00e0 \"six\"\nheures. Why?"
    twice = once.replace("\\", "\\\\")
    for prompt in (once, twice):
        (match,) = match_context([passage], prompt)
        assert (match.status, match.level, match.containment) == ("included", "normalized", 1.0)
        ((start, end),) = match.regions
        assert prompt[start:end] == prompt[prompt.index("Le") : prompt.index("heures") + 6]
    (match,) = match_context([once.removeprefix("Tool said: ")], passage + " Why?")
    assert (match.status, match.level) == ("included", "normalized")


def test_escapes_are_left_alone_where_the_passage_is_whole_without():
    r"""``C:\new`` and ``\nabla`` are words about paths and formulas."""
    (match,) = match_context([r"see C:\new\tables and \nabla f"], r"see C:\new\tables and \nabla f")
    assert (match.status, match.level) == ("included", "verbatim")


def test_an_included_passage_takes_its_words_in_every_reading():
    """Words of a passage that is whole once escapes are undone are no evidence for another."""
    passages = [f"{LONG}\nmaple", f"{LONG}\nnutmeg oak pine"]
    matches = match_context(passages, f"{LONG}\\nmaple")
    assert [match.status for match in matches] == ["included", "absent"]


@pytest.mark.parametrize(
    ("passage", "prompt"),
    [
        ("5 apples a day", "-5 apples a day"),
        ("-5 apples a day", "x-5 apples a day"),
        ("load is 3", "load is 3.5"),
        ("load is 3,", "load is 3,5"),
        (".5 of the load", "3.5 of the load"),
        ("the committee post", "the committee posts"),
        ("the cafe", "the cafe\u0301s"),
        ("a b the", "a b the\u0301"),
    ],
)
def test_verbatim_begins_and_ends_on_token_boundaries(passage: str, prompt: str):
    """An exact substring that cuts a word or a number is not the passage."""
    (match,) = match_context([passage], prompt)
    assert match.status != "included"


def test_every_occurrence_is_a_region():
    """Overlapping ones too, the first thousand, at the passage's own level."""
    (match,) = match_context(["a b a"], "a b a b a; A B A")
    assert (match.level, match.regions) == ("verbatim", ((0, 5), (4, 9)))
    (match,) = match_context(["a b  a"], "a b a b a; A B A")
    assert (match.level, match.regions) == ("normalized", ((0, 5), (4, 9), (11, 16)))
    (match,) = match_context(["a a a"], "a " * 2_000)
    assert len(match.regions) == 1_000
    assert match.regions[-1] == (1_998, 2_003)


def test_what_only_the_question_says_is_no_evidence():
    """An occurrence that reaches beyond the question counts in full."""
    query = "when do the alder and the birch flower here in spring"
    inside = "the alder and the birch flower here in"
    beyond = "the alder and the birch flower here in spring or later"
    matches = match_context([inside, beyond], f"Q: {query}?", query=query)
    assert [match.status for match in matches] == ["absent", "absent"]
    matches = match_context([inside, beyond], f"{beyond}. Q: {query}?", query=query)
    assert [match.status for match in matches] == ["included", "included"]
    assert [len(match.regions) for match in matches] == [1, 1]


def test_ties_go_to_the_earliest_place():
    """Of equal choices the one that comes first in the prompt is shown."""
    half = " ".join(LONG.split()[:8])
    prompt = f"{half} ... {half}"
    (match,) = match_context([f"{LONG} maple nutmeg oak pine"], prompt)
    assert (match.status, match.containment) == ("partial", 0.5)
    assert match.regions == ((0, len(half)),)


def test_runs_that_touch_share_no_word():
    """Where two runs overlap, the word is counted once, and both stay long enough."""
    words = LONG.split()
    prompt = f"{' '.join(words[:8])} | {' '.join(words[7:] + words[:7])}"
    passage = " ".join([*words[:8], "x", *words[7:], *words[:7]])
    (match,) = match_context([passage], prompt)
    assert match.containment == 20 / 21


def test_repetitive_text_is_matched_from_left_to_right():
    """Where every word has hundreds of places, the next place in both is taken."""
    passage = "a " * 100 + "x " + "a " * 100 + "y " + "b " * 100
    (match,) = match_context([passage], "a " * 3_000 + "b " * 3_000)
    assert match.containment == pytest.approx(300 / 302, abs=0.03)
    assert [start for start, _ in match.regions] == [0, 200, 6_000]


def test_reasons_in_their_order():
    """No content comes before no prompt; both before anything about the passage."""
    matches = match_context([None, " ", "a", LONG], None, prompt_truncated=True)
    assert [match.reason for match in matches] == ["no-content"] * 2 + ["no-prompt"] * 2
    matches = match_context(["a b", "c d", "---", "..."], "a b ---", prompt_truncated=True)
    assert [match.reason for match in matches] == [
        "too-short", "prompt-truncated", "too-short", "prompt-truncated",
    ]  # fmt: skip


def test_duplicates_have_the_same_tokens_whatever_their_status():
    """Copies are known without a prompt too; passages without tokens are copies of nothing."""
    passages = ["One two", "ONE, two!", None, "", "---", "***"]
    for prompt in (None, "one two", "x" * (MAX_PROMPT + 1)):
        matches = match_context(passages, prompt)
        assert [match.duplicate_of for match in matches] == [None, 0, None, None, None, None]


def test_the_result():
    """A tuple of matches that knows the decoded prompt, also after a trip through pickle."""
    matches = match_context([LONG], [{"role": "user", "content": f"See: {LONG}."}])
    assert matches == (PassageMatch("included", "verbatim", 1.0, ((5, 5 + len(LONG)),), 0),)
    copy = pickle.loads(pickle.dumps(matches))
    assert isinstance(copy, ContextMatches)
    assert (copy, copy.text) == (matches, f"See: {LONG}.")


def test_too_large():
    """Above 4 Mi characters nothing is searched; at the limit everything still is."""
    at_limit = "x " * (MAX_PROMPT // 2 - 100) + LONG
    at_limit += "." * (MAX_PROMPT - len(at_limit))
    (match,) = match_context([LONG], at_limit)
    assert match.status == "included"
    for prompt in (at_limit + ".", [{"role": "user", "content": at_limit + "."}]):
        matches = match_context([LONG, None], prompt)
        assert [match.reason for match in matches] == ["too-large", "no-content"]


ADVERSARIES = {
    "one token again and again": ("a:" * 250_000, ["a:" * 1_000 + f"b {n}" for n in range(100)]),
    "white space": (" " * 1_000_000, [LONG]),
    "nearly everywhere": (
        "a b a b a c " * 20_000,
        ["a b a b a d " * 80 + str(n) for n in range(20)],
    ),
    "one endless number": ("1." * 300_000 + " 1.1 x y", ["1.1 x y", "1.1 x z", "1.1"]),
    "off by a letter": ("xa b c " * 50_000 + "a b c", ["a b c", "a b d"]),
    "entities": ("&amp;" * 200_000 + "a b c", ["a b c"]),
    "backslashes": ("\\" * 500_000 + "n a b c", ["a b c", "d e f"]),
    "marks": ("e" + "\u0301" * 20_000 + " a b c", ["a b c"]),
    "quotes": ('["' + '\\"' * 200_000, [LONG]),
    "copies inside each other": (LONG * 50, [LONG[:end] for end in range(10, len(LONG))] * 20),
    "a query everywhere": ("a b " * 100_000, ["a b a", LONG]),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_cost_stays_near_linear(name: str):
    """Texts made to be slow take seconds at most; a quadratic search would take hours."""
    prompt, passages = ADVERSARIES[name]
    started = time.process_time()
    match_context(passages, prompt, query="a b", prompt_truncated=True)
    assert time.process_time() - started < 8


@pytest.mark.parametrize(
    ("passages", "prompt", "query", "message"),
    [
        ("abc def", LONG, None, "passages: expected a sequence of str or None, got str"),
        (b"abc", LONG, None, "passages: expected a sequence of str or None, got bytes"),
        ({"a": LONG}, LONG, None, "passages: expected a sequence of str or None, got dict"),
        (None, LONG, None, "passages: expected a sequence of str or None, got NoneType"),
        ([5, ["x"]], LONG, None, r"passages\[0\]: expected str or None, got int"),
        ([None, LONG, ["x"]], LONG, None, r"passages\[2\]: expected str or None, got list"),
        ([LONG], b"x", None, "prompt: expected str, a list of messages or None, got bytes"),
        ([LONG], 5, None, "prompt: expected str, a list of messages or None, got int"),
        ([LONG], LONG, 5, "query: expected str or None, got int"),
    ],
)
def test_arguments_of_another_type_raise(passages, prompt, query, message):
    """An argument that would match nothing is refused by its name, not answered."""
    with pytest.raises(TypeError, match=f"^{message}$"):
        match_context(passages, prompt, query=query)


def test_passages_may_come_one_at_a_time():
    """Any iterable of texts is a sequence of passages once it was read."""
    (match,) = match_context(iter([LONG]), LONG)
    assert match.status == "included"


@pytest.mark.parametrize("prompt", [[5, None, b"x", object()], {"role": 5, "content": {"x": 1}}])
def test_nothing_inside_a_prompt_raises(prompt):
    """What was recorded in place of messages gives less text, no error."""
    assert match_context([LONG], prompt)[0].reason == "no-prompt"
