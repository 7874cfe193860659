"""Plain JSON data to RFC 8785 octets and back.

The writing itself is orjson's. It differs from RFC 8785 in two places, which are prepared
here: the spelling of floats (section 3.2.2.3, ECMAScript's) and the order of keys (section
3.2.3, UTF-16 code units; orjson sorts by code point, which differs only beyond U+FFFF).

Source: RFC 8785.
"""

from __future__ import annotations

import math
import re
from typing import Any

import orjson

from bijotel.canonical.encoding import MAX_DEPTH, MAX_SAFE_INTEGER, shown, too_deep
from bijotel.errors import CanonicalizationError

_STRUCTURE = re.compile(rb'\\.|["\[\]{}]', re.DOTALL)


def dumps(value: Any) -> bytes:
    """Write plain JSON data in canonical form.

    Args:
        value: ``None``, bool, str, int within +-(2**53 - 1), finite float, list, tuple, or dict
            with str keys; nested at most ``MAX_DEPTH`` deep.

    Returns:
        The canonical UTF-8 octets.

    Raises:
        CanonicalizationError: ``value`` holds something else, or nests too deep.
    """
    return write(prepare(value))


def prepare(value: Any) -> Any:
    """Do the first half of :func:`dumps`, for those who write parts of a value twice.

    Returns:
        What :func:`write` takes: the value itself, its floats and every object with a key beyond
        U+FFFF replaced by their octets.

    Raises:
        CanonicalizationError: as :func:`dumps`.
    """
    try:
        return _prepare(value, 0)
    except RecursionError:
        raise too_deep() from None


def write(prepared: Any) -> bytes:
    """Do the second half of :func:`dumps`.

    Raises:
        CanonicalizationError: a string holds a lone surrogate.
    """
    try:
        return orjson.dumps(prepared, option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONEncodeError, TypeError) as error:
        raise CanonicalizationError(f"no JSON value: {error}") from None


def ready_made(value: Any, depth: int) -> orjson.Fragment:
    """Write a value that many others hold, to stand in each of them as it is.

    Args:
        value: As for :func:`dumps`.
        depth: How deep it will stand in them.

    Raises:
        CanonicalizationError: as :func:`dumps`.
    """
    return orjson.Fragment(write(_prepare(value, depth)))


def loads(octets: bytes) -> Any:
    """Read canonical octets; the only accepted input is what :func:`dumps` would write.

    Raises:
        CanonicalizationError: ``octets`` is no JSON, not canonical (white space, order,
            repeated keys, another spelling) or nests too deep (``error.code`` is ``too-deep``).
    """
    try:
        value = orjson.loads(octets)
    except orjson.JSONDecodeError as error:
        if _nests_too_deep(octets):
            raise too_deep() from None
        raise CanonicalizationError(f"not JSON: {error}") from None
    try:
        again = dumps(value)
    except CanonicalizationError as error:
        if error.code == "too-deep":
            raise
        value = _with_doubles(value)
        again = dumps(value)
    if again != octets:
        place = _first_difference(again, octets)
        raise CanonicalizationError(
            f"not in canonical form at byte {place}: expected {again[place : place + 16]!r}, "
            f"got {octets[place : place + 16]!r}"
        )
    return value


def number(value: float) -> str:
    """Spell a finite float as ECMAScript does (RFC 8785 section 3.2.2.3)."""
    if value == 0:
        return "0"
    text = repr(value)
    if "e" not in text:
        return text.removesuffix(".0")
    mantissa, _, exponent = text.partition("e")
    sign = "-" if value < 0 else ""
    digits = mantissa.lstrip("-").replace(".", "")
    point = int(exponent) + 1
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def _prepare(value: Any, depth: int) -> Any:
    """Replace what orjson would spell differently by ready-made fragments."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return value
        bits = value.bit_length()  # CPython would refuse to print a very long one
        raise CanonicalizationError(f"integer of {bits} bits: expected within +-(2**53 - 1)")
    if kind is float:
        if not math.isfinite(value):
            raise CanonicalizationError(f"{value} is no JSON number")
        return orjson.Fragment(number(value).encode())
    if depth >= MAX_DEPTH:
        raise too_deep()
    if kind is dict:
        return _prepare_object(value, depth)
    if kind is list or kind is tuple:
        return [_prepare(item, depth + 1) for item in value] if value else value
    if kind is orjson.Fragment:
        return value
    raise CanonicalizationError(f"{kind.__qualname__} is no JSON type")


def _prepare_object(value: dict[Any, Any], depth: int) -> Any:
    try:
        keys = "".join(value)  # one look at all of them
    except TypeError:
        key = next(key for key in value if not isinstance(key, str))
        raise CanonicalizationError(f"key {shown(key)} is no string") from None
    changed = {}
    for key, inner in value.items():
        # Most values are text or small numbers; asking here saves a call for each.
        kind = type(inner)
        if (
            kind is str
            or inner is None
            or (kind is int and -MAX_SAFE_INTEGER <= inner <= MAX_SAFE_INTEGER)
        ):
            continue
        prepared = _prepare(inner, depth + 1)
        if prepared is not inner:
            changed[key] = prepared
    whole = {**value, **changed} if changed else value
    if keys.isascii() or max(keys) <= "\uffff":
        return whole
    return orjson.Fragment(_write_in_utf16_order(whole))


def _write_in_utf16_order(prepared: dict[str, Any]) -> bytes:
    try:
        keys = sorted(prepared, key=lambda key: key.encode("utf-16-be"))
    except UnicodeEncodeError as error:
        raise CanonicalizationError(f"no JSON value: {error}") from None
    members = (write(key) + b":" + write(prepared[key]) for key in keys)
    return b"{" + b",".join(members) + b"}"


def _with_doubles(value: Any) -> Any:
    """Read long integers as the doubles that they spell: 1e20 is written with 21 digits."""
    if type(value) is dict:
        return {key: _with_doubles(inner) for key, inner in value.items()}
    if type(value) is list:
        return [_with_doubles(item) for item in value]
    return float(value) if type(value) is int and abs(value) > MAX_SAFE_INTEGER else value


def _nests_too_deep(octets: bytes) -> bool:
    depth, in_text = 0, False
    for match in _STRUCTURE.finditer(octets):
        mark = octets[match.start()]
        if mark == 0x22:
            in_text = not in_text
        elif in_text:
            continue
        elif mark in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif mark in b"]}":
            depth -= 1
    return False


def _first_difference(left: bytes, right: bytes) -> int:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
