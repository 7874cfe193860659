"""Gathers the parts of each trace that are spread over an input of any size.

Parts wait in a temporary SQLite file, which the operating system drops with the process; memory
holds one trace at a time. The file grows to about the size of the input.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, NamedTuple

from bijotel.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BATCH_BYTES = 4 * 1024 * 1024


class Part(NamedTuple):
    """What one place of the input holds of one trace."""

    trace_id: bytes
    form: int
    """Which reader it is for."""
    octets: bytes


class Gathering:
    """Parts in, traces out; for one thread, and to be closed."""

    def __init__(self) -> None:
        # An empty name is a temporary database: in memory while it is small, then in a file.
        self._database = sqlite3.connect("", isolation_level=None)
        self._waiting: list[Part] = []
        self._waiting_bytes = 0
        for statement in (
            "PRAGMA page_size = 16384",
            "PRAGMA journal_mode = OFF",
            "PRAGMA synchronous = OFF",
            "PRAGMA cache_size = -32768",
            "CREATE TABLE part (trace_id BLOB, form INTEGER, octets BLOB)",
            "BEGIN",
        ):
            self._database.execute(statement)

    def close(self) -> None:
        """Drop the parts."""
        self._database.close()

    def add(self, part: Part) -> None:
        """Keep one part.

        Raises:
            UnavailableError: The temporary file cannot grow.
        """
        self._waiting.append(part)
        self._waiting_bytes += len(part.octets)
        if self._waiting_bytes > _BATCH_BYTES or len(self._waiting) > 10_000:
            self._flush()

    def finish(self) -> int:
        """Say that no more parts come; give the number of traces.

        Raises:
            UnavailableError: The temporary file cannot grow.
        """
        self._flush()
        try:
            self._database.execute("CREATE INDEX by_trace ON part (trace_id)")
            (count,) = self._database.execute(
                "SELECT COUNT(*) FROM (SELECT 1 FROM part GROUP BY trace_id)"
            ).fetchone()
        except sqlite3.Error as error:
            raise UnavailableError(f"the temporary file of the traces failed: {error}") from error
        return int(count)

    def traces(self) -> Iterator[list[Part]]:
        """Give the parts of each trace, traces in the order of their first part."""
        try:
            order = self._database.execute(
                "SELECT trace_id FROM part GROUP BY trace_id ORDER BY MIN(rowid)"
            )
            for (trace_id,) in order:
                yield [
                    Part(*row)
                    for row in self._database.execute(
                        "SELECT trace_id, form, octets FROM part WHERE trace_id = ? ORDER BY rowid",
                        (trace_id,),
                    )
                ]
        except sqlite3.Error as error:
            raise UnavailableError(f"the temporary file of the traces failed: {error}") from error

    def _flush(self) -> None:
        try:
            self._database.executemany("INSERT INTO part VALUES (?, ?, ?)", self._waiting)
        except sqlite3.Error as error:
            raise UnavailableError(f"the temporary file of the traces failed: {error}") from error
        self._waiting.clear()
        self._waiting_bytes = 0
