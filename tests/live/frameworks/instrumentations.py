"""The published instrumentations of frameworks, and which pipeline each of them watches.

Imported before the frameworks are, so that the environment is in place when they read it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Instrumentation:
    pipeline: str
    instrumentor: str
    environment: dict[str, str] = field(default_factory=dict)

    def switch_on(self) -> None:
        module, _, name = self.instrumentor.rpartition(".")
        getattr(importlib.import_module(module), name)().instrument()


ALL = {
    "openinference-langchain": Instrumentation(
        "langchain_pipeline", "openinference.instrumentation.langchain.LangChainInstrumentor"
    ),
    "openllmetry-langchain": Instrumentation(
        "langchain_pipeline", "opentelemetry.instrumentation.langchain.LangchainInstrumentor"
    ),
    "official-langchain": Instrumentation(
        "langchain_pipeline",
        "opentelemetry.instrumentation.genai.langchain.LangChainInstrumentor",
        {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"},
    ),
    "openinference-llama-index": Instrumentation(
        "llama_index_pipeline", "openinference.instrumentation.llama_index.LlamaIndexInstrumentor"
    ),
    "openinference-haystack": Instrumentation(
        "haystack_pipeline", "openinference.instrumentation.haystack.HaystackInstrumentor"
    ),
}
