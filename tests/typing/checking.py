"""The types of what seals, checks and scores, as users see them. Read by mypy, never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from typing_extensions import assert_type

from bijotel import (
    HmacChainSpanProcessor,
    KeyRing,
    audit_trace,
    detect,
    install,
    match_context,
    verify_chain,
)
from bijotel.audit import TraceAudit
from bijotel.context_matching import ContextMatches, PassageMatch
from bijotel.findings import Finding, Report
from bijotel.keys import HmacKey
from bijotel.regression import Detection
from bijotel.stats import Stats
from bijotel.traces.model import Trace


def sealing(provider: TracerProvider) -> None:
    processor = install(provider, store="chain.db", durability="commit")
    assert_type(processor, HmacChainSpanProcessor)
    assert_type(processor.stats(), Stats)
    assert_type(processor.force_flush(100), bool)
    HmacChainSpanProcessor("chain.db", durability="sometimes")  # type: ignore[arg-type]
    HmacChainSpanProcessor("chain.db", select=3)  # type: ignore[arg-type]


def checking() -> None:
    ring = KeyRing("env:NEW", bytes(range(32)))
    assert_type(ring.sealing, HmacKey)
    report = verify_chain("chain.db", ring, deep=True, workers=2)
    assert_type(report, Report)
    assert_type(report.ok, bool)
    assert_type(report.findings, tuple[Finding, ...])
    assert_type(report.checked, Mapping[str, Any])
    verify_chain("chain.db", deep="yes")  # type: ignore[arg-type]


def scoring(trace: Trace) -> None:
    matches = match_context(["a passage", None], "a prompt", query="a question")
    assert_type(matches, ContextMatches)
    assert_type(matches[0], PassageMatch)
    assert_type(matches.text, str)
    assert_type(audit_trace(trace), TraceAudit)
    assert_type(detect([1, 2.5, None], window="all"), Detection)
    detect([1], window="some")  # type: ignore[arg-type]
