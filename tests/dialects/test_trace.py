"""Rules that need more than one span."""

from __future__ import annotations

import json

import pytest

from bijotel.dialects.cuts import REASON
from bijotel.dialects.model import Capture
from bijotel.model import Resource
from bijotel.traces.model import LogRecord

CHAT = {"gen_ai.operation.name": "chat"}
SPOKEN = CHAT | {"gen_ai.input.messages": '[{"role": "user", "content": "P"}]'}
DOCUMENTS = {
    "gen_ai.operation.name": "retrieval",
    "gen_ai.retrieval.documents": '[{"id": "c1", "content": "T"}]',
}
EMPTY = {"gen_ai.operation.name": "retrieval"}


def calls(found):
    return [int(one.call.span.span_id, 16) for one in found.calls]


def retrievals(found):
    return [int(one.span.span_id, 16) for one in found.retrievals]


@pytest.mark.parametrize(
    ("outer", "inner", "kept"),
    [(SPOKEN, SPOKEN, [2]), (CHAT, SPOKEN, [2]), (SPOKEN, CHAT, [1]), (CHAT, CHAT, [1])],
)
def test_nested_spans_of_one_call(tracing, span, outer, inner, kept):
    """The deepest span with the prompt speaks; without any, the outer one stands for the call."""
    found = tracing(span(outer, number=1), span(inner, number=2, parent=1))
    assert calls(found) == kept


def test_a_call_below_a_tool_is_a_call_of_its_own(tracing, span):
    """A tool that asks a model does not make one call of two."""
    found = tracing(
        span(SPOKEN, number=1),
        span({"gen_ai.operation.name": "execute_tool"}, number=2, parent=1),
        span(SPOKEN, number=3, parent=2, start=12),
    )
    assert calls(found) == [1, 3]


@pytest.mark.parametrize(
    ("start", "end", "kept"),
    [(12, 18, [2]), (10, 20, [1, 2]), (5, 18, [1, 2]), (None, 18, [1, 2])],
)
def test_a_silent_span_beside_a_call(tracing, span, start, end, kept):
    """Within the time of a call next to it, it is that call; else it may be another one."""
    found = tracing(
        span(CHAT, number=1, parent=9, start=start, end=end), span(SPOKEN, number=2, parent=9)
    )
    assert sorted(calls(found)) == kept


def test_the_same_answer_beside_a_call(tracing, span):
    """Two spans that both hold the prompt and name one answer are one call."""
    answer = {"gen_ai.response.id": "r1"}
    both = [
        span(SPOKEN | answer, number=1, parent=9),
        span(SPOKEN | answer, number=2, parent=9, start=11),
    ]
    assert calls(tracing(*both)) == [1]
    assert calls(tracing(both[0], span(SPOKEN, number=2, parent=9, start=11))) == [1, 2]


def test_log_records_go_to_their_span(tracing, span):
    """A log record of another span adds nothing."""
    log = LogRecord("gen_ai.user.message", span_id=f"{1:016x}", body={"content": "P"})
    found = tracing(span(CHAT, number=1), span(CHAT, number=2), logs=(log,))
    assert [one.call.capture.state for one in found.calls] == ["whole", "none"]


def test_nested_spans_of_one_search(tracing, span):
    """An empty or equal list beside another of the same search says nothing."""
    assert retrievals(tracing(span(DOCUMENTS), span(EMPTY, number=2, parent=1))) == [1]
    assert retrievals(tracing(span(EMPTY), span(DOCUMENTS, number=2, parent=1))) == [2]
    assert retrievals(tracing(span(DOCUMENTS), span(DOCUMENTS, number=2, parent=1))) == [1]
    assert retrievals(tracing(span(DOCUMENTS), span(DOCUMENTS, number=2))) == [1, 2]
    other = DOCUMENTS | {"gen_ai.retrieval.documents": '[{"id": "c1", "content": "Other"}]'}
    assert retrievals(tracing(span(DOCUMENTS), span(other, number=2, parent=1))) == [1, 2]


def echo(documents):
    return {
        "traceloop.span.kind": "task",
        "traceloop.entity.input": json.dumps({"inputs": documents}),
    }


def test_echoes_count_only_where_nothing_else_does(tracing, span):
    """A formatting step's input is the retrieval of last resort."""
    step = span(echo([{"id": "c9", "text": "T"}]), number=2)
    assert [r.stage for r in tracing(step).retrievals] == ["echo"]
    assert [r.stage for r in tracing(span(EMPTY), step).retrievals] == ["retriever", "echo"]
    assert [r.stage for r in tracing(span(DOCUMENTS), step).retrievals] == ["retriever"]
    reranker = {
        "openinference.span.kind": "RERANKER",
        "reranker.input_documents.0.document.content": "T",
    }
    found = tracing(span(reranker), step)
    assert (found.retrievals, len(found.rerankers)) == ((), 1)


def test_cut_values_are_found_by_their_length(tracing, span):
    """Two different texts of one maximal length, and every text of that length is cut."""
    prompt = {"openinference.span.kind": "LLM", "llm.prompts": ["x" * 50], "output.value": "y" * 50}
    documents = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.content": "z" * 50,
        "retrieval.documents.1.document.content": "short",
    }
    found = tracing(span(prompt), span(documents, number=2))
    assert found.calls[0].call.capture == Capture("incomplete", REASON)
    assert [p.reason for p in found.retrievals[0].passages] == [REASON, ""]
    found = tracing(span(prompt | {"output.value": "y" * 51}), span(documents, number=2))
    assert found.calls[0].call.capture == Capture()


def test_cuts_are_those_of_one_resource(tracing, span):
    """A limit is a setting of one process; chance in another one proves nothing."""
    prompt = {"openinference.span.kind": "LLM", "llm.prompts": ["x" * 50]}
    other = span({"a": "y" * 50}, number=2, resource=Resource({"service.name": "other"}))
    assert tracing(span(prompt), other).calls[0].call.capture == Capture()
    same = span({"a": "x" * 50}, number=2)
    assert tracing(span(prompt), same).calls[0].call.capture == Capture()


@pytest.mark.parametrize(
    "content", ["x" * 50, ["x" * 50], [{"type": "text", "text": "x" * 50}], [5, {"text": "x" * 50}]]
)
def test_cut_parts_of_a_message(tracing, span, content):
    """A structured prompt is cut part by part."""
    structured = CHAT | {"gen_ai.input.messages": [{"role": "user", "content": content}]}
    found = tracing(span(structured), span({"a": "y" * 50, "b": ["z" * 50, 5]}, number=2))
    assert found.calls[0].call.capture == Capture("incomplete", REASON)


def test_a_deep_trace_is_walked_only_so_far(tracing, span):
    """Hundreds of nested spans cost no more than the innermost few."""
    chain = [span({}, number=n, parent=n - 1 if n > 1 else None) for n in range(1, 400)]
    found = tracing(*chain, span(SPOKEN, number=400, parent=399))
    assert len(found.calls[0].lineage) == 257


def test_circular_parents_end(tracing, span):
    """Spans that lie in each other are read like any others."""
    found = tracing(span(SPOKEN, number=1, parent=2), span(CHAT, number=2, parent=1))
    assert calls(found) == [1]
    assert len(tracing(span(SPOKEN, number=1, parent=1)).calls) <= 1
