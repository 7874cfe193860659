"""What is looked for, in the store and in the bodies."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.errors import ConfigurationError
from bijotel.search import MAX_NANOS, Search, parse_time
from bijotel.spans.encode import encode_record
from tests.ops.calls import START, chat, span


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01", 0),
        ("2025-06-01T10:00:00Z", START / 1e9),
        ("2025-06-01t10:00z", START / 1e9),
        ("2025-06-01 12:00:00+02:00", START / 1e9),
        ("2025-06-01T04:30:00-05:30", START / 1e9),
        ("2025-06-01T10:00:00.5Z", START / 1e9 + 0.5),
    ],
)
def test_one_moment_in_every_spelling(text, seconds):
    """A date begins in UTC; an offset is taken off."""
    assert parse_time(text) == round(seconds * 1e9)


def test_nanoseconds_are_kept():
    """Times are integers throughout."""
    assert parse_time("2025-06-01T10:00:00.000000005Z") == START + 5
    assert parse_time("2262-04-11T23:47:16.854775807Z") == MAX_NANOS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2025-06-01T10:00:00", "expected a date like .*, or a time with an offset"),
        ("2025-06-01 10:00", "expected a date"),
        ("yesterday", "expected a date"),
        ("", "expected a date"),
        ("1748772000", "expected a date"),
        ("2025-06-01T10:00:00.1234567890Z", "expected a date"),
        ("\u0662025-06-01", "expected a date"),
        ("2025-13-01", "month must be in 1..12"),
        ("2025-06-01T25:00:00Z", "hour must be in 0..23"),
        ("1969-12-31T23:59:59.9Z", "expected one from 1970 to 2262"),
        ("2262-04-11T23:47:16.854775808Z", "expected one from 1970 to 2262"),
        ("9999-12-31", "expected one from 1970 to 2262"),
    ],
)
def test_a_time_that_is_none_is_refused(text, message):
    """Above all one without an offset: it would be another moment on another machine."""
    with pytest.raises(ConfigurationError, match=message):
        parse_time(text)


def test_the_store_finds_columns():
    """Bounds are inclusive there, and only spans have what is looked for."""
    search = Search(since_unix_nano=5, until_unix_nano=9, trace_id=b"t", span_id=b"s")
    assert search.conditions() == [
        ("trace_id", b"t"),
        ("span_id", b"s"),
        ("start_from", 5),
        ("start_to", 8),
        ("kind", "span"),
    ]
    assert Search().conditions() == []
    assert Search(model="m").conditions() == [("kind", "span")]
    assert (Search(trace_id=b"t").reads_bodies, Search(status="ok").reads_bodies) == (False, True)


CALL = chat(
    model="gpt-answered",
    service="shop",
    gen_ai__request__model="gpt-asked",
    bijotel__rag__sources=json.dumps(
        [
            {"document_id": "doc-1", "source_uri": "s3://a/1"},
            {"document_id": 17, "source_uri": "s3://b/ü"},
            7,
        ]
    ),
)


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ({}, True),
        ({"model": "gpt-answered"}, True),
        ({"model": "gpt-asked"}, True),
        ({"model": "gpt"}, False),
        ({"service": "shop"}, True),
        ({"service": "Shop"}, False),
        ({"status": "ok"}, True),
        ({"status": "BLOCKED"}, True),
        ({"status": "error"}, False),
        ({"document": "doc-1"}, True),
        ({"document": "17"}, True),
        ({"document": "doc"}, False),
        ({"source_uri": "s3://b/ü"}, True),
        ({"document": "doc-1", "source_uri": "s3://a/1"}, True),
        ({"document": "doc-1", "source_uri": "s3://b/ü"}, False),
        ({"document": "doc-1", "model": "other"}, False),
    ],
)
def test_every_part_must_fit(wanted, fits):
    """Document and address must be those of one source."""
    search = Search(**wanted)
    assert search.fits(CALL, {"OK", "BLOCKED"}) is fits
    assert search.may_fit(encode_record(CALL).body) or not fits


def test_a_span_without_sources_has_no_document():
    """Nor has one whose list is broken; an inherited list counts."""
    assert not Search(document="x").fits(span(), set())
    assert not Search(document="x").fits(span(bijotel__rag__sources="[{"), set())
    inherited = {"bijotel.rag.sources": '[{"document_id": "x"}]'}
    assert Search(document="x").fits(span(inherited=inherited), set())


def test_most_bodies_are_ruled_out_by_their_octets():
    """Without that a search would parse the whole chain."""
    body = encode_record(CALL).body
    assert not Search(document="doc-2").may_fit(body)
    assert not Search(source_uri="s3://a/2").may_fit(body)
    assert Search(document="dòc").may_fit(body)


SPELLINGS = st.sampled_from((json.dumps, lambda text: json.dumps(text, ensure_ascii=False), None))


def spelled(text: str, spell) -> str:
    """Spell a text in JSON: as two writers do, or every letter by its number."""
    if spell is not None:
        return spell(text).replace("/", "\\/") if len(text) % 2 else spell(text)
    units = text.encode("utf-16-be", "surrogatepass")
    return '"' + "".join(f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2)) + '"'


@given(st.text(min_size=1), SPELLINGS)
def test_ruling_out_never_loses_a_document(document, spell):
    """However a writer spelled the list, what a full look finds is worth parsing."""
    record = span(bijotel__rag__sources=f'[{{"document_id": {spelled(document, spell)}}}]')
    search = Search(document=document)
    if search.fits(record, set()):
        assert search.may_fit(encode_record(record).body)
