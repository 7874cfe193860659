"""The fast path: prove that a stretch of rows has no fault, or give up. Pure.

Most chains are sound, and proving that needs no explanations: one pass in physical order, each
row checked once, nothing remembered. The moment anything is unusual the whole chain is left to
``verify.walk``, which reads it again in order and says what is wrong. So the number of workers
cannot change a verdict.

A row's types are not looked at one by one: what a column must equal (place, link, key, hash,
tag) settles its type, and the header cannot be packed from any but the right ones.

Source: docs/spec (verifying).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, NamedTuple

from bijotel.findings import Notice
from bijotel.keys import KeyRing
from bijotel.merkle import CompactRange
from bijotel.model import ChainHead, Entry
from bijotel.rotation import genesis_key_id, read_rotation
from bijotel.seal import KNOWN_FORMATS, ZERO_TAG, body_hash, entry_header, entry_leaf, entry_tag
from bijotel.stores.base import RawRow
from bijotel.verify.deep import deep_faults
from bijotel.verify.rows import RowFault, check_columns
from bijotel.verify.vouched import note_fault
from bijotel.verify.walk import clock_step

_ID_LENGTHS: Final = frozenset(product((16, 0), (8, 0), (32, 0)))
"""Of trace_id, span_id and dedup_key."""
_WRONG_TYPE: Final = (struct.error, TypeError, AttributeError, UnicodeEncodeError)
"""Raised by the making of a header from columns that none can hold."""


@dataclass(slots=True)
class Stretch:
    """Successive rows of one chain, all sound, and what must stand before and behind them."""

    first: Entry
    last_seq: int
    last_tag: bytes
    last_sealed_at: int
    next_key_id: bytes
    """The key that seals the entry behind the last one."""
    next_chain_key: bytes
    """What that key makes for this chain."""
    clean: bool = True
    entries: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    notices: list[Notice] = field(default_factory=list)
    tree: CompactRange = field(default_factory=CompactRange)
    """Filled by a deep reading, and where sizes are wanted."""
    sizes: frozenset[int] = frozenset()
    """At which the root of the chain will be asked for."""
    marks: dict[int, CompactRange] = field(default_factory=dict)
    """The tree as it was at each of these sizes."""
    fleets: list[Entry] = field(default_factory=list)
    """Entries that list other chains, where sizes are wanted."""
    left_keys: set[bytes] = field(default_factory=set)

    def follows(self, before: Stretch) -> bool:
        """Tell whether this stretch is the sound continuation of another one."""
        return (
            self.first.seq == before.last_seq + 1
            and self.first.prev_tag == before.last_tag
            and self.first.key_id == before.next_key_id
            and not before.left_keys & (self.left_keys | {self.next_key_id})
        )

    def join(self, following: Stretch) -> None:
        """Append the stretch that follows."""
        if following.first.sealed_at_unix_nano < self.last_sealed_at:
            self.notices.append(clock_step(self.first.chain_id.hex(), following.first.seq))
        self.notices += following.notices
        self.last_seq, self.last_tag = following.last_seq, following.last_tag
        self.last_sealed_at = following.last_sealed_at
        self.next_key_id = following.next_key_id
        self.entries += following.entries
        self.kinds += following.kinds
        self.marks |= {size: self.tree.joined(mark) for size, mark in following.marks.items()}
        self.fleets += following.fleets
        self.tree.join(following.tree)
        self.left_keys |= following.left_keys

    def key_ids(self) -> frozenset[bytes]:
        """The keys of its entries, and the one that a last key entry puts in force."""
        return frozenset((self.first.key_id, *self.left_keys, self.next_key_id))

    def is_whole(self, head: ChainHead) -> bool:
        """Tell whether this is the whole chain of a proven head, from the genesis on."""
        return (
            self.clean
            and self.first.seq == 0
            and self.first.prev_tag == ZERO_TAG
            and (genesis_key_id(self.first) or self.first.key_id) == self.first.key_id
            and (self.last_seq, self.last_tag) == (head.seq, head.tag)
            and (not self.tree.nodes or self.tree.edge() == head.tree)
        )


class Reading(NamedTuple):
    """How rows are read."""

    keys: KeyRing
    sizes: Mapping[bytes, frozenset[int]]
    """For some chains the sizes at which the root will be asked for."""
    deep: bool
    """Parse every body and hash the tree as well."""


def read_stretches(rows: Iterable[RawRow], reading: Reading) -> tuple[dict[bytes, Stretch], bool]:
    """Check rows of any number of chains in physical order.

    Returns:
        A stretch for each chain id, ``clean`` or not, and whether there was a row whose chain
        cannot be told.
    """
    keys, sizes, deep = reading
    stretches: dict[bytes, Stretch] = {}
    stray = False
    for _place, columns in rows:
        chain_id = columns[0]
        if type(chain_id) is not bytes or len(chain_id) != 16:
            stray = True
            continue
        stretch = stretches.get(chain_id)
        if stretch is None:
            stretch = stretches[chain_id] = _begin(columns, keys)
            stretch.sizes = sizes.get(chain_id, stretch.sizes)
        if stretch.clean:
            stretch.clean = _extend(stretch, columns, keys, deep=deep)
    return stretches, stray


def _begin(columns: tuple[Any, ...], keys: KeyRing) -> Stretch:
    """Start a stretch before its first row, whose place, link and key are taken as they are."""
    first = check_columns(columns)
    key = None if isinstance(first, RowFault) else keys.get(first.key_id)
    if isinstance(first, RowFault) or key is None:
        return Stretch(Entry._make(columns), -1, b"", 0, b"", b"", clean=False)
    before = (first.seq - 1, first.prev_tag, first.sealed_at_unix_nano)
    return Stretch(first, *before, first.key_id, key.chain_key(first.chain_id))


def _extend(stretch: Stretch, columns: tuple[Any, ...], keys: KeyRing, *, deep: bool) -> bool:
    """Check the next row of a stretch; False for anything that is not plainly sound."""
    (_chain_id, seq, epoch, key_id, kind, sealed_at, fmt, hash_of_body, prev_tag, trace_id,
     span_id, _name, _start, _end, dedup_key, tag, body) = columns  # fmt: skip
    if not (
        type(seq) is int
        and seq == stretch.last_seq + 1
        and prev_tag == stretch.last_tag
        and key_id == stretch.next_key_id
        and epoch == 0
        and KNOWN_FORMATS.get(kind) == fmt
        and type(body) is bytes
        and body_hash(body) == hash_of_body
    ):
        return False
    try:
        header = entry_header(columns)
        lengths = (len(trace_id), len(span_id), len(dedup_key))
    except _WRONG_TYPE:
        return False
    if lengths not in _ID_LENGTHS or entry_tag(header, stretch.next_chain_key) != tag:
        return False
    if sealed_at < stretch.last_sealed_at:
        stretch.notices.append(clock_step(stretch.first.chain_id.hex(), seq))
    if deep or stretch.sizes:
        stretch.tree.append(seq, 0, entry_leaf(header, tag))
        if seq + 1 in stretch.sizes:
            stretch.marks[seq + 1] = CompactRange(stretch.tree.nodes)
    if deep and any(deep_faults(Entry._make(columns))):
        return False
    stretch.last_seq, stretch.last_tag, stretch.last_sealed_at = seq, tag, sealed_at
    stretch.entries += 1
    stretch.kinds[kind] += 1
    return kind == "span" or _read_special(stretch, Entry._make(columns), keys)


def _read_special(stretch: Stretch, entry: Entry, keys: KeyRing) -> bool:
    if entry.kind == "key":
        return _rotate(stretch, entry, keys)
    if entry.kind == "fleet" and stretch.sizes:
        stretch.fleets.append(entry)
    return entry.kind != "checkpoint" or note_fault(entry) is None


def _rotate(stretch: Stretch, entry: Entry, keys: KeyRing) -> bool:
    rotation = read_rotation(entry)
    new_key = keys.get(rotation.new_key_id) if rotation else None
    if rotation is None or new_key is None or not rotation.proven_by(new_key, entry):
        return False
    stretch.left_keys.add(entry.key_id)
    stretch.next_key_id = rotation.new_key_id
    stretch.next_chain_key = new_key.chain_key(entry.chain_id)
    return rotation.new_key_id not in stretch.left_keys
