"""rag_context: which attributes record a call, and how much of it."""

from __future__ import annotations

import hashlib
import json
import time

import numpy as np
import pytest

from bijotel import semconv
from bijotel.rag import MAX_SOURCES, MAX_SOURCES_BYTES, RAGSource, rag_context

REFUND = "Refunds are paid within ten working days after the returned goods arrive in Ulm."
TEXT = "The burrs of the Kvarn grinder are wear parts and are not covered by the warranty."


def test_the_attributes_of_two_sources():
    """Names, types and values; the digest is that of the very text."""
    attributes = rag_context(
        [RAGSource("sha256:ab", 0, "", "qdrant", "e"), RAGSource("b", 1, "b.md", "other", "f", 0.5)],
        total_context_tokens=720,
    )  # fmt: skip
    sources = (
        '[{"chunk_index": 0, "document_id": "sha256:ab", "embedding_model": "e", "metadata": {},'
        ' "retrieved_at": "", "retriever": "qdrant", "similarity_score": null, "source_uri": ""},'
        ' {"chunk_index": 1, "document_id": "b", "embedding_model": "f", "metadata": {},'
        ' "retrieved_at": "", "retriever": "other", "similarity_score": 0.5, "source_uri": "b.md"}]'
    )
    assert attributes == {
        "bijotel.rag.source_count": 2,
        "bijotel.rag.sources": sources,
        "bijotel.rag.retriever_id": "qdrant",
        "bijotel.rag.embedding_model": "e",
        "bijotel.rag.total_context_tokens": 720,
        "bijotel.rag.sources_sha256": hashlib.sha256(sources.encode()).hexdigest(),
    }


def test_the_sources_are_written_as_in_the_known_body(data):
    """The text is json.dumps with sorted keys, as in the project's known answer."""
    body = json.loads(json.loads((data / "span-body.json").read_text())["body"])["attributes"]
    attributes = rag_context([RAGSource("sha256:ab", 0, retriever="qdrant", embedding_model="e")])
    assert attributes[semconv.RAG_SOURCES] == body[semconv.RAG_SOURCES]
    source = RAGSource("a", 0, metadata={"z": {"b": 1, "a": [True]}, "half": "\ud83e"})
    text = rag_context([source, source])[semconv.RAG_SOURCES]
    assert text == json.dumps([source.to_dict()] * 2, sort_keys=True)
    assert "\\ud83e" in text


def test_an_empty_retrieval_is_a_record():
    """Zero results are not the same as no retrieval."""
    assert rag_context(()) == {
        "bijotel.rag.source_count": 0,
        "bijotel.rag.sources": "[]",
        "bijotel.rag.retriever_id": "",
        "bijotel.rag.embedding_model": "",
        "bijotel.rag.sources_sha256": hashlib.sha256(b"[]").hexdigest(),
    }


def test_hits_are_never_dropped_or_sorted():
    """Equal passages of different documents, and null scores, keep their places."""
    given = [("a", None), ("b", 0.0), ("c", 0.7), ("a", None)]
    sources = [RAGSource(i, 0, similarity_score=s, content="same") for i, s in given]
    listed = json.loads(rag_context(sources)[semconv.RAG_SOURCES])
    assert [(s["document_id"], s["similarity_score"]) for s in listed] == given


def test_five_thousand_sources_are_bounded_and_fast():
    """The first ones are listed, the total is told, and the call takes less than 50 ms."""
    sources = [RAGSource(str(n), n, "s3://bucket/a.md") for n in range(4_999)]
    sources.insert(1, RAGSource("vector", 0, metadata={"vector": [0.1] * 3072}))
    begin = time.thread_time()
    attributes = rag_context(sources)
    took = time.thread_time() - begin
    listed = json.loads(attributes[semconv.RAG_SOURCES])
    assert [s["document_id"] for s in listed[:3]] == ["0", "vector", "1"]
    assert listed[1]["metadata"] == {"vector": {"len": 3072}}
    assert len(listed) == MAX_SOURCES
    assert attributes[semconv.RAG_SOURCE_COUNT] == attributes[semconv.RAG_SOURCES_TOTAL] == 5_000
    assert took < 0.05


def test_large_sources_are_bounded_in_bytes():
    """As many whole sources as there is room for; even none."""
    large = RAGSource("a", 0, metadata={str(n): "\ue000" * 1000 for n in range(10)})
    attributes = rag_context([large] * 10, prompt=TEXT)
    assert len(attributes[semconv.RAG_SOURCES]) <= MAX_SOURCES_BYTES
    listed = json.loads(attributes[semconv.RAG_SOURCES])
    assert 0 < len(listed) < 10
    assert attributes[semconv.RAG_SOURCES_TOTAL] == attributes[semconv.RAG_SOURCE_COUNT] == 10
    assert len(attributes[semconv.RAG_IN_CONTEXT]) == len(listed)
    digest = hashlib.sha256(attributes[semconv.RAG_SOURCES].encode()).hexdigest()
    assert attributes[semconv.RAG_SOURCES_SHA256] == digest


def test_a_list_that_just_fits_is_not_marked():
    """No total when nothing was left out."""
    attributes = rag_context([RAGSource("a", n) for n in range(MAX_SOURCES)])
    assert semconv.RAG_SOURCES_TOTAL not in attributes
    assert attributes[semconv.RAG_SOURCE_COUNT] == MAX_SOURCES


def test_a_prompt_tells_which_passages_reached_it():
    """One status a source, and the number of those that are there."""
    sources = [
        RAGSource("a", 0, content=TEXT),
        RAGSource("b", 0, content="A passage that nobody put into the prompt at all today."),
        RAGSource("c", 0),
        RAGSource("d", 0, content=f"{REFUND} Nobody put this second sentence there."),
    ]
    messages = [{"role": "user", "content": f"Context: {TEXT} {REFUND} Question?"}]
    for prompt in (f"Context: {TEXT} {REFUND}", messages):
        attributes = rag_context(sources, prompt=prompt)
        assert attributes[semconv.RAG_IN_CONTEXT] == ["included", "absent", "unknown", "partial"]
        assert attributes[semconv.RAG_IN_CONTEXT_COUNT] == 2
        assert {type(each) for each in attributes[semconv.RAG_IN_CONTEXT]} == {str}


def test_without_a_prompt_nothing_is_said_about_it():
    """Absent attributes, not empty ones; an empty prompt is one."""
    source = RAGSource("a", 0, content=TEXT)
    assert semconv.RAG_IN_CONTEXT not in rag_context([source])
    assert rag_context([source], prompt="")[semconv.RAG_IN_CONTEXT] == ["unknown"]


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ("abc", "sources: expected a sequence of RAGSource, got str"),
        ({"a": 1}, "sources: expected a sequence of RAGSource, got dict"),
        (None, "sources: expected a sequence of RAGSource, got NoneType"),
        (RAGSource("a", 0), r"sources: expected a sequence of RAGSource, got .*\.RAGSource"),
        (
            [RAGSource("a", 0), {"id": 1}],
            r"sources\[1\]: expected RAGSource, got dict; sources_from\(\) makes sources",
        ),
    ],
)
def test_wrong_sources_are_refused(sources, message):
    """The message names the place and the type."""
    with pytest.raises(TypeError, match=message):
        rag_context(sources)


def test_token_counts_are_whole_numbers():
    """A numpy int is made plain; anything else is refused by name."""
    attributes = rag_context([], total_context_tokens=np.int64(7))
    assert type(attributes[semconv.RAG_TOTAL_CONTEXT_TOKENS]) is int
    with pytest.raises(TypeError, match="total_context_tokens: expected a whole number, got str"):
        rag_context([], total_context_tokens="7")
