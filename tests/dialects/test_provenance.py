"""bijotel's own stamps as retrievals."""

from __future__ import annotations

import json

import pytest

from bijotel.dialects.provenance import passage_id
from bijotel.rag.context import rag_context
from bijotel.rag.source import RAGSource

SOURCES = [RAGSource("doc", 0, similarity_score=0.5), RAGSource("doc", 1)]


def test_what_rag_context_wrote_is_read(reading):
    """Ids are document and chunk, scores are kept, and no text is claimed."""
    stamp = reading(rag_context(SOURCES)).stamp
    assert [(p.id, p.score, p.text, p.status) for p in stamp.passages] == [
        ("doc#0", 0.5, None, ""),
        ("doc#1", None, None, ""),
    ]
    assert (stamp.stage, stamp.incomplete, stamp.ended_unix_nano) == ("provenance", "", 10)


def test_statuses_are_read_where_they_are_given(reading):
    """A list of another length, or other words, say nothing."""
    stamped = {"bijotel.rag.in_context": ["included", "absent"], **rag_context(SOURCES)}
    assert [p.status for p in reading(stamped).stamp.passages] == ["included", "absent"]
    assert [
        p.status for p in reading(stamped | {"bijotel.rag.in_context": ["included"]}).stamp.passages
    ] == ["", ""]
    assert [
        p.status for p in reading(stamped | {"bijotel.rag.in_context": ["yes", 5]}).stamp.passages
    ] == ["", ""]


def test_attributes_outweigh_what_was_inherited(reading):
    """Each attribute by itself: what the span says of its own counts."""
    inherited = rag_context(SOURCES)
    own = rag_context(SOURCES[:1])
    assert len(reading({}, inherited=inherited).stamp.passages) == 2
    both = reading(own, inherited=inherited | {"bijotel.rag.in_context": ["partial"]})
    assert [(p.id, p.status) for p in both.stamp.passages] == [("doc#0", "partial")]


@pytest.mark.parametrize(
    "sources",
    ['[{"document_id": "d', "{}", 5, json.dumps([5, {"document_id": "d", "chunk_index": 3}])],
)
def test_sources_of_another_form(reading, sources):
    """What was cut is said to be cut; a source that is none has an empty name."""
    stamp = reading({"bijotel.rag.sources": sources}).stamp
    if sources == "[5, {" or str(sources).startswith("[5"):
        assert [p.id for p in stamp.passages] == ["#", "d#3"]
    else:
        assert (stamp.passages, stamp.incomplete) == ((), "cut: not all sources are listed")


def test_a_list_shorter_than_its_count(reading):
    """When only the first of many sources are listed, the list says that it is not whole."""
    stamp = reading(rag_context(SOURCES) | {"bijotel.rag.sources_total": 9}).stamp
    assert (len(stamp.passages), stamp.incomplete) == (2, "cut: not all sources are listed")


def test_a_stamp_stands_beside_what_the_span_is(reading):
    """A stamped call is a call and a stamp."""
    found = reading(
        {"gen_ai.operation.name": "chat", "gen_ai.input.messages": "[]"} | rag_context(SOURCES)
    )
    assert found.call is not None
    assert len(found.stamp.passages) == 2
    assert found.retrieval is None


def test_who_found_the_statuses_is_kept(reading):
    """Inherited ones were matched when the call was sealed; the span's own are the application's."""
    sources, given = rag_context(SOURCES), {"bijotel.rag.in_context": ["absent", "absent"]}
    assert reading(sources, inherited=given).stamp.sealed
    assert not reading(sources | given, inherited=given).stamp.sealed
    assert not reading(sources).stamp.sealed


@pytest.mark.parametrize(
    ("document_id", "chunk_index", "expected"),
    [
        ("doc", 3, "doc#3"),
        (None, 0, "#0"),
        ("doc", None, "doc#"),
        ({"$digest": {"hmac": "ab" * 32, "bytes": 7}}, 2, f"digest:{'ab' * 32} (7 bytes)#2"),
    ],
)
def test_a_passage_is_named_the_same_everywhere(document_id, chunk_index, expected):
    """One function names passages for audits, reports and commands; odd fields raise nothing."""
    assert passage_id(document_id, chunk_index) == expected
