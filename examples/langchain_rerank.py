"""LangChain: six passages are retrieved, a reranker keeps three, and the chain proves which.

``python -m examples.langchain_rerank [CHAIN.DB]``. The spans come from OpenInference's published
instrumentation; the reranker, which no instrumentation knows, opens a span of its own.
"""

from __future__ import annotations

import os
import secrets
import sys

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI
from openinference.instrumentation import get_reranker_attributes
from openinference.instrumentation.langchain import LangChainInstrumentor, get_current_span
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import bijotel
from demo.corpus import PASSAGES
from demo.embedding import embed
from demo.server import ModelServer

QUESTION = "How long is the warranty of the kettle?"
KEPT = 3


class Words(Embeddings):
    """The demo's local embedding; use your own."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


def build_store() -> InMemoryVectorStore:
    store = InMemoryVectorStore(Words())
    store.add_documents(
        [
            Document(
                id=f"{passage.source}#{passage.chunk_index}",
                page_content=passage.text,
                metadata={"source": passage.source, "chunk_index": passage.chunk_index},
            )
            for passage in PASSAGES
        ]
    )
    return store


def rerank(documents: list[Document]) -> list[Document]:
    """Keep what shares most words with the question; say so in a span of kind RERANKER."""
    asked = set(QUESTION.lower().split())
    # The instrumentation keeps its spans out of the current context: ask it for the parent.
    parent = trace.set_span_in_context(get_current_span() or trace.INVALID_SPAN)
    with trace.get_tracer("example").start_as_current_span("rerank", context=parent) as span:
        best = sorted(
            documents, key=lambda found: -len(asked & set(found.page_content.lower().split()))
        )[:KEPT]
        span.set_attribute("openinference.span.kind", "RERANKER")
        span.set_attributes(
            get_reranker_attributes(
                query=QUESTION,
                input_documents=[described(document) for document in documents],
                output_documents=[described(document) for document in best],
            )
        )
    return best


def described(document: Document) -> dict[str, str]:
    return {"id": document.id or "", "content": document.page_content}


def main(store: str = "chain.db") -> None:
    if "BIJOTEL_HMAC_SECRET_FILE" not in os.environ:
        os.environ.setdefault("BIJOTEL_HMAC_SECRET", secrets.token_hex(32))
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    bijotel.install(provider, store=store)
    LangChainInstrumentor().instrument(tracer_provider=provider)
    with ModelServer() as server:
        model = ChatOpenAI(model="demo-model", base_url=f"{server.url}/v1", api_key="none")
        prompt = ChatPromptTemplate.from_template("Passages:\n{context}\n\nQuestion: {question}")
        retriever = build_store().as_retriever(search_kwargs={"k": 6})
        context = (
            retriever
            | rerank
            | (lambda documents: "\n".join(document.page_content for document in documents))
        )
        inputs = {"context": context, "question": RunnablePassthrough()}
        print((inputs | prompt | model | StrOutputParser()).invoke(QUESTION))
    provider.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
