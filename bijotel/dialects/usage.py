"""What a span says about its own tokens, whatever instrumentation wrote it. Reads no content.

A call is counted by the provider once and written down under many names, sometimes within a
JSON object of the SDK. Here it becomes one :class:`~bijotel.dialects.model.Usage` in which the
input includes the cached tokens and the output the reasoning tokens, as the GenAI conventions
have it. What is no count (negative, NaN, a text) is left out and said. Which of several spans
of one call counts is the business of :mod:`~bijotel.dialects.leafmost`.

Source: GenAI conventions 0.1.0 and up to 1.36, OpenInference, the usage objects of the SDKs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from bijotel.dialects.model import NO_TOKENS, Usage
from bijotel.dialects.span import Span
from bijotel.dialects.values import decoded, text
from bijotel.semconv import (
    NAMES_OF_INPUT_TOKENS,
    NAMES_OF_OUTPUT_TOKENS,
    OPERATION_NAME,
    PROVIDER_NAME,
    REQUEST_MODEL,
    RESPONSE_MODEL,
    SYSTEM,
)


class Counted(NamedTuple):
    """The tokens of one span."""

    usage: Usage
    faults: tuple[str, ...] = ()
    """What stands where a count belongs, in words."""


NOTHING: Final = Counted(NO_TOKENS)

LARGEST_COUNT: Final = 2**63 - 1
"""No attribute of a span holds a larger integer; as a float it counts nothing."""

_ANSWERED: Final = (RESPONSE_MODEL, "llm.response.model_name")
_ASKED: Final = (
    REQUEST_MODEL,
    "llm.model_name",
    "llm.request.model_name",
    "langfuse.observation.model.name",
    "ls_model_name",
    "embedding.model_name",
)
_PROVIDERS: Final = (PROVIDER_NAME, SYSTEM, "llm.provider", "llm.system", "ls_provider")

_ATTRIBUTES: Final = {
    "input_tokens": NAMES_OF_INPUT_TOKENS,
    "output_tokens": NAMES_OF_OUTPUT_TOKENS,
    "cache_read_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "llm.token_count.prompt_details.cache_read",
    ),
    "cache_write_tokens": (
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.cache_write_input_tokens",
        "llm.token_count.prompt_details.cache_write",
    ),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
    ),
}
"""For each field of Usage the attributes that may hold it, the current name first."""

_MEMBERS: Final = {
    "input_tokens": ("input_tokens", "prompt_tokens", "prompt_token_count", "input"),
    "output_tokens": ("output_tokens", "completion_tokens", "candidates_token_count", "output"),
    "cache_read_tokens": (
        "cache_read_input_tokens",
        "cached_content_token_count",
        "input_cache_read",
    ),
    "cache_write_tokens": ("cache_creation_input_tokens", "input_cache_creation"),
    "reasoning_tokens": ("thoughts_token_count", "output_reasoning"),
}
"""The same within a usage object."""

_LANGFUSE: Final = "langfuse.observation.usage_details"
_STRANDS: Final = "strands.telemetry.tracer"


def usage_of(span: Span) -> Counted:
    """Give the tokens that a span reports for itself; all None when it reports none."""
    attributes = span.attributes
    counted = _read(attributes, _ATTRIBUTES)
    if counted is NOTHING and not _OBJECTS.keys().isdisjoint(attributes):
        held = _held(attributes)
        return _read(held, _MEMBERS, apart=_LANGFUSE in attributes) if held else counted
    if span.scope.name == _STRANDS and _exceeds(counted.usage):
        # Older releases hand on the counts of Bedrock and Anthropic, cached tokens apart.
        return counted._replace(usage=_joined(counted.usage))
    return counted


def models_of(span: Span) -> tuple[str, ...]:
    """Give the model that answered and the one that was asked for, as far as they are named."""
    attributes = span.attributes
    answered, asked = _first(attributes, _ANSWERED), _first(attributes, _ASKED)
    if answered and asked and answered != asked:
        return answered, asked
    found = answered or asked
    return (found,) if found else ()


def provider_of(span: Span) -> str:
    """Give the provider as the span names it, or empty."""
    return _first(span.attributes, _PROVIDERS)


def is_embedding(span: Span) -> bool:
    """Tell whether a span embeds texts: it has no output to count."""
    attributes = span.attributes
    kind = attributes.get("openinference.span.kind") or attributes.get("langfuse.observation.type")
    return attributes.get(OPERATION_NAME) == "embeddings" or text(kind).lower() == "embedding"


def shown(value: Any) -> str:
    """Write what stands where a number belongs, as far as it fits."""
    try:
        return f"{value!r:.40}"
    except ValueError:  # Python writes no integer of more than 4300 digits
        return f"{type(value).__name__} of very many digits"


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        found = attributes.get(name)
        if found and isinstance(found, str):
            return found
    return ""


def _read(
    values: Mapping[str, Any], names: Mapping[str, tuple[str, ...]], *, apart: bool = False
) -> Counted:
    counts: dict[str, int] = {}
    faults: list[str] = []
    present = values.keys()
    for field, candidates in names.items():
        if present.isdisjoint(candidates):  # most are; asking so costs least
            continue
        refused = None
        for name in candidates:
            value = values.get(name)
            if value is None:
                continue
            if type(value) is int and 0 <= value <= LARGEST_COUNT:
                counts[field] = value
                break
            if isinstance(value, float) and value.is_integer() and 0 <= value <= LARGEST_COUNT:
                counts[field] = int(value)
                break
            refused = refused or f"{name} is {shown(value)}, expected a count"
        else:
            if refused:
                faults.append(refused)
    if not counts and not faults:
        return NOTHING
    usage = Usage(**counts)
    return Counted(_joined(usage) if apart else usage, tuple(faults))


def _joined(usage: Usage) -> Usage:
    """Add to a count what its dialect counts apart from it."""
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    return usage._replace(
        input_tokens=None if usage.input_tokens is None else usage.input_tokens + cached,
        output_tokens=None
        if usage.output_tokens is None
        else usage.output_tokens + (usage.reasoning_tokens or 0),
    )


def _exceeds(usage: Usage) -> bool:
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    return usage.input_tokens is not None and cached > usage.input_tokens


def _held(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Find the usage object of an SDK within the JSON of a dialect."""
    for name, path in _OBJECTS.items():
        if name in attributes:
            value = decoded(attributes[name])
            for step in path:
                value = _step(value, step)
            return value if isinstance(value, Mapping) else {}
    return {}


_OBJECTS: Final[dict[str, tuple[str | int, ...]]] = {
    _LANGFUSE: (),
    "mlflow.chat.tokenUsage": (),
    "gcp.vertex.agent.llm_response": ("usage_metadata",),
    "haystack.component.output": ("replies", 0, "meta", "usage"),
}
"""Attributes that hold JSON with a usage object, and the way to it."""


def _step(value: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return value.get(step) if isinstance(value, Mapping) else None
    return value[step] if isinstance(value, list) and len(value) > step else None
