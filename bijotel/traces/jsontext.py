"""JSON as traces hold it: fast where it is well formed, tolerant of what exporters write.

orjson does the work. What it refuses and a trace may still hold (lone surrogates, a bare
``NaN``) goes through the standard library.
"""

from __future__ import annotations

import json
from typing import Any

import orjson


def loads(written: bytes | str) -> Any:
    """Decode one JSON text.

    Raises:
        ValueError: It is no JSON text, or nested too deeply.
    """
    try:
        return orjson.loads(written)
    except orjson.JSONDecodeError:
        try:
            if isinstance(written, bytes):
                written = written.decode("utf-8", "surrogatepass")
            return json.loads(written)
        except RecursionError:
            raise ValueError("nested too deeply") from None


def dumps(value: Any) -> bytes:
    """Encode a value that :func:`loads` gave.

    Raises:
        ValueError: It is nested too deeply.
    """
    try:
        return orjson.dumps(value)
    except TypeError:  # a lone surrogate, or more than 254 levels
        try:
            return json.dumps(value).encode("ascii")
        except RecursionError:
            raise ValueError("nested too deeply") from None
