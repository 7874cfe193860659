"""One chain at one moment: what its verification found, and its entries.

A report about a chain that does not verify is still wanted: it says so first, and of every
entry. So nothing is refused here but what cannot be read at all. Verifying and reading use one
snapshot, so that what is shown is what was checked.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from bijotel.entries import Chain
from bijotel.findings import COULD_NOT_CHECK, Finding, Report
from bijotel.keys import KeyRing
from bijotel.model import Entry
from bijotel.report.model import Standing
from bijotel.stores.base import Snapshot
from bijotel.verified import pinned
from bijotel.verifier_key import VerifierKey
from bijotel.verify.chain import verify_chain
from bijotel.verify.rows import check_columns

_WRONG_KEY: Final = "wrong-key"


class Outside(NamedTuple):
    """A checkpoint that was kept elsewhere, and the keys that must have signed it."""

    note: bytes
    keys: tuple[VerifierKey, ...]


class ChainReading:
    """A verified, or not verified, chain that is open for reading."""

    def __init__(
        self, snapshot: Snapshot, place: Chain, report: Report | None, location: str = ""
    ) -> None:
        """Take what was found; ``report`` is None when there was no key."""
        self.snapshot = snapshot
        self.location = location
        """As the store names itself: without a password that a URL may hold."""
        self.place = place
        self.report = report
        self.unreadable = 0
        """Rows so far that are no entries."""
        found = () if report is None else report.findings
        runs = (_Run.of(each) for each in found if each.seq is not None)
        self._runs = sorted(runs, key=lambda run: run.first)
        self._firsts = [run.first for run in self._runs]
        self._longest = max((run.last - run.first for run in self._runs), default=0)
        self._untold = report is None or any(each.code == _WRONG_KEY for each in found)

    def standing(self, seq: int) -> Standing:
        """Tell whether an entry verifies."""
        if self._untold:
            return Standing("not verified")
        # Even the longest run that covers this entry begins no earlier.
        begin = bisect_left(self._firsts, seq - self._longest)
        end = bisect_right(self._firsts, seq)
        findings = tuple(run.finding for run in self._runs[begin:end] if run.last >= seq)
        if not findings:
            return Standing("verified")
        doubtful = all(each.code in COULD_NOT_CHECK for each in findings)
        return Standing("not verified" if doubtful else "false", findings)

    def entries(self, conditions: Sequence[tuple[str, Any]] = ()) -> Iterator[Entry]:
        """Read the entries that a store's conditions name, by ``seq``."""
        for row in self.snapshot.select(self.place.chain_id, conditions):
            entry = check_columns(row.columns)
            if isinstance(entry, Entry):
                yield entry
            else:
                self.unreadable += 1


def verify_for_reading(
    snapshot: Snapshot,
    place: Chain,
    keys: KeyRing | None,
    *,
    location: str,
    outside: Outside | None = None,
) -> ChainReading:
    """Verify a chain and open it, whatever was found.

    Args:
        snapshot: The store at one moment, open for as long as is read.
        place: The chain.
        keys: The ring; None when no key is configured, and then nothing is verified.
        location: What names the store for people.
        outside: A checkpoint that the chain is compared with.
    """
    if keys is None:
        return ChainReading(snapshot, place, None, location)
    report = verify_chain(
        pinned(snapshot, location),
        keys,
        chain=place.chain_id.hex(),
        checkpoints=(outside.note,) if outside else (),
        pubkeys=outside.keys if outside else (),
    )
    return ChainReading(snapshot, place, report, location)


class _Run(NamedTuple):
    """A finding and the entries that it is about."""

    first: int
    last: int
    finding: Finding

    @classmethod
    def of(cls, finding: Finding) -> _Run:
        """Find out which entries a finding is about."""
        first = finding.seq or 0
        return cls(first, first if finding.last_seq is None else finding.last_seq, finding)
