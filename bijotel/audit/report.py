"""Audits for machines: the JSON document, the JUnit file, the summary over many traces.

Both documents are written as a stream, one trace at a time, so that the number of traces does
not matter. What they are written to is the caller's.

Source: docs/reference/audit.md.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TextIO

from bijotel.audit.model import JudgedPassage
from bijotel.audit.result import State, TraceAudit

_NO_SCORES: Final = dict.fromkeys(
    ("precision", "efficiency", "uniqueness", "coverage", "rerank_gain")
)
_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ROOM: Final = 160
"""Characters kept free for the first tag of a JUnit file, which is known last."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What each trace that can be audited is held to."""

    overall: float | None = None
    precision: float | None = None

    @property
    def given(self) -> bool:
        """Whether there is anything to be held to."""
        return self.overall is not None or self.precision is not None

    def missed_by(self, audit: TraceAudit) -> tuple[str, ...]:
        """Say which thresholds a trace misses; one that is not applicable misses none."""
        if audit.scores is None or audit.overall is None:
            return ()
        held = (
            ("overall", audit.overall, self.overall),
            ("precision", audit.scores.precision, self.precision),
        )
        return tuple(
            f"{name} {score:.4g} is below {least:.4g}"
            for name, score, least in held
            if least is not None and score < least
        )


@dataclass(slots=True)
class Summary:
    """Counts over all audits of one session."""

    verdicts: Counter[State] = field(default_factory=Counter)
    overall: int = 0
    """The sum over the audited traces."""
    skipped_lines: int = 0

    def add(self, audit: TraceAudit) -> None:
        """Count one trace."""
        self.verdicts[audit.verdict] += 1
        self.overall += audit.overall or 0

    @property
    def traces(self) -> int:
        """All traces, scored or not."""
        return self.verdicts.total()

    @property
    def audited(self) -> int:
        """Traces that have a score."""
        return self.traces - self.verdicts["NOT_APPLICABLE"]

    @property
    def mean_overall(self) -> float | None:
        """The mean of the overall scores of the audited traces; None when there are none."""
        return self.overall / self.audited if self.audited else None

    def as_dict(self) -> dict[str, Any]:
        """Give the ``summary`` of the JSON document."""
        return {
            "traces": self.traces,
            "audited": self.audited,
            "not_applicable": self.verdicts["NOT_APPLICABLE"],
            "pass": self.verdicts["PASS"],
            "warn": self.verdicts["WARN"],
            "fail": self.verdicts["FAIL"],
            "mean_overall": self.mean_overall,
            "skipped_lines": self.skipped_lines,
        }


def audit_document(audit: TraceAudit) -> dict[str, Any]:
    """Give one trace of the JSON document."""
    names = _names(audit.passages)
    return {
        "trace_id": audit.trace_id,
        "verdict": audit.verdict,
        "reason": audit.reason or None,
        "overall": audit.overall,
        "scores": asdict(audit.scores) if audit.scores else _NO_SCORES,
        "answering_span_id": audit.calls[audit.answer].span_id
        if audit.answer is not None
        else None,
        "answer_certain": audit.answer_certain if audit.answer is not None else None,
        "calls": [
            {
                "span_id": call.span_id,
                "role": call.role,
                "statuses": {
                    name: verdict.status for name, verdict in zip(names, call.verdicts, strict=True)
                },
            }
            for call in audit.calls
        ],
        "passages": list(map(_passage, audit.passages)),
        "recommendations": list(audit.recommendations),
    }


def _names(passages: Sequence[JudgedPassage]) -> list[str]:
    """Name each passage by its id, or by ``@`` and its index where it has none of its own."""
    count = Counter(passage.id for passage in passages)
    return [
        _sound(passage.id) if passage.id and count[passage.id] == 1 else f"@{index}"
        for index, passage in enumerate(passages)
    ]


def _passage(passage: JudgedPassage) -> dict[str, Any]:
    verdict = passage.verdict
    return {
        "id": _sound(passage.id) or None,
        "text": None if passage.text is None else _sound(passage.text),
        "status": verdict.status,
        "containment": verdict.containment,
        "reason": verdict.reason or None,
        "position": verdict.position,
        "covered_by": verdict.covered_by,
        "score": passage.score,
        "rank": passage.rank,
        "source_span_id": passage.source_span_id,
    }


def _sound(text: str) -> str:
    """Replace lone surrogates, which some readers of JSON refuse."""
    return text.encode("utf-8", "backslashreplace").decode()


class JsonReport:
    """Writes the JSON document line by line: a trace on each, in order, the summary last."""

    def __init__(self, line: Callable[[str], None]) -> None:
        """Begin the document.

        Args:
            line: Writes one line.
        """
        self._line = line
        self._comma = ""
        line('{"traces": [')

    def add(self, audit: TraceAudit) -> None:
        """Write one trace."""
        self._line(self._comma + json.dumps(audit_document(audit), allow_nan=False))
        self._comma = ","

    def end(self, summary: Summary, error: dict[str, Any] | None = None) -> None:
        """End the document.

        Args:
            summary: Over all traces that were added.
            error: What kept the traces from being all; the document then says so.
        """
        last = {"summary": summary.as_dict(), **(error or {})}
        self._line(f"], {json.dumps(last)[1:]}")


class JUnitReport:
    """Writes a JUnit file: one testcase a trace."""

    def __init__(self, file: TextIO, thresholds: Thresholds) -> None:
        """Begin the file.

        Args:
            file: Open for writing, at its begin, and able to seek.
            thresholds: What a trace fails by; when none is given, by the verdict ``FAIL``.
        """
        self._file = file
        self._thresholds = thresholds
        self._counts: Counter[str] = Counter()
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        self._place = file.tell()
        file.write(" " * _ROOM + "\n")

    def add(self, audit: TraceAudit) -> None:
        """Write one trace."""
        kind, message = self._outcome(audit)
        self._counts["tests"] += 1
        case = f'  <testcase classname="bijotel.audit" name="{audit.trace_id}"'
        if not kind:
            self._file.write(f"{case}/>\n")
            return
        self._counts[kind] += 1
        text = _in_xml("\n".join(audit.recommendations))
        tag = f'<{kind} message="{_in_xml(message)}">{text}</{kind}>'
        self._file.write(f"{case}>{tag}</testcase>\n")

    def end(self) -> None:
        """End the file and fill in the counts."""
        self._file.write("</testsuite>\n")
        self._file.seek(self._place)
        counts = " ".join(
            f'{name}="{self._counts[kind]}"'
            for name, kind in (("tests", "tests"), ("failures", "failure"), ("skipped", "skipped"))
        )
        self._file.write(
            f'<testsuite name="bijotel audit" errors="0" {counts}'.ljust(_ROOM - 1) + ">"
        )

    def _outcome(self, audit: TraceAudit) -> tuple[str, str]:
        if audit.verdict == "NOT_APPLICABLE":
            return "skipped", audit.reason
        if missed := self._thresholds.missed_by(audit):
            return "failure", "; ".join(missed)
        if audit.verdict == "FAIL" and not self._thresholds.given:
            return "failure", f"overall {audit.overall}"
        return "", ""


def _in_xml(text: str) -> str:
    return html.escape(_NOT_IN_XML.sub("?", text))
