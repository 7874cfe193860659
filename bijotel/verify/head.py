"""Check a chain's head record against the ring and against the rows. Pure.

The head says where the chain ends. Without it, or with one that nobody who holds the key made,
nothing says that the last row found is the last one sealed.

Source: docs/spec (head).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from bijotel.findings import Finding
from bijotel.keys import KeyRing
from bijotel.model import ChainHead
from bijotel.seal import head_holds
from bijotel.verify.rows import MAX_EPOCH, MAX_INTEGER
from bijotel.verify.walk import ExplainHole, WalkResult


class HeadCheck(NamedTuple):
    """A head record and whether it can be believed."""

    head: ChainHead
    holds: bool
    """Its MAC is the one that a key of the ring makes."""
    key_known: bool


def check_head_row(row: tuple[Any, ...], keys: KeyRing) -> HeadCheck | None:
    """Check the types of a head record and its MAC; None when it has not the shape of one."""
    if not _has_shape(row):
        return None
    head = ChainHead._make(row)
    key = keys.get(head.key_id)
    holds = key is not None and head.epoch == 0 and head_holds(head, key)
    return HeadCheck(head, holds, key is not None)


def _has_shape(row: tuple[Any, ...]) -> bool:
    chain_id, name, seq, epoch, key_id, tag, tree, mac = row
    texts = isinstance(name, str) and _is_text(name)
    lengths = all(
        isinstance(value, bytes) and len(value) == length
        for value, length in ((chain_id, 16), (key_id, 8), (tag, 32), (mac, 32))
    )
    numbers = (
        type(seq) is int
        and 0 <= seq <= MAX_INTEGER
        and type(epoch) is int
        and 0 <= epoch <= MAX_EPOCH
    )
    return (
        texts
        and lengths
        and numbers
        and isinstance(tree, bytes)
        and len(tree) == 32 * (seq + 1).bit_count()
    )


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def head_findings(
    check: HeadCheck | None, chain: str, result: WalkResult, explain_tail: ExplainHole
) -> Iterator[Finding]:
    """Compare a head with the walk over its chain's rows.

    Args:
        check: The head, None when there is no sound one.
        chain: The chain's id in hex.
        result: The finished walk.
        explain_tail: Makes the findings for entries that the head counts and that are gone.
    """
    if check is None:
        yield _head_mismatch(chain, "the chain has rows but no sound head record")
        return
    if not check.holds:
        # Sealed with a key that is not in the ring: said once, by the rows.
        if check.key_known or check.head.key_id != result.state.key_id:
            yield _head_mismatch(chain, "the head record's MAC does not hold")
        return
    head, last = check.head, result.last_seq
    if last < head.seq:
        yield from explain_tail(last + 1, head.seq)
    elif last > head.seq and result.sound_from_end >= last - head.seq:
        yield _head_mismatch(
            chain, f"the head says that entry {head.seq} is the last, but {last} is there"
        )
    elif last > head.seq or result.last_tag_reported:
        return
    elif head.tag not in result.state.prev_tags:
        yield _head_mismatch(chain, "the head states another tag than the last entry's")
    elif result.tree.nodes and not result.findings and result.tree.edge() != head.tree:
        yield _head_mismatch(chain, "the head's tree is not that of the entries")


def _head_mismatch(chain: str, message: str) -> Finding:
    return Finding("head-mismatch", message, chain=chain, column="head")
