"""Stored text is harmless on a terminal, and stays readable."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.canonical import Digest
from bijotel.cli.text import (
    clean,
    column_text,
    escape,
    escape_json,
    json_column,
    shown,
    shown_id,
    shown_score,
    time_text,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\r\x1b[2KOK: chain intact", r"a\r\x1b[2KOK: chain intact"),
        ("\x1b]8;;http://x\x07y", r"\x1b]8;;http://x\x07y"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("\x9b31m", r"\x9b31m"),
        ("a\nb\tc\x00", r"a\nb\tc\x00"),
        ("\ufeff\u200b\u2028", r"\ufeff\u200b\u2028"),
        ("\udc80", r"\udc80"),
        ("\U000e0041", r"\U000e0041"),
        ("naïve 日本 ✓ \u00a0\u3000.", "naïve 日本 ✓ \u00a0\u3000."),
        ("👩\u200d💻 می\u200cخواهم", "👩\u200d💻 می\u200cخواهم"),
        (r"C:\x1b", r"C:\x1b"),
    ],
)
def test_escape(text, expected):
    """Controls, direction marks and invisible characters become their number; words stay."""
    assert escape(text) == expected


@given(st.text())
def test_escaped_text_is_one_line_without_controls(text):
    """No character that moves the cursor or turns the direction is left."""
    escaped = escape(text)
    assert not {unicodedata.category(each) for each in escaped} & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(escaped) & set(
        "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_escaped_json_is_json_of_the_same_value(text):
    """A body shown with escapes parses to what was sealed."""
    octets = json.dumps(text, ensure_ascii=False)
    assert json.loads(escape_json(octets)) == text
    assert escape_json(octets).isprintable() or set(escape_json(octets)) & set(
        "\u200c\u200d\u00a0\u3000\u2003\u1680\u2000\u2001\u2002\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f"
    )


def test_escape_json_of_a_character_beyond_16_bits():
    """It becomes a surrogate pair, as JSON wants it."""
    assert escape_json('"\U000e0041"') == '"\\udb40\\udc41"'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("te\x1bxt", r"te\x1bxt"),
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (2**60, '{"$int": "1152921504606846976"}'),
        (1.5, "1.5"),
        (float("nan"), '{"$float": "NaN"}'),
        (b"\0", '{"$bytes": "AA=="}'),
        (["a", "日\u202e"], '["a", "日\\u202e"]'),
        (Digest.of(3, b"\xab" * 32), "digest:abababab... (3 bytes)"),
        (Digest({"$digest": {"bytes": 3, "hmac": "\x1b[2K"}}), r"digest:\x1b[2K... (3 bytes)"),
        ({"$digest": b"\0"}, '{"$$digest": {"$bytes": "AA=="}}'),
    ],
)
def test_shown(value, expected):
    """Values of any type are one line."""
    assert shown(value) == expected


@pytest.mark.parametrize(
    ("value", "short", "expected"),
    [
        ("sha256:" + "ab" * 32, True, "sha256:abababababab..."),
        ("sha256:" + "ab" * 32, False, "sha256:" + "ab" * 32),
        ("sha256:abc", True, "sha256:abc"),
        ("x-sha256:" + "ab" * 32, True, "x-sha256:" + "ab" * 32),
        ("a" * 100, True, "a" * 100),
        (17, True, "17"),
        (None, True, "null"),
        ({"$digest": {"bytes": 73, "hmac": "ab" * 32}}, True, "digest:abababab... (73 bytes)"),
        ({"$digest": {"bytes": 73, "hmac": "ab" * 32}}, False, "digest:abababab... (73 bytes)"),
        ({"$digest": {"bytes": 73, "hmac": "x"}}, True, '{"$$digest": {"bytes": 73, "hmac": "x"}}'),
        ({"$bytes": "AA=="}, True, '{"$$bytes": "AA=="}'),
    ],
)
def test_shown_id(value, short, expected):
    """A hash is shortened where that was asked for, a keyed digest always; all else never."""
    assert shown_id(value, short=short) == expected


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (0.89, "0.890"),
        (1, "1.000"),
        (0, "0.000"),
        (-0.25, "-0.250"),
        (0.00004, "4e-05"),
        (12345678.5, "12345678.5"),
        (float("nan"), "nan"),
        (None, "null"),
        ("high", "high"),
        (True, "true"),
        ([1], "[1]"),
    ],
)
def test_shown_score(score, expected):
    """A score has three digits unless they would hide it; anything else is shown as it is."""
    assert shown_score(score) == expected


@pytest.mark.parametrize(
    ("unix_nano", "digits", "expected"),
    [
        (0, 9, "1970-01-01T00:00:00.000000000Z"),
        (1_700_000_000_123_456_789, 9, "2023-11-14T22:13:20.123456789Z"),
        (1_700_000_000_123_999_999, 3, "2023-11-14T22:13:20.123Z"),
        (2**63 - 1, 9, "2262-04-11T23:47:16.854775807Z"),
        (-1, 9, "1969-12-31T23:59:59.999999999Z"),
    ],
)
def test_time_text(unix_nano, digits, expected):
    """Times are exact to the nanosecond and never rounded up."""
    assert time_text(unix_nano, digits) == expected


def test_column_text_of_every_type():
    """A tampered column is shown whatever SQLite made of it."""
    assert column_text("tag", b"\x01\xff") == "01ff"
    assert column_text("start_unix_nano", 0) == "0"
    assert column_text("start_unix_nano", 1) == "1 (1970-01-01T00:00:00.000000001Z)"
    assert column_text("name", None) == "null"
    assert column_text("seq", "x\x1b") == r"x\x1b"
    assert column_text("epoch", 1.5) == "1.5"


def test_json_column_of_every_type():
    """Times and floats are text, octets hex, the rest plain."""
    assert json_column("tag", b"\x01") == "01"
    assert json_column("start_unix_nano", 5) == "5"
    assert json_column("start_unix_nano", None) is None
    assert json_column("epoch", 1.5) == "1.5"
    assert json_column("seq", 5) == 5


def test_clean_replaces_lone_surrogates_everywhere():
    """A document holds no text that strict readers of JSON refuse."""
    assert clean({"a\udc80": ["\ud800", 1, None]}) == {"a\\udc80": ["\\ud800", 1, None]}
