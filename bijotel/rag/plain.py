"""Turns the values that people put into metadata into plain, bounded, read-only JSON values.

Nothing raises, nothing is copied deeply, no method of a foreign object is called except
``item`` and ``tolist`` of arrays and ``model_dump`` of pydantic models. What has no plain form
becomes ``<unserialisable package.Class>``, the same text in every run. Credentials are masked
on the way (:mod:`bijotel.rag.redact`): every text of a source passes through here.

======================================  ====================================================
numpy scalar                            the Python value; float32 widened, not rounded
NaN, infinities                         ``"NaN"``, ``"Infinity"``, ``"-Infinity"``
``Decimal``, ``UUID``, path             text
aware ``datetime``                      RFC 3339 in UTC with ``Z``
naive ``datetime``                      RFC 3339 without offset; its path is listed as naive
vector                                  ``{"len": n}``
bytes                                   ``{"len": n}``
set                                     sorted list
======================================  ====================================================

Lists become tuples, so that a source cannot change after it was made; :func:`thaw` undoes it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timezone
from decimal import Decimal
from enum import Enum
from itertools import islice
from numbers import Real
from typing import Any, NoReturn
from uuid import UUID

from bijotel.rag.redact import MASK, names_secret, redact_text

MAX_CHARACTERS = 16_384
"""Of one source's metadata, keys and values together; what is beyond is cut and says so."""

MAX_DEPTH = 16
"""Levels of nesting that are followed."""

MAX_INT_BITS = 4_096
"""Larger integers are written in hexadecimal: JSON readers refuse to parse them."""

_VECTOR_LENGTH = 32
_VECTOR_NAMES = ("vector", "embedding")
_MAX_KEY = 256
_ITEM_COST = 8


class ReadOnlyDict(dict[str, Any]):
    """A dict that refuses changes; it compares, prints and dumps as any other."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the metadata of a source is read-only; use dataclasses.replace")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse
    __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


NO_METADATA = ReadOnlyDict()
"""The metadata of a source that has none."""


def plain_metadata(metadata: object) -> tuple[Any, tuple[str, ...]]:
    """Return the plain form of a source's metadata and the paths of its naive datetimes."""
    if type(metadata) is ReadOnlyDict:  # of another source, and plain already
        return metadata, ()
    walk = _Walk()
    return walk.value(metadata, ()), tuple(walk.naive)


def scalar(value: Any) -> Any:
    """Return the Python value of a numpy scalar (or any array without dimensions)."""
    if getattr(type(value), "item", None) is None:
        return value
    try:
        if value.shape != ():
            return value
        if type(value).__name__ == "datetime64":  # whose nanoseconds would be a bare integer
            value = value.astype("datetime64[us]")
        return value.item()
    except Exception:  # noqa: BLE001 - a foreign object with an "item" of its own
        return value


def bounded_text(text: str, limit: int, redact: Callable[[str], str] = redact_text) -> str:
    """Mask credentials, then cut: cutting first could leave half a password unrecognised."""
    clean = redact(text[: 8 * limit + 8_192])
    if len(text) <= limit:
        return clean
    mark = f"<cut from {len(text)} characters>"
    return clean[: max(limit - len(mark), 0)] + mark


def time_text(value: date) -> str:
    """Return RFC 3339 text: aware times in UTC with ``Z``, naive times and dates without offset."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return value.isoformat()
    try:
        value = value.astimezone(timezone.utc)
    except OverflowError:  # year 1 or 9999: the time as given, offset included
        return value.isoformat()
    return value.isoformat().replace("+00:00", "Z")


def type_name(value: object) -> str:
    """Return ``package.Class`` of a value, without the package for built-in types."""
    kind = type(value)
    package = getattr(kind, "__module__", "?")
    return kind.__qualname__ if package == "builtins" else f"{package}.{kind.__qualname__}"


def thaw(value: Any) -> Any:
    """Return a fresh copy made of dicts and lists."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    return [thaw(item) for item in value] if isinstance(value, tuple) else value


class _Walk:
    """One walk over one value, with what is left of its budget."""

    def __init__(self) -> None:
        self.room = MAX_CHARACTERS
        self.naive: list[str] = []
        self._open: set[int] = set()

    def value(self, value: Any, path: tuple[str, ...]) -> Any:
        self.room -= _ITEM_COST
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            return self._text(value)
        if kind is int:
            return value if value.bit_length() <= MAX_INT_BITS else self._text(hex(value))
        if kind is float:
            return value if math.isfinite(value) else _non_finite(value)
        try:
            return self._other(value, path)
        except Exception:  # noqa: BLE001 - a foreign object must not break the host's call
            return _unserialisable(value)

    def _other(self, value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, Enum):
            return self.value(value.value, path)
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, int):
            return self.value(int.__index__(value), path)
        if isinstance(value, float):
            return self.value(float.__float__(value), path)
        if isinstance(value, (Decimal, UUID)):
            return self._text(str(value))
        if isinstance(value, (date, time)):
            return self._time(value, path)
        if isinstance(value, os.PathLike):
            return self._text(os.fsdecode(value))
        if isinstance(value, (bytes, bytearray, memoryview)):
            return ReadOnlyDict(len=len(value))
        unwrapped = scalar(value)
        if unwrapped is not value:
            return self.value(unwrapped, path)
        return self._container(value, path)

    def _container(self, value: Any, path: tuple[str, ...]) -> Any:
        if id(value) in self._open:
            return f"<cycle {type_name(value)}>"
        if len(path) >= MAX_DEPTH:
            return f"<too deep {type_name(value)}>"
        self._open.add(id(value))
        try:
            return self._members(value, path)
        finally:
            self._open.discard(id(value))

    def _members(self, value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        if hasattr(type(value), "tolist"):
            size = math.prod(getattr(value, "shape", (len(value),)))
            if size >= _VECTOR_LENGTH or _names_vector(path):
                return ReadOnlyDict(len=len(value))
            return self.value(value.tolist(), path)
        if isinstance(value, Sequence):
            if _is_vector(value, 1 if _names_vector(path) else _VECTOR_LENGTH):
                return ReadOnlyDict(len=len(value))
            return self._list(value, len(value), path)
        if isinstance(value, AbstractSet):
            return tuple(sorted(self._list(value, len(value), path), key=_sort_key))
        if isinstance(value, type):
            return _unserialisable(value)
        if callable(getattr(type(value), "model_dump", None)):
            return self.value(value.model_dump(mode="json"), path)
        if is_dataclass(value):
            found = {each.name: getattr(value, each.name, None) for each in fields(value)}
            return self._mapping(found, path)
        return _unserialisable(value)

    def _mapping(self, value: Mapping[Any, Any], path: tuple[str, ...]) -> ReadOnlyDict:
        made: dict[str, Any] = {}
        for key, item in value.items():
            if self.room <= 0:
                made["<left out>"] = len(value) - len(made)
                break
            name = self._key(key)
            self.room -= len(name)
            made[name] = MASK if _is_secret(name, item) else self.value(item, (*path, name))
        return ReadOnlyDict(made)

    def _list(self, value: Iterable[Any], length: int, path: tuple[str, ...]) -> tuple[Any, ...]:
        made: list[Any] = []
        for position, item in enumerate(value):
            if self.room <= 0:
                made.append(f"<left out {length - position}>")
                break
            made.append(self.value(item, (*path, str(position))))
        return tuple(made)

    def _key(self, key: Any) -> str:
        plain = key if type(key) is str else self.value(key, ())
        return bounded_text(plain if isinstance(plain, str) else json.dumps(plain), _MAX_KEY)

    def _text(self, text: str) -> str:
        limit = max(self.room, 0)
        self.room -= len(text)
        return bounded_text(text, limit)

    def _time(self, value: date | time, path: tuple[str, ...]) -> str:
        if isinstance(value, time):
            return value.isoformat()
        if isinstance(value, datetime) and value.tzinfo is None and path:
            self.naive.append(".".join(path))
        return time_text(value)


def _is_secret(name: str, item: object) -> bool:
    if item is None or isinstance(item, bool) or not names_secret(name):
        return False
    return not (isinstance(item, Real) and name.lower().endswith("token"))  # a count of tokens


def _non_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _unserialisable(value: object) -> str:
    return f"<unserialisable {type_name(value)}>"


def _names_vector(path: tuple[str, ...]) -> bool:
    return bool(path) and any(name in path[-1].lower() for name in _VECTOR_NAMES)


def _is_vector(value: Sequence[Any], at_least: int) -> bool:
    """Return whether a sequence holds numbers only (the first 4,096 are looked at)."""
    return len(value) >= at_least and all(
        type(item) is float or (isinstance(item, Real) and not isinstance(item, bool))
        for item in islice(value, 4_096)
    )


def _sort_key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
