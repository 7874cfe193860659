"""Every example runs offline as it stands, and leaves a chain that says what its text says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bijotel import verify_chain
from bijotel.model import Entry, SpanRecord
from bijotel.spans.decode import decode_record
from bijotel.spans.select import is_model_call
from bijotel.stores.sqlite import SqliteStore

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parent.parent
KEY = bytes(range(32))
EXAMPLES = {path.stem for path in (ROOT / "examples").glob("*.*") if path.name != "README.md"}
WARRANTY = "The Ostra kettle has a warranty of 3 years from the date of purchase."
DESCALING = (
    "Descale the kettle once a month: boil it with 20 grams of citric acid, "
    "wait fifteen minutes, rinse it twice."
)


def environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if "PROXY" not in key.upper()}
    kept = {key: value for key, value in kept.items() if not key.startswith("LANG")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**kept, "PATH": path, "PYTHONPATH": str(ROOT), "BIJOTEL_HMAC_SECRET": KEY.hex()}


def run(*command: str, folder: Path, code: int = 0) -> str:
    """Run a command in a folder; give its standard output."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def example(name: str, folder: Path) -> str:
    """Run an example into ``chain.db`` of a folder; its chain verifies."""
    said = run(sys.executable, "-m", f"examples.{name}", folder=folder)
    assert verify_chain(folder / "chain.db", KEY, deep=True).findings == ()
    return said


def audited(folder: Path) -> list[dict[str, Any]]:
    """Give the audits of the traces that can be scored."""
    output = run(
        sys.executable, "-m", "bijotel", "audit", "--db", "chain.db", "--json", folder=folder
    )
    return [each for each in json.loads(output)["traces"] if each["verdict"] != "NOT_APPLICABLE"]


def spans(folder: Path) -> list[SpanRecord]:
    with SqliteStore(folder / "chain.db").snapshot() as snapshot:
        entries = [Entry._make(row.columns) for row in snapshot.scan(0, 1000)]
    return [decode_record(entry.body) for entry in entries if entry.kind == "span"]


def statuses(audit: dict[str, Any]) -> Counter[str]:
    return Counter(passage["status"] for passage in audit["passages"])


def test_langchain_with_a_reranker(tmp_path: Path) -> None:
    """Six were retrieved, three are in the prompt, and the reranker is held to what it gained."""
    assert example("langchain_rerank", tmp_path).splitlines()[-1] == WARRANTY
    (audit,) = audited(tmp_path)
    assert statuses(audit) == {"included": 3, "absent": 3}
    assert audit["scores"]["precision"] == 100
    assert audit["scores"]["rerank_gain"] > 50


def test_llama_index(tmp_path: Path) -> None:
    """All three nodes are in the prompt, whole."""
    assert example("llama_index_rag", tmp_path).splitlines() == [DESCALING]
    (audit,) = audited(tmp_path)
    assert (audit["verdict"], statuses(audit)) == ("PASS", {"included": 3})


def test_fastapi_streams_and_keeps_the_requests_apart(tmp_path: Path) -> None:
    """Three requests at once: each call has sources of its own, and all were in its prompt."""
    said = example("fastapi_streaming", tmp_path).splitlines()
    assert said[:2] == [WARRANTY, DESCALING]
    calls = [span for span in spans(tmp_path) if is_model_call(span.attributes)]
    nearest = {
        json.loads(call.attributes["bijotel.rag.sources"])[0]["document_id"] for call in calls
    }
    assert (len(calls), nearest) == (3, {1, 4, 6})
    assert {call.inherited["bijotel.rag.in_context_count"] for call in calls} == {3}


def test_workers_share_one_chain_and_the_callers_trace(tmp_path: Path) -> None:
    """Four tasks by forked processes: every call is there once, with its sources."""
    assert len(example("task_workers", tmp_path).splitlines()) == 4
    calls = [span for span in spans(tmp_path) if is_model_call(span.attributes)]
    assert [call.inherited["bijotel.rag.in_context_count"] for call in calls] == [3] * 4
    assert len({call.trace_id for call in calls}) == 4


def test_the_agents_tool_is_the_retrieval(tmp_path: Path) -> None:
    """What the tool returned is in the prompt of the answer; the call that asked for it feeds it."""
    assert example("agent", tmp_path).splitlines() == [WARRANTY]
    (audit,) = audited(tmp_path)
    assert (audit["overall"], audit["answer_certain"]) == (100, True)
    assert [call["role"] for call in audit["calls"]] == ["contributing", "answer"]


@pytest.mark.parametrize(("limit", "code", "shown"), [("3", 0, "PASS 100"), ("6", 1, "WARN  67")])
def test_the_gate_lets_through_and_stops(limit: str, code: int, shown: str, tmp_path: Path) -> None:
    """A retriever that fetches twice what fits is stopped, with a JUnit file that says so."""
    command = [sys.executable, "-m", "examples.ci_gate", limit]
    said = run(*command, folder=tmp_path, code=code)
    assert said.count(shown) == 2
    junit = (tmp_path / "audit.xml").read_text(encoding="utf-8")
    assert junit.count("<failure") == 2 * code


def test_the_auditors_session_ends_with_the_forgery_that_is_caught(tmp_path: Path) -> None:
    """Made in a new folder: what was handed over holds without a secret, a changed answer not."""
    script, folder = ROOT / "examples/auditor_session.sh", tmp_path / "not" / "there"
    said = run("bash", str(script), str(folder), folder=tmp_path)
    _, _, auditor = said.partition("== The auditor: nothing but files")
    honest, _, forged = auditor.partition("== The auditor: a copy in which")
    assert honest.count("OK: ") == 3
    assert "from 5 to 10 entries the log only appended" in honest
    assert "checkpoint-mismatch: column ranges" in forged
    assert forged.rstrip().endswith("exit code 1")


def test_every_example_is_run() -> None:
    """A file in the folder without a test here is a defect."""
    source = Path(__file__).read_text(encoding="utf-8")
    assert EXAMPLES
    assert {name for name in EXAMPLES if not re.search(rf'["./]{name}["\\.]', source)} == set()
