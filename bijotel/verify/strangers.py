"""Rows of a chain id that no head knows: did they replace entries that are missing?

A chain that was spliced with rows of another one has a hole exactly where those rows stand. So
a hole is first compared with the strangers' numbers, and only what they do not fill is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from bijotel.findings import Finding
from bijotel.stores.base import Snapshot
from bijotel.verify.rows import describe
from bijotel.verify.walk import ExplainHole


class _Run(NamedTuple):
    chain_id: Any
    first: int
    last: int


class Strangers:
    """The strangers of one snapshot, and which of them were claimed by a hole."""

    def __init__(self, snapshot: Snapshot, known: tuple[bytes, ...], *, present: bool) -> None:
        """Read them, when there are any."""
        self._runs = list(_runs(snapshot.strangers(known))) if present else []
        self._claimed: set[Any] = set()

    def explainer(self, chain: str, code: str) -> ExplainHole:
        """Make the function that explains the holes of one chain.

        Args:
            chain: The chain's id in hex.
            code: ``seq-gap``, or ``truncated`` for a hole at the end.
        """

        def explain(first: int, last: int) -> Iterator[Finding]:
            for run in self._runs:
                low, high = max(first, run.first), min(last, run.last)
                if low > high:
                    continue
                if low > first:
                    yield _missing(chain, code, first, low - 1)
                self._claimed.add(run.chain_id)
                yield _foreign(chain, run.chain_id, low, high)
                first = high + 1
            if first <= last:
                yield _missing(chain, code, first, last)

        return explain

    def unclaimed(self) -> list[bytes]:
        """Chain ids that stand for a chain of their own, whose head is gone."""
        ids = {run.chain_id: None for run in self._runs if _is_chain_id(run.chain_id)}
        return [chain_id for chain_id in ids if chain_id not in self._claimed]

    def nowhere(self) -> list[Finding]:
        """Rows that belong to no chain at all."""
        return [
            Finding(
                "type-mismatch",
                f"entry {run.first}: chain_id: expected 16 bytes, found {describe(run.chain_id)}",
                seq=run.first if run.first >= 0 else None,
                last_seq=run.last if run.first >= 0 else None,
                column="chain_id",
                expected="16 bytes",
                found=describe(run.chain_id),
            )
            for run in self._runs
            if not _is_chain_id(run.chain_id) and run.chain_id not in self._claimed
        ]


def _runs(rows: Iterator[tuple[Any, Any]]) -> Iterator[_Run]:
    """Join successive numbers of one chain id, so that many rows take little memory."""
    run: _Run | None = None
    for chain_id, seq in rows:
        number = seq if type(seq) is int else -1
        if run is not None and run.chain_id == chain_id and number == run.last + 1:
            run = run._replace(last=number)
            continue
        if run is not None:
            yield run
        run = _Run(chain_id, number, number)
    if run is not None:
        yield run


def _is_chain_id(value: Any) -> bool:
    return isinstance(value, bytes) and len(value) == 16


def _foreign(chain: str, chain_id: Any, first: int, last: int) -> Finding:
    well_formed = _is_chain_id(chain_id)
    return Finding(
        "wrong-chain" if well_formed else "type-mismatch",
        f"entry {first}: the row in its place is of chain "
        f"{chain_id.hex() if well_formed else describe(chain_id)}",
        chain=chain,
        seq=first,
        last_seq=last,
        column="chain_id",
        expected=chain,
        found=chain_id if well_formed else describe(chain_id),
    )


def _missing(chain: str, code: str, first: int, last: int) -> Finding:
    entries = f"entry {first} is" if first == last else f"entries {first} to {last} are"
    if code == "truncated":
        message = f"{entries} gone: the head says that entry {last} is the last"
        return Finding(
            code, message, chain=chain, seq=first, last_seq=last, expected=last, found=first - 1
        )
    message = f"{entries} missing, the next one found is {last + 1}"
    return Finding(
        code, message, chain=chain, seq=first, last_seq=last, expected=first, found=last + 1
    )
