"""Refused input as an error message may quote it: cut, and never a secret. Pure.

People name the wrong file, and messages end up in logs.
"""

from __future__ import annotations

import re
from typing import Final

_SECRET: Final = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{64}(?![0-9A-Za-z])|PRIVATE KEY")


def quoted(found: str | bytes, most: int = 60) -> str:
    """Quote the beginning of what was found; of a key or an HMAC secret only its length."""
    text = found.decode("ascii", "replace") if isinstance(found, bytes) else found
    if _SECRET.search(text):
        return f"what looks like a secret ({len(found)} characters)"
    return repr(found[:most])
