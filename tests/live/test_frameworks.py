"""The joined verdicts agree with what a live framework's pipeline put into its prompt.

Each pipeline of ``frameworks/`` runs in a process of its own, under a published instrumentation,
and all its spans are sealed. What is judged is the chain: one passage went into the prompt whole,
one cut after thirteen of its twenty words, and one was dropped.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bijotel import verify_chain
from bijotel.audit.join import join_trace
from bijotel.audit.model import TraceContext
from bijotel.model import Entry, SpanRecord
from bijotel.spans.decode import decode_record
from bijotel.stores.sqlite import SqliteStore
from bijotel.traces.reader import group_records

pytestmark = pytest.mark.live

APP = Path(__file__).parent / "frameworks"
ROOT = APP.parent.parent.parent
KEY = bytes(range(32))
VERDICTS = {"whole": ("included", 1.0), "cut": ("partial", 0.65), "dropped": ("absent", 0.0)}


def _passages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("passages", APP / "passages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TEXTS: dict[str, str] = _passages().TEXTS


def run(name: str, folder: Path) -> list[SpanRecord]:
    """Run one pipeline; give the spans of its chain, which must verify."""
    store = folder / "chain.db"
    kept = {key: value for key, value in os.environ.items() if "PROXY" not in key.upper()}
    # With a tracing key in the environment LangChain would send its runs to a server.
    kept = {key: value for key, value in kept.items() if not key.startswith("LANG")}
    done = subprocess.run(
        [sys.executable, str(APP), name, str(store)],
        env={
            **kept,
            "PYTHONPATH": str(ROOT),
            "BIJOTEL_HMAC_SECRET": KEY.hex(),
            "HAYSTACK_TELEMETRY_ENABLED": "False",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert verify_chain(store, KEY, deep=True).findings == ()
    with SqliteStore(store).snapshot() as snapshot:
        entries = [Entry._make(row.columns) for row in snapshot.scan(0, 1000)]
    return [decode_record(entry.body) for entry in entries if entry.kind == "span"]


def answered(spans: list[SpanRecord], texts_by_id: dict[str, str] | None = None) -> TraceContext:
    """Join the one trace that has a model call."""
    texts = texts_by_id or {}
    contexts = [join_trace(trace, texts.get) for trace in group_records(spans)]
    (context,) = [context for context in contexts if context.calls]
    return context


def check(context: TraceContext) -> None:
    """The rule: three passages, each with its own verdict, found in the call that answers."""
    assert [call.role for call in context.calls] == ["answer"]
    assert len(context.retrievals) == 1
    assert {
        passage.id: (passage.verdict.status, passage.verdict.containment)
        for passage in context.passages
    } == VERDICTS
    assert [passage.rank for passage in context.passages] == [1, 2, 3]
    for passage in context.passages:
        shown = " ".join(context.calls[0].text[start:end] for start, end in passage.verdict.regions)
        words = TEXTS[passage.id].split()
        assert shown.split() == words[: round(len(words) * VERDICTS[passage.id][1])]


@pytest.mark.parametrize("name", ["openinference-langchain", "openllmetry-langchain"])
def test_langchain(name: str, tmp_path: Path) -> None:
    """The retriever's documents and the chat model's prompt, under both instrumentations."""
    context = answered(run(name, tmp_path))
    assert {passage.id: passage.text for passage in context.passages} == {
        passage: TEXTS[passage] for passage in VERDICTS
    }
    check(context)


def test_langchain_under_the_official_instrumentation(tmp_path: Path) -> None:
    """It records ids alone: unknown from the trace, decided with the texts of the corpus."""
    spans = run("official-langchain", tmp_path)
    alone = answered(spans)
    assert {passage.id: passage.verdict.status for passage in alone.passages} == dict.fromkeys(
        VERDICTS, "unknown"
    )
    assert all(passage.verdict.reason for passage in alone.passages)
    check(answered(spans, TEXTS))


def test_llama_index(tmp_path: Path) -> None:
    """Two nested retriever spans and two nested model spans are one search and one call."""
    check(answered(run("openinference-llama-index", tmp_path)))


def test_haystack(tmp_path: Path) -> None:
    """What the budget and the prompt builder hand on is no retrieval."""
    check(answered(run("openinference-haystack", tmp_path)))
