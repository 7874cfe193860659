"""Jaeger JSON -> records, by the rules of the Collector's translator."""

from __future__ import annotations

import json

import pytest

from bijotel.model import Resource, Scope, Status
from bijotel.traces import jaeger

TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(**fields):
    return {
        "traceID": TRACE,
        "spanID": "b7ad6b7169203331",
        "operationName": "step",
        "references": [],
        "startTime": 1_700_000_000_000_001,
        "duration": 7,
        "tags": [],
        "logs": [],
        "processID": "p1",
        **fields,
    }


def answer(*spans):
    process = {"serviceName": "shop", "tags": [{"key": "host", "type": "string", "value": "h"}]}
    return {"data": [{"traceID": TRACE, "spans": list(spans), "processes": {"p1": process}}]}


def one(**fields):
    (record,) = jaeger.records(answer(span(**fields)))
    return record


def test_times_names_and_processes():
    """Microseconds become nanoseconds, the process becomes the resource."""
    record = one()
    assert record.name == "step"
    assert record.start_time_unix_nano == 1_700_000_000_000_001_000
    assert record.end_time_unix_nano == 1_700_000_000_000_008_000
    assert record.resource == Resource({"service.name": "shop", "host": "h"})


def test_scope_kind_and_status_stand_in_tags():
    """What the translator put into tags goes back to where it was."""
    tags = {
        "otel.scope.name": "s",
        "otel.scope.version": "2",
        "span.kind": "client",
        "otel.status_code": "ERROR",
        "otel.status_description": "no",
        "error": True,
        "own": "kept",
    }
    record = one(
        tags=[{"key": key, "type": "string", "value": value} for key, value in tags.items()]
    )
    assert record.scope == Scope("s", "2")
    assert (record.kind, record.status) == ("CLIENT", Status("ERROR", "no"))
    assert record.attributes == {"own": "kept"}
    older = one(
        tags=[{"key": "otel.library.name", "value": "s"}, {"key": "error", "value": "true"}]
    )
    assert (older.scope.name, older.status.code) == ("s", "ERROR")


def test_the_parent_is_the_first_child_of_reference_of_the_trace():
    """Another trace or another kind of reference is no parent."""
    record = one(
        references=[
            {"refType": "CHILD_OF", "traceID": "f" * 32, "spanID": "1"},
            {"refType": "FOLLOWS_FROM", "traceID": TRACE, "spanID": "2"},
            {"refType": "CHILD_OF", "traceID": TRACE, "spanID": "3"},
        ]
    )
    assert record.parent_span_id == "0000000000000003"
    assert one(parentSpanID="4").parent_span_id == "0000000000000004"
    assert one().parent_span_id is None


def test_ids_that_lost_zeros():
    """A 64-bit id, or one without its leading zeros, is filled up."""
    value = answer(span(traceID="a1", spanID="2"))
    assert list(jaeger.split(value)) == ["a1".zfill(32)]
    (record,) = jaeger.records(value)
    assert (record.trace_id, record.span_id) == ("a1".zfill(32), "2".zfill(16))


def test_events_and_binary_tags():
    """The name of an event stands in one of its fields; octets are base64."""
    fields = [
        {"key": "event", "type": "string", "value": "hit"},
        {"key": "raw", "type": "binary", "value": "AAE="},
    ]
    older = [{"key": "message", "type": "string", "value": "old"}]
    record = one(logs=[{"timestamp": 3, "fields": fields}, {"timestamp": 4, "fields": older}])
    assert [(e.name, e.time_unix_nano, e.attributes) for e in record.events] == [
        ("hit", 3000, {"raw": b"\x00\x01"}),
        ("old", 4000, {}),
    ]


def test_wrong_types_make_no_error():
    """A span of the wrong types throughout is a span with nothing in it."""
    value = answer(
        span(
            references=5,
            tags="x",
            logs=[{"fields": 1, "timestamp": "t"}],
            startTime="now",
            processID=[],
        )
    )
    (record,) = jaeger.records(value)
    assert (record.attributes, record.start_time_unix_nano) == ({}, None)
    assert record.resource == Resource()


def test_two_traces_of_one_answer(read):
    """Each trace of a download keeps its own processes."""
    import json

    second = answer(span(traceID="f" * 32))["data"][0]
    second["processes"]["p1"]["serviceName"] = "other"
    value = answer(span())
    value["data"].append(second)
    found = read(json.dumps(value, indent=2))
    assert [t.spans[0].resource.attributes["service.name"] for t in found.traces] == [
        "shop",
        "other",
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"spans": "x"}, "spans: expected a list, got a string"),
        ({"spans": [5]}, "spans[0]: expected an object, got a number"),
        ({"spans": [{"tags": {}}]}, "tags: expected a list, got an object"),
        ({"processes": []}, "processes: expected an object, got a list"),
        ({"processes": {"p1": 5}}, "p1: expected an object, got a number"),
        ({"processes": {"p1": {"tags": [{"key": 5}]}}}, "key: expected a string, got a number"),
    ],
)
def test_a_part_of_a_wrong_type_is_named(read, change, reason):
    """What is not of its type is told with its line; the other trace is read."""
    good = {"traceID": "b", "spans": [{"traceID": "b", "spanID": "1"}]}
    found = read(json.dumps({"data": [{"traceID": "a", "spans": [], **change}, good]}))
    assert (f"{0xB:032x}" in found.spans, found.reasons[:1]) == (True, [(1, reason)])
