"""Lists of documents in the shapes of frameworks -> passages."""

from __future__ import annotations

import json

import pytest

from bijotel.dialects.documents import holds_documents, number, passages_of

TEXT = "Burrs are wear parts."

SHAPES = {
    "langchain": {"documents": [{"page_content": TEXT, "metadata": {"chunk_id": "c2"}}]},
    "langchain constructor": [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["a", "Document"],
            "kwargs": {"page_content": TEXT, "id": "c2"},
        }
    ],
    "llama-index": [json.dumps({"node": {"id_": "c2", "text": TEXT}, "score": 0.5})],
    "llama-index, newer": [{"node": {"id_": "c2", "text_resource": {"text": TEXT}}, "score": 0.5}],
    "haystack": {"documents": [{"id": "c2", "content": TEXT, "score": 0.5, "source": "w.md"}]},
    "flattened": [{"document.id": "c2", "document.content": TEXT, "document.score": 0.5}],
    "tool blocks": [{"text": json.dumps([{"id": "c2", "text": TEXT}])}],
    "tool block, typed": {
        "content": [{"type": "text", "text": json.dumps({"id": "c2", "text": TEXT})}]
    },
    "bedrock": [{"content": {"text": TEXT}, "score": 0.5, "id": "c2"}],
    "json in json": json.dumps(json.dumps([{"id": "c2", "text": TEXT}])),
    "metadata as text": [{"content": TEXT, "metadata": json.dumps({"doc_id": "c2"})}],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_text_and_id_are_found_in_every_shape(shape):
    """Whatever wraps a document, its text and its id are found."""
    (passage,) = passages_of(SHAPES[shape])
    assert (passage.text, passage.id, passage.rank, passage.reason) == (TEXT, "c2", 1, "")
    assert holds_documents(SHAPES[shape])


def test_ranks_scores_and_distances():
    """Ranks count from 1; a distance is told from a score, null is none, 0.0 is one."""
    items = [
        {"id": 7, "text": "a", "score": 0.0},
        {"id": True, "text": "b", "distance": "0.25"},
        {"id": "z", "text": "c", "score": None, "metadata": {"relevance_score": 3}},
        {"text": "d", "score": "nan"},
        "plain text",
    ]
    found = passages_of(items)
    assert [p.rank for p in found] == [1, 2, 3, 4, 5]
    assert [(p.score, p.score_kind) for p in found] == [
        (0.0, "score"),
        (0.25, "distance"),
        (3.0, "score"),
        (None, ""),
        (None, ""),
    ]
    assert [p.id for p in found] == ["7", "", "z", "", ""]
    assert [p.text for p in found] == ["a", "b", "c", "d", "plain text"]


def test_what_was_hidden_is_no_text():
    """A mark of redaction is never matched or merged by."""
    (passage,) = passages_of([{"id": "c2", "content": "__REDACTED__"}])
    assert (passage.text, passage.reason, passage.id) == (None, "redacted", "c2")
    (passage,) = passages_of([{"id": "c2", "score": 0.5}])
    assert (passage.text, passage.reason) == (None, "no text recorded")


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "just text",
        [],
        {},
        5,
        [TEXT],
        [{"text": TEXT}],
        [{"id": "c2"}],
        [{"id": "c2", "text": TEXT}, "and text"],
        [{"role": "user", "content": TEXT, "id": "m"}],
        [{"type": "ai", "content": TEXT, "id": "m"}],
        [{"id": "c2", "text": 5}],
        {"answer": TEXT},
        '[{"id": "c2", "text": "cut',
    ],
)
def test_what_is_no_list_of_documents(value):
    """A value that may be anything is a retrieval only if all of it is documents."""
    assert not holds_documents(value)


@pytest.mark.parametrize("value", [True, None, [], "x", "inf", float("nan"), 10**400])
def test_what_is_no_finite_number(value):
    """A score that cannot be compared is none."""
    assert number(value) is None
