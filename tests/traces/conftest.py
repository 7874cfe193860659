"""Small OTLP/JSON objects for the tests of the trace readers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bijotel.traces.model import SkippedLine, Trace
from bijotel.traces.reader import read_traces

TRACE = "0af7651916cd43dd8448eb211c80319c"


def otlp_span(
    trace_id: str = TRACE, span_id: str = "b7ad6b7169203331", **fields: Any
) -> dict[str, Any]:
    return {"traceId": trace_id, "spanId": span_id, "name": "step", **fields}


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    """One request with these spans under one resource and one scope."""
    return {
        "resourceSpans": [
            {
                "resource": {
                    "attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]
                },
                "scopeSpans": [{"scope": {"name": "app", "version": "1"}, "spans": list(spans)}],
            }
        ]
    }


class Read:
    """What came of reading some files."""

    def __init__(self, *paths: Path) -> None:
        self.skipped: list[SkippedLine] = []
        self.traces: list[Trace] = list(read_traces(paths, skipped=self.skipped.append))

    @property
    def spans(self) -> dict[str, list[str]]:
        return {trace.trace_id: [span.span_id for span in trace.spans] for trace in self.traces}

    @property
    def reasons(self) -> list[tuple[int, str]]:
        return [(line.line, line.reason) for line in self.skipped]


@pytest.fixture
def make() -> type[Any]:
    """Makers of OTLP objects."""

    class Make:
        trace_id = TRACE
        span = staticmethod(otlp_span)
        request = staticmethod(otlp)

        @staticmethod
        def line(*spans: dict[str, Any]) -> str:
            return json.dumps(otlp(*spans)) + "\n"

    return Make


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Read]:
    """Write contents to files and read them together."""

    def reading(*contents: str | bytes) -> Read:
        paths = []
        for number, content in enumerate(contents):
            path = tmp_path / f"traces-{number}.jsonl"
            path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
            paths.append(path)
        return Read(*paths)

    return reading
