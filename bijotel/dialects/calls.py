"""What is the same for model calls of every dialect, and how much of the prompt was captured."""

from __future__ import annotations

from bijotel.dialects.messages import Spoken
from bijotel.dialects.model import Capture, ModelCall
from bijotel.dialects.usage import models_of, provider_of, usage_of
from bijotel.dialects.values import decoded
from bijotel.model import SpanRecord

_STORED_ELSEWHERE = ("gen_ai.input.messages_ref", "gen_ai.system_instructions_ref")
_EARLIER_TURNS = "the provider holds the earlier turns"
_SIGNS = (
    ("gen_ai.request.previous_response.id", _EARLIER_TURNS),
    ("gen_ai.conversation.compacted", "earlier turns are there in summary only"),
    ("anthropic.content.truncated", "cut by the SDK's limit"),
)

NO_PROMPT = "no prompt recorded"


def model_call(
    span: SpanRecord, prompt: Spoken, answer: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
) -> ModelCall:
    """Put a call together.

    Args:
        span: Where it was read.
        prompt: Its messages.
        answer: The texts and the tool calls of its output.
    """
    outputs, tool_calls = answer
    return ModelCall(
        span=span,
        messages=prompt.messages,
        outputs=outputs,
        tool_calls=tool_calls,
        model=next(iter(models_of(span)), ""),
        provider=provider_of(span),
        usage=usage_of(span).usage,
        capture=_capture(span, prompt),
    )


def dropped(span: SpanRecord) -> str:
    """Say what the tracer's limits took from a span, or give the empty text."""
    counts = [
        f"{count} {what}"
        for count, what in (
            (span.dropped.attributes, "attributes"),
            (span.dropped.events, "events"),
        )
        if count
    ]
    return f"{' and '.join(counts)} dropped" if counts else ""


def _capture(span: SpanRecord, prompt: Spoken) -> Capture:
    attributes = span.attributes
    reason = prompt.reason or dropped(span)
    for key in _STORED_ELSEWHERE:
        if not reason and key in attributes:
            reason = f"content is stored elsewhere ({key})"
    for key, sign in _SIGNS:
        if not reason and attributes.get(key):
            reason = sign
    parameters = decoded(attributes.get("llm.invocation_parameters"))
    if not reason and isinstance(parameters, dict) and parameters.get("previous_response_id"):
        reason = _EARLIER_TURNS
    if not prompt.messages:
        return Capture("none", reason or NO_PROMPT)
    return Capture("incomplete", reason) if reason else Capture()
