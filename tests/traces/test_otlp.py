"""OTLP/JSON objects -> records, in all the spellings that writers use."""

from __future__ import annotations

import base64
import json
import math

import pytest

from bijotel.model import Dropped, Event, Link, Resource, Scope, Status
from bijotel.traces import otlp
from bijotel.traces.otlp_values import MAX_DEPTH, any_value, attributes

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def records(value):
    return list(otlp.records(value))


def test_a_span_keeps_everything(make):
    """Each field of a span has its place in the record."""
    span = make.span(
        parentSpanId="00f067aa0ba902b7",
        traceState="vendor=1",
        kind=3,
        flags=257,
        startTimeUnixNano="1700000000000000001",
        endTimeUnixNano="1700000000000000009",
        status={"code": 2, "message": "broken"},
        attributes=[{"key": "a", "value": {"stringValue": "x"}}],
        events=[{"name": "e", "timeUnixNano": "5", "attributes": [], "droppedAttributesCount": 2}],
        links=[{"traceId": TRACE, "spanId": SPAN, "flags": 1, "attributes": []}],
        droppedAttributesCount=3,
        droppedEventsCount=4,
        droppedLinksCount=5,
    )
    (record,) = records(make.request(span))
    assert (record.trace_id, record.span_id, record.parent_span_id) == (
        TRACE,
        SPAN,
        "00f067aa0ba902b7",
    )
    assert (record.kind, record.trace_state, record.trace_flags) == ("CLIENT", "vendor=1", 1)
    assert record.start_time_unix_nano == 1700000000000000001
    assert record.end_time_unix_nano == 1700000000000000009
    assert record.status == Status("ERROR", "broken")
    assert record.attributes == {"a": "x"}
    assert record.events == (Event("e", 5, {}, 2),)
    assert record.links == (Link(TRACE, SPAN, "", 1, {}, 0),)
    assert record.dropped == Dropped(3, 4, 5)
    assert record.resource == Resource({"service.name": "shop"})
    assert record.scope == Scope("app", "1")


def test_what_is_left_out_has_its_default(make):
    """A root span with nothing but its ids is a record, not an error."""
    (record,) = records(make.request(make.span(parentSpanId="")))
    assert record.parent_span_id is None
    assert (record.kind, record.status, record.dropped) == ("INTERNAL", Status(), Dropped())
    assert (record.start_time_unix_nano, record.end_time_unix_nano) == (None, None)


def test_snake_case_and_names_for_numbers():
    """Converters that keep protobuf's own names are understood."""
    value = {
        "resource_spans": [
            {
                "resource": {"attributes": [{"key": "n", "value": {"int_value": "7"}}]},
                "scope_spans": [
                    {
                        "scope": {"name": "s"},
                        "spans": [
                            {
                                "trace_id": TRACE.upper(),
                                "span_id": SPAN.upper(),
                                "parent_span_id": "",
                                "kind": "SPAN_KIND_CLIENT",
                                "start_time_unix_nano": 12,
                                "end_time_unix_nano": 13,
                                "status": {"code": "STATUS_CODE_OK"},
                                "dropped_attributes_count": 1,
                                "events": [{"name": "e", "time_unix_nano": 4}],
                            }
                        ],
                    }
                ],
            }
        ]
    }
    assert otlp.recognises(value)
    (record,) = records(value)
    assert (record.trace_id, record.span_id, record.kind) == (TRACE, SPAN, "CLIENT")
    assert (record.start_time_unix_nano, record.end_time_unix_nano) == (12, 13)
    assert record.status == Status("OK")
    assert record.dropped == Dropped(1, 0, 0)
    assert record.events == (Event("e", 4),)
    assert record.resource.attributes == {"n": 7}


def test_ids_in_base64(make):
    """A generic protobuf converter writes ids in base64; they are the same ids."""
    span = make.span(
        base64.b64encode(bytes.fromhex(TRACE)).decode(),
        base64.b64encode(bytes.fromhex(SPAN)).decode(),
    )
    assert list(otlp.split(make.request(span))) == [TRACE]
    (record,) = records(make.request(span))
    assert (record.trace_id, record.span_id) == (TRACE, SPAN)


@pytest.mark.parametrize("wrong", ["", "xyz", TRACE[:-1], None, 7, [], TRACE + "00"])
def test_what_is_no_trace_id_is_empty(make, wrong):
    """A span without a usable trace id is set apart, not lost among others."""
    assert list(otlp.split(make.request(make.span(wrong)))) == [""]


def test_wrapped_answers(make):
    """Jaeger v2 wraps the object in ``result``, Tempo calls it ``batches``."""
    request = make.request(make.span())
    tempo = {"batches": request["resourceSpans"]}
    older = json.loads(json.dumps(tempo).replace("scopeSpans", "instrumentationLibrarySpans"))
    for value in ({"result": request}, tempo, older):
        assert otlp.recognises(value)
        assert list(otlp.split(value)) == [TRACE]
        assert [record.span_id for record in records(value)] == [SPAN]


def test_metrics_are_known_and_hold_nothing():
    """Metrics among the lines are no fault and no trace."""
    assert otlp.recognises({"resourceMetrics": [{}]})
    assert otlp.split({"resourceMetrics": [{}]}) == {}


def test_log_records(make):
    """A log record keeps its name, its span, its body and its attributes."""
    value = {
        "resourceLogs": [
            {
                "resource": {},
                "scopeLogs": [
                    {
                        "logRecords": [
                            {
                                "timeUnixNano": "0",
                                "observedTimeUnixNano": "9",
                                "eventName": "gen_ai.choice",
                                "traceId": TRACE,
                                "spanId": SPAN,
                                "body": {
                                    "kvlistValue": {
                                        "values": [{"key": "index", "value": {"intValue": "0"}}]
                                    }
                                },
                                "attributes": [{"key": "k", "value": {"boolValue": True}}],
                            },
                            {
                                "timeUnixNano": "5",
                                "traceId": TRACE,
                                "body": {"stringValue": "older"},
                                "attributes": [
                                    {"key": "event.name", "value": {"stringValue": "named"}}
                                ],
                            },
                            {"timeUnixNano": "5", "body": {"stringValue": "of no trace"}},
                        ]
                    }
                ],
            }
        ]
    }
    assert list(otlp.split(value)) == [TRACE]
    first, second, _ = records(value)
    assert (first.event_name, first.time_unix_nano, first.body) == (
        "gen_ai.choice",
        9,
        {"index": 0},
    )
    assert (first.trace_id, first.span_id, first.attributes) == (TRACE, SPAN, {"k": True})
    assert (second.event_name, second.time_unix_nano, second.body) == ("named", 5, "older")


def test_an_object_of_several_traces_is_divided(make):
    """Each part holds its own spans, with their resource and scope."""
    other = "f" * 32
    request = make.request(make.span(), make.span(other, "1" * 16), make.span(span_id="2" * 16))
    parts = otlp.split(request)
    assert list(parts) == [TRACE, other]
    assert [record.span_id for record in records(parts[TRACE])] == [SPAN, "2" * 16]
    (record,) = records(parts[other])
    assert (record.scope.name, record.resource.attributes) == ("app", {"service.name": "shop"})


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ({"stringValue": "x"}, "x"),
        ({"intValue": "-9223372036854775808"}, -(2**63)),
        ({"intValue": 5}, 5),
        ({"intValue": "4_2"}, "4_2"),
        ({"doubleValue": 1.5}, 1.5),
        ({"doubleValue": 2}, 2.0),
        ({"doubleValue": "Infinity"}, math.inf),
        ({"boolValue": False}, False),
        ({"bytesValue": "AAE="}, b"\x00\x01"),
        ({"arrayValue": {}}, []),
        ({"arrayValue": {"values": "x"}}, "x"),
        ({"kvlistValue": 5}, 5),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]),
        ({"kvlistValue": {"values": [{"key": "a", "value": {"stringValue": "b"}}]}}, {"a": "b"}),
        ({}, None),
        ("plain", "plain"),
        ({"unheardOf": 1}, None),
    ],
)
def test_values(value, want):
    """Every kind of value becomes the plain Python value; a plain value stays one."""
    got = any_value(value)
    assert got == want
    assert type(got) is type(want)


def test_not_a_number():
    """NaN is written as a text and read as a number."""
    assert math.isnan(any_value({"doubleValue": "NaN"}))


def test_attributes_of_wrong_types_are_left_out():
    """One broken entry takes no other entry with it."""
    items = [
        {"key": "a", "value": {"stringValue": "x"}},
        {"key": 5, "value": {}},
        "y",
        {"value": {}},
        {"key": "b"},
    ]
    assert attributes(items) == {"a": "x", "b": None}
    assert attributes("no list") == {}
    assert attributes(None) == {}


def test_nesting_ends_somewhere():
    """A value that is nested without end is cut, so that nothing after it can overflow."""
    deep = {"stringValue": "end"}
    for _ in range(300):
        deep = {"arrayValue": {"values": [deep]}}
    value, levels = any_value(deep), 0
    while isinstance(value, list):
        value, levels = value[0], levels + 1
    assert (value, levels) == (None, MAX_DEPTH + 1)
    plain = json.loads("[" * 900 + "]" * 900)
    assert attributes([{"key": "a", "value": {"stringValue": plain}}])["a"] != plain
