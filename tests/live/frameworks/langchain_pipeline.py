"""LangChain: an in-memory vector store's retriever, a prompt template, a fake chat model."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from passages import ANSWER, QUESTION, TEXTS, into_prompt

from demo.embedding import embed


class Words(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


class Fixed(FakeListChatModel):
    """A model that knows one answer. The official package leaves out a model without a name."""

    model_name: str = "fixed"


def store() -> InMemoryVectorStore:
    documents = [
        Document(id=name, page_content=text, metadata={"chunk_id": name})
        for name, text in TEXTS.items()
    ]
    vectors = InMemoryVectorStore(Words())
    vectors.add_documents(documents)
    return vectors


def _context(documents: list[Document]) -> str:
    found = {document.id: document.page_content for document in documents}
    return "\n\n".join(text for _, text in into_prompt(found))


def run() -> str:
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer from these passages alone.\n\n{context}"), ("user", "{question}")]
    )
    retriever = store().as_retriever(search_kwargs={"k": 3})
    inputs = {"context": retriever | _context, "question": RunnablePassthrough()}
    chain = inputs | prompt | Fixed(responses=[ANSWER]) | StrOutputParser()
    return chain.invoke(QUESTION)
