"""Requests and answers of SDKs and frameworks -> messages."""

from __future__ import annotations

import json

import pytest

from bijotel.dialects.messages import said, spoken

USER = "How long is the warranty?"
SYSTEM = "Answer from the context."


def flat(value, role="user"):
    """Roles and texts of the messages of a value."""
    return [(message.role, message.content) for message in spoken(value, role).messages]


LANGCHAIN = {
    "messages": [
        [
            {
                "lc": 1,
                "type": "constructor",
                "id": ["x", "SystemMessage"],
                "kwargs": {"content": SYSTEM},
            },
            {
                "lc": 1,
                "type": "constructor",
                "id": ["x", "HumanMessage"],
                "kwargs": {"content": USER},
            },
        ]
    ]
}

REQUESTS = {
    "chat": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}],
    "request": {
        "model": "m",
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "human", "content": USER}],
    },
    "json in json": json.dumps(
        json.dumps([{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}])
    ),
    "langchain": LANGCHAIN,
    "langchain dumped": [
        {"type": "system", "content": SYSTEM},
        {"type": "human", "data": {"content": USER}},
    ],
    "anthropic": {"system": SYSTEM, "messages": [{"role": "user", "content": USER}]},
    "responses": {"instructions": SYSTEM, "input": USER},
    "decorated function": {
        "args": [[{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]],
        "kwargs": {},
    },
    "keyword arguments": {
        "args": [],
        "kwargs": {
            "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
        },
    },
}


@pytest.mark.parametrize("form", REQUESTS)
def test_requests(form):
    """The system's and the user's words are found in order in every form of a request."""
    assert flat(REQUESTS[form]) == [("system", SYSTEM), ("user", USER)]


def test_parts_stay_as_they_are():
    """Parts are for context matching to read; the role is all that is added."""
    parts = [{"type": "text", "content": SYSTEM}]
    assert flat(parts, "system") == [("system", parts)]
    gemini = {
        "config": {"system_instruction": SYSTEM},
        "contents": [{"role": "user", "parts": [{"text": USER}]}],
    }
    assert flat(gemini) == [("system", SYSTEM), ("user", [{"text": USER}])]


def test_plain_texts():
    """A text is one message, a list of texts one each; an unknown object gives all its texts."""
    assert flat(USER) == [("user", USER)]
    assert flat({"prompts": [SYSTEM, USER]}, "") == [("", SYSTEM), ("", USER)]
    assert flat({"question": USER, "n": 3, "more": {"context": SYSTEM}}) == [
        ("user", [USER, SYSTEM])
    ]


def test_tool_results():
    """Results keep the form that context matching knows; Haystack's is renamed."""
    haystack = [{"role": "tool", "content": [{"tool_call_result": {"result": "R", "origin": {}}}]}]
    assert flat(haystack) == [("tool", [{"type": "tool_result", "content": "R"}])]
    item = {"type": "function_call_output", "output": "R"}
    assert flat([item]) == [("tool", [item])]
    served = {"type": "server_tool_call_response", "server_tool_call_response": {"text": "R"}}
    assert flat([{"role": "assistant", "parts": [served]}]) == [
        ("assistant", [served]),
        ("tool", [served]),
    ]


TOOL_CALLS = {
    "openai": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"function": {"arguments": '{"q": "x"}'}}],
    },
    "langchain": {"type": "ai", "content": "", "tool_calls": [{"name": "s", "args": {"q": "x"}}]},
    "anthropic": {"role": "assistant", "content": [{"type": "tool_use", "input": {"q": "x"}}]},
    "gen_ai": {"role": "assistant", "parts": [{"type": "tool_call", "arguments": {"q": "x"}}]},
    "strands": {"role": "assistant", "content": [{"toolUse": {"input": {"q": "x"}}}]},
    "gemini": {"role": "model", "parts": [{"function_call": {"args": {"q": "x"}}}]},
    "haystack": {"role": "assistant", "content": [{"tool_call": {"arguments": {"q": "x"}}}]},
    "older openai": {
        "role": "assistant",
        "content": None,
        "function_call": {"arguments": '{"q":"x"}'},
    },
    "responses": {"type": "function_call", "arguments": '{"q":"x"}'},
}


@pytest.mark.parametrize("form", TOOL_CALLS)
def test_tool_calls(form):
    """The arguments of a tool call are the same text whatever form they were recorded in."""
    (message,) = spoken([TOOL_CALLS[form]]).messages
    assert (message.role, message.tool_calls) == ("assistant", ('{"q":"x"}',))
    assert said([TOOL_CALLS[form]]) == ((), ('{"q":"x"}',))


ANSWERS = {
    "text": "yes",
    "message": {"role": "assistant", "content": "yes"},
    "openai": {
        "id": "c",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}}],
    },
    "responses": {
        "output": [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "yes"}],
            }
        ]
    },
    "langchain": {
        "generations": [
            [
                {
                    "text": "yes",
                    "type": "ChatGeneration",
                    "message": {
                        "lc": 1,
                        "type": "constructor",
                        "id": ["AIMessage"],
                        "kwargs": {"content": "yes"},
                    },
                }
            ]
        ]
    },
    "haystack": {"replies": [{"role": "assistant", "meta": {}, "content": [{"text": "yes"}]}]},
    "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": "yes"}]}}]},
    "adk": {"content": {"parts": [{"text": "yes"}], "role": "model"}, "usage_metadata": {}},
    "llama-index": {"text": "yes", "additional_kwargs": {}, "raw": None},
    "gen_ai": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "yes"}]}]),
    "traceloop": {"outputs": "yes", "kwargs": {}},
}


@pytest.mark.parametrize("form", ANSWERS)
def test_answers(form):
    """The text of an answer is found once in every form."""
    assert said(ANSWERS[form]) == (("yes",), ())


def test_several_choices():
    """Each choice is an answer of its own."""
    choices = [{"message": {"role": "assistant", "content": word}} for word in ("one", "two")]
    assert said({"choices": choices}) == (("one", "two"), ())


@pytest.mark.parametrize("nothing", [None, "", "{}", "[]", {}, []])
def test_nothing_was_recorded(nothing):
    """Empty values are no messages and no reason."""
    assert spoken(nothing) == ((), "")


@pytest.mark.parametrize(
    ("value", "kept", "reason"),
    [
        ("__REDACTED__", 0, "redacted"),
        ({"$digest": {"bytes": 5, "hmac": "00"}}, 0, "redacted"),
        (
            [{"role": "user", "content": "__REDACTED__"}, {"role": "user", "content": USER}],
            1,
            "redacted",
        ),
        ([{"role": "user", "content": [{"type": "text", "text": "[REDACTED]"}]}], 1, "redacted"),
        ('[{"role": "user", "content": "cut he', 1, "cut: the JSON does not parse"),
        (
            [{"role": "user", "parts": [{"type": "uri", "uri": "s3://x"}]}],
            1,
            "a part of type uri cannot be read",
        ),
        (
            [{"role": "user", "content": [{"type": "document", "source": {"type": "base64"}}]}],
            1,
            "a part of type document cannot be read",
        ),
        (
            [{"role": "user", "parts": [{"inline_data": {}}]}],
            1,
            "a part of type file cannot be read",
        ),
        (
            [{"role": "user", "parts": [{"type": "compaction", "content": "s"}]}],
            1,
            "earlier turns are there in summary only",
        ),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "document", "source": {"type": "text", "data": "t"}}],
                }
            ],
            1,
            "",
        ),
        ("[1] is no JSON", 1, ""),
    ],
)
def test_why_a_prompt_may_not_be_whole(value, kept, reason):
    """What was hidden, cut or cannot be read is said; the rest is kept."""
    found = spoken(value, "user")
    assert (len(found.messages), found.reason) == (kept, reason)
