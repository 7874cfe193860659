"""Finding JSON objects in a stream: one a line, over many lines, run together, among text."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.traces import objects
from bijotel.traces.objects import PLAIN_TEXT, read_objects

NOT_WHOLE = "a JSON object that is not whole"


def found_in(text: str | bytes):
    """Values with their lines, and what was skipped; an object with ``known`` is of a known form."""
    skipped: list[tuple[int, str]] = []
    stream = io.BytesIO(text if isinstance(text, bytes) else text.encode("utf-8"))
    values = read_objects(
        stream,
        lambda line, reason: skipped.append((line, reason)),
        lambda value: isinstance(value, dict) and "known" in value,
    )
    return [(found.line, found.value) for found in values], skipped


def test_one_a_line_with_blank_lines():
    """Lines are counted from 1, blank ones too."""
    assert found_in('{"a": 1}\n\n[{"b": 2}]\n') == ([(1, {"a": 1}), (3, [{"b": 2}])], [])


def test_the_octets_are_those_of_the_object():
    """What is kept of an object decodes to the very same object."""
    stream = io.BytesIO(b'  {"a": 1},\n{\n "b": 2\n}{"c": 3}\n')
    for found in read_objects(stream, pytest.fail, lambda _: False):
        assert json.loads(found.octets) == found.value


def test_objects_over_many_lines():
    """Printed objects are found whatever their indentation, and whatever their strings hold."""
    value = {"a": ['}{][\\"', {"b": "x\ny"}], "c": {}}
    for indent in (0, 1, 4):
        text = "\n".join([json.dumps(value, indent=indent)] * 2)
        lines = len(json.dumps(value, indent=indent).split("\n"))
        assert found_in(text) == ([(1, value), (1 + lines, value)], [])


def test_objects_run_together():
    """Several objects on a line, and the end of one where the next begins."""
    assert found_in('{"a": 1}{"b": 2} {"c": 3}\n') == (
        [(1, {"a": 1}), (1, {"b": 2}), (1, {"c": 3})],
        [],
    )
    assert found_in('{\n"a": 1}{"b":\n2}\n') == ([(1, {"a": 1}), (2, {"b": 2})], [])


def test_a_list_over_many_lines_is_read_member_by_member():
    """A document that is one long list needs no memory for all of it."""
    values = [{"a": 1}, {"b": [2]}]
    assert [value for _, value in found_in(json.dumps(values, indent=2))[0]] == values
    assert found_in('[\n{"a": 1},\n{"b": [2]}\n]\n') == ([(2, values[0]), (3, values[1])], [])


def test_other_text_is_told_by_its_line():
    """What is no JSON is reported, the objects around it are found."""
    assert found_in('hello\n{"a": 1}\n42\n{"b": 2} trailing\n') == (
        [(2, {"a": 1}), (4, {"b": 2})],
        [(1, PLAIN_TEXT), (3, PLAIN_TEXT), (4, PLAIN_TEXT)],
    )


@pytest.mark.parametrize("cut", ['{"known": "tex', '{"known": [1,', '{"known"', "{"])
def test_a_truncated_line_takes_no_other_with_it(cut):
    """A half-written line is reported with its number; those after it are found."""
    text = f'{{"known": 1}}\n{cut}\n{{"known": 2}}\n{{"known": 3}}\n'
    assert found_in(text) == (
        [(1, {"known": 1}), (3, {"known": 2}), (4, {"known": 3})],
        [(2, NOT_WHOLE)],
    )


def test_a_half_written_last_line():
    """A file that is still being written ends in the middle of an object."""
    assert found_in('{"known": 1}\n{"known": [') == ([(1, {"known": 1})], [(2, NOT_WHOLE)])


def test_brackets_that_do_not_fit():
    """What closes before it opens, or closes otherwise, is no object."""
    assert found_in('{"a": ]}\n{"known": 1}\n') == ([(2, {"known": 1})], [(1, NOT_WHOLE)])


def test_lone_surrogates_and_byte_order_marks():
    """A lone surrogate is kept as it is, a byte order mark is no text."""
    assert found_in(b'\xef\xbb\xbf{"a": "\\ud800"}\n') == ([(1, {"a": "\ud800"})], [])


def test_what_is_no_utf8_is_reported():
    """Octets that are no text are skipped by line."""
    assert found_in(b'{"a": "\xff"}\n{"b": 1}\n') == ([(2, {"b": 1})], [(1, NOT_WHOLE)])


def test_a_line_beyond_the_limit(monkeypatch):
    """A line too long to be held is reported; the count of lines goes on."""
    monkeypatch.setattr(objects, "MAX_OBJECT_BYTES", 20)
    long = json.dumps({"a": "x" * 50})
    assert found_in(f'{{"a": 1}}\n{long}\n{{"b": 2}}\n') == (
        [(1, {"a": 1}), (3, {"b": 2})],
        [(2, "longer than 20 bytes")],
    )
    over_lines = json.dumps({"a": ["x"] * 9}, indent=1)
    values, skipped = found_in(over_lines + '\n{"known": 2}\n')
    assert values == [(14, {"known": 2})]
    assert skipped[0] == (1, NOT_WHOLE)


def test_nesting_without_end_is_no_overflow():
    """A hundred thousand brackets are reported, not recursed into."""
    values, skipped = found_in("[" * 100_000 + "]" * 100_000 + '\n{"known": 1}\n')
    assert values == [(2, {"known": 1})]
    assert skipped == [(1, NOT_WHOLE)]


@given(
    st.lists(st.dictionaries(st.text(max_size=5), st.text() | st.integers(-9, 9), max_size=3)),
    st.data(),
)
def test_every_whole_object_is_found(values, data):
    """However objects are printed and joined, all are found, in order, and nothing is skipped."""
    texts = []
    for value in values:
        indent = data.draw(st.sampled_from([None, 0, 2]))
        ascii_only = data.draw(st.booleans()) or not str(value).isprintable()
        texts.append(json.dumps(value, indent=indent, ensure_ascii=ascii_only))
        texts.append(data.draw(st.sampled_from(["\n", "\n\n", " \n", ""])))
    found, skipped = found_in("".join(texts))
    assert [value for _, value in found] == values
    assert skipped == []


@given(st.binary())
def test_any_octets_give_values_or_reports(octets):
    """No octets raise, and every line number is one of the input."""
    found, skipped = found_in(octets)
    lines = octets.count(b"\n") + 1
    assert all(1 <= line <= lines for line, _ in [*found, *skipped])
