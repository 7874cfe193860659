"""Rows of one chain -> entries of sound columns -> leaves of its tree. Pure but for reading.

Neither tags nor bodies are checked here: a root over leaves is compared with a signed one by
whoever asked, and a body with its hash by whoever gives it out.

Source: docs/spec (entry).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bijotel.model import Entry
from bijotel.note import EvidenceError
from bijotel.range_proof import Ranges
from bijotel.seal import entry_header, entry_leaf
from bijotel.stores.base import Snapshot
from bijotel.stores.tiles import ReadLeaves
from bijotel.verify.rows import RowFault, check_columns


def read_entries(snapshot: Snapshot, chain_id: bytes, ranges: Ranges) -> Iterator[Entry]:
    """Read the entries of ranges in order; every one is there and has sound columns.

    Raises:
        EvidenceError: ``seq-gap``, ``type-mismatch`` or ``limit-exceeded``: the store is not
            what was sealed.
    """
    for first, last in ranges:
        rows = snapshot.select(chain_id, (("seq_from", first), ("seq_to", last)))
        for seq in range(first, last + 1):
            row = next(rows, None)
            if row is None or row.columns[1] != seq:
                raise EvidenceError(f"entry {seq} is missing", "seq-gap", "seq")
            entry = check_columns(row.columns)
            if isinstance(entry, RowFault):
                what = f"{entry.column}: expected {entry.expected}, found {entry.found}"
                raise EvidenceError(f"entry {seq}: {what}", entry.code, entry.column)
            yield entry


def leaf_reader(snapshot: Snapshot, chain_id: bytes) -> ReadLeaves:
    """Make the function that hashes a run of entries into leaves."""

    def read_leaves(start: int, end: int) -> Iterable[bytes]:
        entries = read_entries(snapshot, chain_id, ((start, end - 1),))
        return (entry_leaf(entry_header(entry), entry.tag) for entry in entries)

    return read_leaves
