"""LlamaIndex: an in-memory vector index, a postprocessor, a query engine, a fake model."""

from __future__ import annotations

from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from passages import ANSWER, QUESTION, TEXTS, into_prompt

from demo.embedding import embed


class Words(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)


class Fixed(CustomLLM):
    """A model that knows one answer."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="fixed")

    @llm_completion_callback()
    def complete(self, prompt: str, **_: Any) -> CompletionResponse:
        return CompletionResponse(text=ANSWER)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, **_: Any) -> Any:
        yield CompletionResponse(text=ANSWER, delta=ANSWER)


class Budget(BaseNodePostprocessor):
    """Cuts one node and leaves another out."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        found = {node.node.node_id: node.text for node in nodes}
        return [
            NodeWithScore(node=TextNode(id_=name, text=text), score=1.0)
            for name, text in into_prompt(found)
        ]


def index() -> VectorStoreIndex:
    nodes = [TextNode(id_=name, text=text) for name, text in TEXTS.items()]
    return VectorStoreIndex(nodes, embed_model=Words())


def run() -> str:
    engine = index().as_query_engine(
        llm=Fixed(), similarity_top_k=3, node_postprocessors=[Budget()]
    )
    return str(engine.query(QUESTION))
