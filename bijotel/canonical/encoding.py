"""Attribute values to plain JSON data and back, losing nothing. Pure.

What JSON cannot carry becomes a one-member object (``{"$int": ...}``, ``$float``, ``$bytes``,
``$utf16``), so that no value is lost and no input can suppress its own record. Writing the
octets is the duty of ``octets``.

Source: RFC 4648 (base64), docs/spec (body).
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import UserString
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from bijotel.errors import CanonicalizationError

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest integer that JSON carries without loss (RFC 8785 section 3.2.2.3)."""

MAX_DEPTH: Final = 200
"""How deep arrays and objects may nest, in what is written and in what is read.

Twice what protobuf's own readers allow; orjson would write 254 levels, and the recursion here
leaves the caller more than half of Python's stack.
"""

_DIGEST: Final = re.compile("[0-9a-f]{64}")


class Digest(dict[str, Any]):
    """What stands for a value that the chain does not hold: its keyed digest and length."""

    @classmethod
    def of(cls, length: int, tag: bytes) -> Digest:
        """Make one of the length of the value's canonical octets and their keyed digest."""
        return cls({"$digest": {"bytes": length, "hmac": tag.hex()}})


def encode(value: Any) -> Any:
    """Turn an attribute value into plain JSON data, losing nothing.

    Integers beyond +-(2**53 - 1), NaN and infinities, bytes and strings with lone surrogates
    become objects with one ``$`` member; a mapping's own keys that start with ``$`` get one
    more. Tuples, lists, sets (sorted) and NumPy arrays become arrays. An object of a class
    that no OpenTelemetry value has is kept as its text, or as ``<module.Class>`` when that
    fails.

    Raises:
        CanonicalizationError: ``value`` nests more than ``MAX_DEPTH`` deep, or holds an integer
            of more than about 100,000 digits.
    """
    try:
        return _encode(value, 0)
    except RecursionError:
        raise too_deep() from None


def decode(value: Any) -> Any:
    """Undo :func:`encode`. Arrays come back as lists, a keyed digest as :class:`Digest`.

    Raises:
        CanonicalizationError: an object claims to be an encoding and is not one.
    """
    if type(value) is dict:
        if len(value) == 1:
            (key, inner), *_ = value.items()
            if key == "$digest":
                return _decode_digest(inner)
            if key in _DECODERS:
                return _decode_special(key, inner)
        return {_decode_key(key): decode(inner) for key, inner in value.items()}
    if type(value) is list:
        return [decode(item) for item in value]
    return value


def too_deep() -> CanonicalizationError:
    """Make the error for a value that nests too deep."""
    error = CanonicalizationError(f"nested more than {MAX_DEPTH} levels deep")
    error.code = "too-deep"
    return error


def shown(value: Any) -> str:
    """Show a value in an error message, cut."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


# --- encoding ---------------------------------------------------------------------------------


def _encode(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _encode_text(value)
    if kind is int:
        if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return value
        return {"$int": _decimal(value)}
    if kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$float": _NON_FINITE[repr(value)]}
    if depth >= MAX_DEPTH:
        raise too_deep()
    if kind is tuple or kind is list:
        return [_encode(item, depth + 1) for item in value]
    if kind is Digest:
        return dict(value)
    try:
        if kind is dict or isinstance(value, Mapping):
            return _encode_mapping(value, depth)
        return _encode_other(value, depth)
    except (CanonicalizationError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - a broken object must not cost the span
        return _encode_text(_text_of(value))


def _encode_mapping(value: Mapping[Any, Any], depth: int) -> Any:
    encoded = {}
    for key, inner in value.items():
        # A plain key, ASCII text and a small number stand as they are; asking here saves most
        # calls.
        plain = type(key) is str and key.isascii() and key[:1] != "$"
        kind = type(inner)
        as_it_is = (kind is str and inner.isascii()) or (
            kind is int and -MAX_SAFE_INTEGER <= inner <= MAX_SAFE_INTEGER
        )
        encoded[key if plain else _encode_key(key)] = (
            inner if as_it_is else _encode(inner, depth + 1)
        )
    # Keys that are no strings may share a text; then the whole is kept as text.
    return encoded if len(encoded) == len(value) else _encode_text(_text_of(value))


def _encode_other(value: Any, depth: int) -> Any:
    """Encode what is not of the very classes that OpenTelemetry values have."""
    for base, plain in _PLAIN:
        if isinstance(value, base):
            return _encode(plain(value), depth)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$bytes": base64.b64encode(memoryview(value).tobytes()).decode()}
    if isinstance(value, Sequence):
        return [_encode(item, depth + 1) for item in value]
    if isinstance(value, AbstractSet):
        return sorted((_encode(item, depth + 1) for item in value), key=repr)
    plain_value = value.tolist() if callable(getattr(value, "tolist", None)) else None
    if isinstance(plain_value, (bool, int, float, str, bytes, list)):
        return _encode(plain_value, depth + 1)
    return _encode_text(_text_of(value))


# A subclass may override its conversions; the base class's own cannot be fooled.
_PLAIN: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (str, lambda value: "".join((str.__str__(value),))),
    (int, lambda value: int.__add__(value, 0)),
    (float, lambda value: float.__add__(value, 0.0)),
    (UserString, str),  # a sequence of its own kind
)
_NON_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _text_of(value: object) -> str:
    try:
        return "".join((str(value),))  # a __str__ may return a subclass
    except Exception:  # noqa: BLE001 - a broken __str__ must not cost the span
        kind = type(value)
        return f"<{kind.__module__}.{kind.__qualname__}>"


# CPython converts at most 4300 digits at once, and may be told to refuse more than 640.
_DIGITS_AT_ONCE: Final = 600
# Conversion takes quadratic time: this many bits, 100,000 digits, take a tenth of a second.
_MOST_BITS: Final = 333_000


def _decimal(value: int) -> str:
    if value < 0:
        return "-" + _decimal(-value)
    bits = value.bit_length()
    if bits > _MOST_BITS:
        raise CanonicalizationError(f"integer of {bits} bits: expected at most {_MOST_BITS}")
    size = bits * 3 // 10  # at most the number of digits
    if size < _DIGITS_AT_ONCE:
        return str(value)
    upper, lower = divmod(value, 10 ** (size // 2))
    return _decimal(upper) + _decimal(lower).zfill(size // 2)


def _integer(text: str) -> int:
    if len(text) > _MOST_BITS // 3:
        raise ValueError("too many digits")
    return -_natural(text[1:]) if text.startswith("-") else _natural(text)


def _natural(digits: str) -> int:
    if len(digits) <= _DIGITS_AT_ONCE:
        return int(digits)
    half = len(digits) // 2
    shift: int = 10**half
    return _natural(digits[:-half]) * shift + _natural(digits[-half:])


def _encode_text(text: str) -> Any:
    if _is_scalar_text(text):
        return text
    # Two surrogates that make a pair are one character, and have no spelling of their own.
    joined = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    return joined if _is_scalar_text(joined) else {"$utf16": _utf16_hex(joined)}


def _encode_key(key: Any) -> str:
    text = "".join((str.__str__(key),)) if isinstance(key, str) else _text_of(key)
    encoded = _encode_text(text)
    if isinstance(encoded, dict):
        return f"$utf16:{encoded['$utf16']}"
    return f"${encoded}" if encoded.startswith("$") else encoded


def _is_scalar_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _utf16_hex(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()


# --- decoding --------------------------------------------------------------------------------


def _decode_digest(inner: Any) -> Digest:
    if isinstance(inner, dict) and set(inner) == {"bytes", "hmac"}:
        length, tag = inner["bytes"], inner["hmac"]
        if type(length) is int and isinstance(tag, str) and _DIGEST.fullmatch(tag):
            return Digest({"$digest": inner})
    raise CanonicalizationError(f"$digest with {shown(inner)} is no encoding of a value")


def _decode_special(key: str, inner: Any) -> Any:
    try:
        value = _DECODERS[key](inner)
        if _encode(value, 0) == {key: inner}:
            return value
    except (ValueError, TypeError, AttributeError, KeyError, binascii.Error):
        pass
    raise CanonicalizationError(f"{key} with {shown(inner)} is no encoding of a value")


def _decode_key(key: str) -> str:
    if key.startswith("$utf16:"):
        return str(_decode_special("$utf16", key.removeprefix("$utf16:")))
    if key.startswith("$$"):
        return key[1:]
    if key.startswith("$"):
        raise CanonicalizationError(f"key {shown(key)} is no encoding of a key")
    return key


def _decode_utf16(inner: str) -> str:
    return bytes.fromhex(inner).decode("utf-16-be", "surrogatepass")


_DECODERS: Final[dict[str, Callable[[Any], Any]]] = {
    "$int": _integer,
    "$float": lambda inner: {text: float(text) for text in _NON_FINITE.values()}[inner],
    "$bytes": lambda inner: base64.b64decode(inner, validate=True),
    "$utf16": _decode_utf16,
}
