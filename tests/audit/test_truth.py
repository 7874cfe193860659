"""Every recorded trace against what its truth file says, in every form in which it is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bijotel.audit.join import join_trace
from bijotel.audit.model import JudgedPassage, TraceContext
from bijotel.context_matching.tokens import words
from bijotel.traces.model import SkippedLine
from bijotel.traces.reader import read_traces

TRACES = Path(__file__).resolve().parent.parent / "data" / "traces"
TOLERANCE = 0.03


def forms() -> Iterator[tuple[str, list[str]]]:
    """Each truth file with each set of files that holds its capture."""
    for path in sorted(TRACES.glob("*.truth.json")):
        truth = json.loads(path.read_text(encoding="utf-8"))
        logs = [name for name in truth["also"] if ".logs." in name]
        for name in [truth["file"], *(name for name in truth["also"] if name not in logs)]:
            yield path.name, [name, *logs]


CASES = [
    pytest.param(truth, files, mode, id=f"{files[0]}-{mode}")
    for truth, files in forms()
    for mode in ("expect", "with_corpus")
]


def contexts(truth: dict[str, Any], files: list[str], mode: str) -> dict[str, TraceContext]:
    skipped: list[SkippedLine] = []
    traces = read_traces([TRACES / name for name in files], skipped=skipped.append)
    chunks = {key: chunk["text"] for key, chunk in truth["chunks"].items()}
    text_of = chunks.get if mode == "with_corpus" else lambda _: None
    found = {trace.trace_id: join_trace(trace, text_of) for trace in traces}
    assert skipped == []
    return found


def is_row(passage: JudgedPassage, row: dict[str, Any]) -> bool:
    """Find a row by text in normal form, by id where the trace holds no text."""
    if row["text"] is None:
        return passage.id == row["chunk_id"]
    return passage.text is not None and words(passage.text) == words(row["text"])


def one(passages: tuple[JudgedPassage, ...], row: dict[str, Any]) -> JudgedPassage | None:
    found = [passage for passage in passages if is_row(passage, row)]
    assert len(found) <= 1, f"{row['chunk_id']} is there {len(found)} times"
    return found[0] if found else None


def check_row(context: TraceContext, row: dict[str, Any], want: str) -> None:
    passage = one(context.passages, row)
    if want == "unknown":
        assert passage is None or passage.verdict.status == "unknown", row["chunk_id"]
        assert passage is None or passage.verdict.reason
        return
    assert passage is not None, f"{row['chunk_id']} is not listed"
    verdict = passage.verdict
    assert verdict.status == want, (row["chunk_id"], verdict)
    if want == "partial":
        assert verdict.containment == pytest.approx(row["containment"], abs=TOLERANCE)
    if want != "absent":
        assert passage.call is not None
        text = context.calls[passage.call].text
        assert all(text[start:end].strip() for start, end in verdict.regions)
    covering = None if verdict.covered_by is None else context.passages[verdict.covered_by].id
    assert covering == row.get("covered_by")


@pytest.mark.parametrize(("truth", "files", "mode"), CASES)
def test_verdicts_agree_with_the_truth(truth: str, files: list[str], mode: str):
    """The verdict of every row is that of the truth file, and no passage is made up."""
    content = json.loads((TRACES / truth).read_text(encoding="utf-8"))
    found = contexts(content, files, mode)
    assert list(found) == list(content["traces"])
    for trace_id, rows in content["traces"].items():
        for row in rows:
            check_row(found[trace_id], row, row[mode])
        for passage in found[trace_id].passages:
            assert any(is_row(passage, row) for row in rows), passage


@pytest.mark.parametrize(("truth", "files"), list(forms()))
def test_each_call_has_its_own_verdicts(truth: str, files: list[str]):
    """Where the truth file judges single calls, these are the calls, with these verdicts."""
    content = json.loads((TRACES / truth).read_text(encoding="utf-8"))
    found = contexts(content, files, "expect")
    for trace_id, info in content["info"].items():
        rows = {row["chunk_id"]: row for row in content["traces"][trace_id]}
        context = found[trace_id]
        wanted = info.get("calls", [])
        if wanted:
            assert [call.call.span.span_id for call in context.calls] == [
                call["span_id"] for call in wanted
            ]
        for call, judged in zip(wanted, context.calls, strict=False):
            got = {
                key: judged.verdicts[number].status
                for number, passage in enumerate(context.passages)
                for key, row in rows.items()
                if is_row(passage, row)
            }
            assert got == call["expect"]


def test_every_capture_is_driven():
    """No truth file and no capture in the folder is left out."""
    used = {name for _, files in forms() for name in files}
    there = {path.name for path in TRACES.iterdir() if ".truth." not in path.name}
    assert used == there
    assert len(list(TRACES.glob("*.truth.json"))) == 35
