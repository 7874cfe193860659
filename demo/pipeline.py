"""A small pipeline with nothing mocked but the model.

Qdrant in memory finds passages, the openai and anthropic SDKs ask, and their published
OpenTelemetry instrumentations make the spans. What bijotel adds to it are the two decorators and
``sources_from``; who seals the spans is decided by the caller's choice of provider.
"""

from __future__ import annotations

import os
from typing import TypeAlias

import anthropic
import openai
from openinference.instrumentation.anthropic import AnthropicInstrumentor
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams

from bijotel import RAGSource, sources_from, with_rag_provenance
from demo import embedding
from demo.corpus import PASSAGES

MODEL = "demo-model"
INSTRUCTIONS = "Answer from the passages alone."

Sources: TypeAlias = "tuple[RAGSource, ...]"

_COLLECTION = "ostra"
_KEY = "no-key-needed-on-loopback"


def instrument(provider: TracerProvider) -> None:
    """Let both instrumentations make their spans with a provider, as an application would."""
    # Newer anthropic SDKs also make a span of their own, so that each call would be there twice.
    os.environ.setdefault("ANTHROPIC_OPEN_TELEMETRY", "false")
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    AnthropicInstrumentor().instrument(tracer_provider=provider)


def build_index() -> QdrantClient:
    """Make a vector store of the corpus, in memory."""
    index = QdrantClient(":memory:")
    index.create_collection(
        _COLLECTION,
        vectors_config=VectorParams(size=embedding.SIZE, distance=Distance.COSINE),
    )
    points = [
        PointStruct(id=number, vector=embedding.embed(passage.text), payload=passage._asdict())
        for number, passage in enumerate(PASSAGES, start=1)
    ]
    index.upsert(_COLLECTION, points)
    return index


def retrieve(index: QdrantClient, question: str) -> Sources:
    """Find the three nearest passages."""
    found = index.query_points(_COLLECTION, query=embedding.embed(question), limit=3)
    return sources_from(found, retriever="qdrant", embedding_model=embedding.MODEL)


def prompt(question: str, sources: Sources) -> str:
    """Put the passages before the question."""
    passages = "\n".join(f"- {source.content}" for source in sources)
    return f"Passages:\n{passages}\n\nQuestion: {question}"


@with_rag_provenance(lambda _url, _question, sources: sources)
def ask_openai(url: str, question: str, sources: Sources) -> str:
    """Ask through the openai SDK. The record of each call has the sources of that call."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key=_KEY) as client:
        reply = client.chat.completions.create(
            model=MODEL,
            messages=[
                {"role": "system", "content": INSTRUCTIONS},
                {"role": "user", "content": prompt(question, sources)},
            ],
        )
    return reply.choices[0].message.content or ""


@with_rag_provenance(lambda _url, _question, sources: sources)
def ask_anthropic(url: str, question: str, sources: Sources) -> str:
    """Ask through the anthropic SDK, likewise."""
    with anthropic.Anthropic(base_url=url, api_key=_KEY) as client:
        reply = client.messages.create(
            model=MODEL,
            max_tokens=200,
            system=INSTRUCTIONS,
            messages=[{"role": "user", "content": prompt(question, sources)}],
        )
    return "".join(block.text for block in reply.content if block.type == "text")
