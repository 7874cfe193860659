"""A search for a document finds the spans that retrieved it, in the words of every dialect."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.model import Event
from bijotel.search import Search
from bijotel.spans.decode import decode_record
from bijotel.spans.encode import encode_record
from tests.dialects.conftest import make_span

TEXT = "The warranty lasts three years."
RETRIEVER = {"openinference.span.kind": "RETRIEVER"}


def finds(search: Search, span) -> bool:
    """Look for a span as the command does: at the octets first, then at the record."""
    body = encode_record(span).body
    return search.may_fit(body) and search.fits(decode_record(body), set())


def reranked(side: str) -> dict[str, str]:
    return {
        "openinference.span.kind": "RERANKER",
        f"reranker.{side}_documents.0.document.id": "docX",
        f"reranker.{side}_documents.0.document.content": TEXT,
    }


@pytest.mark.parametrize(
    "attributes",
    [
        RETRIEVER | {"retrieval.documents.0.document.id": "docX"},
        RETRIEVER | {"output.value": json.dumps([{"id": "docX", "page_content": TEXT}])},
        reranked("input"),
        reranked("output"),
        {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.retrieval.documents": json.dumps([{"id": "docX", "content": TEXT}]),
        },
        {
            "traceloop.span.kind": "task",
            "traceloop.entity.output": json.dumps([{"id": "docX", "page_content": TEXT}]),
        },
    ],
)
def test_a_retrieval_of_another_dialect_is_found(attributes):
    """By the ids of its passages, whole; an address is known of recorded sources alone."""
    span = make_span(attributes)
    assert finds(Search(document="docX"), span)
    assert not finds(Search(document="doc"), span)
    assert not finds(Search(document="docX", source_uri="docX"), span)
    assert not finds(Search(document="docX", model="other"), span)


def test_a_retrieval_in_events_is_found():
    """Results of a vector store are events, which only the whole record has."""
    hit = {"db.query.result.id": "docX", "db.query.result.document": TEXT}
    span = make_span({"db.system": "chroma"}, events=(Event("db.query.result", attributes=hit),))
    assert finds(Search(document="docX"), span)


def test_passages_without_an_id_are_not_found():
    """An empty id is none."""
    span = make_span(RETRIEVER | {"retrieval.documents.0.document.content": TEXT})
    assert not finds(Search(document=""), span)


@given(st.one_of(st.text(min_size=1), st.integers(0, 2**64 - 1)), st.booleans(), st.booleans())
def test_ruling_out_never_loses_a_passage(identifier, is_ascii, is_json):
    """However an exporter spelled the list, what a full look finds is worth parsing."""
    listed = [{"id": identifier, "page_content": TEXT}]
    span = make_span(
        RETRIEVER | {"output.value": json.dumps(listed, ensure_ascii=is_ascii)}
        if is_json
        else RETRIEVER | {"retrieval.documents.0.document.id": identifier}
    )
    assert finds(Search(document=str(identifier)), span)
