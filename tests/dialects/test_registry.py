"""Finding the dialects, and one reading of a span out of several."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.dialects.registry import dialects
from bijotel.dialects.trace import read_trace
from bijotel.model import Event, SpanRecord
from bijotel.traces.model import Trace


def test_every_dialect_is_found():
    """A module with a ``DIALECT`` is all that a dialect needs."""
    assert [dialect.name for dialect in dialects()] == [
        "langsmith",
        "bijotel",
        "gen_ai",
        "google-adk",
        "haystack",
        "langfuse",
        "mlflow",
        "openinference",
        "openlit",
        "pydantic-ai",
        "strands",
        "traceai",
        "traceloop",
        "traceloop-legacy",
        "vector-stores",
    ]


def test_a_span_of_no_dialect(reading):
    """An ordinary span is read as nothing."""
    found = reading({"http.method": "GET"}, events=(Event("exception"),))
    assert (found.kinds, found.call, found.retrieval, found.stamp, found.output) == (
        frozenset(),
        None,
        None,
        None,
        None,
    )


def test_two_vocabularies_of_one_span_are_one_thing(reading):
    """The list with the texts counts, and the prompt is there once."""
    documents = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.content": "T",
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": '[{"id": "c1"}, {"id": "c2"}]',
    }
    assert [p.text for p in reading(documents).retrieval.passages] == ["T"]
    prompt = {
        "openinference.span.kind": "LLM",
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": '[{"role": "user", "content": "P"}]',
    }
    assert [m.content for m in reading(prompt).call.messages] == ["P"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["__REDACTED__", '{"', "[[", "{}", "\ud800", '{"text": "T", "id": 1}']),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["role", "type", "content", "parts", "text", "documents", "kwargs", "node", "id", "score",
                         "metadata", "messages", "tool_calls", "function", "args", "input", "output", "lc", "data"])
        | st.text(max_size=4),
        inner, max_size=4,
    ),
    max_leaves=8,
)  # fmt: skip
KEYS = [mark for dialect in dialects() for mark in (*dialect.marks, *dialect.events)]
MORE = [
    "traceloop.entity.input", "traceloop.entity.output", "langfuse.observation.input", "gen_ai.prompt",
    "langfuse.observation.output", "mlflow.spanInputs", "mlflow.spanOutputs", "haystack.component.input",
    "haystack.component.output", "gen_ai.tool.call.result", "gen_ai.completion", "input.value", "output.value",
    "llm.prompts", "llm.input_messages.0.message.content", "llm.input_messages.0.message.role", "content", "message",
    "llm.input_messages.0.message.contents.0.message_content.text", "retrieval.documents.0.document.content",
    "gen_ai.prompt.0.content", "gen_ai.system_instructions", "gen_ai.event.content", "bijotel.rag.in_context",
    "db.query.result.metadata", "llm.invocation_parameters", "gen_ai.response.id", "gen_ai.usage.input_tokens",
]  # fmt: skip
KINDS = [
    "LLM",
    "RETRIEVER",
    "RERANKER",
    "TOOL",
    "generation",
    "retriever",
    "task",
    "chat",
    "execute_tool",
    "retrieval",
    '"LLM"',
]


def as_written(value):
    """A value as it is, or as the JSON text that many instrumentations write."""
    return st.sampled_from([value, json.dumps(value)])


@given(
    st.dictionaries(
        st.sampled_from(KEYS + MORE), st.sampled_from(KINDS) | JSON.flatmap(as_written), max_size=8
    ),
    st.dictionaries(st.sampled_from(KEYS + MORE), JSON.flatmap(as_written), max_size=3),
    st.sampled_from(KEYS),
)
def test_any_attributes_are_read_without_an_error(attributes, event, name):
    """Whatever types stand where text is expected, reading ends in values."""
    span = SpanRecord(
        "x", span_id="1", attributes=attributes, events=(Event(name, attributes=event),)
    )
    found = read_trace(Trace("0" * 32, (span,)))
    for retrieval in found.retrievals:
        for passage in retrieval.passages:
            assert isinstance(passage.id, str)
            assert passage.text is None or isinstance(passage.text, str)
    for one in found.calls:
        assert all(isinstance(text, str) for text in (*one.call.outputs, *one.call.tool_calls))


@pytest.mark.parametrize("dialect", dialects(), ids=lambda dialect: dialect.name)
def test_every_dialect_names_its_marks(dialect):
    """Without a mark no span would ever be shown to it."""
    marks = (*dialect.marks, *dialect.events)
    assert marks
    assert all(isinstance(mark, str) and mark for mark in marks)
