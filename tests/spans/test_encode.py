"""Record to body, columns and dedup key. docs/spec (body)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from bijotel import canonical, seal
from bijotel.model import Dropped, Event, Link, Scope, SpanRecord
from bijotel.model import Resource as RecordResource
from bijotel.model import Status as RecordStatus
from bijotel.spans.decode import decode_record
from bijotel.spans.encode import dedup_octets, encode_record, withhold
from bijotel.spans.read import read_span

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SPAN_ID = "b7ad6b7169203331"
NO_DROPS = Dropped(0, 0, 0)


def record(**changes: Any) -> SpanRecord:
    return replace(
        SpanRecord(
            "chat m",
            trace_id=TRACE_ID,
            span_id=SPAN_ID,
            start_time_unix_nano=1_759_000_000_123_456_789,
            end_time_unix_nano=1_759_000_001_987_654_321,
            attributes={"gen_ai.operation.name": "chat"},
        ),
        **changes,
    )


def body_of(draft: Any) -> Any:
    return canonical.loads(draft.body)


class Keeper(SpanExporter):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Any) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def provider(keeper: Keeper) -> Iterator[TracerProvider]:
    resource = Resource({"service.name": "rag-api"}, "https://schema/resource")
    provider = TracerProvider(
        resource=resource,
        span_limits=SpanLimits(max_attributes=3, max_events=2, max_links=1),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(SimpleSpanProcessor(keeper))
    yield provider
    provider.shutdown()


def read(span: ReadableSpan, **more: Any) -> SpanRecord:
    dropped = Dropped(span.dropped_attributes, span.dropped_events, span.dropped_links)
    return read_span(span, dict(span.attributes or {}), dropped, **more)


# --- the published body ----------------------------------------------------------------------


def test_the_published_body(data: Path):
    """The record of the known answer has its octets, hash, columns and dedup key."""
    answer = json.loads((data / "span-body.json").read_text())
    octets = answer["body"].encode()
    shown = canonical.loads(octets)["attributes"]
    published = record(
        name="chat claude-haiku-4-5",
        kind="CLIENT",
        parent_span_id="00f067aa0ba902b7",
        trace_state="vendor=t61rcWkgMzE",
        trace_flags=1,
        start_time_unix_nano=1780000000123456789,
        end_time_unix_nano=1780000001987654321,
        status=RecordStatus("ERROR", "rate limited"),
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "claude-haiku-4-5",
            "gen_ai.input.messages": shown["gen_ai.input.messages"],
            "gen_ai.output.messages": shown["gen_ai.output.messages"],
            "gen_ai.usage.input_tokens": 812,
            "gen_ai.request.temperature": 0.2,
            "gen_ai.response.finish_reasons": ("stop",),
            "big": 2**53 + 1,
            "nan": float("nan"),
            "raw": b"\x00\xff",
            "half": "a\ud83d",
            "$price": 1,
            "one": 1.0,
            "tiny": 1e-7,
            "flag": True,
            "none": None,
            "nested": {"a": [1, {"b": "ü"}]},
            "\ud800": "key with a lone surrogate",
            **{key: value for key, value in shown.items() if key.startswith("bijotel.rag.")},
        },
        events=(Event("exception", 1780000001900000000, {"exception.type": "RateLimit"}),),
        links=(Link("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", trace_flags=1),),
        resource=RecordResource({"service.name": "rag-api"}),
        scope=Scope("opentelemetry.instrumentation.anthropic", "0.62.4"),
    )
    draft = encode_record(published)
    assert draft.body == octets
    assert draft.body_hash.hex() == answer["body_hash"]
    assert draft.dedup_key.hex() == answer["dedup_key"]
    assert dedup_octets(canonical.loads(octets)) == answer["dedup_octets"].encode()
    assert (draft.kind, draft.fmt, draft.name) == ("span", "span/1", "chat claude-haiku-4-5")
    assert (draft.trace_id.hex(), draft.span_id.hex()) == (TRACE_ID, SPAN_ID)
    assert draft.start_unix_nano == 1780000000123456789
    assert draft.end_unix_nano == 1780000001987654321
    assert encode_record(decode_record(octets)) == draft


# --- a live span -----------------------------------------------------------------------------


def test_every_field_of_a_live_span_is_in_the_body(provider: TracerProvider, keeper: Keeper):
    """Whatever the SDK's span holds is read and stands in the body, dropped counts included."""
    tracer = provider.get_tracer("scope", "1.2", "https://schema/scope", {"scope.key": "v"})
    state = TraceState([("vendor", "t61")])
    remote = SpanContext(0xA0, 0xB0, is_remote=True, trace_flags=TraceFlags(1), trace_state=state)
    parent = trace.set_span_in_context(trace.NonRecordingSpan(remote))
    other = SpanContext(0xC0, 0xD0, is_remote=False, trace_flags=TraceFlags(1), trace_state=state)
    span = tracer.start_span(
        "chat m",
        context=parent,
        kind=SpanKind.CLIENT,
        attributes={"a": 1, "b": (1.5, 2.5), "c": "x"},
        links=[trace.Link(other, {"l": 1}), trace.Link(other)],
        start_time=1_759_000_000_123_456_789,
    )
    span.set_attribute("d", True)  # evicts "a"
    for number in range(3):
        span.add_event(f"event {number}", {"n": number}, timestamp=1_759_000_000_500_000_000)
    span.set_status(Status(StatusCode.ERROR, "rate limited"))
    span.end(1_759_000_001_987_654_321)
    body = body_of(encode_record(read(keeper.spans[0])))
    assert body["span_id"] == format(span.get_span_context().span_id, "016x")
    del body["span_id"], body["resource"]["attributes"]["service.name"]
    for resource_default in ("telemetry.sdk", "service.instance"):
        for key in list(body["resource"]["attributes"]):
            if key.startswith(resource_default):
                del body["resource"]["attributes"][key]
    assert body == {
        "name": "chat m",
        "kind": "CLIENT",
        "trace_id": format(0xA0, "032x"),
        "parent_span_id": format(0xB0, "016x"),
        "trace_state": "vendor=t61",
        "trace_flags": 1,
        "start_time_unix_nano": "1759000000123456789",
        "end_time_unix_nano": "1759000001987654321",
        "status": {"code": "ERROR", "description": "rate limited"},
        "attributes": {"b": [1.5, 2.5], "c": "x", "d": True},
        "events": [
            {
                "name": f"event {number}",
                "time_unix_nano": "1759000000500000000",
                "attributes": {"n": number},
                "dropped_attributes": 0,
            }
            for number in (1, 2)
        ],
        "links": [
            {
                "trace_id": format(0xC0, "032x"),
                "span_id": format(0xD0, "016x"),
                "trace_state": "vendor=t61",
                "trace_flags": 1,
                "attributes": {},
                "dropped_attributes": 0,
            }
        ],
        "resource": {"attributes": {}, "schema_url": "https://schema/resource"},
        "scope": {
            "name": "scope",
            "version": "1.2",
            "schema_url": "https://schema/scope",
            "attributes": {"scope.key": "v"},
        },
        "dropped": {"attributes": 1, "events": 1, "links": 1},
    }


def test_dropped_attributes_of_events_and_links(keeper: Keeper):
    """What the limits took from an event or a link is counted beside it."""
    limits = SpanLimits(max_event_attributes=1, max_link_attributes=1)
    provider = TracerProvider(span_limits=limits, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(keeper))
    link = trace.Link(SpanContext(1, 2, is_remote=False), {"a": 1, "b": 2, "c": 3})
    span = provider.get_tracer("t").start_span("s", links=[link])
    span.add_event("e", {"a": 1, "b": 2})
    span.end()
    provider.shutdown()
    body = body_of(encode_record(read(keeper.spans[0])))
    assert body["events"][0]["dropped_attributes"] == 1
    assert body["links"][0]["dropped_attributes"] == 2


def test_a_bare_hand_made_span():
    """A span with nothing but a name is sealed; what is absent is null, empty or zero."""
    draft = encode_record(read(ReadableSpan("bare")))
    body = body_of(draft)
    assert (body["trace_id"], body["span_id"], body["parent_span_id"]) == ("", "", None)
    assert (body["start_time_unix_nano"], body["end_time_unix_nano"]) == (None, None)
    assert body["status"] == {"code": "UNSET", "description": None}
    assert body["scope"] == {"name": "", "version": "", "schema_url": "", "attributes": {}}
    assert (draft.trace_id, draft.span_id, draft.start_unix_nano) == (b"", b"", 0)
    assert encode_record(decode_record(draft.body)) == draft


def test_inherited_and_via_stand_only_where_they_apply():
    """A body without them does not have the members."""
    assert not {"inherited", "via", "withheld"} & set(body_of(encode_record(record())))
    inherited = {"bijotel.rag.source_count": 2}
    draft = encode_record(record(inherited=inherited, via="file"))
    assert body_of(draft)["inherited"] == inherited
    assert body_of(draft)["via"] == "file"


# --- no value loses its span -----------------------------------------------------------------

REJECTED_BEFORE = {
    "nan": float("nan"),
    "inf": float("inf"),
    "int 2**53": 2**53,
    "bytes": b"\x00\xff",
    "lone surrogate": "half \ud83d",
    "messages NaN": '[{"role": "user", "score": NaN}]',
    "messages bigint": '[{"role": "user", "id": 12345678901234567890}]',
    "messages escaped lone surrogate": '[{"role": "user", "content": "\\ud83d"}]',
    "messages depth 3000": "[" * 3000 + "]" * 3000,
}


def test_the_values_that_the_earlier_tool_lost(shared: Path):
    """Every listed kind of value is sealed and comes back as it was."""
    listed = json.loads((shared / "interop/bijotel-2.17/rejected_inputs.json").read_text())
    assert [case["label"] for case in listed["cases"]] == list(REJECTED_BEFORE)
    for label, value in REJECTED_BEFORE.items():
        key = "gen_ai.input.messages" if label.startswith("messages") else label
        draft = encode_record(record(attributes={key: value}))
        (back,) = decode_record(draft.body).attributes.values()
        assert repr(back) == repr(value)
        assert "withheld" not in body_of(draft)


@pytest.mark.parametrize(
    "value",
    [
        2**60,
        -(2**63),
        10**5000,
        float("-inf"),
        "NUL \0 within",
        "x" * 1_000_000,
        b"\xff" * 1000,
        {"a": {"b": [{"\udfff": [None, {"$int": 1}]}]}},
        {"$bytes": "no encoding of ours"},
        [[], {}, "", b"", None],
    ],
    ids=range(10),
)
def test_unsafe_values_round_trip(value: Any):
    """What JSON cannot carry, in keys and values, within maps and lists, is kept exactly."""
    draft = encode_record(record(attributes={"v": value, "k\ud800": value}))
    assert decode_record(draft.body).attributes == {"v": value, "k\ud800": value}
    assert encode_record(decode_record(draft.body)) == draft


TEXT = st.text(st.characters() | st.sampled_from("\ud800\udfff\0$é"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=8) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ATTRIBUTES = st.dictionaries(TEXT, VALUES, max_size=4)
TIMES = st.none() | st.integers(-(2**64), 2**64) | st.floats()
RECORDS = st.builds(
    SpanRecord,
    name=TEXT,
    trace_id=st.sampled_from([TRACE_ID, ""]),
    span_id=st.sampled_from([SPAN_ID, ""]),
    parent_span_id=st.sampled_from([None, SPAN_ID]),
    trace_state=TEXT,
    trace_flags=st.integers(0, 255),
    start_time_unix_nano=TIMES,
    end_time_unix_nano=TIMES,
    status=st.builds(RecordStatus, st.sampled_from(["OK", "ERROR"]), st.none() | TEXT),
    attributes=ATTRIBUTES,
    events=st.lists(st.builds(Event, TEXT, TIMES, ATTRIBUTES), max_size=2).map(tuple),
    links=st.lists(
        st.builds(Link, st.just(TRACE_ID), st.just(SPAN_ID), TEXT, attributes=ATTRIBUTES),
        max_size=2,
    ).map(tuple),
    resource=st.builds(RecordResource, ATTRIBUTES, TEXT),
    scope=st.builds(Scope, TEXT, TEXT, TEXT, ATTRIBUTES),
    dropped=st.builds(Dropped, *[st.integers(0, 9)] * 3),
    inherited=ATTRIBUTES,
    via=st.sampled_from(["", "file"]),
)


@given(RECORDS)
def test_reading_a_body_undoes_writing_it(original: SpanRecord):
    """Body and columns of any record are those of the record that is read from the body."""
    draft = encode_record(original)
    again = encode_record(decode_record(draft.body))
    assert again == draft
    assert len(draft.trace_id) == len(original.trace_id) // 2
    assert 0 <= draft.start_unix_nano < 2**63
    draft.name.encode()
    assert "\0" not in draft.name


# --- columns ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("chat", "chat"),
        ("", ""),
        ("chat é 😀", "chat é 😀"),
        ("a\0b", "a\ufffdb"),
        ("é\0", "é\ufffd"),
        ("a\ud83d", "a\ufffd"),
        ("\ud83db\udfff", "\ufffdb\ufffd"),
        ("\ud800\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "😀"),
    ],
    ids=range(9),
)
def test_the_name_column(name: str, column: str):
    """Each lone surrogate and NUL is replaced in the column and exact in the body."""
    draft = encode_record(record(name=name))
    assert draft.name == column
    exact = name.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    assert decode_record(draft.body).name == exact


@pytest.mark.parametrize(
    ("time", "column", "text"),
    [
        (None, 0, None),
        (0, 0, "0"),
        (1_759_000_000_123_456_789, 1_759_000_000_123_456_789, "1759000000123456789"),
        (2**63 - 1, 2**63 - 1, "9223372036854775807"),
        (2**63, 0, "9223372036854775808"),
        (10**30, 0, "1" + "0" * 30),
        (-1, 0, "-1"),
        (1.5, 0, "1.5"),
        (1.759e18, 0, "1.759e+18"),
        (float("nan"), 0, "nan"),
        (np.int64(5), 5, "5"),
        (np.float64(5.5), 0, "5.5"),
        (True, 1, "1"),
        ("yesterday", 0, None),
    ],
    ids=range(14),
)
def test_the_time_columns(time: Any, column: int, text: str | None):
    """A time that does not fit its column is 0 there and exact in the body."""
    draft = encode_record(record(start_time_unix_nano=time, end_time_unix_nano=time))
    assert (draft.start_unix_nano, draft.end_unix_nano) == (column, column)
    assert body_of(draft)["start_time_unix_nano"] == text
    assert encode_record(decode_record(draft.body)) == draft


@pytest.mark.parametrize("text", ["", "zz" * 16, "0a", "ab" * 17, "0a" * 15 + "0"])
def test_the_id_columns(text: str):
    """An id of another length, or no hex, leaves its column empty; the body has it exactly."""
    draft = encode_record(record(trace_id=text, span_id=text[:16] if len(text) > 16 else text))
    assert draft.trace_id == b""
    assert decode_record(draft.body).trace_id == text


@pytest.mark.parametrize("name", [7, None, b"x"])
def test_a_name_that_is_no_text(name: Any):
    """The tracer lets anything be a name; it is kept as text."""
    draft = encode_record(record(name=name, events=(Event(name, 1),)))
    assert draft.name == str(canonical.encode(name))
    assert decode_record(draft.body).name == draft.name


# --- limits ----------------------------------------------------------------------------------


def test_a_body_over_the_limit_is_sealed_without_its_content():
    """16 MiB pass; one byte more is withheld, with times, ids, kind and code kept."""
    size = len(encode_record(record(attributes={"a": ""})).body)
    fits = {"a": "x" * (seal.MAX_BODY_BYTES - size)}
    assert len(encode_record(record(attributes=fits)).body) == seal.MAX_BODY_BYTES
    too_long = record(
        name="secret name",
        kind="CLIENT",
        attributes={"a": fits["a"] + "x"},
        status=RecordStatus("ERROR", "why"),
        events=(Event("e", 1),),
        links=(Link(TRACE_ID, SPAN_ID),),
        resource=RecordResource({"r": 1}),
        scope=Scope("s"),
        inherited={"bijotel.rag.source_count": 1},
        dropped=Dropped(1, 2, 3),
    )
    draft = encode_record(too_long)
    assert body_of(draft) == {
        "name": "",
        "kind": "CLIENT",
        "trace_id": TRACE_ID,
        "span_id": SPAN_ID,
        "parent_span_id": None,
        "trace_state": "",
        "trace_flags": 0,
        "start_time_unix_nano": "1759000000123456789",
        "end_time_unix_nano": "1759000001987654321",
        "status": {"code": "ERROR", "description": None},
        "attributes": {},
        "events": [],
        "links": [],
        "resource": {"attributes": {}, "schema_url": ""},
        "scope": {"name": "", "version": "", "schema_url": "", "attributes": {}},
        "dropped": {"attributes": 1, "events": 2, "links": 3},
        "withheld": "size",
    }
    assert draft.name == ""
    assert draft.trace_id.hex() == TRACE_ID
    assert draft == encode_record(withhold(too_long, "size"))


@pytest.mark.parametrize("value", ["deep", "cycle", "long integer"])
def test_values_beyond_a_limit_are_withheld(value: str):
    """Nesting without end and integers beyond reason cost the content, not the span."""
    deep: Any = []
    for _ in range(3000):
        deep = [deep]
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    attributes = {"v": {"deep": deep, "cycle": cycle, "long integer": 2**1_000_000}[value]}
    draft = encode_record(record(attributes=attributes))
    assert body_of(draft)["withheld"] == "size"
    assert body_of(draft)["attributes"] == {}
    assert draft.name == ""


# --- dedup key -------------------------------------------------------------------------------

EXACT = (
    "gen_ai.tool.call.result", "gen_ai.task.output", "gen_ai.retrieval.documents",
    "llm.finish_reason", "traceloop.entity.output", "langfuse.observation.output",
    "mlflow.spanOutputs", "haystack.component.output", "gcp.vertex.agent.tool_response",
    "gcp.vertex.agent.llm_response", "tool_response", "pydantic_ai.all_messages",
    "gen_ai.server.time_to_first_token", "gen_ai.conversation.id", "session.id", "user.id",
    "bijotel.rag.sources", "bijotel.rag.sources_sha256",
)  # fmt: skip
PREFIXES = (
    "gen_ai.output.messages", "gen_ai.response.", "gen_ai.usage.", "gen_ai.completion",
    "llm.output_messages.", "llm.choices.", "llm.token_count.", "llm.usage.", "llm.response.",
    "output.", "retrieval.documents.", "reranker.output_documents.", "bijotel.rag.in_context",
)  # fmt: skip


@pytest.mark.parametrize(
    "key",
    [*EXACT, *PREFIXES, *(prefix + "x" for prefix in PREFIXES), "bijotel.rag.in_context_count"],
)
def test_answers_do_not_count_for_the_dedup_key(key: str):
    """What differs between two equal calls is left out, in attributes and inherited alike."""
    plain = encode_record(record()).dedup_key
    attributes = {"gen_ai.operation.name": "chat", key: "answer"}
    assert encode_record(record(attributes=attributes)).dedup_key == plain
    assert encode_record(record(inherited={key: "answer"})).dedup_key == plain


@pytest.mark.parametrize(
    "key",
    [
        *(name + "x" for name in EXACT if not (name + "x").startswith(PREFIXES)),
        *(prefix[:-1] for prefix in PREFIXES),
        "x.output.value",
        "gen_ai.input.messages",
        "bijotel.rag.source_count",
        "bijotel.rag.retriever_id",
        "bijotel.rag.embedding_model",
        "bijotel.rag.total_context_tokens",
    ],
)
def test_all_else_counts_for_the_dedup_key(key: str):
    """A question, a setting or an unknown attribute makes another key."""
    attributes = {"gen_ai.operation.name": "chat", key: "value"}
    assert (
        encode_record(record(attributes=attributes)).dedup_key != encode_record(record()).dedup_key
    )


def test_what_the_dedup_key_is_made_of():
    """Name and kind count; times, ids, events, status, resource and scope do not."""
    plain = encode_record(record()).dedup_key
    for same in (
        record(trace_id="11" * 16, span_id="22" * 8, parent_span_id="33" * 8),
        record(start_time_unix_nano=1, end_time_unix_nano=2),
        record(events=(Event("e", 1),), links=(Link(TRACE_ID, SPAN_ID),)),
        record(status=RecordStatus("ERROR", "x"), dropped=Dropped(1, 1, 1)),
        record(resource=RecordResource({"a": 1}), scope=Scope("s"), via="file"),
    ):
        assert encode_record(same).dedup_key == plain
    for other in (record(name="x"), record(kind="SERVER"), record(attributes={})):
        assert encode_record(other).dedup_key != plain


def test_own_attributes_win_over_inherited_ones():
    """An attribute that is both own and inherited counts with its own value."""
    own = {"gen_ai.operation.name": "chat", "bijotel.rag.source_count": 1}
    both = record(attributes=own, inherited={"bijotel.rag.source_count": 9})
    assert encode_record(both).dedup_key == encode_record(record(attributes=own)).dedup_key
    only_inherited = record(inherited={"bijotel.rag.source_count": 1})
    assert encode_record(only_inherited).dedup_key == encode_record(both).dedup_key
