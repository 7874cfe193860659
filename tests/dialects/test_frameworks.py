"""Dialects of single frameworks: what only they write, and where they differ."""

from __future__ import annotations

import json

import pytest

from bijotel.dialects.model import Capture, Usage
from bijotel.model import Event

DOCUMENTS = [
    {"id": "c2", "score": 0.5, "text": "Burrs wear."},
    {"id": "c1", "score": 0.4, "text": "Two years."},
]
JSON_DOCUMENTS = json.dumps(DOCUMENTS)
CHAT = [{"role": "user", "content": "P"}]
OPERATION = "gen_ai.operation.name"


def texts(call):
    return [(message.role, message.content) for message in call.messages]


def ids(found):
    return [passage.id for passage in found.retrieval.passages]


# Traceloop


def test_a_task_that_gives_documents_is_a_retrieval(reading):
    """Whatever its name, a function under @task that returns documents searched for them."""
    found = reading({
        "traceloop.span.kind": "task",
        "traceloop.entity.input": '{"args": ["Q"], "kwargs": {}}',
        "traceloop.entity.output": JSON_DOCUMENTS,
    })  # fmt: skip
    assert (found.kinds, ids(found), found.retrieval.query) == ({"retriever"}, ["c2", "c1"], "Q")


def test_a_task_that_is_given_documents_is_an_echo(reading):
    """A filter or a formatter repeats documents; they are at hand from its start on."""
    found = reading({
        "traceloop.span.kind": "task",
        "traceloop.entity.input": json.dumps({"inputs": DOCUMENTS, "kwargs": {}}),
        "traceloop.entity.output": json.dumps(DOCUMENTS[:1]),
    })  # fmt: skip
    assert (found.retrieval.stage, ids(found), found.retrieval.ended_unix_nano) == (
        "echo",
        ["c2", "c1"],
        10,
    )


def test_the_retriever_of_langchain(reading):
    """The current generation names the operation; the query stands among other settings."""
    found = reading({
        "traceloop.span.kind": "task",
        OPERATION: "vector_db_retrieve",
        "traceloop.entity.input": json.dumps({"query": "Q", "tags": ["a"], "metadata": {}}),
        "traceloop.entity.output": json.dumps({"documents": [{"page_content": "T"}], "count": 1}),
    })  # fmt: skip
    assert (found.retrieval.query, found.retrieval.passages[0].text) == ("Q", "T")
    cut = reading(
        {
            "traceloop.span.kind": "task",
            OPERATION: "vector_db_retrieve",
            "traceloop.entity.output": JSON_DOCUMENTS[:30],
        }
    )
    assert (cut.retrieval.passages, cut.retrieval.incomplete) == (
        (),
        "cut: the JSON does not parse",
    )


def test_a_model_of_llama_index_that_is_only_a_task(reading):
    """It is known by the shape of its answer."""
    answer = json.dumps(
        {"text": "A", "additional_kwargs": {}, "raw": None, "logprobs": None, "delta": None}
    )
    task = {"traceloop.span.kind": "task", "traceloop.entity.output": answer}
    call = reading(task | {"traceloop.entity.input": '{"args": ["P"]}'}).call
    assert (texts(call), call.outputs) == ([("user", "P")], ("A",))
    assert reading(task).call.capture.state == "none"


@pytest.mark.parametrize("kind", ["workflow", "agent"])
def test_the_output_of_a_workflow(reading, kind):
    """It is what tells which call answered."""
    found = reading({"traceloop.span.kind": kind, "traceloop.entity.output": '{"outputs": "A"}'})
    assert (found.kinds, found.output, found.call) == ({kind}, '{"outputs": "A"}', None)


def test_legacy_prompts_in_numbered_keys(reading):
    """Up to 0.54 prompts, answers and tool calls stand in numbered keys."""
    call = reading({
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "S",
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.arguments": '{"q": 1}',
        "gen_ai.prompt.10.role": "user",
        "gen_ai.prompt.10.content": '[{"type": "text", "text": "P"}]',
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "A",
    }).call  # fmt: skip
    assert texts(call) == [
        ("system", "S"),
        ("assistant", None),
        ("user", '[{"type": "text", "text": "P"}]'),
    ]
    assert (call.messages[1].tool_calls, call.outputs) == (('{"q":1}',), ("A",))
    hidden = reading(
        {"llm.request.type": "completion", "gen_ai.prompt.0.content": "[REDACTED]"}
    ).call
    assert hidden.capture == Capture("none", "redacted")


@pytest.mark.parametrize(
    ("request_type", "kind"), [("embedding", "embedding"), ("rerank", "reranker"), ("x", "other")]
)
def test_legacy_requests_that_are_no_calls(reading, request_type, kind):
    """Embedding and reranking are told by the request's type."""
    found = reading({"llm.request.type": request_type})
    assert (found.kinds, found.call) == ({kind}, None)


# Vector stores


def test_hits_in_events(reading):
    """Chroma writes an event a hit, with a distance."""
    events = tuple(
        Event("db.query.result", attributes={
            "db.query.result.id": f"c{n}", "db.query.result.distance": n / 4,
            "db.query.result.metadata": '{"source": "w.md"}', "db.query.result.document": f"Text {n}.",
        })
        for n in (1, 2)
    )  # fmt: skip
    found = reading({"db.system": "chroma", "db.operation": "query"}, events=events)
    assert [(p.id, p.text, p.score, p.score_kind) for p in found.retrieval.passages] == [
        ("c1", "Text 1.", 0.25, "distance"),
        ("c2", "Text 2.", 0.5, "distance"),
    ]


def test_hits_of_pinecone_and_milvus(reading):
    """Metadata may be a Python repr and hold the text; a distance may be a text."""
    pinecone = Event(
        "db.query.result",
        attributes={
            "db.query.result.id": "c1",
            "db.query.result.score": 0.9,
            "db.query.result.metadata": "{'text': \"It's so\", 'n': 1}",
        },
    )
    milvus = Event(
        "db.search.result",
        attributes={
            "db.search.result.id": "c2",
            "db.search.result.distance": "0.3",
            "db.search.result.entity": "{'text': 'T'}",
        },
    )
    found = reading({"db.system": "pinecone"}, events=(pinecone, milvus))
    assert [(p.id, p.text, p.score, p.score_kind) for p in found.retrieval.passages] == [
        ("c1", "It's so", 0.9, "score"),
        ("c2", "T", 0.3, "distance"),
    ]


@pytest.mark.parametrize(
    "attributes",
    [
        {"db.system": "Qdrant", "db.vector.query.top_k": 5},
        {"db.system": "weaviate", "db.operation": "query"},
        {"db.system.name": "milvus", "db.operation.name": "search"},
        {OPERATION: "vectordb", "db.operation.name": "GET"},
    ],
)
def test_searches_that_record_no_hit(reading, attributes):
    """Something was retrieved, and the trace does not say what."""
    found = reading(attributes)
    assert (found.retrieval.passages, found.retrieval.incomplete) == ((), "no documents recorded")


@pytest.mark.parametrize(
    "attributes",
    [
        {"db.system": "chroma", "db.operation": "add"},
        {"db.system": "postgresql", "db.operation": "query"},
        {OPERATION: "vectordb", "db.operation.name": "ADD"},
    ],
)
def test_database_spans_that_search_nothing(reading, attributes):
    """Writing is no retrieval, and neither is any other database."""
    assert reading(attributes).retrieval is None


# Langfuse, LangSmith, MLflow, Haystack

DIALECTS = {
    "langfuse": (
        "langfuse.observation.type",
        "langfuse.observation.input",
        "langfuse.observation.output",
    ),
    "langsmith": ("langsmith.span.kind", "gen_ai.prompt", "gen_ai.completion"),
    "mlflow": ("mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"),
}
KINDS = {
    "langfuse": {"model": "generation", "retriever": "retriever", "tool": "tool", "chain": "chain"},
    "langsmith": {"model": "llm", "retriever": "retriever", "tool": "tool", "chain": "chain"},
    "mlflow": {
        "model": '"CHAT_MODEL"',
        "retriever": '"RETRIEVER"',
        "tool": '"TOOL"',
        "chain": '"CHAIN"',
    },
}


@pytest.fixture(params=list(DIALECTS))
def written(request):
    """Writes a span of a kind with an input and an output in one of three dialects."""
    kind_key, input_key, output_key = DIALECTS[request.param]

    def write(kind, held_in, held_out):
        return {
            kind_key: KINDS[request.param][kind],
            input_key: json.dumps(held_in),
            output_key: json.dumps(held_out),
        }

    return write


def test_calls_of_three_dialects(reading, written):
    """Input is the prompt, output is the answer."""
    call = reading(
        written(
            "model",
            {"messages": CHAT},
            {"choices": [{"message": {"role": "assistant", "content": "A"}}]},
        )
    ).call
    assert (texts(call), call.outputs) == ([("user", "P")], ("A",))


def test_retrievals_of_three_dialects(reading, written):
    """Output is the documents; the query is the only text of the input."""
    found = reading(written("retriever", {"query": "Q"}, DOCUMENTS))
    assert (found.retrieval.query, ids(found)) == ("Q", ["c2", "c1"])


def test_tools_and_chains_of_three_dialects(reading, written):
    """A tool's documents are a retrieval; a chain's are an echo."""
    assert reading(written("tool", {"q": "Q"}, DOCUMENTS)).retrieval.stage == "tool"
    assert reading(written("tool", {"q": "Q"}, "sunny")).retrieval is None
    chain = reading(written("chain", CHAT, DOCUMENTS))
    assert (chain.retrieval, chain.call) == (None, None)
    assert json.loads(chain.output) == DOCUMENTS


def test_usage_objects(reading):
    """Langfuse and MLflow write the tokens as JSON."""
    langfuse = reading(
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.usage_details": '{"input": 5, "output": 2}',
            "langfuse.observation.model.name": "m",
        }
    ).call
    assert (langfuse.usage, langfuse.model) == (Usage(5, 2), "m")
    mlflow = reading(
        {
            "mlflow.spanType": '"LLM"',
            "mlflow.chat.tokenUsage": '{"input_tokens": 5, "output_tokens": 2}',
        }
    ).call
    assert mlflow.usage == Usage(5, 2)


def test_langsmith_spans_are_read_by_langsmith_alone(reading):
    """Its operation names say ``embeddings`` of a retriever and ``chat`` of a template."""
    prompt = reading(
        {"langsmith.span.kind": "prompt", OPERATION: "chat", "gen_ai.prompt": json.dumps(CHAT)}
    )
    assert (prompt.call, prompt.kinds) == (None, {"other"})
    retriever = reading(
        {
            "langsmith.span.kind": "retriever",
            OPERATION: "embeddings",
            "gen_ai.completion": JSON_DOCUMENTS,
        }
    )
    assert (retriever.kinds, ids(retriever)) == ({"retriever"}, ["c2", "c1"])


def test_mlflow_rerankers(reading):
    """A reranker's input and output are both lists."""
    found = reading(
        {
            "mlflow.spanType": '"RERANKER"',
            "mlflow.spanInputs": json.dumps({"documents": DOCUMENTS}),
            "mlflow.spanOutputs": json.dumps(DOCUMENTS[::-1]),
        }
    )
    assert (found.retrieval.stage, ids(found), [p.id for p in found.retrieval.inputs]) == (
        "reranker",
        ["c1", "c2"],
        ["c2", "c1"],
    )


def haystack(component, held_in, held_out):
    return {
        "haystack.component.type": component,
        "haystack.component.input": json.dumps(held_in),
        "haystack.component.output": json.dumps(held_out),
    }


def test_haystack_components(reading):
    """The end of the type's name says what a component is."""
    documents = {"documents": [{"id": "c2", "content": "T", "score": 0.5}]}
    found = reading(
        haystack("InMemoryBM25Retriever", {"query": "Q", "top_k": 3, "filters": "x"}, documents)
    )
    assert (found.retrieval.query, ids(found)) == ("Q", ["c2"])
    ranker = reading(haystack("LostInTheMiddleRanker", documents, documents)).retrieval
    assert (ranker.stage, len(ranker.inputs)) == ("reranker", 1)
    builder = reading(haystack("PromptBuilder", documents, {"prompt": "T"}))
    assert (builder.retrieval, builder.call) == (None, None)
    reply = {
        "role": "assistant",
        "meta": {"model": "m", "usage": {"prompt_tokens": 3}},
        "content": [{"text": "A"}],
    }
    call = reading(
        haystack("OpenAIChatGenerator", {"messages": CHAT, "tools": "none"}, {"replies": [reply]})
    ).call
    assert (texts(call), call.outputs, call.model, call.usage) == (
        [("user", "P")],
        ("A",),
        "m",
        Usage(3),
    )
    plain = reading(
        haystack("OpenAIGenerator", {"prompt": "P", "system_prompt": None}, {"replies": ["A"]})
    ).call
    assert (texts(plain), plain.outputs) == ([("user", "P")], ("A",))
    pipeline = reading({"haystack.pipeline.output_data": '{"llm": {"replies": ["A"]}}'})
    assert (pipeline.kinds, pipeline.output) == ({"workflow"}, '{"llm": {"replies": ["A"]}}')


# pydantic-ai, Strands, ADK


def test_pydantic_ai(reading):
    """Older versions name a tool's result differently; an agent's result is its output."""
    tool = {
        OPERATION: "execute_tool",
        "tool_response": JSON_DOCUMENTS,
        "tool_arguments": '{"q": "Q"}',
    }
    found = reading(tool)
    assert (found.retrieval.stage, found.retrieval.query, ids(found)) == ("tool", "Q", ["c2", "c1"])
    assert reading({OPERATION: "invoke_agent", "final_result": "A"}).output == "A"


def test_spans_made_with_logfire(reading):
    """One attribute that the schema calls a list, and that is documents, makes a retrieval."""
    schema = {"properties": {"question": {}, "found": {"type": "array"}, "n": {"type": "integer"}}}
    attributes = {
        "question": "Q",
        "found": JSON_DOCUMENTS,
        "logfire.json_schema": json.dumps(schema),
    }
    assert ids(reading(attributes)) == ["c2", "c1"]
    assert reading(attributes | {"found": "[1, 2]"}).retrieval is None
    assert reading(attributes | {"logfire.json_schema": "[]"}).retrieval is None
    assert reading(attributes | {OPERATION: "invoke_agent"}).retrieval is None


def test_strands_tools(reading):
    """By default a tool's result is an event, as JSON in JSON."""
    events = (
        Event("gen_ai.tool.message", attributes={"content": '{"q": "Q"}'}),
        Event("gen_ai.choice", attributes={"message": json.dumps([{"text": JSON_DOCUMENTS}])}),
    )
    found = reading({OPERATION: "execute_tool"}, events=events)
    assert (found.retrieval.stage, found.retrieval.query, ids(found)) == ("tool", "Q", ["c2", "c1"])
    assert reading({OPERATION: "chat"}, events=events).retrieval is None


def test_adk_of_the_first_schema(reading):
    """The request, the answer and a tool's result stand in attributes of its own."""
    request = {
        "model": "m",
        "config": {"system_instruction": "S"},
        "contents": [{"role": "user", "parts": [{"text": "P"}]}],
    }
    answer = {
        "content": {"parts": [{"text": "A"}], "role": "model"},
        "usage_metadata": {"prompt_token_count": 3},
    }
    call = reading(
        {
            "gcp.vertex.agent.llm_request": json.dumps(request),
            "gcp.vertex.agent.llm_response": json.dumps(answer),
        }
    ).call
    assert texts(call) == [("system", "S"), ("user", [{"text": "P"}])]
    assert (call.outputs, call.usage) == (("A",), Usage(3))
    hidden = reading({"gcp.vertex.agent.llm_request": "{}"}).call
    assert hidden.capture == Capture("none", "the content was not recorded")
    tool = {
        OPERATION: "execute_tool",
        "gcp.vertex.agent.llm_request": "{}",
        "gcp.vertex.agent.tool_response": JSON_DOCUMENTS,
    }
    found = reading(tool)
    assert (found.call, ids(found)) == (None, ["c2", "c1"])
