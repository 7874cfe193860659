"""How fast ``bijotel audit`` reads OTLP/JSON lines, and that its memory does not grow with them.

The command runs in processes of its own, from start to summary. A trace is what LangChain under
OpenInference writes: eight spans of about 45 KB, ten passages of 800 characters retrieved, six of
them in the prompt, which four spans repeat. Every other line holds the first half of one trace
and the second half of another. The floor reads and parses the same lines with orjson.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import orjson

from benchmarks.table import Row, median_seconds, print_rows
from bijotel.audit.workers import usable_workers

SMALL_MB, LARGE_MB = 60, 180
_BEGINS = ("gri", "wa", "bur", "po", "de", "ser")
_MIDDLES = ("nd", "rran", "r", "wer", "li", "vi")
_ENDS = ("er", "ty", "s", "ing", "very", "ce", "ed", "")
_VOCABULARY = ["".join(parts) for parts in product(_BEGINS, _MIDDLES, _ENDS)]


def _text(chosen: random.Random, size: int) -> str:
    words = chosen.choices(_VOCABULARY, k=size // 6)
    return " ".join(words).capitalize()[: size - 1] + "."


def _spans(number: int) -> list[dict[str, object]]:
    """Make the spans of one trace."""
    chosen = random.Random(number)
    question = _text(chosen, 80)
    passages = [_text(chosen, 800) for _ in range(10)]
    context = "\n\n".join(passages[:6])
    system = "Answer from the context alone and name the source of each statement."
    prompt = f"Context:\n{context}\n\nQuestion: {question}"
    answer = _text(chosen, 700)
    documents = [
        {"id": f"d{n}", "metadata": {"source": "manual.md"}, "page_content": text}
        for n, text in enumerate(passages)
    ]
    request = {
        "model": "gpt-test",
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": prompt},
        ],
    }
    retriever: dict[str, object] = {"input.value": question}
    retriever["output.value"] = json.dumps({"documents": documents})
    for n, text in enumerate(passages):
        key = f"retrieval.documents.{n}.document"
        retriever |= {f"{key}.id": f"d{n}", f"{key}.content": text, f"{key}.score": 0.9 - n / 20}
        retriever[f"{key}.metadata"] = '{"source": "manual.md"}'
    model = {
        "input.value": json.dumps(request),
        "input.mime_type": "application/json",
        "output.value": json.dumps({"choices": [{"message": {"content": answer}}]}),
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": system,
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": prompt,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
        "llm.model_name": "gpt-test",
        "llm.token_count.prompt": 1200,
        "llm.token_count.completion": 170,
    }
    http = {"http.request.method": "POST", "server.address": "127.0.0.1", "server.port": 443}
    steps: list[tuple[str, str, dict[str, object]]] = [
        ("RunnableSequence", "CHAIN", {"input.value": question, "output.value": answer}),
        ("VectorStoreRetriever", "RETRIEVER", retriever),
        ("embed", "EMBEDDING", {"embedding.model_name": "e", "input.value": question}),
        ("POST", "", http),
        ("format", "CHAIN", {"input.value": json.dumps(documents), "output.value": context}),
        ("ChatPromptTemplate", "CHAIN", {"input.value": context, "output.value": prompt}),
        ("ChatModel", "LLM", model),
        ("POST", "", http),
    ]
    return [
        _span(
            number,
            place,
            name,
            {**attributes, **({"openinference.span.kind": kind} if kind else {})},
        )
        for place, (name, kind, attributes) in enumerate(steps)
    ]


def _span(number: int, place: int, name: str, attributes: dict[str, object]) -> dict[str, object]:
    start = 1_800_000_000_000_000_000 + number * 10**9 + place * 10**7
    kinds = {str: "stringValue", float: "doubleValue"}
    return {
        "traceId": f"{number + 1:032x}",
        "spanId": f"{number * 16 + place + 1:016x}",
        **({"parentSpanId": f"{number * 16 + 1:016x}"} if place else {}),
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + (10**9 if not place else 9 * 10**6)),
        "attributes": [
            {"key": key, "value": {kinds.get(type(value), "intValue"): value}}
            for key, value in attributes.items()
        ],
        "status": {"code": 1},
    }


def _line(spans: list[dict[str, object]]) -> bytes:
    resource_ = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    scope = {"name": "openinference.instrumentation.langchain", "version": "0.1.80"}
    return orjson.dumps(
        {
            "resourceSpans": [
                {"resource": resource_, "scopeSpans": [{"scope": scope, "spans": spans}]}
            ]
        }
    )


def lines(count: int) -> Iterator[bytes]:
    """Make the lines of so many pairs of traces, of which every other one is mixed."""
    for number in range(0, 2 * count, 2):
        one, two = _spans(number), _spans(number + 1)
        parts = ((one, two), (one[:4] + two[4:], two[:4] + one[4:]))[number // 2 % 2]
        yield from map(_line, parts)


def write(path: Path, megabytes: int) -> float:
    """Write a file of at least this size; the traces repeat under other ids."""
    patterns = list(lines(8))
    size = copy = 0
    with path.open("wb") as file:
        while size < megabytes * 10**6:
            for line in patterns:
                # Ids of one copy: the leading zeros of all ids become its number.
                octets = line.replace(b'"traceId":"0000000000', b'"traceId":"%010x' % copy)
                size += file.write(octets) + file.write(b"\n")
            copy += 1
    return size / 1e6


_MEASURED = """
import resource, sys
from bijotel.cli.app import run
code = run(sys.argv[1:])
for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
    print(resource.getrusage(whose).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def _audit(path: Path) -> tuple[float, float]:
    """Run the command; give its seconds and the peak memory of all its processes in MB."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, "audit", str(path), "--compact"],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = time.perf_counter() - started
    own, largest_worker = map(int, done.stderr.split())
    return seconds, (own + usable_workers() * largest_worker) / 1024


def _parse(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)


def rows() -> list[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="bijotel-bench-") as name:
        small, large = Path(name, "small.jsonl"), Path(name, "large.jsonl")
        small_mb, large_mb = write(small, SMALL_MB), write(large, LARGE_MB)
        runs = [_audit(large) for _ in range(3)]
        rate = large_mb / sorted(seconds for seconds, _ in runs)[1]
        floor = small_mb / median_seconds(lambda: _parse(small), 3)
        peak_small, peak_large = _audit(small)[1], runs[0][1]
    return [
        Row(
            "audit, OTLP/JSON lines",
            f"{rate:.1f} MB/s",
            f"{floor:.0f} MB/s (orjson alone)",
            f"{rate / floor:.2f} x",
            ">= 20 MB/s",
            rate >= 20,
        ),
        Row(
            f"audit, peak memory at {large_mb:.0f} MB",
            f"{peak_large:.0f} MB",
            f"{peak_small:.0f} MB at {small_mb:.0f} MB",
            f"{peak_large / peak_small:.2f} x",
            "<= 1.2 x and < 500 MB",
            peak_large <= 1.2 * peak_small and peak_large < 500,
        ),
    ]


if __name__ == "__main__":
    print_rows(rows())
