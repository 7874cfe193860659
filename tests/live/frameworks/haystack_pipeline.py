"""Haystack: an in-memory document store, a retriever, a prompt builder, a fake generator."""

from __future__ import annotations

from haystack import Document, Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from passages import ANSWER, QUESTION, TEXTS, into_prompt

from demo.embedding import embed

TEMPLATE = """Answer from these passages alone.
{% for document in documents %}
{{ document.content }}
{% endfor %}"""


@component
class Budget:
    """Cuts one document and leaves another out."""

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        found = {document.id: document.content for document in documents}
        return {"documents": [Document(id=name, content=text) for name, text in into_prompt(found)]}


@component
class FixedChatGenerator:
    """A model that knows one answer."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, list[ChatMessage]]:
        return {"replies": [ChatMessage.from_assistant(ANSWER)]}


def documents() -> InMemoryDocumentStore:
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(
        [Document(id=name, content=text, embedding=embed(text)) for name, text in TEXTS.items()]
    )
    return store


def run() -> str:
    messages = [ChatMessage.from_system(TEMPLATE), ChatMessage.from_user("{{ question }}")]
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(documents(), top_k=3))
    pipeline.add_component("budget", Budget())
    pipeline.add_component("prompt", ChatPromptBuilder(messages, required_variables="*"))
    pipeline.add_component("model", FixedChatGenerator())
    pipeline.connect("retriever.documents", "budget.documents")
    pipeline.connect("budget.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "model.messages")
    asked = {"retriever": {"query_embedding": embed(QUESTION)}, "prompt": {"question": QUESTION}}
    return pipeline.run(asked)["model"]["replies"][0].text
