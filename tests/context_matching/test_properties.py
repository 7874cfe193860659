"""What holds for any text."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from bijotel.context_matching import ContextMatches, match_context, tokenize

# Surrogates too: a cut emoji is no reason to fail.
CHARACTERS = st.characters(codec=None) | st.sampled_from("ab \n{}\"'\\[]&;.,-0123")
TEXTS = st.text(CHARACTERS, max_size=60)
WORDS = st.lists(st.sampled_from(("ash", "birch", "cedar", "3.5", "-7", "elm", "中")), max_size=30)


@given(st.lists(TEXTS | st.none(), max_size=4), TEXTS | st.none(), TEXTS | st.none(), st.booleans())
@example([None, ""], "[" * 5_000, None, True)
@example(["a b c"], '{"a": "b"', '"', True)
@example(["\\ud83d"], '["\\ud83d', None, True)
def test_no_string_raises(passages, prompt, query, truncated):
    """Any strings give one match for each passage, with fields that fit together."""
    matches = match_context(passages, prompt, query=query, prompt_truncated=truncated)
    assert isinstance(matches, ContextMatches)
    assert len(matches) == len(passages)
    for match in matches:
        assert (match.containment is None) == (match.status == "unknown") == bool(match.reason)
        assert (match.level is not None) == (match.status == "included")
        assert bool(match.regions) == (match.status in {"included", "partial"})
        assert (match.position is not None) == bool(match.regions)
        assert match.containment is None or 0 <= match.containment <= 1
        assert all(0 <= start < end <= len(matches.text) for start, end in match.regions)
    ranks = sorted(match.position for match in matches if match.position is not None)
    assert ranks == list(range(len(ranks)))


@given(TEXTS)
def test_a_text_is_in_itself(text):
    """A passage of three tokens or more is included in a prompt that is nothing else."""
    prompt = [{"role": "user", "content": [{"type": "text", "text": f"{text}\n."}]}]
    matches = match_context([text], prompt)
    if len(tokenize(text).words) >= 3 and matches.text == f"{text}\n.":
        assert (matches[0].status, matches[0].containment) == ("included", 1.0)


@given(WORDS, WORDS, WORDS, WORDS)
def test_more_prompt_never_takes_evidence_away(passage, prompt, before, after):
    """Containment of a single passage grows with the prompt."""
    text, grown = " ".join(prompt), " ".join((*before, *prompt, *after))
    less, more = match_context([" ".join(passage)], text), match_context([" ".join(passage)], grown)
    if less[0].containment is not None:
        assert more[0].containment is None or more[0].containment >= less[0].containment


@given(WORDS, WORDS)
def test_encoding_changes_nothing(passage, prompt):
    """A prompt as text, as messages and as their JSON gives the same matches and text."""
    text = " ".join(prompt)
    messages = [{"role": "user", "content": text}]
    plain = match_context([" ".join(passage)], text)
    for form in (messages, json.dumps(messages), repr(messages), json.dumps(json.dumps(messages))):
        matches = match_context([" ".join(passage)], form)
        assert matches == plain
        assert matches.text == text


@given(st.lists(TEXTS, min_size=1, max_size=4), TEXTS)
def test_each_passage_is_judged_alone_but_for_taken_words(passages, prompt):
    """Whether a passage is whole does not depend on the others."""
    together = match_context(passages, prompt)
    for passage, match in zip(passages, together, strict=True):
        (alone,) = match_context([passage], prompt)
        assert (alone.status == "included") == (match.status == "included")
        assert alone.containment is None or match.containment <= alone.containment
