"""The sealed entry of a model call says which of its passages stood in its prompt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from bijotel import HmacChainSpanProcessor, RAGSource, rag_provenance
from bijotel.model import SpanRecord
from tests.processor.conftest import CHAT, spans

Make = Callable[..., HmacChainSpanProcessor]

IN = "The warranty of the kettle lasts three years from the day of purchase and covers the lid."
CUT = (
    "Descale the kettle once a month: boil it with twenty grams of citric acid, wait, rinse twice."
)
OUT = "The grinder has burrs of hardened steel that are changed after nine years of normal use."
SOURCES = [
    RAGSource("a", 0, content=IN),
    RAGSource("b", 0, content=CUT),
    RAGSource("c", 0, content=OUT),
    RAGSource("d", 0),
]


def ask(provider: TracerProvider, prompt: str | None, **attributes: Any) -> None:
    with provider.get_tracer("t").start_as_current_span("chat m", attributes=CHAT) as span:
        if prompt is not None:
            message = {"role": "user", "parts": [{"type": "text", "content": prompt}]}
            span.set_attribute("gen_ai.input.messages", json.dumps([message]))
        span.set_attributes(attributes)


def sealed(provider: TracerProvider, db: Path) -> list[SpanRecord]:
    assert provider.force_flush()
    return [span for span in spans(db) if span.name == "chat m"]


def test_the_call_says_which_passages_it_saw(provider: TracerProvider, make: Make, db: Path):
    """Whole, in part, not at all, and unknown where the source has no text."""
    make()
    with rag_provenance(SOURCES):
        ask(provider, f"Context:\n{IN}\n{CUT[:60]}\nQuestion: how long?")
    (call,) = sealed(provider, db)
    assert call.inherited["bijotel.rag.in_context"] == ["included", "partial", "absent", "unknown"]
    assert call.inherited["bijotel.rag.in_context_count"] == 2


def test_each_call_of_a_scope_is_judged_by_its_own_prompt(
    provider: TracerProvider, make: Make, db: Path
):
    """What one call saw is never handed on to another."""
    make()
    with rag_provenance(SOURCES[:3], prompt=OUT):
        ask(provider, IN), ask(provider, CUT), ask(provider, None)
    first, second, third = sealed(provider, db)
    assert first.inherited["bijotel.rag.in_context"] == ["included", "absent", "absent"]
    assert second.inherited["bijotel.rag.in_context"] == ["absent", "included", "absent"]
    assert "bijotel.rag.in_context" not in {**third.inherited, **third.attributes}
    assert third.attributes["bijotel.rag.source_count"] == 3


def test_only_model_calls_are_judged(provider: TracerProvider, make: Make, db: Path):
    """A span that is no model call says nothing about prompts."""
    make()
    with rag_provenance(SOURCES):
        span = provider.get_tracer("t").start_span("embed")
        span.set_attributes({"gen_ai.operation.name": "embeddings", "gen_ai.input.messages": IN})
        span.end()
    provider.force_flush()
    (embedding,) = (span for span in spans(db) if span.name == "embed")
    assert embedding.inherited == {}


def test_sources_that_the_application_set_itself_are_not_judged(
    provider: TracerProvider, make: Make, db: Path
):
    """The scope's texts say nothing about other sources on the span."""
    make()
    with rag_provenance(SOURCES):
        ask(provider, IN, **{"bijotel.rag.sources": "[]"})
    (call,) = sealed(provider, db)
    assert "bijotel.rag.in_context" not in {**call.inherited, **call.attributes}


def test_a_cut_prompt_leaves_what_is_not_seen_unknown(make: Make, db: Path):
    """Behind a limit's cut nothing is absent."""
    from opentelemetry.sdk.trace import SpanLimits

    from tests.processor.conftest import KEY

    provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=8), shutdown_on_exit=False)
    processor = HmacChainSpanProcessor(db, key=KEY)
    provider.add_span_processor(processor)
    with rag_provenance(SOURCES[:3]):
        many = {f"k{number}": number for number in range(7)}
        ask(provider, IN, **many)
    processor.force_flush()
    (call,) = (span for span in spans(db) if span.name == "chat m")
    assert call.dropped.attributes > 0
    assert call.inherited["bijotel.rag.in_context"] == ["included", "unknown", "unknown"]
    provider.shutdown()


@pytest.mark.parametrize("content", ["full", "digest"])
def test_digest_mode_keeps_the_verdicts(
    provider: TracerProvider, make: Make, db: Path, content: str
):
    """What was seen can be sealed without what it said."""
    make(content=content)
    with rag_provenance(SOURCES[:1]):
        ask(provider, IN)
    (call,) = sealed(provider, db)
    assert call.inherited["bijotel.rag.in_context"] == ["included"]
    assert (IN.encode() in db.read_bytes() + Path(f"{db}-wal").read_bytes()) is (content == "full")
