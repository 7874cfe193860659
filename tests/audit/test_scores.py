"""The rules of the scores one by one: what counts, what leaves a score, what is left out."""

from __future__ import annotations

import json

import pytest

from bijotel.audit import TraceAudit, audit_trace
from bijotel.model import Dropped
from tests.audit.conftest import (
    call,
    genai_call,
    genai_search,
    rerank,
    search,
    span,
    text,
    trace,
)

# Of different lengths: equal ones at the end of a trace's values look like a tracer's limit.
MANY = [text(letter * number) for number, letter in enumerate("abcdefghijklmnop", start=1)]
A, B, C, D, E = MANY[:5]


def audit(*spans) -> TraceAudit:
    return audit_trace(trace(*spans))


def first(passage: str, size: int) -> str:
    return " ".join(passage.split()[:size])


def notes(result: TraceAudit, subject: str) -> list[str]:
    return [finding.text for finding in result.findings if finding.subject == subject]


# --- verdicts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "used", "overall", "verdict"),
    [(14, 9, 75, "PASS"), (8, 5, 74, "WARN"), (7, 2, 50, "WARN"), (11, 3, 49, "FAIL")],
)
def test_the_verdict_follows_the_rounded_overall(hits, used, overall, verdict):
    """75 passes, 74 warns, 50 warns, 49 fails."""
    result = audit(search(1, *MANY[:hits]), call(2, "Context:", *MANY[:used]))
    assert (result.overall, result.verdict) == (overall, verdict)


def test_halves_are_rounded_up():
    """77.5 becomes 78, where Python's own rounding would also have gone; 82.5 becomes 83."""
    half = audit(search(1, A, B, C, D, scores=[0.5, 0.5, None, None]), call(2, A, B, C))
    assert half.overall == 78
    assert audit(search(1, A, B, C, D), call(2, A, B, C)).overall == 83


def test_findings_have_the_level_of_their_score():
    """Each sub-score says in words what it is made of, with a level of its own."""
    result = audit(search(1, A, A, B, C, D, scores=[1.0, 1.0, None, None, None]), call(2, A, B))
    assert [(f.level, f.subject, f.text) for f in result.findings] == [
        ("doubtful", "precision", "2 of 4 retrieved passages (no reranker is recorded) are in the prompt"),
        ("doubtful", "efficiency", "40 of 80 retrieved words reached the prompt"),
        ("good", "uniqueness", "20 of 100 words of the hits repeat earlier hits, 1 of 5 hits whole"),
        ("bad", "coverage", "1 of 4 passages carry a score"),
    ]  # fmt: skip


# --- precision -------------------------------------------------------------------------------


@pytest.mark.parametrize(("kept", "precision"), [(10, 100), (9, 50)])
def test_a_partial_passage_counts_from_one_half_on(kept, precision):
    """10 of 20 words are enough, 9 are not."""
    result = audit(search(1, A, B), call(2, A, first(B, kept)))
    assert result.scores.precision == precision


def test_a_passage_inside_another_counts_where_it_also_stands_alone():
    """Covered in one call that feeds the answer, on its own in the other."""
    inner = first(A, 10)
    mapped = call(2, A, answer="The map says that all of it is so and not otherwise at all.")
    reduced = call(3, inner, "The map says that all of it is so and not otherwise at all.")
    result = audit(search(1, A, inner), mapped, reduced)
    assert [each.role for each in result.calls] == ["contributing", "answer"]
    assert result.scores.precision == 100


def test_what_a_map_call_read_counts_and_what_a_grader_read_does_not():
    """Only calls whose output stands in the next prompt feed the answer."""
    said = "The manual says that the burrs have to be replaced after two years of use."
    mapped, grader = call(2, A, answer=said), call(3, B, answer="yes")
    result = audit(search(1, A, B), mapped, grader, call(4, said))
    assert [each.role for each in result.calls] == ["contributing", "other", "answer"]
    assert [each.verdict.status for each in result.passages] == ["included", "absent"]
    assert result.scores.precision == 50


def test_the_last_of_two_rerankers_is_the_last_stage():
    """What the first one gave out is only what the second one was given."""
    result = audit(
        search(1, A, B, C, D, E),
        rerank(2, [A, B, C, D, E], [D, C, B, A]),
        rerank(3, [D, C, B, A], [A, B]),
        call(4, A),
    )
    assert result.scores.precision == 50
    assert notes(result, "precision") == [
        "1 of 2 passages that the reranker gave out are in the prompt"
    ]


def test_a_search_that_no_reranker_was_given_stands_beside_it():
    """Its passages went to the prompt directly."""
    result = audit(search(1, A, B, C), rerank(2, [A, B, C], [C, A]), search(3, D), call(4, A, D))
    assert result.scores.precision == pytest.approx(100 * 2 / 3)


# --- efficiency ------------------------------------------------------------------------------


def test_a_piece_in_json_is_found_again():
    """The words of a partial passage are seen also where the prompt holds them escaped."""
    lines = "\n".join(B.split())
    prompt = 'Tool said: {"text": ' + json.dumps(first(B, 12).replace(" ", "\n"))
    result = audit(search(1, A, lines), call(2, A, prompt))
    assert result.passages[1].verdict.status == "partial"
    assert result.scores.efficiency == 100 * 32 / 40


def test_the_longest_whole_passage_is_walked_first():
    """The short one repeats it, whatever their order, so that all words there are reached."""
    result = audit(search(1, first(A, 10), A, B), call(2, A))
    assert result.scores.efficiency == 50


# --- uniqueness ------------------------------------------------------------------------------


def test_a_run_shorter_than_the_least_is_no_repetition():
    """Seven words in a row are shared: nothing repeats; eight: these eight do."""
    for shared, uniqueness in ((7, 100), (8, 100 * (1 - 8 / 40))):
        other = " ".join([*A.split()[:shared], *B.split()[shared:]])
        result = audit(search(1, A, other), call(2, A, other))
        assert result.scores.uniqueness == pytest.approx(uniqueness)


def test_a_stamp_is_no_hit_list():
    """What bijotel recorded on the call repeats a search and dilutes nothing."""
    stamp = {
        "bijotel.rag.sources": json.dumps(
            [{"document_id": "d", "chunk_index": n} for n in range(2)]
        ),
        "bijotel.rag.in_context": ["included", "absent"],
    }
    plain = call(2, A, B)
    stamped = span(2, "chat", {**plain.attributes, **stamp})
    result = audit(search(1, A, A, B), stamped)
    assert result.scores.uniqueness == pytest.approx(100 * 2 / 3)
    assert result.scores.precision == 100


# --- coverage --------------------------------------------------------------------------------


def test_zero_and_a_distance_are_scores_and_null_is_none():
    """0.0 says something; null says nothing."""
    documents = [
        {"id": "1", "content": A, "score": 0.0},
        {"id": "2", "content": B, "distance": 1.5},
        {"id": "3", "content": C, "score": None},
        {"id": "4", "content": D},
    ]
    attributes = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": json.dumps(documents),
    }
    result = audit(span(1, "retrieval", attributes), genai_call(2, A, B, C, D))
    assert result.scores.coverage == 50
    assert [p.score_kind for p in result.passages] == ["score", "distance", "", ""]


# --- rerank gain -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "returned", "used", "why"),
    [
        ([A, B, C, D], [A, B], [A], "the order did not change"),
        ([A, B, C], [C, B, A], [A, B, C], "everything that was reranked was used"),
        ([A, B, C], [C, B], [], "nothing that was used was reranked"),
    ],
)
def test_when_there_is_no_rerank_gain(given, returned, used, why):
    """Left out with its reason, and the four weights hold."""
    result = audit(search(1, *given), rerank(2, given, returned), call(3, "Context:", *used))
    scores = result.scores
    assert scores.rerank_gain is None
    assert notes(result, "rerank gain") == [f"left out: {why}"]
    exact = (
        0.4 * scores.precision
        + 0.3 * scores.efficiency
        + 0.2 * scores.uniqueness
        + 0.1 * scores.coverage
    )
    assert result.overall == int(exact + 0.5)


def test_a_reranker_that_gave_out_less_has_a_gain_though_all_of_that_was_used():
    """It did not return all that it was given."""
    result = audit(search(1, A, B, C), rerank(2, [A, B, C], [C, A]), call(3, C, A))
    assert result.scores.rerank_gain == 50 + 12.5 * (2 - 1) / 2
    assert notes(result, "rerank gain") == ["used passages rose by 0.5 places on average"]


def test_the_gain_ends_at_its_limits():
    """From rank 10 to 1 is 100, the way back 0."""
    ten = MANY[:10]
    up, down = [ten[9], *ten[:9]], [*ten[1:], ten[0]]
    risen = audit(search(1, *ten), rerank(2, ten, up), call(3, ten[9]))
    fallen = audit(search(1, *ten), rerank(2, ten, down), call(3, ten[0]))
    assert (risen.scores.rerank_gain, fallen.scores.rerank_gain) == (100, 0)


# --- not applicable --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        ([call(2, "Hello")], "no retrieval recorded"),
        ([search(1), call(2, "Hello")], "the retrieval lists no passages: no documents recorded"),
        ([genai_search(1), genai_call(2, "Hello")], "the retrieval found nothing"),
        ([search(1, A, B)], "no prompt recorded"),
        ([search(1, A, B), call(2)], "no prompt recorded"),
        ([search(1, None, None), call(2, A)], "no passage has a text: no text recorded"),
        ([search(1, A, "b0 b1"), call(2, A, "b0 b1")], "1 of 2 passages are unknown: too-short"),
        (
            [search(1, A, dropped=Dropped(attributes=3)), call(2, A)],
            "the retrieval 0000000000000001 has 3 attributes dropped",
        ),
        (
            [search(1, A), call(2, A, dropped=Dropped(events=1))],
            "the model call 0000000000000002 has 1 events dropped",
        ),
        (
            [search(1, A), rerank(2, [A], [A], dropped=Dropped(attributes=1)), call(3, A)],
            "the retrieval 0000000000000002 has 1 attributes dropped",
        ),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_not_applicable_says_why(spans, reason):
    """No score, no verdict of its own, and the reason."""
    result = audit(*spans)
    assert (result.verdict, result.reason) == ("NOT_APPLICABLE", reason)
    assert (result.overall, result.scores) == (None, None)
    assert (result.findings, result.recommendations) == ((), ())


def test_passages_without_a_text_are_listed_all_the_same():
    """As unknown, with their ids."""
    result = audit(search(1, None, None), call(2, A))
    assert [(p.id, p.verdict.status) for p in result.passages] == [
        ("d0", "unknown"),
        ("d1", "unknown"),
    ]


def test_stated_statuses_alone_are_no_score():
    """A stamp knows what reached the prompt, but there is no text to measure."""
    sources = json.dumps([{"document_id": name, "chunk_index": 0} for name in "de"])
    for statuses in (["included", "absent"], ["included", "unknown"]):
        stamp = {"bijotel.rag.sources": sources, "bijotel.rag.in_context": statuses}
        result = audit(span(1, "chat", {**call(1, "Hello").attributes, **stamp}))
        assert [each.verdict.status for each in result.passages] == statuses
        assert result.reason == "no passage has a text: only statuses are recorded"


def test_fewer_than_half_unknown_are_left_out():
    """They are counted beside the scores and change none of them."""
    result = audit(search(1, A, B, "c0 c1"), call(2, A, "c0 c1"))
    assert (result.scores.precision, result.scores.efficiency) == (50, 50)
    assert result.count("unknown") == 1
    assert notes(result, "unknown") == ["1 left out of the scores: too-short"]


def test_a_passage_longer_than_any_prompt_is_left_out():
    """It could not have been found, and would only fill the memory."""
    result = audit(search(1, A, "x " * 2_097_153), call(2, A))
    assert (result.scores.precision, result.scores.efficiency) == (100, 100)


def test_what_a_call_beside_the_answer_lost_does_not_matter():
    """A grader's span without all of its attributes leaves the trace applicable."""
    grader = call(2, B, answer="yes", dropped=Dropped(attributes=1))
    assert audit(search(1, A), grader, call(3, A)).overall == 100


# --- recommendations and notes ---------------------------------------------------------------


def test_no_advice_about_top_k_when_most_of_it_is_used():
    """60 is enough."""
    result = audit(search(1, A, B, C, D, E), call(2, A, B, C))
    assert result.scores.precision == 60
    assert result.recommendations == ()


def test_advice_to_retrieve_less():
    """Passages that nobody reads cost words."""
    result = audit(search(1, A, B, C, D), call(2, A, "Answer."))
    assert result.recommendations == (
        "reduce top-k 4 -> 1",
        "60 of 80 retrieved words are wasted: retrieve less, or pass more",
    )


def test_advice_about_duplicates():
    """Hits that repeat whole are worth a word."""
    result = audit(search(1, A, A, A, B), call(2, A, B))
    assert result.recommendations == (
        "2 of 4 hits repeat an earlier one: remove duplicates from the index or the results",
    )


def test_a_best_passage_in_the_middle_is_a_note_and_no_loss():
    """In a prompt of some length; at its begin there is nothing to say."""
    filler = [text(f"filler{number}x", 100) for number in range(10)]
    middle = audit(search(1, A), call(2, *filler[:5], A, *filler[5:]))
    begin = audit(search(1, A), call(2, A, *filler))
    assert middle.scores == begin.scores
    assert notes(middle, "position") == [
        "the best-ranked passage stands in the middle of a long prompt"
    ]
    assert notes(begin, "position") == []


def test_an_answer_that_is_not_certain_is_noted():
    """Two calls, and no output of the trace that names one."""
    result = audit(search(1, A), call(2, A, answer="one"), call(3, A, answer="two"))
    assert not result.answer_certain
    assert notes(result, "answer") == [
        "several calls may be the one that answers; taken is the one that ended last"
    ]


def test_a_list_that_may_not_be_whole_is_noted():
    """A second search without its documents leaves the score, with a word of caution."""
    result = audit(search(1, A), search(2), call(3, A))
    assert result.verdict == "PASS"
    assert notes(result, "retrieval") == [
        "0000000000000002 may not list all: no documents recorded"
    ]
