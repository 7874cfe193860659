"""A model server on loopback that stands in for OpenAI and Anthropic.

Speaks the wire formats of ``POST /v1/chat/completions`` and ``POST /v1/messages``, as JSON and as
a stream of server-sent events. What it answers is decided by :mod:`demo.model`; keys are neither
asked for nor looked at. For the demo and the tests, not for a network: it binds to 127.0.0.1.

Source: the request and response shapes that the openai and anthropic SDKs parse.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import MappingProxyType
from typing import Any, TypeAlias

from typing_extensions import Self

from demo.model import Answer, answer

Json: TypeAlias = "dict[str, Any]"
Event: TypeAlias = "tuple[str, Json | str]"
Route: TypeAlias = "Callable[[Json], Json | Iterator[Event]]"
"""Makes the reply to a request: one JSON object, or the (name, data) of a stream's events."""


def text_of(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of typed parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if "text" in part)


def chat_completions(request: Json) -> Json | Iterator[Event]:
    """Answer as OpenAI's chat completions do."""
    reply = answer("\n".join(text_of(message.get("content")) for message in request["messages"]))
    head = {"id": f"chatcmpl-{reply.id}", "created": 1_700_000_000, "model": request["model"]}
    usage = {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }
    if request.get("stream"):
        options = request.get("stream_options") or {}
        return _chat_chunks(head, reply, usage if options.get("include_usage") else None)
    message = {"role": "assistant", "content": reply.text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}


def _chat_chunks(head: Json, reply: Answer, usage: Json | None) -> Iterator[Event]:
    head = {**head, "object": "chat.completion.chunk"}
    for delta, finish in (
        ({"role": "assistant", "content": ""}, None),
        *(({"content": piece}, None) for piece in reply.pieces),
        ({}, "stop"),
    ):
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        yield "", {**head, "choices": [choice]}
    if usage is not None:
        yield "", {**head, "choices": [], "usage": usage}
    yield "", "[DONE]"


def messages(request: Json) -> Json | Iterator[Event]:
    """Answer as Anthropic's messages do."""
    turns = (text_of(message["content"]) for message in request["messages"])
    reply = answer("\n".join((text_of(request.get("system")), *turns)))
    head = {
        "id": f"msg_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": reply.input_tokens, "output_tokens": 0},
    }
    if request.get("stream"):
        return _message_events(head, reply)
    usage = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
    content = [{"type": "text", "text": reply.text}]
    return {**head, "content": content, "stop_reason": "end_turn", "usage": usage}


def _message_events(head: Json, reply: Answer) -> Iterator[Event]:
    def event(name: str, **data: Any) -> Event:
        return name, {"type": name, **data}

    yield event("message_start", message=head)
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for piece in reply.pieces:
        delta = {"type": "text_delta", "text": piece}
        yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=end, usage={"output_tokens": reply.output_tokens})
    yield event("message_stop")


ROUTES: Mapping[str, Route] = MappingProxyType(
    {"/v1/chat/completions": chat_completions, "/v1/messages": messages}
)
"""The path of each API and what answers it."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        route = self.server.routes.get(self.path)
        if route is None:
            self._send(404, {"error": {"type": "not_found", "message": f"no route {self.path}"}})
            return
        reply = route(json.loads(body))
        if isinstance(reply, dict):
            self._send(200, reply)
        else:
            self._stream(reply)

    def _send(self, status: int, reply: Json) -> None:
        octets = json.dumps(reply).encode()
        self._start(status, "application/json")
        self.wfile.write(octets)

    def _stream(self, events: Iterable[Event]) -> None:
        self._start(200, "text/event-stream")
        try:
            for name, data in events:
                shown = data if isinstance(data, str) else json.dumps(data)
                head = f"event: {name}\n" if name else ""
                self.wfile.write(f"{head}data: {shown}\n\n".encode())
        except ConnectionError:
            self.close_connection = True  # a reader may stop early

    def _start(self, status: int, content_type: str) -> None:
        # HTTP/1.0, the base class's default: the end of the connection ends the reply.
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing: the screen belongs to the demo."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, routes: Mapping[str, Route]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.routes = routes


class ModelServer:
    """Serves within a ``with`` block, on a free port.

    Args:
        routes: What is served; the two APIs by default.
    """

    def __init__(self, routes: Mapping[str, Route] = ROUTES) -> None:
        self._server = _Server(routes)
        # The poll interval is how long the end of the block may wait.
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
