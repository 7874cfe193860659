"""A realistic span: 20 attributes, 3 KB prompt, 2 KB completion, 5 sources, about 8 KB of body."""

from __future__ import annotations

import json
import random

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from bijotel import RAGSource, rag_context

_WORDS = [
    "the",
    "grinder",
    "keeps",
    "its",
    "burrs",
    "for",
    "nine",
    "years",
    "when",
    "the",
    "warranty",
    "card",
    "was",
    "filled",
    "in",
]


def _text(length: int, seed: int) -> str:
    chosen = random.Random(seed)
    words = []
    while sum(map(len, words)) + len(words) < length:
        words.append(chosen.choice(_WORDS))
    return " ".join(words)[:length]


def _messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def realistic_spans(count: int) -> list[ReadableSpan]:
    """Ended spans that no processor has seen."""
    provider = TracerProvider(shutdown_on_exit=False)
    tracer = provider.get_tracer("opentelemetry.instrumentation.openai", "0.62.4")
    sources = [
        RAGSource(
            f"sha256:{number:064x}",
            number,
            f"s3://corpus/{number}.pdf",
            "qdrant",
            "text-embedding-3-small",
            0.9 - number / 10,
            "2026-05-26T10:00:00Z",
            {"section": "warranty"},
        )
        for number in range(5)
    ]
    provenance = rag_context(sources, total_context_tokens=720)
    prompt, completion = _messages("user", _text(3000, 1)), _messages("assistant", _text(2000, 2))
    ended = []
    for number in range(count):
        span = tracer.start_span("chat gpt-test", attributes=provenance)
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": "gpt-test",
                "gen_ai.response.model": "gpt-test-2026",
                "gen_ai.response.id": f"chatcmpl-{number}",
                "gen_ai.request.temperature": 0.2,
                "gen_ai.request.max_tokens": 512,
                "gen_ai.usage.input_tokens": 812,
                "gen_ai.usage.output_tokens": 431,
                "gen_ai.response.finish_reasons": ("stop",),
                "gen_ai.input.messages": prompt,
                "gen_ai.output.messages": completion,
                "server.address": "api.example.com",
                "server.port": 443,
            }
        )
        span.end()
        ended.append(span._readable_span())
    return ended
