"""A gate for CI: a change of the retriever fails the build when too little of it is used.

``python -m examples.ci_gate LIMIT [FOLDER]``: LIMIT is how many passages the changed retriever
fetches; the prompt has room for three. The exit code is that of ``bijotel audit``: 0 when every
trace reaches the precision, 1 when one does not, 3 when there was nothing to judge.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import openai
from openinference.instrumentation import get_retriever_attributes
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from qdrant_client import QdrantClient

import bijotel
from bijotel import RAGSource, sources_from
from demo import embedding, pipeline
from demo.server import ModelServer

QUESTIONS = ("How long is the warranty of the kettle?", "How do I descale the kettle?")
ROOM = 3
MIN_PRECISION = "60"


def retrieve(index: QdrantClient, question: str, limit: int) -> tuple[RAGSource, ...]:
    """The retriever under test, in a span that holds what it found."""
    with trace.get_tracer("example").start_as_current_span(
        "search", attributes={"openinference.span.kind": "RETRIEVER"}
    ) as span:
        points = index.query_points("ostra", query=embedding.embed(question), limit=limit)
        found = sources_from(points, retriever="qdrant")
        span.set_attributes(
            get_retriever_attributes(
                documents=[
                    {
                        "id": source.document_id,
                        "content": source.content or "",
                        "score": source.similarity_score or 0.0,
                    }
                    for source in found
                ]
            )
        )
    return found


def ask(client: openai.OpenAI, question: str, sources: tuple[RAGSource, ...]) -> None:
    """The pipeline: what fits goes into the prompt, the rest is dropped."""
    client.chat.completions.create(
        model="demo-model",
        messages=[{"role": "user", "content": pipeline.prompt(question, sources[:ROOM])}],
    )


def run_pipeline(store: Path, limit: int) -> None:
    provider = TracerProvider()
    bijotel.install(provider, store=store)
    trace.set_tracer_provider(provider)
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    index = pipeline.build_index()
    tracer = trace.get_tracer("example")
    with (
        ModelServer() as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client,
    ):
        for question in QUESTIONS:
            with tracer.start_as_current_span("request"):
                ask(client, question, retrieve(index, question, limit))
    provider.shutdown()


def main(limit: str, folder: str = ".") -> int:
    if "BIJOTEL_HMAC_SECRET_FILE" not in os.environ:
        os.environ.setdefault("BIJOTEL_HMAC_SECRET", secrets.token_hex(32))
    store = Path(folder) / "chain.db"
    run_pipeline(store, int(limit))
    audit = [sys.executable, "-m", "bijotel", "audit", "--db", str(store), "--compact"]
    gate = ["--min-precision", MIN_PRECISION, "--junit", str(store.with_name("audit.xml"))]
    return subprocess.run([*audit, *gate], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
