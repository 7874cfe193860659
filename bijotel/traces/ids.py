"""Trace and span ids in the spellings that exporters use -> lower-case hex.

OTLP/JSON writes hex; generic protobuf converters write base64 of the same bytes; Jaeger drops
leading zeros; the console exporter prefixes ``0x``.
"""

from __future__ import annotations

import binascii
from string import hexdigits
from typing import Any

_HEX = frozenset(hexdigits)


def trace_id(value: Any) -> str:
    """Read a trace id: 32 lower-case hex digits, or empty when it is none."""
    return _identifier(value, 32)


def span_id(value: Any) -> str:
    """Read a span id: 16 lower-case hex digits, or empty when it is none."""
    return _identifier(value, 16)


def padded(value: Any, digits: int) -> str:
    """Read a hex id that may have lost leading zeros, or empty when it is none."""
    text = value.removeprefix("0x") if isinstance(value, str) else ""
    return text.lower().zfill(digits) if 0 < len(text) <= digits and _HEX.issuperset(text) else ""


def _identifier(value: Any, digits: int) -> str:
    if not isinstance(value, str):
        return ""
    if len(value) == digits and _HEX.issuperset(value):
        return value.lower()
    try:
        octets = binascii.a2b_base64(value.encode("ascii"))
    except ValueError:
        return ""
    return octets.hex() if len(octets) * 2 == digits else ""
