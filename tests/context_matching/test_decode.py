"""From a recorded prompt to the text that is searched."""

from __future__ import annotations

import json

import pytest

from bijotel.context_matching.decode import decode_prompt
from bijotel.context_matching.literal import read_literal

USER = {"role": "user", "content": "Hello"}
SPOKEN = [{"role": "assistant", "content": "I said so."}, USER]


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        (None, ""),
        ("plain [text] with {braces}", "plain [text] with {braces}"),
        (["one", "two"], "one\ntwo"),
        ([], ""),
        (USER, "Hello"),
        (SPOKEN, "Hello"),
        ([{"role": "MODEL", "parts": [{"text": "no"}]}, {"role": "user", "parts": ["yes"]}], "yes"),
        ([{"type": "ai", "content": "no"}, {"type": "human", "content": "yes"}], "yes"),
        ([{"role": "user", "type": "ai", "content": "yes"}], "yes"),
        ([{"role": "user", "content": None}, {"role": "user", "content": 7}], ""),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"arguments": "no"}}]}, USER],
            "Hello",
        ),
    ],
)
def test_messages(prompt: object, text: str):
    """Text parts of all but the model's own messages, in order."""
    assert decode_prompt(prompt) == text


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"type": "text", "text": "yes"}, "yes"),
        ({"type": "text", "content": "yes"}, "yes"),
        ({"type": "input_text", "text": "yes"}, "yes"),
        ({"text": "yes"}, "yes"),
        ({"text": "yes", "thinking": "no"}, "yes"),
        ({"type": "thinking", "thinking": "no", "text": "no"}, ""),
        ({"type": "reasoning", "content": "no"}, ""),
        ({"type": "tool_use", "input": {"text": "no"}}, ""),
        ({"type": "tool_call", "arguments": {"text": "no"}}, ""),
        ({"type": "image_url", "image_url": {"url": "data:no"}}, ""),
        ({"type": "image", "source": {"type": "base64", "data": "no"}}, ""),
        ({"type": "input_audio", "input_audio": {"data": "no"}}, ""),
        ({"type": "blob", "content": "no"}, ""),
        ({"type": "uri", "uri": "no"}, ""),
        ({"type": "document", "source": {"type": "text", "data": "yes"}}, "yes"),
        ({"type": "document", "title": "T", "source": {"type": "base64", "data": "no"}}, "T"),
        ({"type": "document", "source": {"type": "url", "url": "no"}}, ""),
        (
            {"type": "document", "source": {"type": "content", "content": [{"text": "yes"}]}},
            "yes",
        ),
        (
            {"type": "search_result", "source": "no", "title": "T", "content": [{"text": "yes"}]},
            "T\nyes",
        ),
        ({"type": "tool_result", "content": "yes"}, "yes"),
        ({"type": "tool_result", "content": [{"type": "text", "text": "yes"}]}, "yes"),
        ({"type": "tool_result", "content": [{"type": "image", "source": "no"}]}, ""),
        ({"type": "tool_call_response", "id": "no", "response": "yes"}, "yes"),
        ({"type": "tool_call_response", "result": {"a": "yes", "b": [1, "and"]}}, "yes\nand"),
        ({"type": "tool_call_response", "response": '{"a": {"b": "yes"}, "c": null}'}, "yes"),
        ({"type": "function_call_output", "output": "yes"}, "yes"),
        (
            {"type": "tool_result", "content": [{"type": "file", "name": "n", "text": "yes"}]},
            "file\nn\nyes",
        ),
        ({"toolResult": {"content": [{"text": '{"hits": ["yes"]}'}]}}, "yes"),
        ({"function_response": {"response": {"hits": ["yes"]}}}, "yes"),
        ({"function_response": {"response": {"role": "ai", "name": "yes"}}}, "ai\nyes"),
    ],
)
def test_parts(part: dict, text: str):
    """Text, tool results and documents count; thoughts, calls, pictures and addresses do not."""
    assert decode_prompt([{"role": "user", "content": [part]}]) == text


def test_a_tool_message_that_is_json_gives_its_string_values():
    """An object or list that a tool gave back is read through, the same in a user's words is not."""
    dumped = json.dumps({"hits": [{"id": "c1", "text": "one\ntwo", "score": 0.5}]})
    assert decode_prompt([{"role": "tool", "content": dumped}]) == "c1\none\ntwo"
    assert decode_prompt([{"role": "user", "content": dumped}]) == dumped


@pytest.mark.parametrize("levels", range(1, 6))
def test_encoded_again_and_again(levels: int):
    """JSON in JSON is decoded on every level, as a whole and as the text of a part."""
    as_a_whole: object = SPOKEN
    as_a_part: object = [{"role": "user", "content": "é\n"}]
    for _ in range(levels):
        as_a_whole = json.dumps(as_a_whole)
        as_a_part = [{"role": "user", "content": [{"type": "text", "text": json.dumps(as_a_part)}]}]
    assert decode_prompt(as_a_whole) == "Hello"
    assert decode_prompt(as_a_part) == "é\n"


@pytest.mark.parametrize(
    "text",
    [
        '{"club": "Ansel", "note": "Dues in May."}',
        '[{"club": "Ansel"}, {"club": "Brink"}]',
        '[{"role": "captain", "name": "Ann"}]',
        "[1, 2, 3]",
        '"just a quoted sentence"',
        "[HumanMessage(content='Hello')]",
        "['unfinished",
        '[{"role": "user", "content": "unfinished',
        "[" * 100_000,
        '["a" "b"]',
        "[maybe]",
        "[;]",
        '[{"type": "note", "text": "a"}]',
        '[[[["a"]]]]',
        "{'a'}",
        "(" * 70 + "'deep'" + ")" * 70,
    ],
)
def test_other_text_is_plain(text: str):
    """What is no message list stays as it is."""
    assert decode_prompt(text) == text


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ('[{"role": "user", "content": "a\\nb', "a\nb"),
        ('[{"role": "user", "content": "caf\\u00e', "caf"),
        ('[{"role": "user", "content": "a\\\\', "a\\"),
        ('[{"role": "user", "content": "a\\', "a"),
        ('[{"role": "user", "content": "a"}, {"role": "us', "a"),
        ('[{"role": "user", "content": "a"}, {"ro', "a"),
        ('[{"role": "user", "content": "a"}, ', "a"),
        ('[{"role": "assistant", "content": "no"}, {"role": "user", "content": "a"', "a"),
        ("[{'role': 'user', 'content': 'It\\'s \\xe9 \\U0001f600", "It's é 😀"),
        ('["one", "tw', "one\ntw"),
        ('"[{\\"role\\": \\"user\\", \\"content\\": \\"one\\\\ntw', "one\ntw"),
        ('[{"title": "Notes", "body": "a', '[{"title": "Notes", "body": "a'),
        ("[The end of it", "[The end of it"),
    ],
)
def test_cut_short(text: str, decoded: str):
    """With the end missing the text is decoded as far as it goes; half an escape is dropped."""
    assert decode_prompt(text, truncated=True) == decoded


def test_a_python_literal():
    """What ``repr`` writes is read without evaluating anything."""
    value = [{"a": ("b", None, True, -1.5e3), "c": 'it\'s "so"\n\\', 7: []}, "\ud83d"]
    assert read_literal(repr(value)) == [
        {"a": ["b", None, None, None], "c": 'it\'s "so"\n\\', "None": []},
        "\ud83d",
    ]
    assert read_literal("__import__('os')") is None
    assert read_literal("['\\U00110000']") == ["\\U00110000"]


def test_very_deep_structures_end_somewhere():
    """Nesting beyond the limit gives no text and no error."""
    deep: object = "text"
    for _ in range(500):
        deep = [deep]
    assert decode_prompt(deep) == ""
