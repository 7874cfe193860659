"""The published instrumentations, one a process: name, SDK, environment, how it is switched on.

Imported before the SDKs are, so that the environment is in place when they read it.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass, field


class OpenAIV2:
    """The frozen predecessor of the official package, beside a wrapt younger than itself.

    It names the first argument of ``wrap_function_wrapper`` as wrapt 1 did; wrapt 2 renamed it.
    """

    def instrument(self) -> None:
        from opentelemetry.instrumentation import openai_v2

        wrap = openai_v2.wrap_function_wrapper
        openai_v2.wrap_function_wrapper = lambda module, name, wrapper: wrap(module, name, wrapper)
        openai_v2.OpenAIInstrumentor().instrument()


NATIVE_OFF = {"ANTHROPIC_OPEN_TELEMETRY": "false"}
NATIVE_ON = {"ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE": "content"}
SHORT_VALUES = {"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "40"}
CONTENT_ON_SPANS = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"}


@dataclass(frozen=True)
class Instrumentation:
    sdk: str
    instrumentor: str | None
    environment: dict[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        os.environ.update(self.environment)

    def switch_on(self) -> None:
        if self.instrumentor is not None:
            module, _, name = self.instrumentor.rpartition(".")
            getattr(importlib.import_module(module), name)().instrument()


ALL = {
    "openllmetry-openai": Instrumentation(
        "OpenAI", "opentelemetry.instrumentation.openai.OpenAIInstrumentor"
    ),
    "openllmetry-anthropic": Instrumentation(
        "Anthropic", "opentelemetry.instrumentation.anthropic.AnthropicInstrumentor", NATIVE_OFF
    ),
    "openinference-openai": Instrumentation(
        "OpenAI", "openinference.instrumentation.openai.OpenAIInstrumentor"
    ),
    "openinference-openai-cut": Instrumentation(
        "OpenAI", "openinference.instrumentation.openai.OpenAIInstrumentor", SHORT_VALUES
    ),
    "openinference-anthropic": Instrumentation(
        "Anthropic", "openinference.instrumentation.anthropic.AnthropicInstrumentor", NATIVE_OFF
    ),
    "official-openai": Instrumentation(
        "OpenAI", "opentelemetry.instrumentation.genai.openai.OpenAIInstrumentor", CONTENT_ON_SPANS
    ),
    "official-anthropic": Instrumentation(
        "Anthropic",
        "opentelemetry.instrumentation.genai.anthropic.AnthropicInstrumentor",
        {**NATIVE_OFF, **CONTENT_ON_SPANS},
    ),
    "openai-v2": Instrumentation("OpenAI", "instrumentations.OpenAIV2"),
    "anthropic-native": Instrumentation("Anthropic", None, NATIVE_ON),
    # As found in the field: the SDK's own span within the instrumentation's.
    "openinference-and-native": Instrumentation(
        "Anthropic", "openinference.instrumentation.anthropic.AnthropicInstrumentor", NATIVE_ON
    ),
}
