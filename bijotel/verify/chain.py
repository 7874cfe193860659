"""Verify the chains of a store: the way in, and the report.

Heads and rows are read in one snapshot; what a writer appends later is not looked at. Chains are
judged by ``verify.judge``, compared with checkpoints by ``verify.against``.

Source: docs/spec (verifying).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from bijotel.errors import ConfigurationError
from bijotel.findings import ChainReport, Finding, Notice, Report, merge_runs
from bijotel.keys import KeyRing, KeySource, as_key_ring
from bijotel.stores.base import Snapshot
from bijotel.stores.open import StoreLocation, open_store
from bijotel.verifier_key import VerifierKey
from bijotel.verify.against import Comparison, compare, rows_reader
from bijotel.verify.clean import Reading
from bijotel.verify.judge import Judgement, Task, is_chain_id, judge, read_heads, unused_keys
from bijotel.verify.vouched import (
    CheckpointSource,
    NamedNote,
    PubkeySource,
    Vouched,
    load_notes,
    load_pubkeys,
    read_outside,
    read_sealed,
)

WHICH_CHAIN: Final = "which chain this is"
TAIL: Final = "completeness of the tail"


class _Outside(NamedTuple):
    """What the caller holds that is not in the store."""

    notes: tuple[NamedNote, ...]
    keys: tuple[VerifierKey, ...]


def verify_chain(
    store: StoreLocation,
    keys: KeyRing | KeySource | None = None,
    *,
    chain: str | None = None,
    deep: bool = False,
    workers: int = 1,
    checkpoints: Iterable[CheckpointSource] = (),
    pubkeys: Iterable[PubkeySource] = (),
) -> Report:
    """Verify every entry of the chains of a store, and their heads.

    A pass means that the entries are, octet for octet and in this order, what holders of the
    keys sealed; with checkpoints that were kept elsewhere also that nothing below their sizes is
    missing. It does not mean that what was sealed is true; what else it does not mean stands in
    ``report.not_checked``.

    Args:
        store: A path, a URL or a store. It is not changed.
        keys: The ring, one source of a key, or None for the environment.
        chain: Verify only the chain of this name or of this id (32 hex digits).
        deep: Also parse every body, compare it with its columns, and recompute the tree.
        workers: How many processes share the work, at least 1. The verdict is the same.
        checkpoints: Signed notes of these chains, or paths of files that hold one each.
        pubkeys: Verifier keys, their lines, or paths of files that hold one. Every one must have
            signed every checkpoint. With them, the checkpoints that were sealed into the chain
            are compared with its entries too.

    Raises:
        ConfigurationError: no usable key, no such chain name, ``workers`` below 1, or
            checkpoints without a verifier key.
        UnavailableError: there is no store, or it or a checkpoint cannot be read.

    Source:
        docs/spec (verifying).

    Added in 0.1.
    """
    ring = as_key_ring(keys)
    if workers < 1:
        raise ConfigurationError(f"workers: expected at least 1, got {workers}")
    outside = _Outside(load_notes(checkpoints), load_pubkeys(pubkeys))
    if outside.notes and not outside.keys:
        raise ConfigurationError("verifier key: at least one is required to check a checkpoint")
    opened = open_store(store)
    with opened.snapshot() as snapshot:
        faults = snapshot.faults()
        if any(fault.column in {"entries", "heads"} for fault in faults[0]):
            return Report((), tuple(faults[0]), tuple(faults[1]), {}, (WHICH_CHAIN, TAIL))
        heads = read_heads(snapshot, ring)
        vouched = read_outside(outside.notes, outside.keys)
        if outside.keys:
            read_sealed(snapshot, heads.choose(chain), outside.keys, vouched)
        task = Task(Reading(ring, vouched.sizes(), deep), chain, opened.address, workers)
        judgement = judge(snapshot, heads, task)
        comparison = _compare(snapshot, judgement, vouched)
    return _report(task, faults, judgement, vouched, comparison)


def _compare(snapshot: Snapshot, judgement: Judgement, vouched: Vouched) -> Comparison:
    outcomes = {bytes.fromhex(each.report.chain): each for each in judgement.outcomes}
    whole = {chain_id: each.proven for chain_id, each in outcomes.items() if each.proven}
    return compare(vouched.signed, outcomes, rows_reader(snapshot, whole))


def _report(
    task: Task,
    faults: tuple[list[Finding], list[Notice]],
    judgement: Judgement,
    vouched: Vouched,
    comparison: Comparison,
) -> Report:
    findings, notices = faults
    for outcome in judgement.outcomes:
        findings += outcome.findings
        notices += outcome.notices
    findings += [*judgement.elsewhere, *vouched.findings, *comparison.findings]
    notices += [*vouched.notices, *unused_keys(task.reading.keys, judgement.outcomes)]
    reports = tuple(outcome.report for outcome in judgement.outcomes)
    confirmed = {chain_id.hex(): size for chain_id, size in comparison.confirmed.items()}
    checked: dict[str, Any] = {
        "chains": len(reports),
        "entries": sum(report.entries for report in reports),
        "deep": task.reading.deep,
    }
    if confirmed:
        checked["checkpoints"] = confirmed
    not_checked = tuple(_not_checked(task.wanted, reports, confirmed))
    return Report(reports, merge_runs(findings), tuple(notices), checked, not_checked)


def _not_checked(
    wanted: str | None, reports: Sequence[ChainReport], confirmed: Mapping[str, int]
) -> Iterator[str]:
    """Say what a pass does not mean, for each chain as far as no checkpoint vouches for it."""
    every_one = bool(reports) and all(report.chain in confirmed for report in reports)
    if not every_one and not (wanted is not None and is_chain_id(wanted)):
        yield WHICH_CHAIN
    if not every_one:
        yield TAIL
    for report in reports:
        if report.chain in confirmed:
            of_chain = f" of chain {report.chain}" if len(reports) > 1 else ""
            yield f"{TAIL} behind entry {confirmed[report.chain] - 1}{of_chain}"
