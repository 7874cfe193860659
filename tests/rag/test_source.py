"""RAGSource: inputs that people really pass are made plain, the rest is refused by name."""

from __future__ import annotations

import copy
import dataclasses
import enum
import inspect
import json
import math
import pickle
import threading
import time
import uuid
import warnings
from collections import OrderedDict, UserDict, deque
from datetime import date, datetime, timedelta, timezone
from datetime import time as time_of_day
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.rag import RAGSource
from bijotel.rag.plain import MAX_CHARACTERS

FIELDS = [
    "document_id",
    "chunk_index",
    "source_uri",
    "retriever",
    "embedding_model",
    "similarity_score",
    "retrieved_at",
    "metadata",
]
EAST = timezone(timedelta(hours=2))


def _strict(value):
    """JSON there and back, without the NaN that Python alone would take."""
    return json.loads(json.dumps(value, allow_nan=False))


def test_to_dict_gives_the_eight_recorded_fields_in_order():
    """The passage's text is not among them, nor in the representation."""
    source = RAGSource("sha256:ab", 3, "a.md", "qdrant", "e5", 0.5, "2025", {"k": [1]}, "secret")
    assert list(source.to_dict()) == FIELDS
    assert list(source.to_dict().values()) == [
        "sha256:ab", 3, "a.md", "qdrant", "e5", 0.5, "2025", {"k": [1]},
    ]  # fmt: skip
    assert source.content == "secret"
    assert "secret" not in repr(source)


def test_the_signature_is_the_documented_one():
    """Names, order and defaults."""
    parameters = inspect.signature(RAGSource).parameters
    assert list(parameters) == [*FIELDS, "content"]
    assert [p.default for p in parameters.values()][2:] == ["", "", "", None, "", {}, None]


@pytest.mark.parametrize(
    ("given_id", "expected"),
    [
        ("a", "a"),
        (7, 7),
        (np.int64(3), 3),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("/docs/a.md"), "/docs/a.md"),
        (PurePosixPath("a.md"), "a.md"),
        (np.str_("n"), "n"),
        (enum.Enum("Doc", {"A": "doc-a"}).A, "doc-a"),
        (enum.IntEnum("Doc", {"A": 4}).A, 4),
        ("half \ud83e", "half \ud83e"),
        ("nul\x00", "nul\x00"),
    ],
)
def test_identifiers_are_made_plain(given_id, expected):
    """Text stays exactly as it is, and an int stays an int."""
    made = RAGSource(given_id, 0).document_id
    assert made == expected
    assert type(made) is type(expected)


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (None, None),
        (0, 0.0),
        (0.0, 0.0),
        (1, 1.0),
        (-4.76837158203125e-07, -4.76837158203125e-07),
        (np.float32(0.1), 0.10000000149011612),
        (np.float64(0.25), 0.25),
        (np.array(0.5), 0.5),
        (Decimal("0.75"), 0.75),
        (Fraction(1, 4), 0.25),
    ],
)
def test_scores_are_made_plain(score, expected):
    """A score keeps its bits; a missing one stays null and is never zero."""
    source = RAGSource("a", 0, similarity_score=score)
    assert source.similarity_score == expected
    assert type(source.similarity_score) is type(expected)
    assert source.metadata == {}


@pytest.mark.parametrize(
    "score",
    [math.nan, math.inf, -math.inf, np.float32("nan"), Decimal("NaN"), Decimal("sNaN"), 10**400],
    ids=repr,
)
def test_a_score_that_is_not_finite_becomes_null_with_its_reason(score):
    """No JSON ever holds a bare NaN, and the reason is kept."""
    source = RAGSource("a", 0, similarity_score=score, metadata={"k": 1})
    assert source.similarity_score is None
    assert source.metadata == {"k": 1, "similarity_score_reason": "non-finite"}


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("", ""),
        (None, ""),
        ("yesterday", "yesterday"),
        (datetime(2025, 1, 1, 2, tzinfo=EAST), "2025-01-01T00:00:00Z"),
        (datetime(2025, 1, 1, 2, 0, 0, 5000, timezone.utc), "2025-01-01T02:00:00.005000Z"),
        (datetime(1, 1, 1, tzinfo=EAST), "0001-01-01T00:00:00+02:00"),
        (date(2025, 1, 1), "2025-01-01"),
    ],
)
def test_times_become_rfc_3339(moment, expected):
    """Aware times are given in UTC with Z."""
    source = RAGSource("a", 0, retrieved_at=moment)
    assert source.retrieved_at == expected
    assert source.metadata == {}


def test_a_naive_time_gets_no_false_zone_and_is_marked():
    """Wherever it stands: in its field or in the metadata."""
    naive = datetime(2025, 1, 1)
    source = RAGSource(
        "a", 0, retrieved_at=naive, metadata={"ts": naive, "in": [{"t": np.datetime64("2025-01-01T00:00:00.000000001")}]}
    )  # fmt: skip
    assert source.retrieved_at == "2025-01-01T00:00:00"
    assert source.to_dict()["metadata"] == {
        "ts": "2025-01-01T00:00:00",
        "in": [{"t": "2025-01-01T00:00:00"}],
        "naive_datetimes": ["retrieved_at", "ts", "in.0.t"],
    }


def test_chunk_numbers_are_made_plain():
    """Numpy ints and floats that are whole numbers, such as data frames give."""
    assert [RAGSource("a", n).chunk_index for n in (np.int32(0), 3.0, np.float64(4), -1)] == [
        0, 3, 4, -1,
    ]  # fmt: skip


class Url:
    """Looks like the URL objects of httpx and yarl."""

    scheme, host = "https", "h"

    def __str__(self):
        return "https://u:p@h/x"


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        (Path("/docs/a.md"), "/docs/a.md"),
        (None, ""),
        (pydantic.HttpUrl("https://u:p@h/x"), "https://u:REDACTED@h/x"),
        (Url(), "https://u:REDACTED@h/x"),
        ("x" * 5_000, "x" * 4_070 + "<cut from 5000 characters>"),
    ],
    ids=["path", "none", "pydantic", "url", "long"],
)
def test_addresses_are_made_plain(uri, expected):
    """Paths, URL objects, and none at all."""
    assert RAGSource("a", 0, source_uri=uri).source_uri == expected


def test_credentials_get_in_nowhere():
    """One choke point: every text of a source is masked, in any field and at any depth."""
    bad = "postgres://svc:hunter2@db/x"
    source = RAGSource(
        bad, 0, bad, bad, bad, None, bad,
        {bad: bad, "deep": [{"t": (bad, {bad})}], "note": f"failed: {bad}, retry",
         "api_key": "hunter2", "credentials": {"user": "u", "x": "hunter2"}, "pwd": 42, "first_token": 3, "token": "x",
         "password": None, "has_token": True},
    )  # fmt: skip
    assert "hunter2" not in json.dumps(source.to_dict())
    clean = "postgres://svc:REDACTED@db/x"
    assert source.to_dict()["metadata"] == {
        clean: clean,
        "deep": [{"t": [clean, [clean]]}],
        "note": f"failed: {clean[:-1]}x, retry",
        "api_key": "REDACTED",
        "credentials": "REDACTED",
        "pwd": "REDACTED",
        "first_token": 3,
        "token": "REDACTED",
        "password": None,
        "has_token": True,
    }


def test_an_identifier_with_a_telling_word_stays():
    """A colon is no assignment in an identifier or an address."""
    for name in ("token:17", "secret: a novel.pdf", "urn:password:3"):
        assert RAGSource(name, 0, name).document_id == RAGSource(name, 0, name).source_uri == name


def test_a_password_is_not_left_over_by_a_cut():
    """Masking comes before cutting."""
    source = RAGSource("a", 0, "x" * 4_080 + "://svc:hunter2@db/x")
    assert "hunter" not in source.source_uri


class Color(enum.Enum):
    RED = "red"


class Model(pydantic.BaseModel):
    when: datetime
    n: int = 1


@dataclasses.dataclass
class Job:
    name: str
    lock: object


class AsyncJson:
    async def json(self):
        raise AssertionError

    async def dict(self):
        raise AssertionError


class BadRepr:
    def __repr__(self):
        raise RuntimeError

    __str__ = __repr__


class BadMapping(UserDict):
    def items(self):
        raise RuntimeError


class Text(str):  # noqa: SLOT000 - as people write it
    def __str__(self):
        raise RuntimeError


class Number(int):
    def __index__(self):
        raise RuntimeError


class Real(float):
    def __float__(self):
        raise RuntimeError


class Shapeless:
    def item(self):
        raise RuntimeError


class BrokenPath(PurePosixPath):
    def __fspath__(self):
        raise RuntimeError


class BrokenIndex:
    def __index__(self):
        raise RuntimeError


class NoCopy:
    def __deepcopy__(self, memo):
        raise AssertionError


def test_metadata_is_made_plain():
    """What people put there, and what comes of it."""
    name = f"{__name__}."
    lock = threading.Lock()
    given_values = {
        "ts": datetime(2025, 1, 1, 2, tzinfo=EAST),
        "day": date(2025, 1, 1),
        "price": Decimal("1.10"),
        "flag": np.bool_(True),
        "n": np.int64(3),
        "x": np.float32(0.1),
        "nan": [math.nan, math.inf, -math.inf],
        "none": None,
        "id": uuid.UUID(int=1),
        "path": Path("/a"),
        "color": Color.RED,
        "set": {"b", "a"},
        "tuple": (1, "a"),
        "deque": deque([1]),
        "ordered": OrderedDict(a=1),
        "user": UserDict(a=1),
        "bytes": b"\x00\xff",
        "model": Model(when=datetime(2025, 1, 1, tzinfo=timezone.utc)),
        "job": Job("j", lock),
        "asyncjson": AsyncJson(),
        "badrepr": BadRepr(),
        "badmapping": BadMapping(),
        "nocopy": NoCopy(),
        "text": Text("t"),
        "number": Number(5),
        "real": Real(0.5),
        "shapeless": Shapeless(),
        "time": time_of_day(1, 2),
        "class": Job,
        "function": len,
        "generator": (each for each in "ab"),
        "half": "\ud83e",
        1: "int key",
        None: "none key",
        (1, 2): "tuple key",
        "small": np.array([[1, 2], [3, 4]]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source = RAGSource("a", 0, metadata=given_values)
    assert _strict(source.to_dict()["metadata"]) == {
        "ts": "2025-01-01T00:00:00Z",
        "day": "2025-01-01",
        "price": "1.10",
        "flag": True,
        "n": 3,
        "x": 0.10000000149011612,
        "nan": ["NaN", "Infinity", "-Infinity"],
        "none": None,
        "id": "00000000-0000-0000-0000-000000000001",
        "path": "/a",
        "color": "red",
        "set": ["a", "b"],
        "tuple": [1, "a"],
        "deque": [1],
        "ordered": {"a": 1},
        "user": {"a": 1},
        "bytes": {"len": 2},
        "model": {"when": "2025-01-01T00:00:00Z", "n": 1},
        "job": {"name": "j", "lock": f"<unserialisable {type(lock).__module__}.lock>"},
        "asyncjson": f"<unserialisable {name}AsyncJson>",
        "badrepr": f"<unserialisable {name}BadRepr>",
        "badmapping": f"<unserialisable {name}BadMapping>",
        "nocopy": f"<unserialisable {name}NoCopy>",
        "text": "t",
        "number": 5,
        "real": 0.5,
        "shapeless": f"<unserialisable {name}Shapeless>",
        "time": "01:02:00",
        "class": "<unserialisable type>",
        "function": "<unserialisable builtin_function_or_method>",
        "generator": "<unserialisable generator>",
        "half": "\ud83e",
        "1": "int key",
        "null": "none key",
        "[1, 2]": "tuple key",
        "small": [[1, 2], [3, 4]],
    }
    assert next(given_values["generator"]) == "a"


def test_kinds_of_text_become_text():
    """A subclass of str loses its own ways."""
    source = RAGSource(Text("i"), 0, Text("u"), content=Text("c"))
    assert [type(each) for each in (source.document_id, source.source_uri, source.content)] == [
        str
    ] * 3
    assert (source.document_id, source.source_uri, source.content) == ("i", "u", "c")


def test_vectors_are_replaced_by_their_length():
    """Lists of numbers that are long, or that are called vectors; other lists stay."""
    source = RAGSource(
        "a", 0,
        metadata={
            "vector": [0.1] * 3072, "embedding": [1, 2], "v": np.zeros(384), "w": [0.5] * 32,
            "m": np.zeros((4, 128)), "pages": [1, 2, 3], "flags": [True] * 40, "range": range(10**9),
        },
    )  # fmt: skip
    assert source.to_dict()["metadata"] == {
        "vector": {"len": 3072},
        "embedding": {"len": 2},
        "v": {"len": 384},
        "w": {"len": 32},
        "m": {"len": 4},
        "pages": [1, 2, 3],
        "flags": [True] * 40,
        "range": {"len": 10**9},
    }


def test_cycles_and_depth_are_bounded():
    """A structure that holds itself, and one that is deeper than any reader goes."""
    loop: list = [1]
    loop.append({"again": loop})
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    made = RAGSource("a", 0, metadata={"loop": loop, "deep": deep}).to_dict()["metadata"]
    assert made["loop"] == [1, {"again": "<cycle list>"}]
    assert json.dumps(made["deep"]) == "[" * 15 + '"<too deep list>"' + "]" * 15
    same = [1]
    assert RAGSource("a", 0, metadata={"x": same, "y": same}).metadata == {"x": (1,), "y": (1,)}


def test_the_size_of_metadata_is_bounded():
    """What is cut or left out says how much there was."""
    text = RAGSource("a", 0, metadata={"t": "x" * 10**6, "u": "y", "v": 1}).metadata
    assert text["t"].endswith("x<cut from 1000000 characters>")
    assert len(text["t"]) < MAX_CHARACTERS + 50
    assert text["<left out>"] == 2
    many = RAGSource("a", 0, metadata={"l": [str(n) for n in range(10**5)]}).metadata["l"]
    assert many[-1] == f"<left out {10**5 - len(many) + 1}>"
    assert len(many) < MAX_CHARACTERS
    huge = RAGSource("a", 0, metadata={"n": 2**5000}).metadata["n"]
    assert huge == hex(2**5000)


def test_a_source_cannot_change():
    """Neither its fields, nor its metadata at any depth, nor through what it was made of."""
    given_values = {"in": {"k": [1]}}
    source = RAGSource("a", 0, metadata=given_values)
    given_values["in"]["k"].append(2)
    given_values["new"] = 1
    assert source.to_dict()["metadata"] == {"in": {"k": [1]}}
    source.to_dict()["metadata"]["in"]["k"].append(3)
    assert source.metadata == {"in": {"k": (1,)}}
    with pytest.raises(dataclasses.FrozenInstanceError):
        source.document_id = "b"
    for change in (
        lambda: source.metadata.update(a=1),
        lambda: source.metadata["in"].__setitem__("k", 2),
        lambda: source.metadata.pop("in"),
        lambda: source.metadata.__ior__({"a": 1}),
    ):
        with pytest.raises(TypeError, match=r"read-only; use dataclasses\.replace"):
            change()
    assert RAGSource("a", 0).metadata is not RAGSource("b", 0, metadata={"x": 1}).metadata


def test_a_source_is_a_good_dataclass():
    """It can be compared, hashed, pickled, copied, replaced and taken apart."""
    source = RAGSource("a", 0, "u", metadata={"k": [1, {"z": 1}]}, content="text")
    for other in (pickle.loads(pickle.dumps(source)), copy.deepcopy(source), copy.copy(source)):
        assert other == source
        assert hash(other) == hash(source)
    assert dataclasses.replace(source, chunk_index=np.int8(2)).chunk_index == 2
    assert dataclasses.replace(source, chunk_index=0) == source
    large = RAGSource(
        "a" * 5_000, 0, metadata={"t": "x" * 10**5, "u": 1, "v": datetime(2025, 1, 1)}
    )
    assert dataclasses.replace(large) == large
    assert dataclasses.asdict(source)["metadata"] == source.metadata
    assert json.loads(json.dumps(source.metadata)) == {"k": [1, {"z": 1}]}
    with pytest.raises(TypeError, match="read-only"):
        pickle.loads(pickle.dumps(source)).metadata.clear()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"document_id": None}, "document_id: expected text, an int, a UUID or a path, got NoneType"),
        ({"document_id": True}, "document_id: expected text, an int, a UUID or a path, got bool"),
        ({"document_id": 1.5}, "document_id: expected text, an int, a UUID or a path, got float"),
        ({"document_id": 2**5000}, r"document_id: expected a whole number below 2\*\*4096"),
        ({"chunk_index": None}, "chunk_index: expected a whole number, got NoneType"),
        ({"chunk_index": "3"}, "chunk_index: expected a whole number, got str"),
        ({"chunk_index": True}, "chunk_index: expected a whole number, got bool"),
        ({"chunk_index": 1.5}, "chunk_index: expected a whole number, got float"),
        ({"source_uri": 3}, "source_uri: expected text, got int"),
        ({"retriever": object()}, "retriever: expected text, got object"),
        ({"embedding_model": ["e5"]}, "embedding_model: expected text, got list"),
        ({"similarity_score": "0.9"}, "similarity_score: expected a real number or None, got str"),
        ({"similarity_score": True}, "similarity_score: expected a real number or None, got bool"),
        ({"similarity_score": 1j}, "similarity_score: expected a real number or None, got complex"),
        ({"similarity_score": [0.9]}, "similarity_score: expected a real number or None, got list"),
        ({"retrieved_at": 17.5}, "retrieved_at: expected text, got float"),
        ({"document_id": BrokenPath("a")}, r"document_id: expected text.*got .*BrokenPath"),
        ({"chunk_index": BrokenIndex()}, r"chunk_index: expected a whole number, got .*BrokenIndex"),
        ({"chunk_index": np.array([3, 4])}, r"chunk_index: expected a whole number, got .*ndarray"),
        ({"metadata": [1]}, "metadata: expected a mapping, got list"),
        ({"metadata": b"x"}, "metadata: expected a mapping, got bytes"),
        ({"metadata": BadMapping()}, r"metadata: expected a mapping, got .*BadMapping"),
        ({"content": b"x"}, "content: expected text or None, got bytes"),
        ({"content": Color.RED}, r"content: expected text or None, got .*Color"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_plain_is_refused_by_name(arguments, message):
    """The message begins with the field and says what was expected and what was given."""
    with pytest.raises(TypeError, match=f"^{message}$"):
        RAGSource(**{"document_id": "a", "chunk_index": 0, **arguments})


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.characters(categories=["Cs"])
    | st.binary()
    | st.decimals()
    | st.uuids()
    | st.datetimes(timezones=st.none() | st.timezones())
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.complex_numbers()
    | st.builds(object)
    | st.builds(np.float32, st.floats(width=32))
    | st.builds(np.int64, st.integers(-(2**63), 2**63 - 1))
)
_KEYS = _SCALARS.filter(lambda key: not isinstance(key, Decimal) or key.is_finite())
_ANYTHING = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.tuples(inner, inner)
        | st.dictionaries(_KEYS, inner, max_size=5)
        | st.frozensets(_KEYS, max_size=3)
    ),
    max_leaves=20,
)


@given(
    st.fixed_dictionaries(
        {
            "document_id": st.text() | st.integers() | _ANYTHING,
            "chunk_index": st.integers() | _ANYTHING,
        },
        optional=dict.fromkeys([*FIELDS[2:], "content"], _ANYTHING),
    )
)
def test_any_input_gives_json_or_a_type_error_with_the_field(arguments):
    """No input whatever gives a source that JSON cannot carry, or another exception."""
    try:
        made = RAGSource(**arguments).to_dict()
    except TypeError as error:
        refused = str(error).split(":")[0]
    else:
        assert _strict(made) == made
        assert RAGSource(**made).to_dict() == made
        return
    assert refused in arguments


@given(_ANYTHING)
def test_any_metadata_gives_json(value):
    """Whatever stands under a key, the mapping as a whole is recorded."""
    made = RAGSource("a", 0, metadata={"k": value}).to_dict()["metadata"]
    assert _strict(made) == made


def test_a_thousand_uuids_cost_nothing(caplog):
    """No warning a value, and no more than 50 microseconds each."""
    begin = time.thread_time()
    for _ in range(1000):
        RAGSource(uuid.UUID(int=1), 0, "https://h/a.md?page=3", metadata={"source": "a.md"})
    assert time.thread_time() - begin < 0.2
    assert caplog.records == []
