"""OpenInference, and traceAI, which borrows its form."""

from __future__ import annotations

import json

import pytest

from bijotel.dialects.model import Capture, Usage

KIND = "openinference.span.kind"


def texts(call):
    return [(message.role, message.content) for message in call.messages]


def test_documents_in_numbered_keys(reading):
    """Numbers are sorted as numbers; id and text come from where they are."""
    attributes = {KIND: "RETRIEVER", "input.value": "Q"}
    for n in (10, 2, 0):
        attributes[f"retrieval.documents.{n}.document.content"] = f"Text {n}."
        attributes[f"retrieval.documents.{n}.document.metadata"] = json.dumps({"chunk_id": f"c{n}"})
    retrieval = reading(attributes).retrieval
    assert retrieval.query == "Q"
    assert [(p.text, p.id, p.rank) for p in retrieval.passages] == [
        ("Text 0.", "c0", 1),
        ("Text 2.", "c2", 2),
        ("Text 10.", "c10", 3),
    ]


def test_documents_only_in_the_output(reading):
    """Where the numbered keys are missing, the output is read if it is documents."""
    output = json.dumps({"documents": [{"page_content": "Text.", "id": "c2"}]})
    assert reading({KIND: "RETRIEVER", "output.value": output}).retrieval.passages[0].id == "c2"
    reprs = json.dumps(["<NodeWithScore(node=TextNode(id_=c1), score=0.5)>"])
    retrieval = reading({KIND: "RETRIEVER", "output.value": reprs}).retrieval
    assert (retrieval.passages, retrieval.incomplete) == ((), "no documents recorded")


def test_a_query_in_json_and_a_hidden_one(reading):
    """The query is the only text of the input; a mark of redaction is none."""
    bundle = json.dumps({"query_bundle": {"query_str": "Q", "embedding": None}})
    assert reading({KIND: "RETRIEVER", "input.value": bundle}).retrieval.query == "Q"
    assert reading({KIND: "RETRIEVER", "input.value": "__REDACTED__"}).retrieval.query is None


def test_a_reranker_has_input_and_output(reading):
    """Both lists are kept apart, for a rank is gained between them."""
    attributes = {KIND: "RERANKER", "reranker.query": "Q"}
    for side in ("input", "output"):
        attributes[f"reranker.{side}_documents.0.document.content"] = side
    found = reading(attributes)
    assert (found.retrieval.stage, found.retrieval.query) == ("reranker", "Q")
    assert [p.text for p in found.retrieval.passages] == ["output"]
    assert [p.text for p in found.retrieval.inputs] == ["input"]


def test_messages_with_parts_and_tool_calls(reading):
    """A message's parts stay parts; the arguments of its tool calls are kept."""
    call = reading({
        KIND: "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": "T",
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": '{"q": "x"}',
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.content": "R",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "A",
        "llm.model_name": "m", "llm.provider": "p", "llm.token_count.prompt": 3,
        "llm.token_count.completion": 2, "llm.token_count.prompt_details.cache_read": 1,
    }).call  # fmt: skip
    assert texts(call) == [
        ("user", [{"type": "text", "text": "T"}]),
        ("assistant", None),
        ("tool", "R"),
    ]
    assert call.messages[1].tool_calls == ('{"q":"x"}',)
    assert (call.outputs, call.model, call.provider) == (("A",), "m", "p")
    assert call.usage == Usage(3, 2, 1)


@pytest.mark.parametrize(
    "attributes",
    [
        {"llm.prompts": ["P"]},
        {"llm.prompts": '["P"]'},
        {"llm.prompts.0.prompt.text": "P"},
        {"input.value": "P", "input.mime_type": "text/plain"},
        {"input.value": '{"prompt": "P"}'},
    ],
)
def test_completion_prompts(reading, attributes):
    """A prompt without messages is one text, wherever it stands."""
    call = reading({KIND: "LLM", "output.value": "A"} | attributes).call
    assert texts(call) == [("user", "P")]
    assert (call.outputs, call.capture) == (("A",), Capture())


def test_a_templates_input_is_no_prompt(reading):
    """llama-index's outer span names the template's parts, not what the model saw."""
    call = reading(
        {
            KIND: "LLM",
            "input.value": '{"prompt": "Template(x)"}',
            "llm.prompt_template.template": "{x}",
        }
    ).call
    assert call.capture == Capture("none", "no prompt recorded")


@pytest.mark.parametrize(
    ("attributes", "state"),
    [
        ({"input.value": "__REDACTED__"}, "none"),
        ({"llm.input_messages.0.message.content": "__REDACTED__"}, "none"),
        (
            {
                "llm.input_messages.0.message.content": "__REDACTED__",
                "llm.input_messages.1.message.content": "seen",
            },
            "incomplete",
        ),
        ({"llm.prompts": ["__REDACTED__"]}, "none"),
        (
            {"llm.input_messages.0.message.contents.0.message_content.text": "__REDACTED__"},
            "incomplete",
        ),
    ],
)
def test_hidden_prompts(reading, attributes, state):
    """What was hidden is said to be hidden."""
    assert reading({KIND: "LLM"} | attributes).call.capture == Capture(state, "redacted")


def test_hidden_messages_beside_the_request(reading):
    """Where only the messages are hidden, the whole request is still there."""
    call = reading(
        {
            KIND: "LLM",
            "llm.input_messages.0.message.content": "__REDACTED__",
            "input.value": '{"messages": [{"role": "user", "content": "P"}]}',
        }
    ).call
    assert texts(call) == [("user", "P")]


def test_earlier_turns_at_the_provider(reading):
    """A response that follows another holds more than the trace."""
    parameters = json.dumps({"model": "m", "previous_response_id": "resp_1"})
    call = reading(
        {KIND: "LLM", "llm.prompts": ["P"], "llm.invocation_parameters": parameters}
    ).call
    assert call.capture == Capture("incomplete", "the provider holds the earlier turns")
    parameters = json.dumps({"model": "m", "previous_response_id": None})
    assert (
        reading(
            {KIND: "LLM", "llm.prompts": ["P"], "llm.invocation_parameters": parameters}
        ).call.capture.state
        == "whole"
    )


def test_chains_are_neither_prompt_nor_retrieval(reading):
    """A CHAIN repeats passages and prompts, in both conventions."""
    output = json.dumps({"documents": [{"page_content": "Text.", "id": "c2"}]})
    found = reading(
        {
            KIND: "CHAIN",
            "input.value": "Q",
            "output.value": output,
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": "[]",
        }
    )
    assert (found.call, found.retrieval, found.output) == (None, None, output)


def test_a_judges_own_prompt_is_a_call_beside_the_answer(reading):
    """An evaluator that holds messages is a call; its kind keeps it from answering."""
    found = reading({KIND: "EVALUATOR", "llm.input_messages.0.message.content": "Is it so?"})
    assert (found.kinds, texts(found.call)) == ({"evaluator"}, [("", "Is it so?")])


def test_tools_that_return_documents(reading):
    """A TOOL span's output is a retrieval if it is documents."""
    output = json.dumps([{"id": "c2", "text": "Text."}])
    retrieval = reading(
        {KIND: "TOOL", "output.value": output, "input.value": '{"q": "Q"}'}
    ).retrieval
    assert (retrieval.stage, retrieval.query) == ("tool", "Q")
    assert reading({KIND: "TOOL", "output.value": "sunny"}).retrieval is None


@pytest.mark.parametrize("key", ["gen_ai.span.kind", "fi.span.kind"])
def test_traceai(reading, key):
    """The keys are the same, the messages have GenAI names."""
    call = reading(
        {
            key: "LLM",
            "gen_ai.input.messages.0.message.role": "user",
            "gen_ai.input.messages.0.message.content": "P",
            "gen_ai.output.messages.0.message.content": "A",
        }
    ).call
    assert (texts(call), call.outputs) == ([("user", "P")], ("A",))
    found = reading({key: "RETRIEVER", "retrieval.documents.0.document.content": "Text."})
    assert found.retrieval.passages[0].text == "Text."
    assert reading({key: "UNKNOWN", "output.value": "x"}).kinds == {"other"}
