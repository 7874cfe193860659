"""Compare the chains of a store with the sizes and roots that somebody vouched for.

The chain's own head shows a cut tail only while its record is left alone, and a holder of the
secret can rewrite everything. Neither helps against a signed checkpoint that lies elsewhere:
below its size, every entry has to be the one that was signed.

Rows are hashed as they stand; whether their tags hold is ``verify.judge``'s business. What a
checkpoint covers may name other chains (entries of kind ``fleet``): these are compared as well,
so that a chain cannot vanish together with its head.

Source: docs/spec (checkpoint, verifying).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bijotel import merkle
from bijotel.findings import Finding
from bijotel.model import Entry
from bijotel.seal import entry_header, entry_leaf
from bijotel.stores.base import Snapshot
from bijotel.verify.clean import Stretch
from bijotel.verify.rows import RowFault, check_columns
from bijotel.verify.vouched import Signed, read_fleet


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing with checkpoints gave."""

    findings: tuple[Finding, ...]
    confirmed: Mapping[bytes, int]
    """For each chain id the largest size at which the chain is what was signed elsewhere."""


@dataclass(slots=True)
class Rows:
    """What one pass over the rows of a chain gave."""

    entries: int = 0
    """Sound rows from ``seq`` 0 on."""
    ended: bool = True
    """Nothing stands behind them."""
    roots: dict[int, bytes] = field(default_factory=dict)
    """By size."""
    fleets: list[Entry] = field(default_factory=list)


ReadRows: TypeAlias = "Callable[[bytes, Collection[int]], Rows]"
"""Given a chain's id and sizes, hash its rows up to the largest of these."""


def rows_reader(snapshot: Snapshot, whole: Mapping[bytes, Stretch]) -> ReadRows:
    """Make the function that knows the roots of chains.

    Args:
        snapshot: The store.
        whole: Chains that were proven sound, with the roots that were kept on the way; these
            are not read again.
    """

    def read(chain_id: bytes, sizes: Collection[int]) -> Rows:
        stretch = whole.get(chain_id)
        if stretch is not None and all(
            size in stretch.marks or not 0 < size <= stretch.entries for size in sizes
        ):
            roots = {size: mark.root() for size, mark in stretch.marks.items()}
            return Rows(
                stretch.entries, roots={0: merkle.EMPTY_ROOT, **roots}, fleets=stretch.fleets
            )
        return read_rows(snapshot, chain_id, sizes)

    return read


def read_rows(snapshot: Snapshot, chain_id: bytes, sizes: Collection[int]) -> Rows:
    """Hash the rows of a chain up to the largest of some sizes, and keep the root at each."""
    rows, edge = Rows(), list[bytes]()
    largest = max(sizes)
    if 0 in sizes:
        rows.roots[0] = merkle.EMPTY_ROOT
    for row in snapshot.ordered(chain_id):
        if rows.entries == largest:
            break
        entry = check_columns(row.columns)
        if isinstance(entry, RowFault) or entry.seq != rows.entries:
            rows.ended = False
            break
        merkle.extend(edge, rows.entries, entry_leaf(entry_header(entry), entry.tag))
        rows.entries += 1
        if rows.entries in sizes:
            rows.roots[rows.entries] = merkle.root(edge)
        if entry.kind == "fleet":
            rows.fleets.append(entry)
    return rows


def compare(
    signed: Mapping[bytes, Sequence[Signed]], chains: Collection[bytes], read: ReadRows
) -> Comparison:
    """Compare chains with what was vouched for.

    Args:
        signed: By chain id; every signature was checked.
        chains: Ids of the chains that are verified.
        read: Knows the roots of chains.

    Returns:
        Findings of the codes ``checkpoint-origin``, ``checkpoint-inconsistent``, ``truncated``,
        ``checkpoint-mismatch`` and ``chain-missing``, and what was confirmed.
    """
    findings: list[Finding] = []
    confirmed: dict[bytes, int] = {}
    for chain_id, statements in signed.items():
        if chain_id not in chains:
            findings += (_of_another_chain(each, chain_id, chains) for each in statements)
            continue
        judge = _Judge(chain_id, read, confirmed)
        judge.compare(statements)
        findings += judge.findings
    return Comparison(tuple(findings), confirmed)


def _of_another_chain(signed: Signed, chain_id: bytes, chains: Collection[bytes]) -> Finding:
    ids = ", ".join(sorted(chain.hex() for chain in chains)) or "none"
    return Finding(
        "checkpoint-origin",
        f"checkpoint {signed.source} of size {signed.size}: is of chain {chain_id.hex()}, "
        f"verified are: {ids}",
        chain=chain_id.hex(),
        column="origin line",
        expected=ids,
        found=chain_id,
    )


class _Judge:
    """Compares one chain with what was signed of it."""

    def __init__(
        self, chain_id: bytes, read: ReadRows, confirmed: dict[bytes, int], *, listed: bool = False
    ) -> None:
        self._chain_id = chain_id
        self._chain = chain_id.hex()
        self._read = read
        self._confirmed = confirmed
        # Chains of a fleet list each other; what a listed one lists is not looked at.
        self._listed = listed
        self.findings: list[Finding] = []

    def compare(self, signed: Sequence[Signed]) -> None:
        """Record findings, and the largest size that was confirmed."""
        sizes = {each.size for each in signed}
        rows = self._read(self._chain_id, sizes)
        if self._listed and rows.ended and not rows.entries and any(sizes):
            self._report_missing(signed[-1])
            return
        holding = [each for each in signed if rows.roots.get(each.size) == each.root_hash]
        largest = max(holding, key=lambda each: each.size, default=None)
        for each in signed:
            # The chain's own notes were cut off with it; only what is there can contradict it.
            if each not in holding and (each.seq is None or each.size in rows.roots):
                self._explain(each, rows, signed, largest)
        # What stands in the chain itself says nothing about where it ends.
        confirmed = max((each.size for each in holding if each.seq is None), default=0)
        if confirmed:
            known = self._confirmed.get(self._chain_id, 0)
            self._confirmed[self._chain_id] = max(known, confirmed)
        if not self._listed:
            self._compare_fleet([entry for entry in rows.fleets if entry.seq < confirmed])

    def _explain(
        self, each: Signed, rows: Rows, signed: Sequence[Signed], largest: Signed | None
    ) -> None:
        other = next(
            (one for one in signed if one.size == each.size and one.root_hash != each.root_hash),
            # The larger tree is the chain's, and it holds the smaller one within it.
            largest if largest is not None and largest.size > each.size else None,
        )
        if other is not None and each.note:
            self._add(
                each,
                "checkpoint-inconsistent",
                f"checkpoints of size {each.size} ({each.source}) and {other.size} "
                f"({other.source}) are both signed and contradict each other, which proves "
                f"misconduct of the signer: {each.note!r} and {other.note!r}",
            )
        elif each.size <= rows.entries:
            what = f"at size {each.size} the entries have another root than was signed"
            root = rows.roots[each.size]
            self._add(each, "checkpoint-mismatch", f"{each.source}: {what}", each.root_hash, root)
        elif rows.ended:
            message = f"{each.source}: {each.size} entries were signed, {rows.entries} are there"
            self._add(each, "truncated", message, each.size, rows.entries)
        else:
            message = f"{each.source}: cannot be compared at size {each.size}, because entry "
            message += f"{rows.entries} is not there or not sound"
            self._add(each, "checkpoint-mismatch", message)

    def _compare_fleet(self, fleets: Sequence[Entry]) -> None:
        listed: dict[bytes, list[Signed]] = {}
        for entry in fleets:
            for chain_id, vouched in read_fleet(entry):
                listed.setdefault(chain_id, []).append(vouched)
        for chain_id, statements in listed.items():
            judge = _Judge(chain_id, self._read, self._confirmed, listed=True)
            judge.compare(statements)
            self.findings += judge.findings

    def _report_missing(self, signed: Signed) -> None:
        message = f"chain {self._chain} is gone: {signed.source} lists it with "
        message += f"{signed.size} entries"
        self.findings.append(Finding("chain-missing", message, self._chain, column="chain_id"))

    def _add(
        self, each: Signed, code: str, message: str, expected: Any = None, found: Any = None
    ) -> None:
        first = last = each.seq
        if code == "truncated":
            first, last = found, each.size - 1
        column = "size" if each.seq is None else "body"
        self.findings.append(
            Finding(code, message, self._chain, first, column, last, expected, found)
        )
