"""An agent that searches by itself: the tool's result is the retrieval, its last call the answer.

``python -m examples.agent [CHAIN.DB]``. The OpenAI SDK is instrumented by OpenInference; the
tool's span follows the GenAI conventions (``execute_tool``).
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from typing import Any

import openai
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import bijotel
from demo import pipeline
from demo.server import ROUTES, ModelServer, chat_completions

QUESTION = "How long is the warranty of the kettle?"
TOOL = {
    "type": "function",
    "function": {
        "name": "search_manual",
        "description": "Find passages of the manual.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
}
_tracer = trace.get_tracer("example")


def decide(request: dict[str, Any]) -> Any:
    """The model's side: ask for the tool first, answer once its result is there."""
    last = request["messages"][-1]
    if last["role"] == "tool":
        found = json.loads(last["content"])["documents"]
        read = "\n".join(document["text"] for document in found)
        turn = {"role": "user", "content": f"{read}\nQuestion: {QUESTION}"}
        return chat_completions({**request, "messages": [turn]})
    reply = chat_completions(request)
    call = {"name": "search_manual", "arguments": json.dumps({"query": QUESTION})}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
    }
    return {
        **reply,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
    }


def search_manual(index: Any, query: str) -> str:
    """The tool. Its span carries what it returned, as the GenAI conventions want it."""
    with _tracer.start_as_current_span(
        "execute_tool search_manual",
        attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_manual"},
    ) as span:
        found = pipeline.retrieve(index, query)
        result = json.dumps(
            {
                "documents": [
                    {
                        "id": f"{source.document_id}#{source.chunk_index}",
                        "text": source.content,
                        "score": source.similarity_score,
                    }
                    for source in found
                ]
            }
        )
        span.set_attribute("gen_ai.tool.call.result", result)
        return result


def run_agent(url: str) -> str:
    """Let the model call the tool until it answers."""
    index = pipeline.build_index()
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client,
        _tracer.start_as_current_span(
            "invoke_agent support", attributes={"gen_ai.operation.name": "invoke_agent"}
        ) as span,
    ):
        while True:
            reply = client.chat.completions.create(
                model="demo-model", messages=messages, tools=[TOOL]
            )
            message = reply.choices[0].message
            if not message.tool_calls:
                answer = {
                    "role": "assistant",
                    "parts": [{"type": "text", "content": message.content}],
                }
                span.set_attribute("gen_ai.output.messages", json.dumps([answer]))
                return message.content or ""
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                result = search_manual(index, **json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def main(store: str = "chain.db") -> None:
    if "BIJOTEL_HMAC_SECRET_FILE" not in os.environ:
        os.environ.setdefault("BIJOTEL_HMAC_SECRET", secrets.token_hex(32))
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    bijotel.install(provider, store=store)
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    with ModelServer({**ROUTES, "/v1/chat/completions": decide}) as server:
        print(run_agent(server.url))
    provider.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
