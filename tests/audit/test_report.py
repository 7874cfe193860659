"""The JSON document, the JUnit file and the summary: shape, nulls, order, counts."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from xml.etree import ElementTree as ET

import pytest

from bijotel.audit import TraceAudit, audit_trace
from bijotel.audit.report import JsonReport, JUnitReport, Summary, Thresholds, audit_document
from tests.audit.conftest import TRACE_ID, call, genai_call, genai_search, search, text, trace

A, B, C, D = (text(name * number) for number, name in enumerate("abcd", start=1))
GOOD = audit_trace(trace(search(1, A), call(2, A)))
FAIR = audit_trace(trace(search(1, A, B, C, D), call(2, A, B)))
POOR = audit_trace(trace(search(1, A, B), call(2, "Hello")))
NONE = audit_trace(trace(call(2, "Hello")))


def document(*audits: TraceAudit, **last) -> dict:
    lines: list[str] = []
    report, summary = JsonReport(lines.append), Summary()
    for each in audits:
        report.add(each)
        summary.add(each)
    report.end(summary, **last)
    assert len(lines) == len(audits) + 2
    return json.loads("\n".join(lines))


def junit(audits: Sequence[TraceAudit], thresholds: Thresholds) -> ET.Element:
    file = io.StringIO()
    report = JUnitReport(file, thresholds)
    for each in audits:
        report.add(each)
    report.end()
    return ET.fromstring(file.getvalue().split("\n", 1)[1])


def test_a_scored_trace_in_full():
    """Every key of one trace, in order."""
    audit = audit_trace(trace(genai_search(1, A, B, scores=[0.5, None]), genai_call(2, "So:", A)))
    assert audit_document(audit) == {
        "trace_id": TRACE_ID,
        "verdict": "WARN",
        "reason": None,
        "overall": 60,
        "scores": {
            "precision": 50.0,
            "efficiency": 50.0,
            "uniqueness": 100.0,
            "coverage": 50.0,
            "rerank_gain": None,
        },
        "answering_span_id": f"{2:016x}",
        "answer_certain": True,
        "calls": [
            {
                "span_id": f"{2:016x}",
                "role": "answer",
                "statuses": {"d0": "included", "d1": "absent"},
            }
        ],
        "passages": [
            {
                "id": "d0",
                "text": A,
                "status": "included",
                "containment": 1.0,
                "reason": None,
                "position": 0,
                "covered_by": None,
                "score": 0.5,
                "rank": 1,
                "source_span_id": f"{1:016x}",
            },
            {
                "id": "d1",
                "text": B,
                "status": "absent",
                "containment": 0.0,
                "reason": None,
                "position": None,
                "covered_by": None,
                "score": None,
                "rank": 2,
                "source_span_id": f"{1:016x}",
            },
        ],
        "recommendations": ["reduce top-k 2 -> 1", "20 of 40 retrieved words are wasted: retrieve less, or pass more"],
    }  # fmt: skip


def test_a_trace_that_is_not_applicable():
    """Null wherever there is nothing to say, and the passages all the same."""
    shown = audit_document(audit_trace(trace(genai_search(1, None, None))))
    assert shown == {
        "trace_id": TRACE_ID,
        "verdict": "NOT_APPLICABLE",
        "reason": "no prompt recorded",
        "overall": None,
        "scores": dict.fromkeys(
            ("precision", "efficiency", "uniqueness", "coverage", "rerank_gain")
        ),
        "answering_span_id": None,
        "answer_certain": None,
        "calls": [],
        "passages": shown["passages"],
        "recommendations": [],
    }
    assert [(p["id"], p["text"], p["status"]) for p in shown["passages"]] == [
        ("d0", None, "unknown"),
        ("d1", None, "unknown"),
    ]


def test_statuses_are_under_names_that_are_unique():
    """A passage without an id of its own is named by its place in the list."""
    hits = [{"content": A}, {"content": B, "id": "x"}, {"content": C, "id": "x"}]
    found = genai_search(1)
    found.attributes["gen_ai.retrieval.documents"] = json.dumps(hits)
    shown = audit_document(audit_trace(trace(found, genai_call(2, A, B))))
    statuses = {"@0": "included", "@1": "included", "@2": "absent"}
    assert shown["calls"][0]["statuses"] == statuses
    assert [each["id"] for each in shown["passages"]] == [None, "x", "x"]


def test_lone_surrogates_do_not_spoil_the_document():
    """They are written as text, since some readers refuse them."""
    audit = audit_trace(trace(search(1, f"{A} \ud800"), call(2, A)))
    assert document(audit)["traces"][0]["passages"][0]["text"] == f"{A} \\ud800"


def test_the_document_of_a_session():
    """Traces in order, and means over those alone that have a score."""
    shown = document(GOOD, NONE, POOR, FAIR)
    verdicts = [each["verdict"] for each in shown["traces"]]
    assert verdicts == ["PASS", "NOT_APPLICABLE", "FAIL", "WARN"]
    assert shown["summary"] == {
        "traces": 4,
        "audited": 3,
        "not_applicable": 1,
        "pass": 1,
        "warn": 1,
        "fail": 1,
        "mean_overall": (100 + 30 + 65) / 3,
        "skipped_lines": 0,
    }
    assert list(shown) == ["traces", "summary"]


def test_an_empty_session_has_no_mean():
    """Null, not zero."""
    assert document()["summary"]["mean_overall"] is None
    assert document(NONE)["summary"]["mean_overall"] is None


def test_an_error_stands_in_the_document():
    """So that nobody takes what is there for all."""
    error = {"error": {"code": "unavailable", "message": "x: no such file"}}
    assert document(GOOD, error=error)["error"] == error["error"]


@pytest.mark.parametrize(
    ("thresholds", "missed"),
    [
        (Thresholds(), ()),
        (Thresholds(overall=65), ()),
        (Thresholds(overall=65.5), ("overall 65 is below 65.5",)),
        (Thresholds(precision=50), ()),
        (Thresholds(75, 60), ("overall 65 is below 75", "precision 50 is below 60")),
    ],
)
def test_thresholds(thresholds, missed):
    """A trace is held to each that is given; what is exactly there is enough."""
    assert thresholds.missed_by(FAIR) == missed


def test_a_trace_without_a_score_misses_nothing():
    """It is neither good nor bad."""
    assert Thresholds(100, 100).missed_by(NONE) == ()


def test_junit_without_thresholds():
    """A case a trace: ``FAIL`` fails, not applicable is skipped, ``WARN`` passes."""
    suite = junit([GOOD, NONE, POOR, FAIR], Thresholds())
    assert suite.attrib == {
        "name": "bijotel audit",
        "errors": "0",
        "tests": "4",
        "failures": "1",
        "skipped": "1",
    }
    outcomes = [[(each.tag, each.get("message")) for each in case] for case in suite]
    assert outcomes == [[], [("skipped", "no retrieval recorded")], [("failure", "overall 30")], []]
    assert {case.get("name") for case in suite} == {TRACE_ID}
    assert suite[2][0].text.startswith("none of the 2 retrieved passages")


def test_junit_with_thresholds():
    """Then they alone decide."""
    suite = junit([GOOD, FAIR, POOR, NONE], Thresholds(precision=60))
    messages = [case[0].get("message") for case in suite if len(case)]
    assert messages == [
        "precision 50 is below 60",
        "precision 0 is below 60",
        "no retrieval recorded",
    ]
    assert (suite.get("failures"), suite.get("skipped")) == ("2", "1")


def test_junit_of_nothing():
    """An empty suite is well formed."""
    assert junit([], Thresholds()).get("tests") == "0"
