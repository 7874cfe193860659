"""Findings, notices and reports."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from bijotel.errors import UnavailableError, VerificationError
from bijotel.findings import ChainReport, Finding, Notice, Report, merge_runs, plain


def finding(code: str = "tag-mismatch", seq: int | None = 5, **more: Any) -> Finding:
    fields = {"chain": "ab", "last_seq": seq, "column": "tag", **more}
    return Finding(code, f"entry {seq}: wrong", seq=seq, **fields)


def report(*findings: Finding, **more: Any) -> Report:
    return Report((), findings, **more)


@pytest.mark.parametrize("findings", [(), (finding(),)])
def test_a_report_has_no_truth_value(findings: tuple[Finding, ...]):
    """Neither a good nor a bad report can be mistaken for an answer."""
    with pytest.raises(TypeError, match=r"ask \.ok or call \.raise_for_findings\(\)"):
        bool(report(*findings))


@pytest.mark.parametrize(
    ("codes", "exit_code"),
    [
        ((), 0),
        (("tag-mismatch",), 1),
        (("key-unknown",), 3),
        (("format-unknown",), 3),
        (("key-unknown", "format-unknown"), 3),
        (("key-unknown", "tag-mismatch"), 1),
        (("format-unknown", "seq-gap", "key-unknown"), 1),
    ],
)
def test_exit_codes(codes: tuple[str, ...], exit_code: int):
    """What is false outranks what could not be checked; neither is 0."""
    result = report(*map(finding, codes))
    assert result.exit_code == exit_code
    assert result.ok == (exit_code == 0)


def test_raising_for_findings():
    """The error's branch follows the exit code, and its text tells the first finding."""
    report().raise_for_findings()
    with pytest.raises(VerificationError, match=r"^tag-mismatch: entry 5: wrong$"):
        report(finding()).raise_for_findings()
    with pytest.raises(VerificationError, match=r"^seq-gap: entry 1: wrong \(and 2 more\)$"):
        report(finding("seq-gap", 1), finding(), finding()).raise_for_findings()
    with pytest.raises(UnavailableError, match=r"^key-unknown: entry 5: wrong$"):
        report(finding("key-unknown")).raise_for_findings()


def test_successive_findings_of_one_kind_become_one():
    """A run keeps its first finding and its last number."""
    merged = merge_runs(finding(seq=seq) for seq in (5, 6, 7))
    assert [(item.seq, item.last_seq, item.message) for item in merged] == [
        (5, 7, "entry 5: wrong")
    ]


@pytest.mark.parametrize(
    "second",
    [
        finding(seq=7),
        finding(seq=5),
        finding(seq=4),
        finding(seq=None),
        finding("seq-gap", 6),
        finding(seq=6, column="body"),
        finding(seq=6, column=None),
        finding(seq=6, chain="cd"),
    ],
    ids=range(8),
)
def test_findings_that_are_not_one_run(second: Finding):
    """Another number, code, column or chain begins another finding."""
    assert merge_runs([finding(seq=5), second]) == (finding(seq=5), second)


def test_runs_of_runs():
    """Findings that span several entries join where one ends and the next begins."""
    parts = [
        finding("seq-gap", 5, last_seq=9),
        finding("seq-gap", 10, last_seq=10),
        finding("seq-gap", 12, last_seq=15),
    ]
    merged = [(item.seq, item.last_seq) for item in merge_runs(parts)]
    assert merged == [(5, 10), (12, 15)]
    assert merge_runs([finding(seq=None), finding(seq=None)]) == (finding(seq=None),) * 2
    assert merge_runs([]) == ()


def test_the_json_document():
    """The members and their order are those that --json promises."""
    result = Report(
        (ChainReport("ab", "default", 3, 2, {"span": 2, "genesis": 1}),),
        (finding(expected=b"\x00\xff", found=None),),
        (Notice("clock-step", "entry 2: back", "ab", 2),),
        {"chains": 1, "entries": 3, "deep": False},
        ("which chain this is",),
    )
    document = result.as_dict()
    assert list(document) == ["ok", "chains", "findings", "notices", "checked", "not_checked"]
    assert document["ok"] is False
    assert document["chains"] == [
        {
            "chain": "ab",
            "name": "default",
            "entries": 3,
            "last_seq": 2,
            "kinds": {"span": 2, "genesis": 1},
        }
    ]
    assert document["findings"] == [
        {
            "code": "tag-mismatch",
            "chain": "ab",
            "seq": 5,
            "column": "tag",
            "last_seq": 5,
            "expected": "00ff",
            "found": None,
            "message": "entry 5: wrong",
        }
    ]
    assert document["notices"] == [
        {"code": "clock-step", "chain": "ab", "seq": 2, "message": "entry 2: back"}
    ]
    assert json.loads(json.dumps(document)) == document


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"\x00\xff", "00ff"),
        (bytes(65), "00" * 64 + "..."),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 200 + "..."),
        ("a\ud800", "a\\ud800"),
        (0.5, "0.5"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (7, 7),
        (None, None),
        (True, True),
    ],
    ids=range(11),
)
def test_stored_values_fit_json(value: Any, shown: Any):
    """Whatever was found in a column can be printed as strict JSON."""
    assert plain(value) == shown
    assert finding(found=value).as_dict()["found"] == shown
    json.dumps(shown, allow_nan=False).encode("ascii")


def test_a_report_crosses_processes():
    """Reports are plain values."""
    result = report(finding(found=b"x"), notices=(Notice("a", "b"),), checked={"entries": 1})
    assert pickle.loads(pickle.dumps(result)) == result
