"""Lines of OTLP/JSON: what other readers make of them, and that no value is lost."""

from __future__ import annotations

import base64
import math
from types import MappingProxyType

import orjson
import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1 import trace_pb2

from bijotel import canonical
from bijotel.model import Dropped, Event, Link, Resource, Scope, SpanRecord, Status
from bijotel.traces import otlp
from bijotel.traces.otlp_write import otlp_line

RECORD = SpanRecord(
    "chat é",
    "CLIENT",
    "0123456789abcdef0123456789abcdef",
    "0123456789abcdef",
    "fedcba9876543210",
    "vendor=1",
    1,
    1_700_000_000_000_000_001,
    1_700_000_000_000_000_002,
    Status("ERROR", "rate limit"),
    {
        "text": "日本語",
        "int": -7,
        "big": 2**62,
        "float": 0.5,
        "yes": True,
        "none": None,
        "octets": b"\x00\xff",
        "list": ["a", 1, 2.5, False, None],
        "map": {"inner": {"x": [b"y"]}},
        "nan": math.nan,
        "inf": -math.inf,
    },
    (Event("first", 1_700_000_000_000_000_003, {"a": 1}, 2),),
    (Link("aa" * 16, "bb" * 8, "s=2", 1, {"b": "c"}, 3),),
    Resource({"service.name": "shop"}, "https://example.com/resource"),
    Scope("instrumentation", "1.2", "https://example.com/scope", {"s": 1}),
    Dropped(4, 5, 6),
    {"bijotel.rag.source_count": 2, "int": 99},
    via="file",
)


def read_back(record):
    (found,) = otlp.records(orjson.loads(otlp_line(record)))
    return found


def parsed(record):
    """The message that opentelemetry-proto reads."""
    message = json_format.Parse(otlp_line(record), trace_pb2.TracesData())
    return message.resource_spans[0]


def test_our_own_reader_reads_the_span_back():
    """Every member, with its type; what came through the context is among the attributes."""
    found = read_back(RECORD)
    nan = found.attributes.pop("nan")
    assert math.isnan(nan)
    attributes = {**RECORD.inherited, **RECORD.attributes, "bijotel.via": "file"}
    attributes.pop("nan")
    assert found.attributes == attributes
    assert [type(value) for value in found.attributes.values()] == [
        type(value) for value in attributes.values()
    ]
    for name in (
        "name", "kind", "trace_id", "span_id", "parent_span_id", "trace_state", "trace_flags",
        "start_time_unix_nano", "end_time_unix_nano", "status", "events", "links", "resource",
        "scope", "dropped",
    ):  # fmt: skip
        assert getattr(found, name) == getattr(RECORD, name), name


def test_the_message_of_opentelemetry_proto():
    """Values stand in the fields of their types; ids are hex, as OTLP/JSON demands."""
    resource_spans = parsed(RECORD)
    assert resource_spans.schema_url == "https://example.com/resource"
    assert resource_spans.resource.attributes[0].value.string_value == "shop"
    (scope_spans,) = resource_spans.scope_spans
    assert scope_spans.scope.name == "instrumentation"
    (span,) = scope_spans.spans
    # A reader of plain protobuf JSON takes hex for base64; writing it as that gives the hex.
    assert base64.b64encode(span.trace_id).decode() == RECORD.trace_id
    assert (span.kind, span.status.code, span.status.message) == (3, 2, "rate limit")
    assert span.start_time_unix_nano == RECORD.start_time_unix_nano
    assert (span.dropped_attributes_count, span.dropped_events_count) == (4, 5)
    values = {each.key: each.value for each in span.attributes}
    fields = {name: value.WhichOneof("value") for name, value in values.items()}
    assert fields == {
        "bijotel.rag.source_count": "int_value", "int": "int_value", "text": "string_value",
        "big": "int_value", "float": "double_value", "yes": "bool_value", "none": None,
        "octets": "bytes_value", "list": "array_value", "map": "kvlist_value",
        "nan": "double_value", "inf": "double_value", "bijotel.via": "string_value",
    }  # fmt: skip
    assert values["big"].int_value == 2**62
    assert values["octets"].bytes_value == b"\x00\xff"
    assert math.isnan(values["nan"].double_value)
    assert values["inf"].double_value == -math.inf


def test_what_any_value_has_no_place_for():
    """Spelled as in a sealed body, so that ``canonical.decode`` gives the value back."""
    digest = canonical.Digest.of(7, bytes(32))
    attributes = {
        "huge": 2**64, "low": -(2**63) - 1, "edge": -(2**63), "surrogate": "a\ud800b",
        "\udfff": 1, "$own": "x", "digest": digest, "nested": {"$int": "5"},
    }  # fmt: skip
    found = read_back(SpanRecord("x", attributes=attributes)).attributes
    assert found["huge"] == {"$int": str(2**64)}
    assert found["low"] == {"$int": str(-(2**63) - 1)}
    assert found["edge"] == -(2**63)
    assert found["surrogate"] == {"$utf16": "0061d8000062"}
    assert found["$$own"] == "x"
    assert found["digest"] == digest
    assert found["nested"] == {"$$int": "5"}
    assert canonical.decode(found) == attributes
    parsed(SpanRecord("x", attributes=attributes))


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (SpanRecord("x"), ("", "", "0", "0")),
        (SpanRecord("x", trace_id="zz", span_id="0" * 15), ("", "", "0", "0")),
        (SpanRecord("x", start_time_unix_nano=-1, end_time_unix_nano=2**64), ("", "", "0", "0")),
        (SpanRecord("x", start_time_unix_nano=1.5, end_time_unix_nano=7), ("", "", "0", "7")),
    ],
)
def test_ids_and_times_that_otlp_cannot_carry(record, expected):
    """Empty or 0, which mean unknown there."""
    line = orjson.loads(otlp_line(record))
    span = line["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    names = ("traceId", "spanId", "startTimeUnixNano", "endTimeUnixNano")
    assert tuple(span[name] for name in names) == expected
    assert "parentSpanId" not in span
    parsed(record)


def test_texts_that_are_no_text():
    """Outside of attributes a lone surrogate is replaced; a digest stands as its JSON."""
    digest = canonical.Digest.of(1, bytes(32))
    found = read_back(
        SpanRecord("a\ud800", status=Status("OK", digest), withheld="size", trace_state="\udc00")
    )
    assert (found.name, found.trace_state) == ("a\ufffd", "\ufffd")
    assert found.status.description.startswith('{"$digest":{"bytes":1,"hmac":"0000')
    assert found.attributes == {"bijotel.withheld": "size"}


_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(st.characters(), max_size=8),
    st.binary(max_size=8),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(st.characters(), max_size=4), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(), max_size=8), _VALUES, max_size=4))
def test_no_value_is_lost(attributes):
    """Whatever was sealed comes back from a reader of OTLP/JSON, and protobuf's reads it."""
    sealed = canonical.decode(canonical.encode(attributes))
    record = SpanRecord("x", attributes=MappingProxyType(sealed))
    assert canonical.decode(read_back(record).attributes) == sealed
    parsed(record)
