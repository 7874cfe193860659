"""Which spans are sealed, and which of them are model calls. Reads attributes alone.

Both questions are asked on the application's own thread, so they cost a few dictionary look-ups.
What a span *means* is the business of the dialect readers, not of this module.

Source: the attribute names that each dialect writes, docs/reference (dialects).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from bijotel.semconv import (
    INPUT_MESSAGES,
    OPERATION_NAME,
    OUTPUT_MESSAGES,
    OUTPUT_TOKENS,
    REQUEST_MODEL,
)

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_PREFIXES: Final = (
    "gen_ai.",
    "bijotel.",
    "openinference.",
    "llm.",
    "traceloop.",
    "langfuse.",
    "langsmith.",
    "mlflow.",
    "haystack.",
    "gcp.vertex.agent.",
    "retrieval.",
    "reranker.",
    "embedding.",
    "pydantic_ai.",
    "model_request_parameters",
    "tool_response",
    "fi.span.",
    "anthropic.",
    "openai.",
    "db.vector.",
    "db.chroma.",
    "db.pinecone.",
    "db.milvus.",
    "qdrant.",
    "weaviate.",
    "pinecone.",
    "milvus.",
)
_VECTOR_STORES: Final = frozenset(
    {"chroma", "chromadb", "qdrant", "pinecone", "milvus", "weaviate", "lancedb", "marqo"}
)
# A span made by hand with Logfire lists its own attributes here; these hold passages.
_LOGFIRE_SCHEMA: Final = "logfire.json_schema"
_LOGFIRE_PASSAGES: Final = ("documents", "passages", "chunks")

_known_keys: dict[str, bool] = {}
_KNOWN_KEYS_LIMIT: Final = 10_000

_MODEL_OPERATIONS: Final = frozenset(
    {"chat", "generate_content", "text_completion", "completion", "responses"}
)
# What tells inference from the other requests that name a model, such as counting its tokens.
_INFERENCE: Final = (
    "gen_ai.request.max_tokens",
    INPUT_MESSAGES,
    OUTPUT_MESSAGES,
    OUTPUT_TOKENS,
    "gen_ai.usage.completion_tokens",
    "gen_ai.prompt",
    "gen_ai.prompt.0.content",
    "gen_ai.completion",
    "gen_ai.completion.0.content",
)


def is_genai_span(span: ReadableSpan) -> bool:
    """Tell whether a span belongs to a generative AI call: the default of ``select=``.

    True for every dialect of the GenAI, OpenInference, Traceloop, Langfuse, LangSmith, MLflow,
    Haystack, pydantic-ai, Strands, ADK, traceAI, OpenLIT and vector-store instrumentations,
    retrieval and tool spans included, and for every span with a ``bijotel.*`` attribute.
    """
    attributes = span.attributes or {}
    known = _known_keys
    for key in attributes:
        verdict = known.get(key)
        if verdict is None:
            verdict = _learn(key)
        if verdict:
            return True
    return _is_vector_store(attributes) or _is_logfire_retrieval(attributes) or _has_events(span)


def _learn(key: str) -> bool:
    verdict = key.startswith(_PREFIXES)
    if len(_known_keys) < _KNOWN_KEYS_LIMIT:
        _known_keys[key] = verdict
    return verdict


def _is_vector_store(attributes: Mapping[str, Any]) -> bool:
    system = attributes.get("db.system") or attributes.get("db.system.name")
    return isinstance(system, str) and system.lower() in _VECTOR_STORES


def _is_logfire_retrieval(attributes: Mapping[str, Any]) -> bool:
    return _LOGFIRE_SCHEMA in attributes and any(key in attributes for key in _LOGFIRE_PASSAGES)


def _has_events(span: ReadableSpan) -> bool:
    return any(str(event.name).startswith("gen_ai.") for event in span.events)


def is_model_call(attributes: Mapping[str, Any]) -> bool:
    """Tell whether attributes are those of inference by a model.

    Not embedding, retrieval, reranking, tool, agent, workflow or chain spans. The kind that an
    instrumentation states for its own spans outweighs the operation name, which some of them
    set on every step.
    """
    for key, verdict in _KINDS:
        value = attributes.get(key)
        if value is not None:
            return isinstance(value, str) and verdict(value)
    request = attributes.get("gcp.vertex.agent.llm_request")
    if request is not None:
        return bool(request != "{}")
    operation = attributes.get(OPERATION_NAME)
    if operation is not None:
        return isinstance(operation, str) and operation in _MODEL_OPERATIONS
    if "traceloop.span.kind" in attributes:
        return False
    if REQUEST_MODEL in attributes:
        return any(key in attributes for key in _INFERENCE)
    return "llm.model_name" in attributes


_KINDS: Final[tuple[tuple[str, Callable[[str], bool]], ...]] = (
    ("openinference.span.kind", lambda value: value.upper() == "LLM"),
    ("gen_ai.span.kind", lambda value: value.upper() == "LLM"),
    ("fi.span.kind", lambda value: value.upper() == "LLM"),
    ("langfuse.observation.type", lambda value: value.lower() == "generation"),
    ("langsmith.span.kind", lambda value: value.lower() == "llm"),
    ("mlflow.spanType", lambda value: value.strip('"').upper() in {"LLM", "CHAT_MODEL"}),
    ("haystack.component.type", lambda value: value.endswith("Generator")),
    ("llm.request.type", lambda value: value.lower() in {"chat", "completion"}),
)
