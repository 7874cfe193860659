"""A real tracer that collects, and a check that no test here makes OpenTelemetry complain."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

from bijotel.rag import RAGSource, current_provenance, scope


class Tracing(SpanProcessor):
    """Collects ended spans, and the document ids of the scope in which each was started."""

    def __init__(self, sampler: Sampler) -> None:
        self.ended: list[ReadableSpan] = []
        self.seen_at_start: dict[int, list[str]] = {}
        self.provider = TracerProvider(sampler=sampler)
        self.provider.add_span_processor(self)
        self.tracer = self.provider.get_tracer("tests")

    def on_start(self, span: Span, parent_context=None) -> None:
        provenance = current_provenance(parent_context)
        if provenance is not None:
            ids = ids_of(provenance.attributes)
            self.seen_at_start[span.context.span_id] = ids

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)

    def named(self, name: str) -> ReadableSpan:
        """The one ended span whose name ends like this."""
        (span,) = [span for span in self.ended if span.name.split(".")[-1] == name]
        return span

    def child(self, name: str) -> None:
        """Start and end a span here, as an instrumentation would."""
        self.tracer.start_span(name).end()

    def ids_at_start(self, name: str) -> list[str] | None:
        """The document ids that were in scope when a span was started."""
        return self.seen_at_start.get(self.named(name).context.span_id)


def ids_of(attributes) -> list[str]:
    """The document ids that a record lists."""
    return [each["document_id"] for each in json.loads(attributes["bijotel.rag.sources"])]


@pytest.fixture(name="ids_of")
def _ids_of():
    return ids_of


@pytest.fixture
def source():
    """Makes a source with an id and, if wanted, a text."""
    return lambda identifier="a", content=None: RAGSource(
        identifier, 0, retriever="qdrant", embedding_model="e5", content=content
    )


def _use(monkeypatch: pytest.MonkeyPatch, provider) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)


@pytest.fixture
def tracing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tracing]:
    """The global tracer provider of this test: records everything."""
    made = Tracing(ALWAYS_ON)
    _use(monkeypatch, made.provider)
    yield made
    made.provider.shutdown()


@pytest.fixture(params=["no provider", "sampler drops all", "records"])
def any_tracing(request, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three worlds in which a decorated function must behave the same."""
    if request.param == "no provider":
        _use(monkeypatch, None)
    else:
        sampler = ALWAYS_ON if request.param == "records" else ALWAYS_OFF
        _use(monkeypatch, Tracing(sampler).provider)


@pytest.fixture
def no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the API is there."""
    _use(monkeypatch, None)


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> Tracing:
    """A provider whose sampler drops every span."""
    made = Tracing(ALWAYS_OFF)
    _use(monkeypatch, made.provider)
    return made


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test leaves a scope behind or makes OpenTelemetry log anything."""
    monkeypatch.setattr(scope, "_reported", set())
    caplog.set_level(logging.INFO)
    yield
    assert [r.getMessage() for r in caplog.records if r.name.startswith("opentelemetry")] == []
    assert current_provenance() is None
