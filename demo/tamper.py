"""What somebody with write access to the store can do: change what the model was told."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

_PROMPT = b'"gen_ai.input.messages"'


def change_one_byte(store: Path, seq: int, old: bytes, new: bytes) -> None:
    """Put ``new`` in the place of ``old`` in the stored prompt of an entry.

    Raises:
        ValueError: The two differ in more than one byte, or the prompt does not hold ``old``.
    """
    if len(old) != len(new) or sum(a != b for a, b in zip(old, new, strict=True)) != 1:
        raise ValueError(f"expected two texts that differ in one byte, got {old!r} and {new!r}")
    with closing(sqlite3.connect(store)) as connection, connection:
        row = connection.execute("SELECT body FROM entries WHERE seq = ?", (seq,)).fetchone()
        body = bytes(row[0])
        start = body.index(old, body.index(_PROMPT))
        changed = body[:start] + new + body[start + len(old) :]
        connection.execute("UPDATE entries SET body = ? WHERE seq = ?", (changed, seq))
