"""sources_from on the objects that LangChain, LlamaIndex, Haystack and Chroma really return."""

from __future__ import annotations

import pytest

from bijotel import RAGSource, sources_from
from demo.embedding import embed

# Optional parts of these packages warn about each other when they are imported, not when used.
pytestmark = [pytest.mark.live, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

TEXTS = {
    "w0": "The Ostra kettle has a warranty of 3 years from the day of purchase.",
    "m1": "Descale the kettle once a month with 20 grams of citric acid.",
}
QUESTION = "How long is the warranty of the kettle?"


def check(
    sources: tuple[RAGSource, ...], *, scored: bool = True, chunks: tuple[int, ...] = (0, 1)
) -> None:
    """Both passages, nearest first, with id, text, file, place and a falling score."""
    assert [source.document_id for source in sources] == ["w0", "m1"]
    assert [source.content for source in sources] == list(TEXTS.values())
    assert [source.source_uri for source in sources] == ["w0.md", "m1.md"]
    assert [source.chunk_index for source in sources] == list(chunks)
    assert {source.retriever for source in sources} == {"store"}
    scores = [source.similarity_score for source in sources]
    if scored:
        assert scores[0] > scores[1] > 0
    else:
        assert scores == [None, None]


def test_langchain() -> None:
    """Documents without a score, and pairs with one, of the vector store in memory."""
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Words(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [embed(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return embed(text)

    store = InMemoryVectorStore(Words())
    store.add_documents(
        [
            Document(id=name, page_content=text, metadata={"source": f"{name}.md"})
            for name, text in TEXTS.items()
        ]
    )
    found = store.as_retriever(search_kwargs={"k": 2}).invoke(QUESTION)
    check(sources_from(found, retriever="store"), scored=False)
    pairs = store.similarity_search_with_score(QUESTION, k=2)
    check(sources_from(pairs, retriever="store"))
    (dumped,) = sources_from(found[0].model_dump(), retriever="store")
    assert (dumped.document_id, dumped.content) == ("w0", TEXTS["w0"])


def test_llama_index() -> None:
    """Nodes with scores of an index in memory, and the response of a query engine."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.schema import TextNode

    class Words(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return embed(text)

        def _get_query_embedding(self, query: str) -> list[float]:
            return embed(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return embed(query)

    nodes = [
        TextNode(id_=name, text=text, metadata={"file_path": f"{name}.md", "chunk_index": 3})
        for name, text in TEXTS.items()
    ]
    index = VectorStoreIndex(nodes, embed_model=Words())
    found = index.as_retriever(similarity_top_k=2).retrieve(QUESTION)
    check(sources_from(found, retriever="store"), chunks=(3, 3))
    response = index.as_query_engine(llm=MockLLM(), similarity_top_k=2).query(QUESTION)
    check(sources_from(response, retriever="store"), chunks=(3, 3))


def test_haystack() -> None:
    """The documents of a retriever, bare and in the dict that its component gives."""
    from haystack import Document
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(
        [
            Document(id=name, content=text, embedding=embed(text), meta={"file_path": f"{name}.md"})
            for name, text in TEXTS.items()
        ]
    )
    found = InMemoryEmbeddingRetriever(store, top_k=2).run(query_embedding=embed(QUESTION))
    check(sources_from(found, retriever="store"))
    check(sources_from(found["documents"], retriever="store"))
    check(sources_from([each.to_dict() for each in found["documents"]], retriever="store"))


def test_chroma() -> None:
    """The columns of query, whose distances are no scores, and the bare columns of get."""
    import chromadb
    from chromadb.config import Settings

    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    collection = client.create_collection("kettle", embedding_function=None)
    collection.add(
        ids=list(TEXTS),
        documents=list(TEXTS.values()),
        embeddings=[embed(text) for text in TEXTS.values()],
        metadatas=[{"source": f"{name}.md"} for name in TEXTS],
    )
    found = collection.query(query_embeddings=[embed(QUESTION)], n_results=2)
    sources = sources_from(found, retriever="store")
    check(sources, scored=False)
    distances = [source.metadata["distance"] for source in sources]
    assert 0 < distances[0] < distances[1]
    assert {source.metadata["score_kind"] for source in sources} == {"distance"}
    everything = sources_from(collection.get(), retriever="store")
    assert {source.document_id: source.content for source in everything} == TEXTS
