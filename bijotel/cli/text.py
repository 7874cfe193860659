"""Stored values as text for people: on one line, and never able to steer a terminal. Pure.

Whatever comes out of a store may have been written by someone who wants a terminal to show
something else: escape sequences, carriage returns, direction marks. Every such character is
shown by its number.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, Final

from bijotel import canonical
from bijotel.canonical import Digest
from bijotel.errors import CanonicalizationError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NOT_ASCII_PRINTABLE: Final = re.compile("[^ -~]")
_NAMED: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# Spelling in Persian and the Indic scripts, and in emoji; they move nothing.
_JOINERS: Final = "\u200c\u200d"
_SHORT_DIGITS: Final = 12
_DIGEST_DIGITS: Final = 8
_DIGEST_IN_ID: Final = re.compile(rf"(?<=^digest:)([0-9a-f]{{{_DIGEST_DIGITS}}})[0-9a-f]+")


def escape(text: str) -> str:
    r"""Show control, direction and other invisible characters as ``\x1b`` or ``\u202e``."""
    return text if text.isprintable() else _NOT_ASCII_PRINTABLE.sub(_escape_match, text)


def escape_json(text: str) -> str:
    r"""Do the same within JSON, so that it stays JSON of the same value: ``\u001b``."""
    return text if text.isprintable() else _NOT_ASCII_PRINTABLE.sub(_escape_json_match, text)


def shown(value: Any) -> str:
    """Show an attribute value: text as it is, a keyed digest by its first digits, else JSON."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Digest):
        facts = value["$digest"]
        return f"digest:{escape(facts['hmac'][:_DIGEST_DIGITS])}... ({facts['bytes']} bytes)"
    return escape_json(json.dumps(canonical.encode(value), ensure_ascii=False))


def shown_id(value: Any, *, short: bool) -> str:
    """Show a document's id; a hash may be cut where a person reads it, never in a file.

    A recorded list of sources is a text of its own, so that a keyed digest in it is plain JSON.
    """
    if isinstance(value, dict) and "$digest" in value:
        with suppress(CanonicalizationError):
            return shown(canonical.decode(value))
    text = shown(value)
    prefix, separator, digits = text.partition("sha256:")
    if not short or prefix or not separator or len(digits) <= _SHORT_DIGITS:
        return text
    return f"sha256:{digits[:_SHORT_DIGITS]}..."


def shown_passage_id(text: str) -> str:
    """Show the id of a passage, in which a keyed digest has all its digits."""
    return escape(_DIGEST_IN_ID.sub(r"\1...", text))


def shown_score(value: Any) -> str:
    """Show a score with three digits; one that these would hide, or no number, as it is."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value == 0 or 0.001 <= abs(value) < 1e6:
            return f"{value:.3f}"
        return repr(value)
    return shown(value)


def time_text(unix_nano: int, digits: int = 9) -> str:
    """Spell a time in UTC, RFC 3339, with so many digits of the second's fraction."""
    seconds, fraction = divmod(unix_nano, 10**9)
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{f'{fraction:09d}'[:digits]}Z"


def column_text(column: str, value: Any) -> str:
    """Show a stored column, whatever its type is: octets in hex, a time with its date."""
    if isinstance(value, bytes):
        return value.hex()
    if type(value) is int and column.endswith("_unix_nano") and value:
        return f"{value} ({time_text(value)})"
    return "null" if value is None else escape(str(value))


def json_column(column: str, value: Any) -> Any:
    """Make a stored column fit JSON: octets in hex, times as decimal text."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) or column.endswith("_unix_nano"):
        return None if value is None else str(value)
    return value


def clean(value: Any) -> Any:
    """Replace lone surrogates, which some readers of JSON refuse, throughout a document."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    return value


@lru_cache(maxsize=1024)
def _escape_character(character: str) -> str:
    if _is_harmless(character):
        return character
    number = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


@lru_cache(maxsize=1024)
def _escape_json_character(character: str) -> str:
    if _is_harmless(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def _is_harmless(character: str) -> bool:
    return (
        character.isprintable() or character in _JOINERS or unicodedata.category(character) == "Zs"
    )


def _escape_match(match: re.Match[str]) -> str:
    return _escape_character(match[0])


def _escape_json_match(match: re.Match[str]) -> str:
    return _escape_json_character(match[0])
