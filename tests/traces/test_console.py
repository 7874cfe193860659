"""Console exporter output, alone and among the other things that a process prints."""

from __future__ import annotations

import json

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, StatusCode

from bijotel.traces import console


@pytest.fixture
def printed():
    """A parent and a child as the SDK itself writes them."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("shop")
    with tracer.start_as_current_span("outer", kind=SpanKind.SERVER) as outer:
        link = Link(outer.get_span_context(), {"why": "test"})
        with tracer.start_as_current_span(
            "inner", links=[link], attributes={"n": 1, "l": [1, 2]}
        ) as inner:
            inner.add_event("hit", {"id": "c1"})
            inner.set_status(StatusCode.ERROR, "no luck")
    return exporter.get_finished_spans()


def test_what_the_sdk_prints_is_read_back(printed):
    """Names, ids, times, status, events and links come back as the SDK held them."""
    inner = printed[0]
    value = json.loads(inner.to_json())
    assert console.recognises(value)
    (record,) = console.records(value)
    assert record.name == "inner"
    assert record.trace_id == f"{inner.context.trace_id:032x}"
    assert record.span_id == f"{inner.context.span_id:016x}"
    assert record.parent_span_id == f"{printed[1].context.span_id:016x}"
    # The SDK prints microseconds and rounds to them.
    assert record.start_time_unix_nano == pytest.approx(inner.start_time, abs=1000, rel=0)
    assert record.end_time_unix_nano == pytest.approx(inner.end_time, abs=1000, rel=0)
    assert record.start_time_unix_nano % 1000 == 0
    assert (record.status.code, record.status.description) == ("ERROR", "no luck")
    assert record.attributes == {"n": 1, "l": [1, 2]}
    assert [(event.name, event.attributes) for event in record.events] == [("hit", {"id": "c1"})]
    assert [(link.span_id, link.attributes) for link in record.links] == [
        (f"{printed[1].context.span_id:016x}", {"why": "test"})
    ]
    assert record.resource.attributes["telemetry.sdk.language"] == "python"


def test_indented_objects_among_log_lines(printed, read):
    """Text around printed spans is no fault, whether plain or JSON of another kind."""
    inner, outer = (span.to_json() for span in printed)
    found = read(
        f'starting {{up}}\n{{"level": "info"}}\n{inner}\nsomething {{else}}\n{outer}{inner}\ndone\n'
    )
    assert [len(trace.spans) for trace in found.traces] == [2]
    assert {span.name for span in found.traces[0].spans} == {"inner", "outer"}
    assert found.reasons == []


def test_a_printed_span_that_was_cut_is_reported(printed, read):
    """The object that is not whole is named by its first line; the next one is read."""
    inner, outer = (span.to_json() for span in printed)
    found = read(
        inner[: len(inner) // 2].rsplit("\n", 1)[0] + "\n" + json.dumps(json.loads(outer)) + "\n"
    )
    assert [span.name for span in found.traces[0].spans] == ["outer"]
    assert found.reasons == [(1, "a JSON object that is not whole")]


def test_a_bare_nan_is_read(printed, read):
    """``json.dumps`` writes NaN bare, which is no JSON, and still a span."""
    found = read(printed[0].to_json().replace('"n": 1', '"n": NaN'))
    assert found.traces[0].spans[0].attributes["n"] != found.traces[0].spans[0].attributes["n"]


@pytest.mark.parametrize("time", [None, 5, "yesterday", "2026-13-01T00:00:00Z", "2026-01-01"])
def test_a_time_that_is_none_is_absent(printed, time):
    """A time of another form is not known; the span stays."""
    value = {**json.loads(printed[0].to_json()), "start_time": time}
    (record,) = console.records(value)
    assert record.start_time_unix_nano is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"attributes": []}, "attributes: expected an object, got a list"),
        ({"events": [5]}, "events[0]: expected an object, got a number"),
        ({"resource": {"attributes": "x"}}, "attributes: expected an object, got a string"),
    ],
)
def test_a_part_of_a_wrong_type_is_named(read, change, reason):
    """What is not of its type is told with its line; the rest of the span is there."""
    context = {"trace_id": f"0x{7:032x}", "span_id": f"0x{1:016x}"}
    found = read(json.dumps({"name": "step", "context": context, **change}))
    assert (list(found.spans), found.reasons) == ([f"{7:032x}"], [(1, reason)])
