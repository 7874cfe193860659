"""A number that fits no column is a fault of its type, wherever the row comes from."""

from __future__ import annotations

import pytest

from bijotel.model import Entry
from bijotel.verify.rows import MAX_INTEGER, RowFault, check_columns

SOUND = Entry(
    b"c" * 16, 0, 0, b"k" * 8, "span", 1, "span/1", b"h" * 32, b"p" * 32, b"t" * 16, b"s" * 8,
    "chat", 1, 2, b"d" * 32, b"g" * 32, b"{}",
)  # fmt: skip


def test_the_largest_numbers_are_sound():
    """2**63 - 1 fits every store."""
    entry = SOUND._replace(
        seq=MAX_INTEGER,
        sealed_at_unix_nano=MAX_INTEGER,
        start_unix_nano=MAX_INTEGER,
        end_unix_nano=MAX_INTEGER,
    )
    assert check_columns(tuple(entry)) == entry


@pytest.mark.parametrize("value", [2**63, 2**64, 2**100, -1])
@pytest.mark.parametrize(
    "column", ["seq", "sealed_at_unix_nano", "start_unix_nano", "end_unix_nano"]
)
def test_numbers_beyond_are_not(column: str, value: int):
    """An export may hold any number; one that no header can carry is reported, not raised."""
    fault = check_columns(tuple(SOUND._replace(**{column: value})))
    assert fault == RowFault("type-mismatch", column, f"an integer from 0 to {MAX_INTEGER}", value)
