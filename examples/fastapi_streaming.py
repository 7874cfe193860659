"""FastAPI: an async service that streams its answers; each sealed call has its own sources.

``python -m examples.fastapi_streaming [CHAIN.DB]`` starts the service on a free port, asks it
three questions at once, prints the answers and stops it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator

import httpx
import openai
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import bijotel
from bijotel import RAGSource
from demo import pipeline
from demo.server import ModelServer

QUESTIONS = (
    "How long is the warranty of the kettle?",
    "How do I descale the kettle?",
    "How long are spare parts delivered?",
)


def build_app(model_url: str) -> FastAPI:
    index = pipeline.build_index()
    client = openai.AsyncOpenAI(base_url=f"{model_url}/v1", api_key="none")
    app = FastAPI()

    @bijotel.with_rag_provenance(lambda _question, sources: sources)
    async def answer(question: str, sources: tuple[RAGSource, ...]) -> AsyncIterator[str]:
        """The scope lasts until the last piece is out; other requests run in between."""
        stream = await client.chat.completions.create(
            model="demo-model",
            messages=[{"role": "user", "content": pipeline.prompt(question, sources)}],
            stream=True,
        )
        async for chunk in stream:
            yield chunk.choices[0].delta.content or ""

    @app.get("/ask")
    async def ask(question: str) -> StreamingResponse:
        sources = await asyncio.to_thread(pipeline.retrieve, index, question)
        return StreamingResponse(answer(question, sources), media_type="text/plain")

    return app


async def serve_and_ask(app: FastAPI) -> list[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    port = listener.getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        replies = await asyncio.gather(
            *(client.get("/ask", params={"question": question}) for question in QUESTIONS)
        )
    server.should_exit = True
    await serving
    return [reply.raise_for_status().text for reply in replies]


def main(store: str = "chain.db") -> None:
    if "BIJOTEL_HMAC_SECRET_FILE" not in os.environ:
        os.environ.setdefault("BIJOTEL_HMAC_SECRET", secrets.token_hex(32))
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    bijotel.install(provider, store=store)
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    with ModelServer() as model:
        for line in asyncio.run(serve_and_ask(build_app(model.url))):
            print(line)
    provider.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
