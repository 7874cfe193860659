"""Recorded values as text for a page. Pure.

What makes a page safe (escaping, showing invisible characters) happens where text meets markup,
in ``page`` and in the scripts; here text stays text.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from bijotel import canonical

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def shown(value: Any) -> str:
    """Show a recorded value as it is: text as text, nothing as nothing, all else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(canonical.encode(value), ensure_ascii=False)


def cut(text: str, most: int) -> str:
    """Cut a text to a number of characters, and say so."""
    return text if len(text) <= most else f"{text[:most]} ... ({len(text)} characters)"


def one_line(text: str, most: int) -> str:
    """Cut a text to the beginning of a line."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def moment(unix_nano: float | None) -> str:
    """Spell a time in UTC, to the millisecond; empty when there is none."""
    if not unix_nano:
        return ""
    try:
        at = _EPOCH + timedelta(milliseconds=int(unix_nano // 1_000_000))
    except (OverflowError, ValueError):
        return f"{unix_nano} ns"
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def duration(start: float | None, end: float | None) -> str:
    """Spell how long something took."""
    if start is None or end is None or end < start:
        return ""
    seconds = (end - start) / 10**9
    return f"{seconds:.3f} s" if seconds < 60 else f"{seconds:.0f} s"


def counted(number: int, what: str, plural: str = "") -> str:
    """Say how many there are."""
    return f"{number:,} {what if number == 1 else plural or f'{what}s'}"
