"""Carry a database of bijotel 2.x over into a new chain: verified before, proven after.

The old file is only read. A crash in between leaves a chain without its closing entry, which
``check_carried`` refuses; another chain name begins anew.

Source: docs/how-to/migrate-from-2x.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.findings import Report
from bijotel.keys import KeyRing
from bijotel.legacy.carry import carried_rows, check_carried, import_drafts
from bijotel.legacy.check import GENESIS, RowCheck, verify_database
from bijotel.legacy.rows import is_legacy_database, open_database
from bijotel.model import Entry
from bijotel.seal import check_name
from bijotel.sealer import Sealer, batches
from bijotel.stores.base import Store
from bijotel.stores.retry import patiently
from bijotel.verified import verify_to_read


class Imported(NamedTuple):
    """What became of an old database."""

    report: Report
    """Of the old database."""
    chain_id: bytes = b""
    """Of the new chain; empty when nothing was written."""
    rows: int = 0


def import_database(old: Path, store: Store, chain: str, ring: KeyRing) -> Imported:
    """Carry every row over, unless the old database does not verify.

    Args:
        old: The database of bijotel 2.x.
        store: Gets the new chain.
        chain: Its name.
        ring: Its first key seals the new chain; any of them may be the old secret.

    Raises:
        ConfigurationError: there is a chain of that name already, or ``old`` is no such
            database.
        VerificationError: what was written is not what was read; somebody changed one of them
            meanwhile.
        UnavailableError: one of the two cannot be used.
    """
    check_name(chain)
    _check_absent(store, chain)
    if old.exists() and not is_legacy_database(old):
        raise ConfigurationError(f"{old}: is no database of bijotel 2.x")
    report = verify_database(old, ring)
    if not report.ok:
        return Imported(report)
    sealer = Sealer(store, chain, ring)
    try:
        chain_id = patiently(sealer.open)
        with open_database(old) as rows:
            for batch in batches(import_drafts(rows)):
                patiently(partial(sealer.append, batch))
    finally:
        sealer.close()
    return Imported(report, chain_id, _prove(old, store, chain_id, ring))


def _check_absent(store: Store, chain: str) -> None:
    # A store that is not there yet is made by the first entry.
    with suppress(UnavailableError), store.snapshot() as snapshot:
        faults, _ = snapshot.faults()
        if not faults and any(row[1] == chain for row in snapshot.head_rows()):
            raise ConfigurationError(f"{store.location}: has a chain {chain!r} already")


def _prove(old: Path, store: Store, chain_id: bytes, ring: KeyRing) -> int:
    """Verify the new chain, compare it with the old rows, and verify these once more in it."""
    with store.snapshot() as snapshot, open_database(old) as rows:
        verified = verify_to_read(
            snapshot, chain_id, ring, location=store.location, unverified=None
        )
        count = check_carried(rows, verified.entries())
        _check_rows(verified.entries(), ring)
    return count


def _check_rows(entries: Iterator[Entry], ring: KeyRing) -> None:
    check = RowCheck(ring, 1, GENESIS)
    for row in carried_rows(entries):
        check.feed(row)
    check.report("rows", ()).raise_for_findings()
