"""JSON or Python literal text -> plain values, also when the text was cut short.

Reads what a message list becomes when it is dumped with ``json.dumps`` or ``repr``. Knows nothing
of messages (``decode`` does). No input raises: what is no literal is None. Nothing is evaluated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 64
"""Nesting beyond which a literal that ``json`` cannot read is taken for plain text."""

_OPENING = re.compile(r"""\s*[\[({"']""")
_SPACE = re.compile(r"\s*")
_SCALAR = re.compile(r"[-+]?[\w.][\w.+-]*")
_NUMBER = re.compile(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?")
_NAMES = frozenset({"true", "false", "null", "None", "True", "False", "NaN", "Infinity"})
_ESCAPE = re.compile(
    r"\\(?:u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8})|x(?P<two>[0-9a-fA-F]{2})"
    r"|(?P<cut>[uUx][0-9a-fA-F]{0,7}\Z)|(?P<one>.))",
    re.DOTALL,
)
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\n": ""}


class _NoLiteralError(Exception):
    """The text is no literal."""


class _EndedError(_NoLiteralError):
    """The text ended inside a value."""


def read_literal(text: str, *, cut: bool = False) -> Any:
    """Read a JSON text or a Python literal made of lists, tuples, dicts, strings and scalars.

    Numbers and names read from other text than JSON come out as None: nobody needs them here.

    Args:
        text: Any text.
        cut: The end of the text may be missing: what was begun is returned as far as it goes,
            an escape or a key that lost its end is dropped.

    Returns:
        The value, or None when the text is no such literal.
    """
    if not _OPENING.match(text):
        return None
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    try:
        return _Reader(text, cut=cut).whole()
    except _NoLiteralError:
        return None


def join_surrogates(text: str) -> str:
    """Make one character of each surrogate pair; lone surrogates stay."""
    if not text.isascii():
        return _SURROGATE_PAIR.sub(lambda pair: _joined(pair[0]), text)
    return text


def _joined(pair: str) -> str:
    return chr(0x10000 + ((ord(pair[0]) - 0xD800) << 10) + ord(pair[1]) - 0xDC00)


def _unescape(escape: re.Match[str]) -> str:
    digits = escape["four"] or escape["eight"] or escape["two"]
    if digits:
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else escape[0]
    if escape["cut"]:
        return ""
    return _SHORT.get(escape["one"], escape["one"])


class _Reader:
    """One pass over one text."""

    def __init__(self, text: str, *, cut: bool) -> None:
        self._text = text
        self._cut = cut
        self._at = 0

    def whole(self) -> Any:
        value = self._value(0)
        self._skip()
        if self._at < len(self._text):
            raise _NoLiteralError
        return value

    def _skip(self) -> None:
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _peek(self) -> str:
        self._skip()
        if self._at >= len(self._text):
            raise _EndedError
        return self._text[self._at]

    def _value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise _NoLiteralError
        first = self._peek()
        if first in "\"'":
            return self._string(first)
        if first == "{":
            pairs: dict[str, Any] = {}
            self._members("}", lambda: self._pair(pairs, depth))
            return pairs
        if first in "[(":
            items: list[Any] = []
            self._members(
                "]" if first == "[" else ")", lambda: items.append(self._value(depth + 1))
            )
            return items
        return self._scalar()

    def _members(self, closing: str, member: Callable[[], None]) -> None:
        self._at += 1
        try:
            while self._peek() != closing:
                member()
                if self._peek() == ",":
                    self._at += 1
                elif self._peek() != closing:
                    raise _NoLiteralError
            self._at += 1
        except _EndedError:
            if not self._cut:
                raise

    def _pair(self, pairs: dict[str, Any], depth: int) -> None:
        key = self._value(MAX_DEPTH)
        if self._peek() != ":":
            raise _NoLiteralError
        self._at += 1
        pairs[str(key)] = self._value(depth + 1)

    def _scalar(self) -> None:
        match = _SCALAR.match(self._text, self._at)
        if match is None:
            raise _NoLiteralError
        self._at = match.end()
        ended = self._cut and self._at == len(self._text)
        known = match[0].lstrip("+-") in _NAMES or _NUMBER.fullmatch(match[0])
        if not (ended or known):
            raise _NoLiteralError

    def _string(self, quote: str) -> str:
        begin = self._at + 1
        end = self._closing(quote, begin)
        self._at = min(end + 1, len(self._text))
        body = self._text[begin:end]
        return join_surrogates(_ESCAPE.sub(_unescape, body)) if "\\" in body else body

    def _closing(self, quote: str, begin: int) -> int:
        """Find the quote that ends a string; with ``cut`` the end of the text will do."""
        text, at = self._text, begin
        while (at := text.find(quote, at)) >= 0:
            slashes = at
            while slashes > begin and text[slashes - 1] == "\\":
                slashes -= 1
            if (at - slashes) % 2 == 0:
                return at
            at += 1
        if not self._cut:
            raise _EndedError
        # A lone backslash at the end is half an escape.
        tail = len(text) - len(text.rstrip("\\"))
        return max(begin, len(text) - tail % 2)
