"""The APIs beyond chat that the live tests call: responses, and two that are no inference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from demo.model import answer
from demo.server import ROUTES


def responses(request: dict[str, Any]) -> dict[str, Any] | Iterator[tuple[str, dict[str, Any]]]:
    reply = answer(str(request["input"]))
    content = {"type": "output_text", "text": reply.text, "annotations": []}
    whole = {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "model": request["model"],
        "output": [
            {
                "id": "msg_demo",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [content],
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": reply.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": reply.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reply.input_tokens + reply.output_tokens,
        },
    }
    return _response_events(whole, reply.pieces) if request.get("stream") else whole


def _response_events(
    whole: dict[str, Any], pieces: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    place = {"item_id": "msg_demo", "output_index": 0, "content_index": 0, "logprobs": []}
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events = [("response.created", {"response": begun})]
    events += [("response.output_text.delta", {**place, "delta": piece}) for piece in pieces]
    events += [("response.completed", {"response": whole})]
    for number, (name, data) in enumerate(events):
        yield name, {"type": name, "sequence_number": number, **data}


def embeddings(request: dict[str, Any]) -> dict[str, Any]:
    vector = {"object": "embedding", "index": 0, "embedding": [0.25, 0.5]}
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": [vector], "model": request["model"], "usage": usage}


def count_tokens(_: dict[str, Any]) -> dict[str, Any]:
    return {"input_tokens": 7}


ALL = {
    **ROUTES,
    "/v1/responses": responses,
    "/v1/embeddings": embeddings,
    "/v1/messages/count_tokens": count_tokens,
}
