"""OTLP attribute lists and ``AnyValue`` -> plain Python values. Wrong types never raise."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


MAX_DEPTH = 64
"""Levels of nesting that are read; what lies deeper is left out."""

_TEXT = frozenset({str})
_NESTED = frozenset({list, dict})


def dicts(value: Any) -> Iterable[dict[str, Any]]:
    """Give the objects of a list; nothing when it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else ()


def text(value: Any) -> str:
    """Give a text, or empty when it is none."""
    return value if isinstance(value, str) else ""


def integer(value: Any) -> int | None:
    """Read an integer that may be written as a decimal string."""
    if value is None:
        return None
    if isinstance(value, str):
        digits = value.removeprefix("-")
        plain = digits.isascii() and digits.isdigit() and len(digits) <= 20
        return int(value) if plain else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def attributes(items: Any, depth: int = 0) -> dict[str, Any]:
    """Read a list of ``{"key", "value"}``; entries of another shape are left out."""
    if not items:
        return {}
    try:
        # The shape that every exporter writes, without a call for each text.
        found = {
            item["key"]: (
                value["stringValue"]
                if "stringValue" in (value := item["value"])
                else any_value(value, depth)
            )
            for item in items
        }
    except (TypeError, KeyError, AttributeError):
        found = {}
    if found and _TEXT.issuperset(map(type, found)):
        nested = not _NESTED.isdisjoint(map(type, found.values()))
        return {key: bounded(value, depth) for key, value in found.items()} if nested else found
    return {
        item["key"]: any_value(item.get("value"), depth)
        for item in dicts(items)
        if isinstance(item.get("key"), str)
    }


def any_value(value: Any, depth: int = 0) -> Any:
    """Read one ``AnyValue``; a plain JSON value in its place is taken as it is."""
    if depth > MAX_DEPTH:
        return None
    if not isinstance(value, dict):
        return bounded(value, depth)
    for name, content in value.items():
        read = _SCALARS.get(name)
        if read is not None:
            return read(content)
        if name in _LISTS:
            values = content.get("values") if isinstance(content, dict) else content
            if not isinstance(values, list):
                return bounded(values, depth) if values else []
            items = values
            if _LISTS[name] is dict:
                return attributes(items, depth + 1)
            return [any_value(item, depth + 1) for item in items]
    return None


def bounded(value: Any, depth: int = 0) -> Any:
    """Give a JSON value without what lies more than 64 levels deep."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {key: bounded(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [bounded(item, depth + 1) for item in value]
    return value


def _as_is(content: Any) -> Any:
    return bounded(content)


def _integer(content: Any) -> Any:
    number = integer(content)
    return bounded(content) if number is None else number


def _double(content: Any) -> Any:
    try:
        return content if isinstance(content, bool) else float(content)
    except (TypeError, ValueError, OverflowError):
        return bounded(content)


def octets(content: Any) -> Any:
    """Decode base64; what is none is given as it is."""
    try:
        return binascii.a2b_base64(content)
    except (TypeError, ValueError):
        return bounded(content)


_SCALARS = {
    "stringValue": _as_is,
    "intValue": _integer,
    "doubleValue": _double,
    "boolValue": _as_is,
    "bytesValue": octets,
    "string_value": _as_is,
    "int_value": _integer,
    "double_value": _double,
    "bool_value": _as_is,
    "bytes_value": octets,
}
_LISTS = {"arrayValue": list, "kvlistValue": dict, "array_value": list, "kvlist_value": dict}
