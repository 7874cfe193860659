"""Judge the chains of one snapshot: each is sound, or it is walked again and explained.

Most chains are sound, and one pass over all rows in physical order proves it. Whatever that pass
did not prove is left to ``verify.walk``, chain by chain.

Source: docs/spec (verifying).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bijotel.errors import ConfigurationError
from bijotel.findings import ChainReport, Finding, Notice
from bijotel.keys import KeyRing
from bijotel.stores.base import Snapshot
from bijotel.verify.clean import Reading, Stretch
from bijotel.verify.head import HeadCheck, check_head_row, head_findings
from bijotel.verify.rows import describe
from bijotel.verify.strangers import Strangers
from bijotel.verify.walk import ChainWalk, WalkResult
from bijotel.verify.workers import read_chains


class Task(NamedTuple):
    """What is to be verified, and how."""

    reading: Reading
    wanted: str | None
    """The name or the id of the only chain that is."""
    address: str | None
    """What other processes open the store by; None: there are none."""
    workers: int


class Outcome(NamedTuple):
    """What is known about one chain."""

    report: ChainReport
    findings: list[Finding]
    notices: list[Notice]
    key_ids: frozenset[bytes]
    """The keys that seal its entries, as far as these are in order."""
    proven: Stretch | None = None
    """The whole chain, when the fast path proved it."""


class Judgement(NamedTuple):
    """What is known about all chains that were to be verified."""

    outcomes: list[Outcome]
    elsewhere: list[Finding]
    """Findings that belong to no chain."""


class Heads(NamedTuple):
    """The head records of a store."""

    sound: dict[bytes, HeadCheck]
    """By chain id."""
    broken: list[Finding]

    def choose(self, wanted: str | None) -> dict[bytes, HeadCheck]:
        """Pick the chain of a name or of an id; all of them when none is named.

        A chain that is named by its id and is not there was replaced, which is a finding.

        Raises:
            ConfigurationError: there is no chain of that name.
        """
        if wanted is None:
            return dict(self.sound)
        chosen = {
            chain_id: check
            for chain_id, check in self.sound.items()
            if wanted in {check.head.name, chain_id.hex()}
        }
        if not chosen and not is_chain_id(wanted):
            names = ", ".join(sorted(check.head.name for check in self.sound.values())) or "none"
            raise ConfigurationError(f"chain {wanted!r}: not in this store, which has {names}")
        return chosen


def read_heads(snapshot: Snapshot, keys: KeyRing) -> Heads:
    """Read and check all head records."""
    heads = Heads({}, [])
    for row in snapshot.head_rows():
        check = check_head_row(row, keys)
        if check is None:
            heads.broken.append(_broken_head("a head record is malformed"))
        elif check.head.chain_id in heads.sound:
            heads.broken.append(_broken_head("a chain has two head records"))
        else:
            heads.sound[check.head.chain_id] = check
    return heads


def judge(snapshot: Snapshot, heads: Heads, task: Task) -> Judgement:
    """Verify chains of a store.

    Args:
        snapshot: The store; its tables can be read.
        heads: Its head records.
        task: Which chains, and how.

    Raises:
        ConfigurationError: there is no chain of the wanted name.
        UnavailableError: the store cannot be read.
    """
    chosen = heads.choose(task.wanted)
    if not heads.sound and not heads.broken and snapshot.places() is None:
        return Judgement([], [_nothing_there()])
    stretches, stray = read_chains(snapshot, task.reading, task.address, task.workers)
    stray = stray or not stretches.keys() <= heads.sound.keys()
    strangers = Strangers(snapshot, tuple(heads.sound), present=stray)
    judge_one = _Judge(snapshot, task.reading)
    outcomes = [
        judge_one.judge(check, stretches.get(chain_id), strangers)
        for chain_id, check in chosen.items()
    ]
    if chosen and task.wanted is not None:
        return Judgement(outcomes, heads.broken)
    nobody = Strangers(snapshot, (), present=False)
    headless = [
        chain_id
        for chain_id in strangers.unclaimed()
        if task.wanted is None or chain_id.hex() == task.wanted
    ]
    outcomes += [judge_one.explain(chain_id, None, nobody) for chain_id in headless]
    if task.wanted is not None and not headless:
        return Judgement(outcomes, [*heads.broken, _replaced(task.wanted, heads.sound)])
    return Judgement(outcomes, heads.broken + strangers.nowhere())


class _Judge:
    """Judges one chain after the other."""

    def __init__(self, snapshot: Snapshot, reading: Reading) -> None:
        self._snapshot = snapshot
        self._keys, self._sizes, self._deep = reading

    def judge(self, check: HeadCheck, stretch: Stretch | None, strangers: Strangers) -> Outcome:
        head = check.head
        whole = check.holds and stretch is not None and stretch.is_whole(head)
        if stretch is not None and whole and not self._compare_index(head.chain_id):
            chain = head.chain_id.hex()
            report = ChainReport(chain, head.name, stretch.entries, head.seq, stretch.kinds)
            return Outcome(report, [], stretch.notices, stretch.key_ids(), stretch)
        return self.explain(head.chain_id, check, strangers)

    def explain(self, chain_id: bytes, check: HeadCheck | None, strangers: Strangers) -> Outcome:
        chain = chain_id.hex()
        misplaced = [_misplaced(chain, seq) for seq in self._snapshot.misplaced(chain_id)]
        result = self._walk(chain_id, check, strangers)
        if _no_key_is_right(result, proven_head=check is not None and check.holds):
            findings = [wrong_key(chain, self._keys)]
        else:
            tail = strangers.explainer(chain, "truncated")
            findings = [*result.findings, *head_findings(check, chain, result, tail)]
        if not findings and not misplaced:
            findings += self._compare_index(chain_id)
        last_seq = result.last_seq if result.entries else None
        name = check.head.name if check else ""
        report = ChainReport(chain, name, result.entries, last_seq, result.kinds)
        return Outcome(report, misplaced + findings, result.notices, result.key_ids())

    def _walk(self, chain_id: bytes, check: HeadCheck | None, strangers: Strangers) -> WalkResult:
        explain_hole = strangers.explainer(chain_id.hex(), "seq-gap")
        walk = ChainWalk(
            chain_id,
            self._keys,
            explain_hole,
            deep=self._deep,
            hash_tree=chain_id in self._sizes,
        )
        for row in self._snapshot.ordered(chain_id):
            walk.feed(row.columns)
        states_last = check is not None and check.holds and check.head.seq == walk.result.last_seq
        return walk.end(check.head.tag if check is not None and states_last else None)

    def _compare_index(self, chain_id: bytes) -> list[Finding]:
        """Look for an index that hides rows: the rows are sound, but readers would miss some."""
        seq = self._snapshot.unlisted(chain_id)
        if seq is None:
            return []
        message = f"entry {seq}: the index by seq does not agree with the rows"
        chain = chain_id.hex()
        return [Finding("index-corrupt", message, chain, seq, "entries_by_seq", seq)]


def is_chain_id(text: str) -> bool:
    """Tell whether a text is a chain's id: 32 lower-case hex digits."""
    return len(text) == 32 and set(text) <= set("0123456789abcdef")


def wrong_key(chain: str, keys: KeyRing) -> Finding:
    """Say once, for a whole chain, that it was not sealed with the ring's keys."""
    return Finding(
        "wrong-key",
        "the chain was not sealed with a key of the ring: either this is the wrong secret, or "
        "another chain stands in this one's place",
        chain=chain,
        seq=0,
        last_seq=0,
        expected=", ".join(key.key_id.hex() for key in keys),
    )


def unused_keys(keys: KeyRing, outcomes: Iterable[Outcome]) -> list[Notice]:
    """Note each key of a ring that seals nothing, when others of it do."""
    used = {key_id for outcome in outcomes for key_id in outcome.key_ids}
    unused = [key.key_id for key in keys if key.key_id not in used]
    if len(unused) == len(keys):  # which is a finding of its own
        return []
    return [
        Notice("key-unused", f"key {key_id.hex()} of the ring seals none of these entries")
        for key_id in unused
    ]


def _no_key_is_right(result: WalkResult, *, proven_head: bool) -> bool:
    """Tell whether no row at all holds with the key that it names, or that is in force."""
    codes = {"key-order"} if proven_head else {"key-order", "key-unknown", "tag-mismatch"}
    rows = sum(
        (finding.last_seq or 0) - (finding.seq or 0) + 1
        for finding in result.findings
        if finding.code in codes
    )
    return rows == result.entries > (1 if proven_head else 0)


def _replaced(wanted: str, heads: Mapping[bytes, HeadCheck]) -> Finding:
    found = ", ".join(sorted(chain_id.hex() for chain_id in heads)) or "none"
    return Finding(
        "wrong-chain",
        f"chain {wanted} is not in this store, which has {found}",
        chain=wanted,
        seq=0,
        last_seq=0,
        column="chain_id",
        expected=wanted,
        found=found,
    )


def _broken_head(what: str) -> Finding:
    return Finding("head-mismatch", what, column="head")


def _misplaced(chain: str, seq: Any) -> Finding:
    number = seq if type(seq) is int else None
    message = f"a row's seq is {describe(seq)}, expected an integer from 0 on"
    return Finding(
        "type-mismatch",
        message,
        chain=chain,
        seq=number,
        last_seq=number,
        column="seq",
        expected="an integer from 0 on",
        found=describe(seq),
    )


def _nothing_there() -> Finding:
    message = "the tables hold no chain, not even its first entry"
    return Finding("truncated", message, seq=0, last_seq=0, column="head", expected=0)
