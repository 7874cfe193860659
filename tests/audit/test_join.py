"""Joining passages and prompts: which call counts, what may be compared, when nobody can tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from bijotel.audit.join import join_trace
from bijotel.model import Dropped, Resource, SpanRecord
from bijotel.rag.context import rag_context
from bijotel.rag.source import RAGSource
from bijotel.traces.model import Trace

BURRS = "Burrs are wear parts of the grinder and have to be replaced now and then."
YEARS = "The warranty lasts two years from the day on which the goods were delivered."
HOURS = "The service desk answers on weekdays between nine and seventeen o'clock."
HERE, THERE = Resource({"service.name": "here"}), Resource({"service.name": "there"})


def span(
    number: int,
    attributes: Mapping[str, Any],
    *,
    start: int | None = None,
    end: int | None = None,
    parent: int | None = None,
    resource: Resource = HERE,
    **fields: Any,
) -> SpanRecord:
    """A span that begins at ten times its number and lasts five."""
    begun = number * 10 if start is None else start
    return SpanRecord(
        name="step",
        trace_id="a" * 32,
        span_id=f"{number:016x}",
        parent_span_id=None if parent is None else f"{parent:016x}",
        start_time_unix_nano=begun,
        end_time_unix_nano=begun + 5 if end is None else end,
        attributes=attributes,
        resource=resource,
        **fields,
    )


def search(
    number: int, *documents: str | dict[str, Any], query: str = "", **fields: Any
) -> SpanRecord:
    listed = [
        {"id": f"d{n}", "content": d} if isinstance(d, str) else d for n, d in enumerate(documents)
    ]
    return span(
        number,
        {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.retrieval.documents": json.dumps(listed),
            "gen_ai.retrieval.query.text": query,
        },
        **fields,
    )


def call(
    number: int,
    prompt: str | list[dict[str, Any]] | None,
    answer: str | list[dict[str, Any]] = "",
    **fields: Any,
) -> SpanRecord:
    attributes: dict[str, Any] = {"gen_ai.operation.name": "chat"} | fields.pop("more", {})
    if prompt is not None:
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        attributes["gen_ai.input.messages"] = json.dumps(messages)
    if answer:
        messages = [{"role": "assistant", "content": answer}] if isinstance(answer, str) else answer
        attributes["gen_ai.output.messages"] = json.dumps(messages)
    return span(number, attributes, **fields)


def step(number: int, **attributes: Any) -> SpanRecord:
    return span(number, {key.replace("__", "."): value for key, value in attributes.items()})


def join(*spans: SpanRecord, texts: Mapping[str, str] | None = None):
    return join_trace(Trace("a" * 32, spans), (texts or {}).get)


def statuses(context):
    return [passage.verdict.status for passage in context.passages]


def roles(context):
    return {int(one.call.span.span_id, 16): one.role for one in context.calls}


# Which call answers


def test_the_call_whose_output_is_the_roots_output_answers():
    """The output of the root names the answering call, also when another one ended later."""
    root = span(
        1, {"openinference.span.kind": "CHAIN", "output.value": '{"output": "Two  years!"}'}, end=99
    )
    context = join(root, call(2, "p", "Two years", parent=1), call(3, "p", "A title", parent=1))
    assert roles(context) == {2: "answer", 3: "other"}
    assert (context.answer, context.answer_certain) == (0, True)


def test_an_agents_output_names_the_call_too():
    """Agents and workflows need not be the root."""
    root = step(1)
    agent = span(
        2,
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.output.messages": '[{"role": "assistant", "content": "One."}]',
        },
        parent=1,
        end=99,
    )
    context = join(root, agent, call(3, "p", "One.", parent=2), call(4, "p", "Two.", parent=2))
    assert roles(context) == {3: "answer", 4: "other"}


def test_of_several_named_calls_the_last_answers():
    """A retry that gave the same answer again is the one that counts."""
    root = span(1, {"openinference.span.kind": "CHAIN", "output.value": "Yes indeed"}, end=99)
    context = join(root, call(2, "p", "Yes indeed", parent=1), call(3, "p", "Yes indeed", parent=1))
    assert roles(context) == {2: "other", 3: "answer"}
    assert context.answer_certain


def test_when_no_output_tells_the_last_call_answers_uncertainly():
    """Two calls and no recorded output of the whole: a guess, and it says so."""
    context = join(step(1), call(2, "p", "One."), call(3, "p", "Two."))
    assert roles(context) == {2: "other", 3: "answer"}
    assert not context.answer_certain
    assert join(call(2, "p", "One.")).answer_certain


@pytest.mark.parametrize("kind", ["EVALUATOR", "GUARDRAIL", "RERANKER", "EMBEDDING"])
def test_judges_never_answer(kind):
    """A call below an evaluator, a guardrail or a reranker is beside the answer."""
    judge = span(3, {"openinference.span.kind": kind}, end=99)
    context = join(call(2, "p", "One."), judge, call(4, "p", "yes", parent=3))
    assert roles(context) == {2: "answer", 4: "other"}
    assert context.answer_certain


def test_no_call_at_all():
    """Without a call nothing answers and nothing is known."""
    context = join(search(1, BURRS))
    assert (context.answer, context.answer_certain, statuses(context)) == (None, False, ["unknown"])
    assert context.passages[0].verdict.reason == "no prompt recorded"


# Which calls contribute


def test_a_map_call_feeds_the_reduce_call():
    """What the map calls were given counts, for their outputs are in the reduce call's prompt."""
    context = join(
        search(1, BURRS, YEARS, HOURS),
        call(2, BURRS, "Parts that wear are replaced by the owner."),
        call(3, YEARS, "It is two years, from the delivery on."),
        call(4, HOURS, "yes"),
        call(
            5,
            "Sum up: Parts that wear are replaced by the owner. It is two years, from the delivery on. yes",
            "Done.",
        ),
    )
    assert roles(context) == {2: "contributing", 3: "contributing", 4: "other", 5: "answer"}
    assert statuses(context) == ["included", "included", "absent"]
    assert [passage.call for passage in context.passages] == [0, 1, 0]


def test_a_grader_feeds_nothing():
    """A single word stands in any prompt by chance; it proves no passage."""
    context = join(
        search(1, BURRS, YEARS),
        call(2, f"Is it relevant? {BURRS}", "yes"),
        call(3, f"yes {YEARS}", "Done."),
    )
    assert roles(context) == {2: "other", 3: "answer"}
    assert statuses(context) == ["absent", "included"]
    assert [one.verdicts[0].status for one in context.calls] == ["included", "absent"]


def test_feeding_goes_over_several_steps():
    """What feeds a call that feeds the answer contributes too."""
    context = join(
        search(1, BURRS),
        call(2, BURRS, "A first summary of what was found."),
        call(3, "A first summary of what was found.", "A second summary, shorter by far."),
        call(4, "A second summary, shorter by far.", "Done."),
    )
    assert roles(context) == {2: "contributing", 3: "contributing", 4: "answer"}
    assert statuses(context) == ["included"]


def test_tool_calls_and_earlier_turns_feed():
    """The arguments of a tool call, and an answer repeated as an earlier turn, link two calls."""
    asked = {
        "role": "assistant",
        "parts": [{"type": "tool_call", "arguments": {"query": "warranty of the burrs"}}],
    }
    context = join(
        call(1, "p", [asked]), call(2, [{"role": "user", "content": "p"}, asked], "Done.")
    )
    assert roles(context) == {1: "contributing", 2: "answer"}
    turns = [
        {"role": "user", "content": "p"},
        {"role": "assistant", "content": "It is two years in all."},
        {"role": "user", "content": "q"},
    ]
    context = join(
        search(1, YEARS), call(2, YEARS, "It is two years in all."), call(3, turns, "Done.")
    )
    assert roles(context) == {2: "contributing", 3: "answer"}
    assert statuses(context) == ["included"]


def test_half_of_an_output_is_enough():
    """An output that was shortened by less than half still feeds."""
    output = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    half, less = " ".join(output.split()[:8]), " ".join(output.split()[:6])
    assert roles(join(call(1, "p", output), call(2, half, "Done.")))[1] == "contributing"
    assert roles(join(call(1, "p", output), call(2, less, "Done.")))[1] == "other"


def test_an_output_is_judged_as_if_alone():
    """Another output that is there whole takes no evidence from a part of this one."""
    whole = "the desk answers on weekdays between nine and five o'clock sharp"
    longer = whole.replace(" sharp", "") + " but never on a holiday or at night"
    context = join(call(1, "p", whole), call(2, "p", longer), call(3, f"Notes: {whole}.", "Done."))
    assert roles(context) == {1: "contributing", 2: "contributing", 3: "answer"}


def test_a_later_call_feeds_nothing_that_came_before():
    """An output cannot be in a prompt that was sent before it was written."""
    answer = "It is two years from the delivery on."
    root = span(
        9, {"openinference.span.kind": "CHAIN", "output.value": "Done at last."}, start=1, end=99
    )
    spans = [
        root,
        call(2, f"Say: {answer}", "Done at last.", parent=9),
        call(3, YEARS, answer, parent=9),
    ]
    assert roles(join(*spans)) == {2: "answer", 3: "other"}
    apart = [spans[0], spans[1], call(3, YEARS, answer, parent=9, resource=THERE)]
    assert roles(join(*apart)) == {2: "answer", 3: "contributing"}


# What may be compared


def test_a_passage_retrieved_after_the_call_began_is_absent():
    """It cannot have been in the prompt, even if the same words are."""
    context = join(call(1, BURRS, "Done."), search(2, BURRS))
    assert statuses(context) == ["absent"]
    assert context.passages[0].verdict.reason == "retrieved after the call began"
    assert context.passages[0].call is None


def test_clocks_of_two_processes_are_not_compared():
    """Between two resources a later time proves nothing."""
    assert statuses(join(call(1, BURRS, "Done."), search(2, BURRS, resource=THERE))) == ["included"]


@pytest.mark.parametrize("side", ["start", "end"])
def test_a_missing_time_forbids_nothing(side):
    """Where a time is not recorded the texts decide."""
    late = search(2, BURRS)
    early = call(1, BURRS, "Done.")
    if side == "start":
        early = SpanRecord(
            **{
                **{f: getattr(early, f) for f in early.__dataclass_fields__},
                "start_time_unix_nano": None,
            }
        )
    else:
        late = SpanRecord(
            **{
                **{f: getattr(late, f) for f in late.__dataclass_fields__},
                "end_time_unix_nano": None,
            }
        )
    assert statuses(join(early, late)) == ["included"]


def test_a_passage_of_two_searches_counts_from_the_first_on():
    """Returned early and late, it may be in the prompt between."""
    assert statuses(join(search(1, BURRS), call(2, BURRS, "Done."), search(3, BURRS))) == [
        "included"
    ]


def test_passages_are_merged_by_text_then_by_id():
    """Equal words are one passage, whatever the id; an id alone joins the text of that id."""
    context = join(
        search(
            1,
            {"id": "a", "content": BURRS, "score": None},
            {"id": "b", "content": BURRS.upper(), "score": 0.5},
        ),
        search(2, {"id": "a"}, {"id": "x"}, {"id": "x"}, {"id": "a", "content": YEARS}),
        search(3, {"score": 1}, {"score": 1}),
    )
    assert [(p.id, p.text) for p in context.passages] == [
        ("a", BURRS),
        ("x", None),
        ("a", YEARS),
        ("", None),
        ("", None),
    ]
    assert [listed.rows for listed in context.retrievals] == [(0, 0), (0, 1, 1, 2), (3, 4)]
    first = context.passages[0]
    assert (first.score, first.score_kind, first.rank, first.source_span_id) == (
        0.5,
        "score",
        1,
        f"{1:016x}",
    )


def test_an_id_may_come_before_its_text():
    """The order of two searches does not matter for what they have in common."""
    context = join(
        search(1, {"id": "a"}), search(2, {"id": "a", "content": BURRS}), call(3, BURRS, "Done.")
    )
    assert [(p.id, p.text, p.verdict.status) for p in context.passages] == [
        ("a", BURRS, "included")
    ]


def test_texts_from_elsewhere():
    """A look-up gives the texts that the trace does not hold."""
    spans = [search(1, {"id": "a"}, {"id": "b"}), call(2, BURRS, "Done.")]
    assert [(p.verdict.status, p.verdict.reason) for p in join(*spans).passages] == [
        ("unknown", "no text recorded")
    ] * 2
    assert statuses(join(*spans, texts={"a": BURRS})) == ["included", "unknown"]


def test_what_a_reranker_shortened_is_the_passage_that_it_was_given():
    """Its output is found by text, by id, and by the longer text that it is a part of."""

    def reranker(inputs, outputs):
        attributes = {"openinference.span.kind": "RERANKER"}
        for side, items in (("input", inputs), ("output", outputs)):
            for n, (name, text) in enumerate(items):
                attributes[f"reranker.{side}_documents.{n}.document.content"] = text
                attributes[f"reranker.{side}_documents.{n}.document.id"] = name
        return span(2, attributes)

    context = join(
        search(1, BURRS, YEARS, HOURS),
        reranker(
            [("", BURRS), ("", YEARS)],
            [
                ("", YEARS),
                ("d0", "Burrs, in short."),
                ("", "The service desk answers"),
                ("n", "Unheard of."),
            ],
        ),
    )
    assert len(context.passages) == 4
    assert context.rerankers[0].rows == (1, 0, 2, 3)
    assert context.rerankers[0].input_rows == (0, 1)
    alone = join(reranker([("a", BURRS)], [("a", BURRS)]), call(3, BURRS, "Done."))
    assert [(p.id, p.verdict.status) for p in alone.passages] == [("a", "included")]


def test_what_stands_only_in_the_question_was_not_retrieved():
    """A passage that is the question itself is no evidence; beside the question it is."""
    question = "How long does the warranty of the grinder last in all?"
    spans = [
        search(1, question, YEARS, query=question),
        call(2, f"Question: {question} {YEARS}", "Done."),
    ]
    assert statuses(join(*spans)) == ["absent", "included"]
    spans[1] = call(2, f"{question} Context: {question} {YEARS}.", "Done.")
    assert statuses(join(*spans)) == ["absent", "included"]
    assert statuses(join(search(1, question), spans[1])) == ["included"]


def test_each_search_has_its_own_question():
    """The question of one search does not take a passage from another."""
    question = "How long does the warranty of the grinder last in all?"
    context = join(
        search(1, question, query=question),
        search(2, BURRS, question + " Really?", query=BURRS),
        call(3, f"{question} Really? {BURRS}", "Done."),
    )
    assert statuses(context) == ["absent", "absent", "included"]


# When nobody can tell


def test_a_call_without_a_prompt():
    """Nothing is known, and the reason is that of the capture."""
    context = join(search(1, BURRS), call(2, None, "Done."))
    assert [(p.verdict.status, p.verdict.reason) for p in context.passages] == [
        ("unknown", "no prompt recorded")
    ]
    assert context.calls[0].text == ""


def test_an_incomplete_prompt_decides_what_it_holds():
    """What stands there is included; what does not is unknown, with the reason of the capture."""
    context = join(search(1, BURRS, YEARS), call(2, BURRS, "Done.", dropped=Dropped(2)))
    assert [(p.verdict.status, p.verdict.reason) for p in context.passages] == [
        ("included", ""),
        ("unknown", "2 attributes dropped"),
    ]


def test_an_earlier_call_without_a_prompt_is_no_proof_of_absence():
    """The best over the calls that contribute: one that cannot be read leaves it open."""
    context = join(
        search(1, BURRS),
        call(2, None, "A summary of all that was found."),
        call(3, "A summary of all that was found.", "Done."),
    )
    assert statuses(context) == ["unknown"]


def test_a_short_passage():
    """A passage of two words that occurs is unknown, as context matching says."""
    context = join(search(1, "two words"), call(2, "There are two words here.", "Done."))
    assert [(p.verdict.status, p.verdict.reason) for p in context.passages] == [
        ("unknown", "too-short")
    ]


def test_a_passage_that_was_cut_is_never_absent():
    """Its missing end may be in the prompt."""
    cut = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.content": BURRS,
        "output.value": "x" * len(BURRS),
    }
    context = join(span(1, cut), span(2, {"openinference.span.kind": "LLM", "llm.prompts": ["no"]}))
    assert context.passages[0].verdict.status == "unknown"
    assert context.passages[0].verdict.reason.startswith("cut: ")


def test_a_withheld_span_may_be_the_one():
    """Where the content of a span is not in the chain, nothing is absent from the trace."""
    spans = [search(1, BURRS, YEARS), call(2, BURRS, "Done.")]
    hidden = SpanRecord("", trace_id="a" * 32, span_id="9" * 16, withheld="size")
    assert statuses(join(*spans)) == ["included", "absent"]
    context = join(*spans, hidden)
    assert [p.verdict.status for p in context.passages] == ["included", "unknown"]
    assert (
        context.passages[1].verdict.reason
        == "the content of a span of this trace is not in the chain"
    )


# Places


def test_places_and_coverage_are_those_of_the_call_that_gave_the_verdict():
    """Regions point into the text of that call; a passage inside another names it."""
    inner = "have to be replaced now and then"
    context = join(
        search(1, YEARS, BURRS, inner),
        call(
            2, [{"role": "system", "content": BURRS}, {"role": "user", "content": YEARS}], "Done."
        ),
    )
    first, second, third = context.passages
    text = context.calls[0].text
    assert [text[start:end] for start, end in second.verdict.regions] == [BURRS]
    assert (first.verdict.position, second.verdict.position) == (2, 0)
    assert (third.verdict.status, third.verdict.covered_by) == ("included", 1)
    assert (first.verdict.level, first.verdict.containment, first.call) == ("verbatim", 1.0, 0)


def test_the_best_part_counts():
    """Of two calls that hold a part of a passage, the one with more of it gives the verdict."""
    text = " ".join(f"word{n}" for n in range(40))
    ten, twenty = " ".join(text.split()[:10]), " ".join(text.split()[:20])
    context = join(
        search(1, text),
        call(2, ten, "A summary of the first ten words."),
        call(3, f"{twenty} A summary of the first ten words.", "Done."),
    )
    assert context.passages[0].verdict.containment == 0.5
    assert context.passages[0].call == 1


# Stamps


STAMPED = rag_context([RAGSource("doc", 0, similarity_score=0.5), RAGSource("doc", 1)])


def test_stamps_without_statuses_are_unknown():
    """A stamp says what was retrieved, not that it reached the prompt."""
    context = join(call(1, BURRS, "Done.", more=STAMPED))
    assert [(p.id, p.verdict.status, p.verdict.reason) for p in context.passages] == [
        ("doc#0", "unknown", "no text recorded"),
        ("doc#1", "unknown", "no text recorded"),
    ]
    assert context.passages[0].score == 0.5


def test_statuses_of_a_stamp_count():
    """What the application found out with its own prompt is taken as stated."""
    context = join(
        call(1, None, "Done.", more=STAMPED | {"bijotel.rag.in_context": ["included", "absent"]})
    )
    assert [(p.verdict.status, p.verdict.containment) for p in context.passages] == [
        ("included", 1.0),
        ("absent", 0.0),
    ]
    assert [(v.status, v.reason) for v in context.calls[0].verdicts] == [
        ("included", "as the application stated"),
        ("absent", "as the application stated"),
    ]


def test_statuses_that_were_matched_when_sealed_are_no_claim():
    """What a call inherits was found by the writer; the application cannot put it there."""
    found = {"bijotel.rag.in_context": ["partial", "unknown"]}
    context = join(call(1, None, "Done.", inherited=STAMPED | found))
    expected = [("partial", "matched when it was sealed"), ("unknown", "no text recorded")]
    assert [(p.verdict.status, p.verdict.reason) for p in context.passages] == expected
    assert [(v.status, v.reason) for v in context.calls[0].verdicts] == expected


def test_an_unknown_status_is_no_statement():
    """A source without content is unknown for want of a text, whoever says so."""
    stated = STAMPED | {"bijotel.rag.in_context": ["unknown", "unknown"]}
    for span_fields in ({"more": stated}, {"inherited": stated}):
        (first, _) = join(call(1, None, "Done.", **span_fields)).passages
        assert (first.verdict.status, first.verdict.reason) == ("unknown", "no text recorded")


def test_a_stamp_on_a_surrounding_span():
    """The decorated function's span speaks for the calls in it, and for a trace without any."""
    stamped = span(1, STAMPED | {"bijotel.rag.in_context": ["included", "absent"]}, end=99)
    assert statuses(join(stamped)) == ["included", "absent"]
    inside = join(stamped, call(2, "p", "Done.", parent=1))
    assert [v.status for v in inside.calls[0].verdicts] == ["included", "absent"]
    outside = join(stamped, call(2, "p", "Done."))
    assert [v.status for v in outside.calls[0].verdicts] == ["unknown", "unknown"]
    assert statuses(outside) == ["included", "absent"]


def test_a_stamp_of_a_call_beside_the_answer_says_nothing():
    """A judge's prompt is not the answer's."""
    judge = call(
        2,
        None,
        "yes",
        more=STAMPED | {"bijotel.rag.in_context": ["included", "included"]},
        parent=9,
    )
    context = join(
        call(3, "p", "Done."), span(9, {"openinference.span.kind": "EVALUATOR"}, end=99), judge
    )
    assert statuses(context) == ["unknown", "unknown"]


def test_a_text_under_the_stamps_id_outweighs_the_stamp():
    """Where a retrieval of the trace holds the text, the prompt itself decides."""
    stamped = call(
        2, BURRS, "Done.", more=STAMPED | {"bijotel.rag.in_context": ["absent", "included"]}
    )
    context = join(
        search(1, {"id": "doc#0", "content": BURRS}, {"id": "doc#1", "content": YEARS}), stamped
    )
    assert statuses(context) == ["included", "absent"]
    assert [listed.retrieval.stage for listed in context.retrievals] == ["retriever", "provenance"]
    assert [listed.rows for listed in context.retrievals] == [(0, 1), (0, 1)]
    assert context.passages[0].source_span_id == f"{1:016x}"


def test_a_stamp_of_a_documents_only_chunk_is_the_document():
    """A search that lists documents and a stamp that names its chunk speak of one passage."""
    only = rag_context([RAGSource("doc", 3), RAGSource("other", 0)])
    context = join(search(1, {"id": "doc", "content": BURRS}), call(2, BURRS, "Done.", more=only))
    assert [(p.id, p.verdict.status) for p in context.passages] == [
        ("doc", "included"),
        ("other#0", "unknown"),
    ]
    assert [listed.rows for listed in context.retrievals] == [(0,), (0, 1)]


def test_a_stamp_is_not_a_document_of_which_it_may_be_any_part():
    """Two chunks of a listed document, or a chunk that is listed itself, stay what they are."""
    two = join(search(1, {"id": "doc", "content": BURRS}), call(2, BURRS, "Done.", more=STAMPED))
    assert [p.id for p in two.passages] == ["doc", "doc#0", "doc#1"]
    only = rag_context([RAGSource("doc", 0)])
    hits = {"id": "doc", "content": BURRS}, {"id": "doc#0", "content": YEARS}
    itself = join(search(1, *hits), call(2, BURRS, "Done.", more=only))
    assert [(p.id, p.verdict.status) for p in itself.passages] == [
        ("doc", "included"),
        ("doc#0", "absent"),
    ]
    nameless = join(search(1, BURRS), call(2, BURRS, "Done.", more=rag_context([RAGSource("", 0)])))
    assert len(nameless.passages) == 2
