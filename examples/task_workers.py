"""Workers like Celery's: two forked processes take questions from a queue and share one chain.

``python -m examples.task_workers [CHAIN.DB]``. The processor is installed before the workers are
forked, as in a prefork server; each child seals with a writer of its own into the same file. The
trace travels with the task, so that the caller's span and the worker's are one trace.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import sys
from typing import Any

from openinference.instrumentation.anthropic import AnthropicInstrumentor
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import TracerProvider

import bijotel
from demo import pipeline
from demo.server import ModelServer

QUESTIONS = (
    "How long is the warranty of the kettle?",
    "How do I descale the kettle?",
    "How long are spare parts delivered?",
    "Does the warranty cover the limescale filter?",
)
WORKERS = 2
_tracer = trace.get_tracer("example")


def work(url: str, tasks: Any, answers: Any) -> None:
    """What a worker does: until there is no more task, retrieve, ask and report."""
    index = pipeline.build_index()
    for task in iter(tasks.get, None):
        with _tracer.start_as_current_span(
            "task", context=propagate.extract(task["headers"]), kind=trace.SpanKind.CONSUMER
        ):
            sources = pipeline.retrieve(index, task["question"])
            answers.put(pipeline.ask_anthropic(url, task["question"], sources))
    trace.get_tracer_provider().force_flush()  # type: ignore[attr-defined]


def send(question: str, tasks: Any) -> None:
    """Put a question into the queue, with the current trace in its headers."""
    headers: dict[str, str] = {}
    with _tracer.start_as_current_span("send", kind=trace.SpanKind.PRODUCER):
        propagate.inject(headers)
        tasks.put({"question": question, "headers": headers})


def main(store: str = "chain.db") -> None:
    if "BIJOTEL_HMAC_SECRET_FILE" not in os.environ:
        os.environ.setdefault("BIJOTEL_HMAC_SECRET", secrets.token_hex(32))
    os.environ["ANTHROPIC_OPEN_TELEMETRY"] = "false"  # the SDK's own span would be a second one
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    bijotel.install(provider, store=store)
    AnthropicInstrumentor().instrument(tracer_provider=provider)
    fork = multiprocessing.get_context("fork")
    tasks, answers = fork.SimpleQueue(), fork.SimpleQueue()
    model = ModelServer()
    workers = [fork.Process(target=work, args=(model.url, tasks, answers)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    with model:
        for question in QUESTIONS:
            send(question, tasks)
        for _ in workers:
            tasks.put(None)
        for line in sorted(answers.get() for _ in QUESTIONS):
            print(line)
        for worker in workers:
            worker.join()
    provider.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
