"""Which spans are sealed and which are model calls, for every span that was ever recorded.

In the table, checked by hand against the captures, ``model`` are the model calls, ``sealed`` the
other spans of a dialect, ``left`` those of the application that no dialect's attribute names. A
model class under Traceloop's llama-index is only a task: what tells it is the text of its input,
which is not read on the application's thread.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import Event, ReadableSpan

from bijotel.spans.select import is_genai_span, is_model_call

EXPECTED = """
anthropic-native
    model  anthropic.messages.create
    sealed retrieval kvarn-docs
    left   kvarn.ask
edge-dual
    model  ChatCompletion
    sealed kvarn.search | kvarn.ask
edge-escapes
    model  ChatCompletion
    sealed kvarn.search | kvarn.ask
edge-multi
    model  ChatCompletion
    sealed kvarn.search.terms | kvarn.search.manuals | kvarn.ask | kvarn.search | kvarn.chat
edge-overflow
    model  ChatCompletion
    sealed kvarn.search | kvarn.ask
edge-redacted-docs
    model  ChatCompletion
    sealed kvarn.search | kvarn.ask
edge-redacted-inputs
    model  ChatCompletion
    sealed kvarn.search | kvarn.ask
edge-substring
    model  ChatCompletion
    sealed kvarn.search | kvarn.ask
edge-truncated
    model  ChatCompletion
    sealed kvarn.search | kvarn.ask
google-adk-legacy
    model  generate_content fake-1 | call_llm
    sealed execute_tool search_docs | invoke_agent kvarn
    left   invocation
google-adk
    model  generate_content fake-1
    sealed execute_tool search_docs | invoke_agent kvarn | invoke_workflow kvarn
haystack-native
    model  haystack.component.run OpenAIChatGenerator
    sealed haystack.component.run Emb | haystack.component.run InMemoryEmbeddingRetriever | haystack.component.run ChatPromptBuilder | haystack.pipeline.run | haystack.component.run Budget
langfuse
    model  FakeListChatModel | kvarn_answer
    sealed VectorStoreRetriever | format_docs | RunnableSequence | RunnablePassthrough | RunnableParallel<context,question> | ChatPromptTemplate | StrOutputParser | kvarn_search | kvarn_ask
langsmith
    model  FakeListChatModel
    sealed RunnableSequence | RunnableParallel<context,question> | VectorStoreRetriever | format_docs | RunnablePassthrough | ChatPromptTemplate | StrOutputParser
mlflow
    model  kvarn_llm
    sealed kvarn_search | kvarn_ask | kvarn_health
openinference-haystack
    model  OpenAIChatGenerator.run
    sealed Emb.run | InMemoryEmbeddingRetriever.run | ChatPromptBuilder.run | Pipeline.run | Budget.run
openinference-langchain
    model  FakeListChatModel
    sealed VectorStoreRetriever | format_docs | RunnableSequence | RunnablePassthrough | RunnableParallel<context,question> | ChatPromptTemplate | StrOutputParser
openinference-llama-index
    model  MockLLM.complete | MockLLM.predict
    sealed Emb._get_query_embedding | Emb.get_query_embedding | VectorIndexRetriever._retrieve | VectorIndexRetriever.retrieve | TokenTextSplitter.split_text | DefaultRefineProgram.__call__ | CompactAndRefine.get_response | CompactAndRefine.synthesize | RetrieverQueryEngine._query | RetrieverQueryEngine.query | DropOld._postprocess_nodes
openinference-sdks
    model  ChatCompletion | Response | anthropic.messages.create | messages.create
    sealed kvarn.search | kvarn.rerank | kvarn.ask
openlit
    model  chat gpt-test
    sealed GET kvarn
    left   POST | kvarn.ask
otel-genai-langchain
    model  chat gpt-test
    sealed retrieval | invoke_workflow RunnableSequence
otel-genai-sdks-events
    model  chat gpt-test | chat claude-test
    sealed retrieval kvarn-docs
    left   kvarn.ask
otel-genai-sdks-nocontent
    model  chat gpt-test | chat claude-test
    sealed retrieval kvarn-docs
    left   kvarn.ask
otel-genai-sdks
    model  chat gpt-test | chat claude-test
    sealed retrieval kvarn-docs
    left   kvarn.ask
otel-openai-v2-legacy
    model  chat gpt-test
    left   kvarn.ask
pydantic-ai-v2
    model  chat function:model:
    sealed running tool | agent run | kvarn search
    left   kvarn.ask
pydantic-ai
    model  chat function:model:
    sealed execute_tool search_docs | invoke_agent kvarn | kvarn search | invoke_agent kvarn2
    left   kvarn.ask
strands-latest
    model  chat
    sealed execute_tool search_docs | execute_event_loop_cycle | invoke_agent kvarn
strands-legacy
    model  chat
    sealed execute_tool search_docs | execute_event_loop_cycle | invoke_agent kvarn
traceai-langchain
    model  FakeListChatModel
    sealed VectorStoreRetriever | format_docs | RunnableSequence | RunnablePassthrough | RunnableParallel<context,question> | ChatPromptTemplate | StrOutputParser
traceloop-langchain
    model  FakeListChatModel.chat
    sealed execute_task RunnablePassthrough | vector_db_retrieve VectorStoreRetriever | execute_task format_docs | execute_task RunnableSequence | execute_task RunnableParallel<context,question> | execute_task ChatPromptTemplate | execute_task StrOutputParser | RunnableSequence.workflow
traceloop-legacy-langchain
    model  FakeListChatModel.chat
    sealed format_docs.task | RunnableSequence.task | RunnablePassthrough.task | RunnableParallel<context,question>.task | ChatPromptTemplate.task | StrOutputParser.task | RunnableSequence.workflow
traceloop-legacy-openai
    model  openai.chat
    sealed kvarn_search.task | kvarn_ask.workflow
traceloop-llamaindex
    sealed Emb.task | VectorIndexRetriever.task | TokenTextSplitter.task | MockLLM.task | DefaultRefineProgram.task | CompactAndRefine.task | RetrieverQueryEngine.task | RetrieverQueryEngine.workflow | DropOld.task
traceloop-vectordb
    model  openai.chat | anthropic.messages.create | anthropic.chat | openai.response
    sealed chroma.query | qdrant.query_points
    left   kvarn.ask
"""


def _expected() -> dict[str, dict[str, str]]:
    """Read the table: for each capture what is expected of each span name."""
    table: dict[str, dict[str, str]] = {}
    for line in EXPECTED.strip().splitlines():
        if not line.startswith(" "):
            spans = table[line] = {}
            continue
        kind, names = line.split(maxsplit=1)
        spans.update(dict.fromkeys(names.split(" | "), kind))
    return table


TABLE = _expected()


def _value(value: dict[str, Any]) -> Any:
    ((kind, plain),) = value.items()
    if kind == "arrayValue":
        return [_value(item) for item in plain.get("values", [])]
    return int(plain) if kind == "intValue" else plain


def _attributes(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: _value(pair["value"]) for pair in pairs}


def _spans(path: Path) -> Iterator[ReadableSpan]:
    for line in path.read_text(encoding="utf-8").splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    events = [Event(event["name"]) for event in span.get("events", [])]
                    attributes = _attributes(span.get("attributes", []))
                    yield ReadableSpan(span["name"], attributes=attributes, events=events)


def _name(span: ReadableSpan) -> str:
    """Haystack gives every component's span one name; its type tells them apart."""
    component = (span.attributes or {}).get("haystack.component.type")
    return f"{span.name} {component}" if component else span.name


def _verdict(span: ReadableSpan) -> str:
    sealed = is_genai_span(span)
    if is_model_call(span.attributes or {}):
        return "model" if sealed else "a model call that is not sealed"
    return "sealed" if sealed else "left"


@pytest.mark.parametrize("capture", TABLE)
def test_every_recorded_span_is_classified_as_a_reader_would(data: Path, capture: str) -> None:
    """Each span of the capture is what the table says, and the table names no span too many."""
    found = {_name(span): _verdict(span) for span in _spans(data / "traces" / f"{capture}.jsonl")}
    assert found == TABLE[capture]


def test_the_table_covers_every_capture(data: Path) -> None:
    """A capture that is added later has to be added to the table."""
    files = {path.name.split(".")[0] for path in (data / "traces").glob("*.jsonl")}
    assert files == set(TABLE)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        # The Anthropic SDK's own span of counting tokens: a model, but no inference.
        ({"gen_ai.request.model": "m", "gen_ai.provider.name": "anthropic"}, False),
        ({"gen_ai.request.model": "m", "gen_ai.usage.output_tokens": 3}, True),
        ({"gen_ai.request.model": "m", "gen_ai.completion": "text"}, True),
        ({"gen_ai.request.model": "m", "gen_ai.operation.name": "embeddings"}, False),
        ({"gen_ai.request.model": "m", "gen_ai.operation.name": "fetch_response"}, False),
        ({"gen_ai.request.model": "m", "gen_ai.operation.name": "text_completion"}, True),
        ({"llm.request.type": "embedding", "gen_ai.usage.output_tokens": 0}, False),
        ({"llm.request.type": "rerank", "gen_ai.request.model": "m"}, False),
        # OpenInference names its kind when the span ends; until then the model has to do.
        ({"llm.model_name": "m"}, True),
        ({"llm.model_name": "m", "openinference.span.kind": "EMBEDDING"}, False),
        ({"openinference.span.kind": "llm"}, True),
        # ADK hides the request of a call whose prompt the inner span records.
        ({"gcp.vertex.agent.llm_request": "{}", "gen_ai.request.model": "m"}, False),
        # A kind or operation of the wrong type is no kind, and no reason to fail.
        ({"openinference.span.kind": 7}, False),
        ({"gen_ai.operation.name": {"not": "hashable"}}, False),
        ({}, False),
    ],
)
def test_model_calls_beyond_the_captures(attributes: dict[str, Any], *, expected: bool) -> None:
    """Only inference is a model call, whatever else names a model."""
    assert is_model_call(attributes) is expected


@pytest.mark.parametrize(
    ("attributes", "events", "expected"),
    [
        ({"bijotel.anything": 1}, (), True),
        ({"db.system": "Qdrant"}, (), True),
        ({"db.system.name": "chroma"}, (), True),
        ({"db.system": "postgresql"}, (), False),
        ({"db.system": 7}, (), False),
        ({"http.request.method": "POST", "server.address": "api.openai.com"}, (), False),
        ({"documents": "[]", "logfire.json_schema": "{}"}, (), True),
        ({"documents": "[]"}, (), False),
        ({}, ("gen_ai.user.message",), True),
        ({}, ("exception",), False),
        ({}, (None,), False),
        ({"gen_ai_like": 1, "not.gen_ai.system": "x"}, (), False),
    ],
)
def test_spans_that_are_sealed_beyond_the_captures(
    attributes: dict[str, Any], events: tuple[Any, ...], *, expected: bool
) -> None:
    """A dialect's prefix, a vector store, passages by hand or a GenAI event make a span ours."""
    span = ReadableSpan("any", attributes=attributes, events=[Event(name) for name in events])
    assert is_genai_span(span) is expected
    assert is_genai_span(span) is expected, "what was learned of a key must not change the answer"


def test_a_span_without_attributes_is_left() -> None:
    """``attributes`` may be None; that is not an error."""
    assert is_genai_span(ReadableSpan("bare")) is False
