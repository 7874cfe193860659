"""Canonical octets and the encoding of values: RFC 8785, docs/spec (body)."""

from __future__ import annotations

import enum
import json
import math
import sys
import threading
import uuid
from collections import UserDict, UserString, deque
from collections.abc import Mapping
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from bijotel import canonical
from bijotel.canonical import MAX_DEPTH, decode, dumps, encode, loads, number
from bijotel.errors import CanonicalizationError

# --- values ----------------------------------------------------------------------------------

SCALAR_TEXT = st.text(st.characters(exclude_categories=("Cs",)))
# Where UTF-16 order and code point order differ: beyond the BMP against U+E000..U+FFFF.
TRICKY_KEYS = st.text(st.sampled_from('aZ1\0"\\é＠\ue000\uffff\U0001f600\U0010ffff'), max_size=4)
SAFE_INTEGERS = st.integers(-canonical.MAX_SAFE_INTEGER, canonical.MAX_SAFE_INTEGER)
ODD_FLOATS = st.sampled_from(
    [0.0, -0.0, 1.0, 5e-324, 1e-7, 1e-6, 1e20, 1e21, 1e23, 0.1 + 0.2, 2.0**53, -1e300, 9.5e-7]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | ODD_FLOATS
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | SAFE_INTEGERS | FLOATS | SCALAR_TEXT,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(SCALAR_TEXT | TRICKY_KEYS, inner, max_size=6)
    ),
    max_leaves=25,
)


def joined(text: str) -> str:
    """Surrogates that make a pair are one character."""
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


ANY_TEXT = st.text(st.characters() | st.sampled_from("\ud800\udfff\0$")).map(joined) | (
    st.sampled_from(["$int", "$$", "$utf16:d800", "$digest"])
)
ATTRIBUTE_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**700), 10**700)
    | st.floats()
    | st.binary()
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=20,
)


def same(left: Any, right: Any) -> bool:
    """Equality under which NaN equals NaN, True differs from 1, and 1 equals 1.0.

    Beyond 2**53 an integer and the double that equals it are two values.
    """
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    alike = type(left) is type(right) or (
        isinstance(left, (int, float)) and abs(left) <= canonical.MAX_SAFE_INTEGER
    )
    return alike and bool(left == right)


def nested(levels: int, *, mapping: bool = False) -> Any:
    value: Any = {} if mapping else []
    for _ in range(levels - 1):
        value = {"k": value} if mapping else [value]
    return value


# --- published vectors -----------------------------------------------------------------------

CYBERPHONE = ("arrays", "french", "structures", "unicode", "values", "weird")


@pytest.mark.parametrize("name", CYBERPHONE)
def test_cyberphone_triples(shared: Path, name: str):
    """Each published input is written as its published output, text and hex alike."""
    folder = shared / "vectors/jcs/cyberphone"
    value = json.loads((folder / f"input/{name}.json").read_bytes())
    expected = (folder / f"output/{name}.json").read_bytes().rstrip(b"\n")
    assert dumps(value) == expected
    assert dumps(value) == bytes.fromhex((folder / f"outhex/{name}.txt").read_text())
    assert dumps(loads(expected)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "numbers",
            (
                '{"big":100000000000000000000,"frac":3.141592653589793,"half":1.5,"int":123456789,'
                '"neg":-42,"tiny":0.000001,"zero":0}'
            ),
        ),
        ("numeric_equivalence", '{"a":1,"b":100,"c":100,"d":10,"e":10}'),
        (
            "record_agent_output",
            (
                '{"agent":"resolver-01","block_height":800000,"claim":"tx_count==3721",'
                '"result":"MATCH","tags":["bitcoin","deterministic"]}'
            ),
        ),
        ("record_nested", '{"a":[{"x":null,"y":true},{"n":-2.5}],"m":"","z":{"a":1,"b":2}}'),
        ("unicode", '{"a":"plain","emoji":"😀","greek":"Ωμέγα","é":"café"}'),
    ],
)
def test_canoncheck_accepts(shared: Path, name: str, expected: str):
    """The canoncheck inputs are no canonical octets themselves, and have these."""
    octets = (shared / f"vectors/jcs/canoncheck/{name}.json").read_bytes()
    assert dumps(json.loads(octets)) == expected.encode()
    with pytest.raises(CanonicalizationError):
        loads(octets)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("reject_duplicate_key", "not in canonical form"),
        ("reject_lone_surrogate", "not JSON"),
        ("reject_nan", "not JSON"),
    ],
)
def test_canoncheck_rejects(shared: Path, name: str, message: str):
    """What must be rejected is rejected, with white space around it or not."""
    octets = (shared / f"vectors/jcs/canoncheck/{name}.json").read_bytes()
    for candidate in (octets, octets.strip()):
        with pytest.raises(CanonicalizationError, match=message):
            loads(candidate)


def test_numbers_are_spelled_as_ecmascript_does(shared: Path):
    """All 20,000 published numbers have their published spelling."""
    lines = (shared / "vectors/jcs/es6-numbers-20k.txt").read_text().split()
    assert len(lines) == 20_000
    for line in lines:
        bits, expected = line.split(",")
        value = np.uint64(int(bits, 16)).view(np.float64).item()
        assert number(value) == expected, line
        assert dumps([value]) == f"[{expected}]".encode()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (0.1 + 0.2, "0.30000000000000004"),
        (5e-324, "5e-324"),
        (-1.5e300, "-1.5e+300"),
        (123456789012345680000.0, "123456789012345680000"),
    ],
)
def test_float_spelling(value: float, expected: str):
    """Floats are not spelled as Python does."""
    assert dumps(value) == expected.encode()


def test_keys_are_ordered_by_utf16_units():
    """A key beyond the BMP comes before U+E000 to U+FFFF, wherever in the key it stands."""
    assert dumps({"＠": 1, "\U0001f600": 1}).decode() == '{"\U0001f600":1,"＠":1}'
    assert dumps({"a＠": 1, "a\U0001f600": 1}).decode() == '{"a\U0001f600":1,"a＠":1}'
    assert dumps([{"z": {"＠": 1, "\U0001f600": [1.0]}}]).decode() == (
        '[{"z":{"\U0001f600":[1],"＠":1}}]'
    )


# --- writing ---------------------------------------------------------------------------------


@given(JSON_VALUES)
def test_agrees_with_the_rfc8785_package(value: Any):
    """The independent implementation writes the same octets."""
    assert dumps(value) == rfc8785.dumps(value)


@given(JSON_VALUES)
def test_reading_undoes_writing(value: Any):
    """Whatever is written is read back equal, and once more to the same octets."""
    octets = dumps(value)
    assert same(loads(octets), value)
    assert dumps(loads(octets)) == octets


@given(JSON_VALUES, JSON_VALUES)
def test_different_values_have_different_octets(left: Any, right: Any):
    """Octets agree exactly when values do (1.0 and 1, -0.0 and 0 share theirs)."""
    assert (dumps(left) == dumps(right)) == same(left, right)


@given(st.binary() | JSON_VALUES.map(lambda value: json.dumps(value).encode()))
def test_only_canonical_octets_are_read(octets: bytes):
    """Any octets either are what would be written, or raise."""
    try:
        value = loads(octets)
    except CanonicalizationError:
        return
    assert dumps(value) == octets


@pytest.mark.parametrize(
    ("octets", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'"\\ud800"', "not JSON"),
        (b"NaN", "not JSON"),
        (b"1e400", "no JSON number|not JSON"),
        (b" 1", "not in canonical form at byte 0: expected b'1', got b' 1'"),
        (b"1 ", "not in canonical form at byte 1: expected b'', got b' '"),
        (b"-0", "not in canonical form"),
        (b"1.0", "not in canonical form at byte 1"),
        (b"1E2", "not in canonical form"),
        (b"9007199254740993", "not in canonical form at byte 15: expected b'2', got b'3'"),
        (b"123456789012345678901234567890", "not in canonical form"),
        (b'{"b":1,"a":2}', "not in canonical form at byte 2: expected b'a"),
        (b'{"a":1,"a":1}', "not in canonical form"),
        (b'{"x":{"a":1,"a":2}}', "not in canonical form"),
        (b'"\\u00e9"', "not in canonical form"),
        (b'"\\/"', "not in canonical form"),
        (b"[" * 1_000_000 + b"]" * 1_000_000, "nested more than 200 levels deep"),
        (b"[" * 1_000_000, "nested more than 200 levels deep"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "nested more than 200 levels deep"),
        (b'"' + b"[" * 2000, "not JSON"),
        (b'"\\"' + b"[" * 2000, "not JSON"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_octets_that_are_refused(octets: bytes, message: str):
    """Every other spelling of a value is refused with its place."""
    with pytest.raises(CanonicalizationError, match=message):
        loads(octets)


def test_too_deep_has_a_code_of_its_own():
    """Depth is told apart from other faults, so that it can be reported as a limit."""
    with pytest.raises(CanonicalizationError) as caught:
        loads(b"[" * 1_000_000 + b"]" * 1_000_000)
    assert caught.value.code == "too-deep"
    with pytest.raises(CanonicalizationError) as caught:
        loads(b"{")
    assert caught.value.code == "canonicalization"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "nan is no JSON number"),
        (float("-inf"), "-inf is no JSON number"),
        (2**53, "integer of 54 bits"),
        (-(2**53), "integer of 54 bits"),
        (10**5000, "integer of 16610 bits"),
        (b"x", "bytes is no JSON type"),
        ({1}, "set is no JSON type"),
        ({1: 2}, "key 1 is no string"),
        ({"a": np.float64(1)}, "float64 is no JSON type"),
        ("\ud800", "no JSON value"),
        ({"\ud800": 1}, "no JSON value"),
        ({"\ud800": 1, "\U0001f600": 1}, "no JSON value"),
        ([{"\U0001f600": {"x": "\udfff"}}], "no JSON value"),
    ],
    ids=range(13),
)
def test_values_that_are_refused(value: Any, message: str):
    """What JSON cannot carry is refused, wherever it stands; encode() is for that."""
    with pytest.raises(CanonicalizationError, match=message):
        dumps(value)


@pytest.mark.parametrize("mapping", [False, True])
def test_depth_limit_is_exact(mapping: bool):
    """MAX_DEPTH levels are written and read, one more is refused both ways."""
    deepest = nested(MAX_DEPTH, mapping=mapping)
    assert loads(dumps(deepest)) == deepest
    assert decode(encode(deepest)) == deepest
    over = nested(MAX_DEPTH + 1, mapping=mapping)
    for function in (dumps, encode):
        with pytest.raises(CanonicalizationError, match="nested more than 200 levels") as caught:
            function(over)
        assert caught.value.code == "too-deep"


def test_depth_limit_leaves_room_on_the_stack():
    """The deepest value passes even for a caller who is 500 calls deep."""
    deepest = nested(MAX_DEPTH, mapping=True)

    def call(levels: int) -> Any:
        return decode(loads(dumps(encode(deepest)))) if levels == 0 else call(levels - 1)

    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(call(500)))
    thread.start()
    thread.join()
    assert result == [deepest]


def test_a_value_within_itself_is_too_deep():
    """A cycle ends at the depth limit."""
    cycle: list[Any] = []
    cycle.append(cycle)
    for function in (dumps, encode):
        with pytest.raises(CanonicalizationError, match="nested more than 200"):
            function(cycle)


def test_running_out_of_stack_is_an_error_of_ours():
    """No RecursionError leaves, however deep the caller is."""
    value = nested(MAX_DEPTH, mapping=True)
    seen = set()

    def call(levels: int) -> None:
        for function in (dumps, encode):
            try:
                function(value)
            except CanonicalizationError as error:
                seen.add(error.code)
        if levels:
            call(levels - 1)

    limit = sys.getrecursionlimit()
    try:
        call(limit - 250)
    except RecursionError:  # the test's own frames
        pytest.fail("the test went deeper than it meant to")
    assert seen == {"too-deep"}


def test_long_integers_in_octets_are_doubles():
    """RFC 8785 writes doubles up to 1e21 with all their digits; they are read as doubles."""
    for value in (2.0**53, 2.0**60, -(2.0**63), 2.0**64, 1e20, 123456789012345680000.0):
        octets = dumps([{"x": value}])
        assert b"e" not in octets
        (read,) = loads(octets)
        assert read == {"x": value}
        assert type(read["x"]) is float


# --- encoding --------------------------------------------------------------------------------


@given(ATTRIBUTE_VALUES)
def test_decoding_undoes_encoding(value: Any):
    """Every kind of attribute value survives the way to octets and back."""
    assert same(decode(loads(dumps(encode(value)))), value)


@given(ATTRIBUTE_VALUES, ATTRIBUTE_VALUES)
def test_different_attribute_values_have_different_octets(left: Any, right: Any):
    """No two attribute values share their octets, but for 1.0 and 1, -0.0 and 0."""
    assert (dumps(encode(left)) == dumps(encode(right))) == same(left, right)


@given(JSON_VALUES)
def test_decode_returns_or_raises_one_error(value: Any):
    """Hostile JSON data either decodes to what encodes to it, or raises our error."""
    try:
        decoded = decode(value)
    except CanonicalizationError:
        return
    assert dumps(encode(decoded)) == dumps(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**53 - 1, b"9007199254740991"),
        (2**53, b'{"$int":"9007199254740992"}'),
        (-(2**53), b'{"$int":"-9007199254740992"}'),
        (float("nan"), b'{"$float":"NaN"}'),
        (float("inf"), b'{"$float":"Infinity"}'),
        (float("-inf"), b'{"$float":"-Infinity"}'),
        (b"\x00\xff", b'{"$bytes":"AP8="}'),
        (b"", b'{"$bytes":""}'),
        ("a\ud83d", b'{"$utf16":"0061d83d"}'),
        ("\0", b'"\\u0000"'),
        ({"$price": 1}, b'{"$$price":1}'),
        ({"$$": 1}, b'{"$$$":1}'),
        ({"$int": "5"}, b'{"$$int":"5"}'),
        ({"\ud800": 1}, b'{"$utf16:d800":1}'),
        ({"$utf16:d800": 1}, b'{"$$utf16:d800":1}'),
        ({}, b"{}"),
        ((1, (2,)), b"[1,[2]]"),
        (None, b"null"),
        (True, b"true"),
    ],
)
def test_encodings(value: Any, expected: bytes):
    """Each value that JSON cannot carry has its one spelling."""
    assert dumps(encode(value)) == expected
    assert same(decode(loads(expected)), value)


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "a lie"

    def encode(self, *args: Any) -> bytes:
        return b"another"


class Number(int):
    def __index__(self) -> int:
        return 99

    def __str__(self) -> str:
        return "99"


class Colour(str, enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no text")


class BrokenClass:
    """Raises whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class BrokenMapping(UserDict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("changed while it was read")

    def __str__(self) -> str:
        return "broken mapping"


class TextOfSubclass:
    def __str__(self) -> str:
        return Text("text")


class ReadOnly(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        return {"a": 1}[key]

    def __iter__(self) -> Any:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Text("true text"), "true text"),
        (Text("a\ud800"), {"$utf16": "0061d800"}),
        ({Text("key"): Text("value")}, {"key": "value"}),
        (Number(7), 7),
        (Number(2**60), {"$int": "1152921504606846976"}),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.float64("nan"), {"$float": "NaN"}),
        (np.int64(-3), -3),
        (np.uint64(2**63), {"$int": "9223372036854775808"}),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.bytes_(b"x"), {"$bytes": "eA=="}),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.arange(2000), list(range(2000))),
        (np.longdouble("1.5"), "1.5"),
        (np.complex128(1 + 2j), "(1+2j)"),
        (np.datetime64("2026-01-01"), "2026-01-01"),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset("ba"), ["a", "b"]),
        (deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        (bytearray(b"\xff"), {"$bytes": "/w=="}),
        (memoryview(b"abcd")[::2], {"$bytes": "YWM="}),
        (Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (datetime(2026, 1, 1, tzinfo=timezone.utc), "2026-01-01 00:00:00+00:00"),
        (UserString("xy"), "xy"),
        (ReadOnly(), {"a": 1}),
        ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
        ({1: "a", "1": "b"}, "{1: 'a', '1': 'b'}"),
        (TextOfSubclass(), "text"),
        (BrokenMapping(), "broken mapping"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_other_classes(value: Any, expected: Any):
    """Subclasses, NumPy, sets and the rest become plain data that can be written."""
    encoded = encode({"inner": [value]})["inner"][0]
    assert encoded == expected
    assert type(encoded) is type(expected)
    dumps(encoded)


def test_a_broken_object_does_not_cost_the_span():
    """An object whose text cannot be had is named by its class."""
    name = f"<{Broken.__module__}.Broken>"
    assert encode({"a": Broken(), "b": 1}) == {"a": name, "b": 1}
    hostile = BrokenClass()
    assert encode({"a": hostile, "b": 1}) == {"a": object.__repr__(hostile), "b": 1}


def test_sets_have_one_order():
    """Equal sets have equal octets, whatever order their items are kept in."""
    items = [f"item {i}" for i in range(50)] + [("a", 1), 2**60, b"x"]
    assert dumps(encode(set(items))) == dumps(encode(set(reversed(items))))


@pytest.mark.parametrize("digits", [599, 600, 601, 1201, 4300, 4301, 20_000])
def test_long_integers(digits: int):
    """Integers of any length survive, also where CPython converts no more than 640 digits."""
    limit = sys.get_int_max_str_digits()
    values = (10**digits - 1, -(10**digits) + 1, 10**digits, 7 * 10 ** (digits // 2))
    sys.set_int_max_str_digits(640)
    try:
        encoded = [encode(value) for value in values]
        decoded = [decode(value) for value in encoded]
    finally:
        sys.set_int_max_str_digits(limit)
    assert decoded == list(values)
    assert encoded[0] == {"$int": "9" * digits}
    assert encoded[1] == {"$int": "-" + "9" * digits}
    assert encoded[2] == {"$int": "1" + "0" * digits}


def test_integers_beyond_reason_are_a_limit():
    """An integer whose conversion would take seconds is refused, both ways, at once."""
    with pytest.raises(CanonicalizationError, match="integer of 1000001 bits: expected at most"):
        encode(2**1_000_000)
    with pytest.raises(CanonicalizationError, match=r"\$int with '999.* is no encoding"):
        decode({"$int": "9" * 1_000_000})


@pytest.mark.parametrize(
    "value",
    [
        {"$int": "5"},
        {"$int": "9007199254740991"},
        {"$int": "+9007199254740993"},
        {"$int": "09007199254740993"},
        {"$int": "9_007199254740993"},
        {"$int": " 9007199254740993"},
        {"$int": "٩٠٠٧١٩٩٢٥٤٧٤٠٩٩٣"},
        {"$int": "-" * 5000 + "1"},
        {"$int": 9},
        {"$int": True},
        {"$int": None},
        {"$int": ["9007199254740993"]},
        {"$float": "nan"},
        {"$float": "1.0"},
        {"$float": ["NaN"]},
        {"$bytes": "AP8"},
        {"$bytes": "AP8=\n"},
        {"$bytes": "AP9="},
        {"$bytes": "é"},
        {"$bytes": 1},
        {"$utf16": "0061"},
        {"$utf16": "D83D"},
        {"$utf16": "d83dde00"},
        {"$utf16": "d83"},
        {"$utf16": "d8 3d"},
        {"$utf16": 1},
        {"$utf16:0061": 1},
        {"$utf16:": 1},
        {"$digest": 5},
        {"$digest": {"bytes": 1}},
        {"$digest": {"bytes": "1", "hmac": "00" * 32}},
        {"$digest": {"bytes": 1, "hmac": "0A" * 32}},
        {"$other": 1},
        {"$": 1},
        {"a": 1, "$int": "9007199254740993"},
        [{"x": [{"$float": "nope"}]}],
    ],
    ids=str,
)
def test_false_encodings_are_refused(value: Any):
    """An object that claims to be an encoding must be the one spelling of a value."""
    with pytest.raises(CanonicalizationError, match="is no encoding of a"):
        decode(value)


def test_a_keyed_digest_stands_for_itself():
    """The value behind a digest is not in the chain; a digest is no mapping of the user's."""
    written = {"$digest": {"bytes": 7, "hmac": "00" * 32}}
    digest = decode({"a": written})["a"]
    assert digest == canonical.Digest.of(7, bytes(32)) == written
    assert encode({"a": digest}) == {"a": written}
    assert encode({"a": dict(digest)}) == {"a": {"$$digest": written["$digest"]}}


def test_surrogates_that_make_a_pair_are_one_character():
    """Only lone surrogates need an encoding."""
    assert encode({"\ud83d\ude00": "\ud83d\ude00"}) == {"\U0001f600": "\U0001f600"}
    assert encode("\ud83d\ude00\ud83d") == {"$utf16": "d83dde00d83d"}
    assert decode({"$utf16": "d83dde00d83d"}) == "\U0001f600\ud83d"


def test_null_missing_nan_and_zero_differ():
    """Four things that are easily taken for one another have four spellings."""
    values = [{"score": None}, {}, {"score": float("nan")}, {"score": 0}]
    assert len({dumps(encode(value)) for value in values}) == 4


def test_nothing_is_normalised():
    """Two spellings of one glyph are two values."""
    assert dumps("caf\u00e9.pdf") != dumps("cafe\u0301.pdf")
    assert loads(dumps("cafe\u0301.pdf")) == "cafe\u0301.pdf"
