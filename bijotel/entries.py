"""Find single entries in a snapshot and check each with its neighbours. Pure but for reading.

``verify`` proves a whole chain; this room answers "does *this* entry verify?" by the same walk
over three rows: the entry before it, itself, and the one behind it. It cannot see what is wrong
elsewhere. How an entry is shown is the business of ``cli``, what it says that of ``provenance``.

Rules kept: the columns that are handed on are the very octets that were checked; rows are
hostile until then.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from bijotel.errors import ConfigurationError, VerificationError
from bijotel.findings import COULD_NOT_CHECK, Finding
from bijotel.keys import KeyRing
from bijotel.model import ChainHead, Entry
from bijotel.stores.base import Snapshot
from bijotel.verify.diagnose import holds
from bijotel.verify.head import check_head_row
from bijotel.verify.judge import wrong_key
from bijotel.verify.rows import MAX_INTEGER, check_columns
from bijotel.verify.walk import ChainWalk, ExplainHole

Verdict: TypeAlias = Literal["verified", "not-verified", "false"]

SPANS_LISTED: Final = 20
"""How many entries of one span id are named."""


class Chain(NamedTuple):
    """A chain as its head record names it; nothing about it is checked."""

    chain_id: bytes
    name: str
    """Empty when no head record names the chain."""
    last_seq: int | None


@dataclass(frozen=True, slots=True)
class EntryCheck:
    """One entry as stored, and whether it verifies."""

    columns: tuple[Any, ...]
    """In the order of ``ENTRY_COLUMNS``, see ``stores.base.RawRow``."""
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    """Why it does not verify, or why that could not be told."""


def chains(snapshot: Snapshot, wanted: str | None = None) -> tuple[Chain, ...]:
    """List the chains of a store, or the one of a name or an id.

    Args:
        snapshot: The store.
        wanted: A name, or an id as 32 hex digits; an id is found without its head record too.

    Raises:
        ConfigurationError: there is no such chain.
        VerificationError: the tables or all head records are gone, so that nothing is listed.
    """
    faults, _notices = snapshot.faults()
    for fault in faults:
        if fault.column in {"entries", "heads"}:
            raise VerificationError(f"{fault.code}: {fault.message}")
    named = tuple(chain for row in snapshot.head_rows() if (chain := _chain(row)))
    if wanted is not None:
        return (_choose(snapshot, named, wanted),)
    if not named and snapshot.places() is None:
        raise VerificationError("truncated: the tables hold no chain, not even its first entry")
    if not named:
        raise VerificationError(
            "head-mismatch: rows but no head record that names their chain; "
            "`bijotel verify` tells the chain's id, which --chain takes"
        )
    return named


def only_chain(snapshot: Snapshot, wanted: str | None) -> Chain:
    """Find the chain that is meant; without a name there must be one only.

    Raises:
        ConfigurationError: there is no such chain, or several and none was named.
        VerificationError: see :func:`chains`.
    """
    found = chains(snapshot, wanted)
    if len(found) > 1:
        names = ", ".join(chain.name for chain in found)
        raise ConfigurationError(f"the store has {len(found)} chains, name one of them: {names}")
    return found[0]


def find_span(snapshot: Snapshot, among: Sequence[Chain], span_id: bytes) -> tuple[Chain, int]:
    """Find the one entry of a span.

    Raises:
        ConfigurationError: no entry has this span id, or several have.
    """
    hits = [
        (chain, row.columns[1])
        for chain in among
        for row in snapshot.select(chain.chain_id, (("span_id", span_id),), limit=SPANS_LISTED + 1)
    ]
    if not hits:
        ranges = ", ".join(_range(snapshot, chain) for chain in among)
        raise ConfigurationError(f"span id {span_id.hex()}: no such entry in {ranges}")
    if len(hits) > 1:
        places = [f"{seq} in chain {chain.name}" for chain, seq in hits[:SPANS_LISTED]]
        more = " and more" if len(hits) > SPANS_LISTED else ""
        raise ConfigurationError(
            f"span id {span_id.hex()}: several entries have it, ask by seq: "
            f"{', '.join(places)}{more}"
        )
    return hits[0]


def check_entry(snapshot: Snapshot, chain: Chain, seq: int, keys: KeyRing | None) -> EntryCheck:
    """Read one entry and check body hash, tag and the link to the entry before.

    Args:
        snapshot: The store.
        chain: The chain.
        seq: The entry's number.
        keys: The ring, or None: then only what needs no key is checked, and the verdict is
            ``not-verified`` at best.

    Raises:
        ConfigurationError: the chain has no entry of this number.
        VerificationError: the head says that there is such an entry, but it is gone.
    """
    # A ring that knows no key of any chain: the walk then checks all that needs none.
    ring = keys or KeyRing(secrets.token_bytes(32))
    walk = ChainWalk(chain.chain_id, ring, _explain_hole_before(seq, chain))
    columns = None
    first, last = (max(0, min(number, MAX_INTEGER)) for number in (seq - 1, seq + 1))
    bounds = (("seq_from", first), ("seq_to", last))
    for row in snapshot.select(chain.chain_id, bounds):
        number = row.columns[1]
        if type(number) is not int:
            continue
        if number == seq and columns is None:
            columns = row.columns
        walk.feed(row.columns)
        if number < seq and not walk.result.sound_from_end:
            # A predecessor that is not sound says nothing about the key in force.
            walk.result.state = walk.result.state._replace(key_id=None)
    if columns is None:
        raise _missing(snapshot, chain, seq)
    head = _proven_head(snapshot, chain, ring)
    is_last = head is not None and head.seq == walk.result.last_seq == seq
    found = walk.end(head.tag if head is not None and is_last else None).findings
    return _judge(snapshot, chain, columns, [each for each in found if _concerns(each, seq)], keys)


def _judge(
    snapshot: Snapshot,
    chain: Chain,
    columns: tuple[Any, ...],
    findings: list[Finding],
    keys: KeyRing | None,
) -> EntryCheck:
    codes = {finding.code for finding in findings}
    if keys is None:
        false = tuple(finding for finding in findings if finding.code not in COULD_NOT_CHECK)
        return EntryCheck(columns, "false" if false else "not-verified", false)
    if codes == {"key-unknown"} and not _knows_chain(snapshot, chain, keys):
        return EntryCheck(columns, "false", (wrong_key(chain.chain_id.hex(), keys),))
    if not findings:
        return EntryCheck(columns, "verified")
    return EntryCheck(
        columns, "not-verified" if codes <= COULD_NOT_CHECK else "false", tuple(findings)
    )


def _chain(row: tuple[Any, ...]) -> Chain | None:
    chain_id, name, seq = row[:3]
    if type(chain_id) is not bytes or len(chain_id) != 16 or type(name) is not str:
        return None
    return Chain(chain_id, name, seq if type(seq) is int else None)


def _choose(snapshot: Snapshot, named: tuple[Chain, ...], wanted: str) -> Chain:
    for chain in named:
        if wanted in {chain.name, chain.chain_id.hex()}:
            return chain
    if len(wanted) == 32 and all(digit in "0123456789abcdef" for digit in wanted):
        chain = Chain(bytes.fromhex(wanted), "", None)
        if any(True for _ in snapshot.select(chain.chain_id, limit=1)):
            return chain
    names = ", ".join(chain.name for chain in named) or "none"
    raise ConfigurationError(f"chain {wanted!r}: not in this store, which has {names}")


def _explain_hole_before(seq: int, chain: Chain) -> ExplainHole:
    """Report the predecessor when it is gone, and nothing about the rows that were not asked."""

    def explain(_first: int, last: int) -> Iterator[Finding]:
        if last == seq - 1:
            yield Finding(
                "seq-gap",
                f"entry {last} is missing, so entry {seq} has nothing to link to",
                chain=chain.chain_id.hex(),
                seq=last,
                last_seq=last,
                expected=last,
                found=seq,
            )

    return explain


def _concerns(finding: Finding, seq: int) -> bool:
    return finding.concerns(seq) or (finding.code == "seq-gap" and finding.seq == seq - 1)


def _missing(snapshot: Snapshot, chain: Chain, seq: int) -> Exception:
    if chain.last_seq is not None and 0 <= seq <= chain.last_seq:
        return VerificationError(
            f"seq-gap: entry {seq} is missing: the head says that entry {chain.last_seq} is "
            "the last"
        )
    return ConfigurationError(f"entry {seq}: not in {_range(snapshot, chain)}")


def _range(snapshot: Snapshot, chain: Chain) -> str:
    ends = [
        row.columns[1]
        for newest in (False, True)
        for row in snapshot.select(chain.chain_id, limit=1, newest=newest)
    ]
    name = f"chain {chain.name or chain.chain_id.hex()}"
    return (
        f"{name}, which has entries {ends[0]} to {ends[1]}" if ends else f"{name}, which is empty"
    )


def _proven_head(snapshot: Snapshot, chain: Chain, keys: KeyRing) -> ChainHead | None:
    for row in snapshot.head_rows():
        check = check_head_row(row, keys)
        if check and check.holds and check.head.chain_id == chain.chain_id:
            return check.head
    return None


def _knows_chain(snapshot: Snapshot, chain: Chain, keys: KeyRing) -> bool:
    """Tell whether one of the chain's ends was made with a key of the ring."""
    if _proven_head(snapshot, chain, keys):
        return True
    first = next(snapshot.select(chain.chain_id, (("seq", 0),), limit=1), None)
    entry = check_columns(first.columns) if first else None
    return isinstance(entry, Entry) and holds(entry, keys)
