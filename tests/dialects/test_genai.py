"""The GenAI conventions: attributes, events and log records, old names and new."""

from __future__ import annotations

import json

import pytest

from bijotel.dialects.model import Capture, Usage
from bijotel.model import Dropped, Event
from bijotel.traces.model import LogRecord

OPERATION = "gen_ai.operation.name"
SYSTEM = [{"type": "text", "content": "Answer from the context."}]
INPUT = [{"role": "user", "parts": [{"type": "text", "content": "How long?"}]}]
OUTPUT = [
    {
        "role": "assistant",
        "parts": [{"type": "text", "content": "24 months."}],
        "finish_reason": "stop",
    }
]
CHAT = {OPERATION: "chat"}
MESSAGES = {
    "gen_ai.system_instructions": SYSTEM,
    "gen_ai.input.messages": INPUT,
    "gen_ai.output.messages": OUTPUT,
}
DETAILS = "gen_ai.client.inference.operation.details"
DOCUMENTS = [{"id": "c2", "score": 0.5}, {"id": "c1", "score": None, "content": "Text."}]


def texts(call):
    return [(message.role, message.content) for message in call.messages]


WHOLE = [("system", SYSTEM), ("user", INPUT[0]["parts"])]


def as_json(values):
    return {key: json.dumps(value) for key, value in values.items()}


@pytest.mark.parametrize("values", [MESSAGES, as_json(MESSAGES)])
def test_attributes_structured_or_as_text(reading, values):
    """Arrays and maps are read like the JSON text of them."""
    call = reading(CHAT | values).call
    assert texts(call) == WHOLE
    assert (call.outputs, call.capture) == (("24 months.",), Capture())


def test_one_span_event_for_each_attribute(reading):
    """Strands spreads one prompt over several events of one name."""
    events = tuple(
        Event(DETAILS, attributes={key: value}) for key, value in as_json(MESSAGES).items()
    )
    call = reading(CHAT, events=events).call
    assert (texts(call), call.outputs) == (WHOLE, ("24 months.",))


def test_a_log_record_with_structured_attributes(reading):
    """In event mode the prompt is in a log record of the span, and nowhere else."""
    call = reading(CHAT, LogRecord(DETAILS, attributes=MESSAGES)).call
    assert (texts(call), call.outputs) == (WHOLE, ("24 months.",))
    assert reading(CHAT).call.capture == Capture("none", "no prompt recorded")


def test_attributes_outweigh_events(reading):
    """A prompt that was recorded twice is one prompt."""
    call = reading(CHAT | MESSAGES, LogRecord(DETAILS, attributes=MESSAGES)).call
    assert texts(call) == WHOLE


def test_one_log_record_for_each_message(reading):
    """Up to 1.36 each message is a log record, its content in the body."""
    call = reading(
        CHAT,
        LogRecord("gen_ai.system.message", body={"content": "S"}),
        LogRecord("gen_ai.user.message", body='{"content": "U"}'),
        LogRecord(
            "gen_ai.assistant.message", body={"tool_calls": [{"function": {"arguments": "{}"}}]}
        ),
        LogRecord("gen_ai.tool.message", body={"content": "T", "id": "call_1"}),
        LogRecord(
            "gen_ai.choice", body={"index": 0, "message": {"role": "assistant", "content": "A"}}
        ),
    ).call
    assert texts(call) == [("system", "S"), ("user", "U"), ("assistant", None), ("tool", "T")]
    assert call.messages[2].tool_calls == ("{}",)
    assert call.outputs == ("A",)


def test_one_span_event_for_each_message(reading):
    """The same as span events, with the message in ``gen_ai.event.content`` where Azure writes it."""
    azure = Event(
        "gen_ai.user.message",
        attributes={"gen_ai.event.content": '{"role": "user", "content": "U"}'},
    )
    plain = Event("gen_ai.system.message", attributes={"content": "S"})
    answer = Event("gen_ai.choice", attributes={"message": '[{"text": "A"}]'})
    call = reading(CHAT, events=(plain, azure, answer)).call
    assert (texts(call), call.outputs) == ([("system", "S"), ("user", "U")], ("A",))


def test_content_events_of_the_first_conventions(reading):
    """``gen_ai.content.prompt`` holds the whole prompt as JSON."""
    events = (
        Event(
            "gen_ai.content.prompt",
            attributes={"gen_ai.prompt": '[{"role": "user", "content": "U"}]'},
        ),
        Event("gen_ai.content.completion", attributes={"gen_ai.completion": '[{"content": "A"}]'}),
    )
    call = reading(CHAT, events=events).call
    assert (texts(call), call.outputs) == ([("user", "U")], ("A",))


def test_messages_without_content_say_nothing(reading):
    """Without content capture the old events are there, but empty."""
    call = reading(CHAT, LogRecord("gen_ai.user.message", body={})).call
    assert call.capture == Capture("none", "no prompt recorded")


def test_prompt_and_completion_in_one_attribute_each(reading):
    """The oldest names of all are read where nothing else is there."""
    call = reading(CHAT | {"gen_ai.prompt": "U", "gen_ai.completion": "A"}).call
    assert (texts(call), call.outputs) == ([("user", "U")], ("A",))


@pytest.mark.parametrize(
    ("more", "state", "reason"),
    [
        (
            {"gen_ai.input.messages_ref": "s3://x"},
            "none",
            "content is stored elsewhere (gen_ai.input.messages_ref)",
        ),
        (
            {"gen_ai.system_instructions_ref": "x", "gen_ai.input.messages": INPUT},
            "incomplete",
            "content is stored elsewhere (gen_ai.system_instructions_ref)",
        ),
        (
            {"gen_ai.input.messages": INPUT, "gen_ai.request.previous_response.id": "r"},
            "incomplete",
            "the provider holds the earlier turns",
        ),
        (
            {"gen_ai.input.messages": INPUT, "gen_ai.conversation.compacted": True},
            "incomplete",
            "earlier turns are there in summary only",
        ),
        ({"gen_ai.input.messages": INPUT, "gen_ai.conversation.compacted": False}, "whole", ""),
        (
            {"gen_ai.input.messages": INPUT, "anthropic.content.truncated": True},
            "incomplete",
            "cut by the SDK's limit",
        ),
        ({"gen_ai.system_instructions": SYSTEM}, "incomplete", "gen_ai.input.messages is missing"),
        ({"gen_ai.input.messages": "__REDACTED__"}, "none", "redacted"),
        (
            {"gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "te'},
            "incomplete",
            "cut: the JSON does not parse",
        ),
    ],
)
def test_how_much_was_captured(reading, more, state, reason):
    """Each sign that a prompt is not all there is named."""
    assert reading(CHAT | more).call.capture == Capture(state, reason)


def test_what_the_tracer_dropped(reading):
    """A span that lost attributes or events lost perhaps a part of its prompt."""
    call = reading(CHAT | MESSAGES, dropped=Dropped(3, 2, 9)).call
    assert call.capture == Capture("incomplete", "3 attributes and 2 events dropped")
    retrieval = reading({OPERATION: "retrieval"}, dropped=Dropped(0, 1)).retrieval
    assert retrieval.incomplete == "no documents recorded"


def test_model_provider_and_usage_under_old_and_new_names(reading):
    """The model that answered, else the one asked for; tokens by any of their names."""
    new = reading(CHAT | {
        "gen_ai.request.model": "m", "gen_ai.response.model": "m-2026", "gen_ai.provider.name": "openai",
        "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 4, "gen_ai.usage.cache_write.input_tokens": 0,
        "gen_ai.usage.reasoning.output_tokens": 1,
    }).call  # fmt: skip
    assert (new.model, new.provider, new.usage) == ("m-2026", "openai", Usage(12, 3, 4, 0, 1))
    old = reading(CHAT | {
        "gen_ai.request.model": "m", "gen_ai.system": "openai", "gen_ai.usage.prompt_tokens": 12,
        "gen_ai.usage.completion_tokens": "3", "gen_ai.usage.cache_creation.input_tokens": 5,
    }).call  # fmt: skip
    assert (old.model, old.provider, old.usage) == ("m", "openai", Usage(12, None, None, 5, None))


@pytest.mark.parametrize("value", [DOCUMENTS, json.dumps(DOCUMENTS)])
def test_retrieval_spans(reading, value):
    """Ids and scores are listed, a text where the span holds one."""
    found = reading(
        {
            OPERATION: "retrieval",
            "gen_ai.retrieval.documents": value,
            "gen_ai.retrieval.query.text": "Q",
        }
    )
    retrieval = found.retrieval
    assert (found.kinds, retrieval.stage, retrieval.query) == ({"retriever"}, "retriever", "Q")
    assert [(p.id, p.score, p.text) for p in retrieval.passages] == [
        ("c2", 0.5, None),
        ("c1", None, "Text."),
    ]
    assert (retrieval.incomplete, retrieval.ended_unix_nano) == ("", 20)


def test_documents_without_an_operation_name(reading):
    """A hand-made span is known by what it holds."""
    assert len(reading({"gen_ai.retrieval.documents": DOCUMENTS}).retrieval.passages) == 2
    assert texts(reading({"gen_ai.input.messages": INPUT}).call) == [("user", INPUT[0]["parts"])]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "no documents recorded"),
        ("__REDACTED__", "redacted"),
        ('[{"id": "c', "cut: the JSON does not parse"),
    ],
)
def test_why_a_list_is_empty(reading, value, reason):
    """An empty list says why it is empty."""
    retrieval = reading({OPERATION: "retrieval", "gen_ai.retrieval.documents": value}).retrieval
    assert (retrieval.passages, retrieval.incomplete) == ((), reason)


def test_memory_is_searched_like_documents(reading):
    """A memory search is a retrieval, writing to memory is none."""
    records = {
        "gen_ai.memory.records": [{"id": "m1", "content": "Text.", "score": 0.9}],
        "gen_ai.memory.query.text": "Q",
    }
    retrieval = reading({OPERATION: "search_memory"} | records).retrieval
    assert (retrieval.stage, retrieval.query, retrieval.passages[0].text) == (
        "memory",
        "Q",
        "Text.",
    )
    assert reading({OPERATION: "upsert_memory"} | records).retrieval is None


def test_tools_that_return_documents(reading):
    """A tool's result is a retrieval if it is documents, or the tool a datastore."""
    tool = {OPERATION: "execute_tool", "gen_ai.tool.call.arguments": '{"q": "Q"}'}
    result = json.dumps({"documents": [{"id": "c2", "text": "Text."}]})
    retrieval = reading(tool | {"gen_ai.tool.call.result": result}).retrieval
    assert (retrieval.stage, retrieval.query, retrieval.passages[0].id) == ("tool", "Q", "c2")
    assert reading(tool | {"gen_ai.tool.call.result": "sunny"}).retrieval is None
    store = reading(
        tool | {"gen_ai.tool.call.result": "sunny", "gen_ai.tool.type": "datastore"}
    ).retrieval
    assert [p.text for p in store.passages] == ["sunny"]


@pytest.mark.parametrize(
    "operation",
    ["invoke_agent", "invoke_workflow", "execute_task", "execute_event_loop_cycle", "embeddings"],
)
def test_spans_that_repeat_messages_are_no_calls(reading, operation):
    """An agent's or a step's echo of the messages is never a prompt."""
    found = reading({OPERATION: operation} | MESSAGES)
    assert found.call is None
    assert found.output == OUTPUT


def test_kinds_that_stand_beside_the_answer(reading):
    """Rerankers, embeddings, evaluators and guardrails are told by their operation."""
    for operation, kind in {
        "embeddings": "embedding",
        "evaluate": "evaluator",
        "guardrail": "guardrail",
        "rerank": "reranker",
    }.items():
        assert reading({OPERATION: operation}).kinds == {kind}
