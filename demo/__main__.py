"""``python -m demo``: seal a real pipeline's calls, look at them, tamper with one, be caught.

Everything is made in ``demo-output`` in the current folder, afresh in each run. The exit code is
0 only if every step did what the text on the screen says.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import bijotel
from demo import pipeline
from demo.server import ModelServer
from demo.tamper import change_one_byte

OUTPUT = Path("demo-output")
KEY_FILE = OUTPUT / "hmac.key"
STORE = OUTPUT / "chain.db"

Show: TypeAlias = "Callable[[list[str]], list[str]]"

WIDTH = 100
# What is shown of an entry's metadata; the rest is ids, hashes and times.
METADATA = ("seq:", "name:", "model:", "input_tokens:", "output_tokens:", "tag:")

# What a shell may have set otherwise: loopback needs no proxy, and the prompt is to be recorded.
ENVIRONMENT = {
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
    "OTEL_SDK_DISABLED": "false",
    "TRACELOOP_TRACE_CONTENT": "true",
}

ENTRY = 1
OLD, NEW = b"warranty of 3 years", b"warranty of 5 years"


def main() -> None:
    """Tell the story from the key to the tampering that is found."""
    logging.basicConfig(handlers=[_OnScreen()])
    os.environ.update(ENVIRONMENT)
    clean()
    title("1. Make a key, and install the processor in a tracer provider")
    run("keygen", "--output", str(KEY_FILE), show=first_two)
    os.environ.pop("BIJOTEL_HMAC_SECRET", None)
    os.environ["BIJOTEL_HMAC_SECRET_FILE"] = str(KEY_FILE)

    title("2. Ask: Qdrant in memory, the openai and anthropic SDKs with published instrumentations")
    ask()

    title("3. Look at what was sealed: the spans of the model calls have their sources")
    run("list", "--db", str(STORE), show=narrower)
    inspected = run("inspect", "--db", str(STORE), str(ENTRY), show=shortened)
    expect("VERIFIED" in inspected and "source 3:" in inspected, "a verified entry with 3 sources")

    title("4. Verify the chain")
    run("verify", "--db", str(STORE))

    title(f"5. Change one byte of the stored prompt of entry {ENTRY}, and verify again")
    change_one_byte(STORE, ENTRY, OLD, NEW)
    say(f"with sqlite3: {OLD.decode()!r} is now {NEW.decode()!r}")
    verdict = run("verify", "--db", str(STORE), expected=1, show=without_notices)
    expect(f"entry {ENTRY}, column body" in verdict, "the entry and the column to be named")
    say(f"Caught: exit code 1, entry {ENTRY}, column body; every other entry holds.")


def clean() -> None:
    """Leave nothing of an earlier run."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir()


def ask() -> None:
    """Run the pipeline: two questions, one through each SDK."""
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    processor = bijotel.install(provider, store=STORE)
    pipeline.instrument(provider)
    index = pipeline.build_index()
    with ModelServer() as server:
        say(f"Only the model is a stand-in: {server.url} answers with a sentence of the prompt.")
        for function, question in (
            (pipeline.ask_openai, "How long is the warranty of the kettle?"),
            (pipeline.ask_anthropic, "How do I descale the kettle?"),
        ):
            sources = pipeline.retrieve(index, question)
            answer = function(server.url, question, sources)
            processor.force_flush()
            say(f"{function.__name__}: {question}")
            say(f"  retrieved  {', '.join(map(describe, sources))}")
            say(f"  answered   {answer}")
    index.close()
    provider.shutdown()


def describe(source: bijotel.RAGSource) -> str:
    """Name a source in a few words."""
    return f"{source.source_uri}#{source.chunk_index} ({source.similarity_score:.2f})"


def run(command: str, *arguments: str, expected: int = 0, show: Show = list) -> str:
    """Run a bijotel command as a user would, and show what it prints."""
    print(f"   $ bijotel {command} {' '.join(arguments)}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "bijotel", command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    for line in show(lines) if done.returncode == expected else lines:
        say(line)
    expect(done.returncode == expected, f"exit code {expected}, got {done.returncode}")
    return done.stdout


def first_two(lines: list[str]) -> list[str]:
    """Leave out the hints."""
    return lines[:2]


def narrower(lines: list[str]) -> list[str]:
    """Make a table narrower: no more than two blank columns side by side. The last line is none."""
    *rows, last = lines
    # Of the times only the hours are shown: everything here happened just now.
    rows = [re.sub(r"(?<=time) {11}|\d{4}-\d\d-\d\dT", "", row, count=1) for row in rows]
    width = max(map(len, rows))
    padded = [row.ljust(width) for row in rows]
    kept = [at for at in range(width) if any(row[at : at + 3].strip() for row in padded)]
    return [*("".join(row[at] for at in kept) for row in padded), last]


def shortened(lines: list[str]) -> list[str]:
    """Leave out what fills a screen: most of the metadata, and the body itself."""
    end = next(at for at, line in enumerate(lines) if line.startswith("=== Canonical Body"))
    start = lines.index("=== Span Metadata ===") + 1
    metadata, rest = lines[start : lines.index("", start)], lines[lines.index("", start) : end]
    shown = [*lines[:start], *(line for line in metadata if line.startswith(METADATA)), *rest]
    return [*filter(None, shown), "(and the canonical body; left out here, as is some metadata)"]


def without_notices(lines: list[str]) -> list[str]:
    """Leave out what was shown a moment ago."""
    return [line for line in lines if not line.startswith("not checked:")]


def title(text: str) -> None:
    """Begin a step."""
    print(f"\n{text}", flush=True)


def say(text: str) -> None:
    """Print one line, or as many as it needs."""
    indent = "   " + " " * (len(text) - len(text.lstrip()))
    lines = textwrap.wrap(
        text.strip(), WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  "
    )
    print("\n".join(lines), flush=True)


def expect(fulfilled: bool, what: str) -> None:
    """Stop with exit code 1 where a step did not do what it says."""
    if not fulfilled:
        sys.exit(f"demo: failed: expected {what}")


class _OnScreen(logging.Handler):
    """Shows what is logged, by whomever, where it happens."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"log: {record.getMessage()}".replace(f"{Path.cwd()}/", ""))


if __name__ == "__main__":
    main()
