"""LlamaIndex: a query engine over an index in memory, asked through the OpenAI SDK.

``python -m examples.llama_index_rag [CHAIN.DB]``. OpenInference's published instrumentation makes
the spans; the retriever's nodes and the prompt are both in the chain.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from typing import Any

import openai
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import TextNode
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import bijotel
from demo.corpus import PASSAGES
from demo.embedding import embed
from demo.server import ModelServer

QUESTION = "How do I descale the kettle?"


class Words(BaseEmbedding):
    """The demo's local embedding; use your own."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)


class LoopbackModel(CustomLLM):
    """Any model with OpenAI's wire format; LlamaIndex has a package for each provider."""

    url: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="demo-model")

    @llm_completion_callback()
    def complete(self, prompt: str, **_: Any) -> CompletionResponse:
        # LlamaIndex's own template ends in "Query: ...\nAnswer: "; the demo's model wants this.
        asked = prompt.replace("Query:", "Question:").removesuffix("Answer: ")
        with openai.OpenAI(base_url=f"{self.url}/v1", api_key="none") as client:
            reply = client.chat.completions.create(
                model="demo-model", messages=[{"role": "user", "content": asked}]
            )
        return CompletionResponse(text=reply.choices[0].message.content or "")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, **_: Any) -> Iterator[CompletionResponse]:
        yield self.complete(prompt)


def build_index() -> VectorStoreIndex:
    nodes = [
        TextNode(
            id_=f"{passage.source}#{passage.chunk_index}",
            text=passage.text,
            metadata={"source": passage.source, "chunk_index": passage.chunk_index},
            # The metadata is for people; the model gets the text alone.
            excluded_llm_metadata_keys=["source", "chunk_index"],
        )
        for passage in PASSAGES
    ]
    return VectorStoreIndex(nodes, embed_model=Words())


def main(store: str = "chain.db") -> None:
    if "BIJOTEL_HMAC_SECRET_FILE" not in os.environ:
        os.environ.setdefault("BIJOTEL_HMAC_SECRET", secrets.token_hex(32))
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    bijotel.install(provider, store=store)
    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    with ModelServer() as server:
        engine = build_index().as_query_engine(
            llm=LoopbackModel(url=server.url), similarity_top_k=3
        )
        print(engine.query(QUESTION))
    provider.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
