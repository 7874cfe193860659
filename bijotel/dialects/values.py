"""Attribute values as they are: JSON in strings, lists in numbered keys, marks of redaction.

Nothing here raises on a value of another type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bijotel.traces import jsontext

MAX_DEPTH = 32
"""Nesting, JSON in JSON included, beyond which nothing is read."""

_OPENING = frozenset('[{"')
_BEGUN = frozenset({'{"', "[{", '["', "[["})


def decoded(value: Any) -> Any:
    """Decode a string that is JSON as a whole, again and again; give anything else as it is."""
    for _ in range(MAX_DEPTH):
        if not isinstance(value, str) or value.lstrip()[:1] not in _OPENING:
            break
        try:
            value = jsontext.loads(value)
        except ValueError:
            break
    return value


def is_broken(value: Any) -> bool:
    """Tell whether a value that :func:`decoded` gave begins like JSON: the sign of a cut."""
    return isinstance(value, str) and value.lstrip()[:2] in _BEGUN


def text(value: Any) -> str:
    """Give a text, or empty when it is none."""
    return value if isinstance(value, str) else ""


def is_redacted(value: Any) -> bool:
    """Tell whether a value stands in place of one that was hidden."""
    if isinstance(value, dict):
        return "$digest" in value
    if not isinstance(value, str) or len(value) > 24:
        return False
    return value.strip(" _[]<>{}()*").casefold() in {"redacted", "masked", "filtered"}


def numbered(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Gather the keys ``<prefix>N.<rest>`` into one mapping of ``rest`` for each N, by number.

    A key that ends with its number has the empty rest.
    """
    found: dict[int, dict[str, Any]] = {}
    start = len(prefix)
    for key, value in attributes.items():
        if key.startswith(prefix):
            number, _, rest = key[start:].partition(".")
            if number.isascii() and number.isdigit() and len(number) < 10:
                found.setdefault(int(number), {})[rest] = value
    return [found[number] for number in sorted(found)]


def leaves(value: Any, depth: int = 0) -> Iterator[str]:
    """Give all texts within a value, those in JSON strings decoded."""
    value = decoded(value)
    if isinstance(value, str):
        yield value
    elif depth < MAX_DEPTH:
        if isinstance(value, dict):
            value = value.values()
        elif not isinstance(value, (list, tuple)):
            return
        for item in value:
            yield from leaves(item, depth + 1)
