"""Attribute names: ours and those of the dialects that more than one room needs.

Ours are fixed by ``docs/spec``. The GenAI names are those of the OpenTelemetry GenAI
conventions 0.1.0 (status: Development), written here because the general semantic conventions
package deprecated them. A name that one dialect reader alone needs stands in that reader.
"""

from __future__ import annotations

# bijotel: provenance of one call, see bijotel.rag
RAG_PREFIX = "bijotel.rag."
RAG_SOURCE_COUNT = "bijotel.rag.source_count"
RAG_SOURCES = "bijotel.rag.sources"
RAG_SOURCES_TOTAL = "bijotel.rag.sources_total"
RAG_RETRIEVER_ID = "bijotel.rag.retriever_id"
RAG_EMBEDDING_MODEL = "bijotel.rag.embedding_model"
RAG_TOTAL_CONTEXT_TOKENS = "bijotel.rag.total_context_tokens"
RAG_SOURCES_SHA256 = "bijotel.rag.sources_sha256"
RAG_IN_CONTEXT = "bijotel.rag.in_context"
RAG_IN_CONTEXT_COUNT = "bijotel.rag.in_context_count"
RAG_ERROR = "bijotel.rag.error"

# bijotel: what a policy layer may say about a call
BLOCKED = "bijotel.blocked"
POLICY_WARNING = "bijotel.policy.warning"

# GenAI conventions, shared by the rooms
OPERATION_NAME = "gen_ai.operation.name"
PROVIDER_NAME = "gen_ai.provider.name"
SYSTEM = "gen_ai.system"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
# Each also under the names of older conventions and of OpenInference, the current name first.
NAMES_OF_INPUT_TOKENS = (INPUT_TOKENS, "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
NAMES_OF_OUTPUT_TOKENS = (
    OUTPUT_TOKENS,
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
)
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"

# What digest mode leaves as it is: models, operations, counts, times, finish reasons, server,
# error type and scores. Everything else may hold what people wrote.
IN_CLEAR = frozenset(
    {
        OPERATION_NAME,
        PROVIDER_NAME,
        SYSTEM,
        REQUEST_MODEL,
        RESPONSE_MODEL,
        "gen_ai.request.temperature",
        "gen_ai.request.top_p",
        "gen_ai.request.top_k",
        "gen_ai.request.max_tokens",
        "gen_ai.request.frequency_penalty",
        "gen_ai.request.presence_penalty",
        "gen_ai.request.seed",
        "gen_ai.request.choice.count",
        "gen_ai.request.stream",
        "gen_ai.request.reasoning.level",
        "gen_ai.response.finish_reasons",
        "gen_ai.response.time_to_first_chunk",
        "gen_ai.server.time_to_first_token",
        "gen_ai.output.type",
        "gen_ai.retrieval.top_k",
        "gen_ai.span.kind",
        "gen_ai.token.type",
        "gen_ai.embeddings.dimension.count",
        "openinference.span.kind",
        "traceloop.span.kind",
        "langfuse.observation.type",
        "langsmith.span.kind",
        "mlflow.spanType",
        "haystack.component.type",
        "llm.request.type",
        "llm.model_name",
        "llm.provider",
        "llm.system",
        "llm.finish_reason",
        "embedding.model_name",
        "db.system",
        "db.system.name",
        "db.operation.name",
        "db.response.returned_rows",
        "server.address",
        "server.port",
        "error.type",
        "exception.type",
        RAG_SOURCE_COUNT,
        RAG_SOURCES_TOTAL,
        RAG_RETRIEVER_ID,
        RAG_EMBEDDING_MODEL,
        RAG_TOTAL_CONTEXT_TOKENS,
        RAG_IN_CONTEXT,
        RAG_IN_CONTEXT_COUNT,
        BLOCKED,
    }
)
# Scores of evaluations and of single documents, as long as they are numbers.
NUMBERS_IN_CLEAR = ("gen_ai.evaluation.score.value", ".document.score")
PREFIXES_IN_CLEAR = ("gen_ai.usage.", "llm.token_count.", "llm.usage.")
