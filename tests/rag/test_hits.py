"""sources_from: what retrievers return, recognised by shape.

The Qdrant hits here come from a real store in memory. The other frameworks' objects are classes
with the attributes, and the traps, of the real ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import uuid
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pydantic
import pytest
from qdrant_client import QdrantClient, models

from bijotel.rag import sources_from


def _sha(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Document(pydantic.BaseModel):
    """LangChain's: a pydantic model, which can be iterated over its fields."""

    id: str | None = None
    page_content: str
    metadata: dict = {}
    type: str = "Document"


class TextNode(pydantic.BaseModel):
    """LlamaIndex's."""

    id_: str
    text: str
    metadata: dict = {}
    embedding: list[float] | None = None

    @property
    def node_id(self) -> str:
        return self.id_

    def get_content(self) -> str:
        return self.text


class MediaNode(pydantic.BaseModel):
    """LlamaIndex's node whose text is behind a method only."""

    id_: str
    metadata: dict = {}

    def get_content(self) -> str:
        return f"text of {self.id_}"


class ImageNode(MediaNode):
    def get_content(self) -> str:
        raise NotImplementedError


class NodeWithScore(pydantic.BaseModel):
    node: TextNode | MediaNode
    score: float | None = None

    @property
    def metadata(self) -> dict:
        return self.node.metadata

    @property
    def text(self) -> str:
        raise ValueError("Node must be a TextNode to get text.")


@dataclasses.dataclass
class HaystackDocument:
    id: str
    content: str | None
    meta: dict
    score: float | None = None
    embedding: list[float] | None = None
    blob: object = None


def _one(hits, **options):
    (source,) = sources_from(hits, **options)
    return source


def test_langchain_documents():
    """With and without id; the metadata names source and chunk."""
    first, second = sources_from(
        [
            Document(id="d1", page_content="one", metadata={"source": "a.md", "chunk_index": 4}),
            Document(page_content="two", metadata={"file_path": "b.md", "page": 3}),
        ],
        retriever="faiss",
        embedding_model="e5",
        retrieved_at=datetime(2025, 1, 1, tzinfo=timezone.utc),
    )
    assert first.to_dict() == {
        "document_id": "d1",
        "chunk_index": 4,
        "source_uri": "a.md",
        "retriever": "faiss",
        "embedding_model": "e5",
        "similarity_score": None,
        "retrieved_at": "2025-01-01T00:00:00Z",
        "metadata": {"source": "a.md", "chunk_index": 4},
    }
    assert first.content == "one"
    assert (second.document_id, second.chunk_index, second.source_uri) == (_sha("two"), 1, "b.md")
    assert second.metadata == {"file_path": "b.md", "page": 3}


def test_langchain_documents_with_scores():
    """The score is taken as it is; which way it points is not known and not claimed."""
    made = sources_from(
        [(Document(page_content="t"), np.float32(0.5)), (Document(page_content="u"), None)]
    )
    assert [(s.similarity_score, s.metadata, s.content) for s in made] == [
        (0.5, {}, "t"),
        (None, {}, "u"),
    ]


def test_a_reranker_writes_its_score_into_the_metadata():
    """Only names that can mean nothing else are read there."""
    document = Document(page_content="t", metadata={"relevance_score": 0.9, "score": 5})
    assert _one([document]).similarity_score == 0.9
    assert _one([Document(page_content="t", metadata={"score": 5})]).similarity_score is None


def test_an_id_among_the_metadata():
    """Where the hit itself has none; an empty one is none."""
    documents = [
        Document(page_content="t", metadata={"_id": 7, "doc_id": "d"}),
        Document(page_content="t", id="", metadata={"id": ""}),
    ]
    assert [s.document_id for s in sources_from(documents)] == ["d", _sha("t")]


def test_llama_index_nodes():
    """Objects, bare nodes, dicts, and a response that holds them."""
    node = TextNode(id_="n1", text="one", metadata={"file_name": "a.md"}, embedding=[0.1] * 40)
    hit = NodeWithScore(node=node, score=0.0)
    response = SimpleNamespace(response="answer", source_nodes=[hit], metadata={"n1": {}})
    for hits in ([hit], response, [hit.model_dump()]):
        source = _one(hits)
        assert (source.document_id, source.content, source.chunk_index) == ("n1", "one", 0)
        assert (source.similarity_score, source.source_uri) == (0.0, "a.md")
    assert _one([hit]).metadata == {"file_name": "a.md"}
    assert _one([node]).similarity_score is None
    assert _one([NodeWithScore(node=MediaNode(id_="m"))]).content == "text of m"
    assert _one([NodeWithScore(node=ImageNode(id_="i"))]).content is None


def test_haystack_documents():
    """Documents, their dicts, and what a retriever component returns."""
    document = HaystackDocument("h1", "one", {"url": "https://h/a", "split_id": 2}, 0.25)
    for hits in ([document], {"documents": [document]}, [dataclasses.asdict(document)]):
        source = _one(hits)
        assert (source.document_id, source.content, source.chunk_index) == ("h1", "one", 2)
        assert (source.similarity_score, source.source_uri) == (0.25, "https://h/a")
        assert source.metadata == {"url": "https://h/a", "split_id": 2}
    assert sources_from({"documents": []}) == ()


def test_chroma_query_results():
    """Columns of one or many queries; distances stay distances."""
    result = {
        "ids": [["a", "b"], ["c"]],
        "embeddings": None,
        "documents": [["one", None], ["three"]],
        "uris": None,
        "data": None,
        "included": ["metadatas", "documents", "distances"],
        "distances": [[-4.76837158203125e-07, 0.35], [0.8]],
        "metadatas": [[{"source": "a.md", "chunk": 7}, None], [{}]],
    }
    made = sources_from(result, retriever="chroma")
    assert [(s.document_id, s.chunk_index, s.content) for s in made] == [
        ("a", 7, "one"),
        ("b", 1, None),
        ("c", 0, "three"),
    ]
    assert {s.similarity_score for s in made} == {None}
    assert made[0].source_uri == "a.md"
    assert [s.metadata["distance"] for s in made] == [-4.76837158203125e-07, 0.35, 0.8]
    assert {s.metadata["score_kind"] for s in made} == {"distance"}


def test_chroma_get_results():
    """Bare columns, without distances."""
    made = sources_from(
        {"ids": ["a", "b"], "documents": None, "metadatas": None, "uris": ["s3://b/a", None]}
    )
    assert [(s.document_id, s.source_uri, s.metadata, s.content) for s in made] == [
        ("a", "s3://b/a", {}, None),
        ("b", "", {}, None),
    ]
    assert sources_from({"ids": [], "documents": []}) == ()
    assert sources_from({"ids": [[]], "documents": [[]], "distances": [[]]}) == ()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"ids": [["a"], ["b"]], "documents": [["x"]]}, "expected 2 documents as there are ids, got 1"),
        ({"ids": [["a", "b"]], "distances": [[1]]}, "expected 2 distances as there are ids, got 1"),
        ({"ids": ["a"], "metadatas": []}, "expected 1 metadatas as there are ids, got 0"),
    ],
)  # fmt: skip
def test_columns_of_unequal_length_are_refused(result, message):
    """Hits must not be paired with the wrong texts."""
    with pytest.raises(TypeError, match=message):
        sources_from(result)


@pytest.fixture
def store():
    """A real Qdrant store in memory with three points."""
    client = QdrantClient(":memory:")
    vectors = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection("docs", vectors_config=vectors)
    payloads = [
        {"text": "one", "source": "a.md", "chunk_index": 3},
        {"page_content": "two", "metadata": {"source": "b.md"}},
        {"title": "no text"},
    ]
    points = [
        models.PointStruct(id=str(uuid.UUID(int=n)), vector=[1.0, float(n)], payload=payload)
        for n, payload in enumerate(payloads)
    ]
    client.upsert("docs", points)
    yield client
    client.close()


def test_qdrant_points(store):
    """Scored points and the response around them: id, score, payload without its text."""
    response = store.query_points("docs", query=[1.0, 0.0], with_payload=True, with_vectors=True)
    assert sources_from(response) == sources_from(response.points)
    first, second, third = sources_from(response, retriever="qdrant")
    assert first.document_id == "00000000-0000-0000-0000-000000000000"
    assert first.similarity_score == pytest.approx(1.0)
    assert (first.content, first.chunk_index, first.source_uri) == ("one", 3, "a.md")
    assert first.metadata == {"source": "a.md", "chunk_index": 3}
    assert (second.content, second.source_uri, second.chunk_index) == ("two", "b.md", 1)
    assert second.metadata == {"source": "b.md"}
    assert (third.content, third.metadata) == (None, {"title": "no text"})


def test_qdrant_points_without_payload_and_records(store):
    """A scored point has its score beside it; a record its payload."""
    bare = store.query_points("docs", query=[1.0, 0.0], with_payload=False).points
    assert [s.content for s in sources_from(bare)] == [None, None, None]
    records, _ = store.scroll("docs", with_payload=True)
    assert [s.content for s in sources_from(records)] == ["one", "two", None]
    assert {s.similarity_score for s in sources_from(records)} == {None}
    assert _one(bare[0]).document_id == str(bare[0].id)


def test_a_payload_that_holds_a_whole_node():
    """LlamaIndex keeps its node as JSON in the store; its text is the passage, not metadata."""
    payload = {"_node_content": '{"text": "one", "id_": "n"}', "file_name": "a.md"}
    source = _one([{"id": 5, "score": 1, "payload": payload}])
    assert (source.document_id, source.content, source.metadata) == (
        5,
        "one",
        {"file_name": "a.md"},
    )
    for broken in ("{", "[]", '{"text": 3}'):
        assert _one([{"id": 5, "score": 1, "payload": {"_node_content": broken}}]).content is None


def test_plain_dicts():
    """Flat or with metadata; what is not recognised goes into the metadata."""
    made = sources_from(
        [
            {"text": "t", "metadata": {}},
            {"id": 1, "content": "u", "score": 0.5, "page": 3, "title": None, "vector": [0.1, 0.2]},
            {"document_id": "d", "doc_id": "e", "chunk_index": 2, "text": "", "meta": {"k": 1}},
            {"_id": "x", "_distance": 0.1, "text": "v"},
            {"id": "y", "score": 0.3, "score_kind": "distance", "text": "w"},
            {"id": "z", "score": 0.3, "distance": 0.7, "text": "w"},
            {"id": "p", "score": 0.9, "metadata": {"text": "pinecone", "chunk": 3.0}},
        ]
    )
    assert [(s.document_id, s.chunk_index, s.similarity_score, s.content) for s in made] == [
        (_sha("t"), 0, None, "t"),
        (1, 1, 0.5, "u"),
        ("d", 2, None, ""),
        ("x", 3, None, "v"),
        ("y", 4, None, "w"),
        ("z", 5, 0.3, "w"),
        ("p", 3, 0.9, "pinecone"),
    ]
    assert [s.to_dict()["metadata"] for s in made] == [
        {},
        {"page": 3, "vector": {"len": 2}},
        {"doc_id": "e", "chunk_index": 2, "k": 1},
        {"distance": 0.1, "score_kind": "distance"},
        {"score_kind": "distance", "distance": 0.3},
        {"distance": 0.7},
        {"chunk": 3.0},
    ]


def test_strings_and_tuples():
    """The shapes that people make themselves, all in one list."""
    plain = SimpleNamespace(page_content="c", metadata={"k": 1})
    scored = SimpleNamespace(node=SimpleNamespace(text="d", metadata={}), score=0.1)
    made = sources_from(
        [
            "plain",
            ("text", 0.7),
            ["pair", 1],
            {"text": "t", "metadata": {}},
            plain,
            scored,
            (plain, 0.3),
        ]
    )
    assert [(s.content, s.similarity_score) for s in made] == [
        ("plain", None), ("text", 0.7), ("pair", 1.0), ("t", None), ("c", None), ("d", 0.1), ("c", 0.3),
    ]  # fmt: skip
    assert [s.chunk_index for s in made] == list(range(7))
    assert [s.metadata for s in made] == [{}, {}, {}, {}, {"k": 1}, {}, {"k": 1}]


def test_a_single_hit_and_an_iterator():
    """One hit alone is not taken apart; an iterator is followed."""
    assert [s.content for s in sources_from("alone")] == ["alone"]
    assert [s.content for s in sources_from(Document(page_content="alone"))] == ["alone"]
    assert [s.content for s in sources_from({"text": "alone"})] == ["alone"]
    assert [s.content for s in sources_from(each for each in "ab")] == ["a", "b"]
    assert sources_from([]) == ()


def test_a_lone_surrogate_has_a_digest():
    """Half an emoji is hashed as it is."""
    assert _one(["half \ud83e"]).document_id == _sha("half \ud83e")


def test_a_path_is_a_source_and_other_values_are_not():
    """Only texts and paths are addresses; the first that is there wins."""
    metadata = {"source": {"id": 1}, "url": "", "file_path": Path("a.md"), "chunk_id": "c2"}
    source = _one([Document(page_content="t", metadata=metadata)])
    assert (source.source_uri, source.chunk_index) == ("a.md", 0)


class Response:
    """A web response: it has a text, but it is no hit."""

    text = "<html>"
    status_code = 200


class Raising:
    @property
    def page_content(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("hits", "message"),
    [
        (None, r"^hits: no known shape: NoneType$"),
        (b"bytes", r"^hits: no known shape: bytes$"),
        ({"answer": 1, "b": 2}, r"^hits: no known shape: dict with keys \['answer', 'b'\]$"),
        (["a", 3.5], r"^hits\[1\]: no known shape: float$"),
        (["a", None], r"^hits\[1\]: no known shape: NoneType$"),
        ([("a", "b")], r"^hits\[0\]: no known shape: tuple of \['str', 'str'\]$"),
        ([("a", True)], r"^hits\[0\]: no known shape: tuple of \['str', 'bool'\]$"),
        ([{"score": 1}], r"^hits\[0\]: no known shape: dict with keys \['score'\]$"),
        ([Response()], rf"^hits\[0\]: no known shape: {__name__}\.Response$"),
        ([Raising()], rf"^hits\[0\]: no known shape: {__name__}\.Raising$"),
        ([MagicMock()], r"^hits\[0\]: no known shape: unittest\.mock\.MagicMock$"),
        ([{"id": object(), "text": "t"}], r"^hits\[0\]: document_id: expected text.*got object$"),
        ([{"text": "t"}, {"id": "", "metadata": {}, "score": 1}], r"^hits\[1\]: no known shape: dict"),
        ([{"documents": 1, "meta": {}}], r"^hits\[0\]: no known shape: dict"),
        ([{"content": None, "document": None}], r"^hits\[0\]: no known shape: dict"),
    ],
)  # fmt: skip
def test_an_unknown_shape_is_one_clear_error(hits, message):
    """Position and type, nothing else."""
    with pytest.raises(TypeError, match=message):
        sources_from(hits)


def test_a_hit_needs_an_id_or_a_text():
    """Chroma never gives a hit without an id, but a wrapper might."""
    with pytest.raises(TypeError, match=r"^hits\[1\]: expected an id or a text, got neither$"):
        sources_from({"ids": ["a", None], "documents": ["one", None]})
