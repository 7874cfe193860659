"""Walk the rows of one chain in order and list what is wrong. Pure: rows in, findings out.

The checks of a row come in a fixed order, so that the code is the same everywhere: types and
limits, position, key order, link, body hash, tag, kind and format. A row is reported for the
first check that fails; the walk then goes on with the stored tag, only to list further faults.

A row whose tag fails is explained with the help of its successor, so it waits until that one
arrives. Chains without a fault never get here, see ``verify.clean``.

Source: docs/spec (verifying).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from bijotel.findings import Finding, Notice, add_to_runs
from bijotel.keys import KeyRing
from bijotel.merkle import CompactRange
from bijotel.model import Entry
from bijotel.rotation import Rotation, genesis_key_id, read_rotation
from bijotel.seal import KNOWN_FORMATS, ZERO_TAG, body_hash, entry_header, entry_leaf
from bijotel.verify.deep import deep_faults
from bijotel.verify.diagnose import diagnose, holds
from bijotel.verify.rows import MAX_INTEGER, RowFault, check_columns
from bijotel.verify.vouched import note_fault


class State(NamedTuple):
    """What the next row of a chain must fit."""

    expected_seq: int
    prev_tags: tuple[bytes, ...]
    """Tags that its ``prev_tag`` may state; empty when the predecessor's is not to be trusted."""
    key_id: bytes | None
    """The key that seals it; None before the first row."""


START: Final = State(0, (ZERO_TAG,), None)
MAX_SHOWN_CHARACTERS: Final = 200
"""So much of a text that contradicts its entry is repeated in the finding."""

ExplainHole = Callable[[int, int], Iterator[Finding]]
"""Given the first and the last ``seq`` that are not there, say what became of them."""


@dataclass(slots=True)
class WalkResult:
    """What a walk over a whole chain found."""

    state: State = START
    entries: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    faults: int = 0
    """How many findings entries gave; a run of them is one in ``findings``."""
    notices: list[Notice] = field(default_factory=list)
    rotations: list[Rotation] = field(default_factory=list)
    tree: CompactRange = field(default_factory=CompactRange)
    """Filled by a walk that hashes it."""
    last_tag_reported: bool = False
    """The tag of the last row is not to be compared with the head's."""
    sound_from_end: int = 0
    """How many rows in a row, up to the last, had no finding."""

    @property
    def last_seq(self) -> int:
        """``seq`` of the last row, -1 when there is none."""
        return self.state.expected_seq - 1

    def key_ids(self) -> frozenset[bytes]:
        """The keys that were in force."""
        left = (rotation.old_key_id for rotation in self.rotations)
        return frozenset((*left, self.state.key_id or b""))


class ChainWalk:
    """Checks the rows of one chain, fed by ascending ``seq``."""

    def __init__(
        self,
        chain_id: bytes,
        keys: KeyRing,
        explain_hole: ExplainHole,
        *,
        deep: bool = False,
        hash_tree: bool = False,
    ) -> None:
        """Begin a walk.

        Args:
            chain_id: The chain's id, 16 bytes.
            keys: The ring.
            explain_hole: Makes the findings for entries that are not there.
            deep: Parse every body and hash the tree as well.
            hash_tree: Hash the tree.
        """
        self._chain_id = chain_id
        self._chain = chain_id.hex()
        self._keys = keys
        self._explain_hole = explain_hole
        self._deep = deep
        self._hash_tree = deep or hash_tree
        self._last: Entry | None = None
        self._pending: tuple[Entry, int] | None = None
        self.result = WalkResult()

    def feed(self, columns: tuple[Any, ...]) -> None:
        """Check the next row; its ``seq`` is an integer from 0 on."""
        entry = check_columns(columns)
        if self._pending:
            self._explain_pending(entry if isinstance(entry, Entry) else None, None)
        result, seq = self.result, columns[1]
        result.entries += 1
        before = result.faults
        if seq < result.state.expected_seq:
            self._check_repeated(entry, seq)
        else:
            if seq > result.state.expected_seq:
                self._pass_hole(seq)
            if isinstance(entry, RowFault):
                self._report_fault(entry, seq)
            else:
                self._check(entry)
        sound = result.faults == before and self._pending is None
        result.sound_from_end = result.sound_from_end + 1 if sound else 0

    def end(self, head_tag: bytes | None) -> WalkResult:
        """Finish the walk.

        Args:
            head_tag: The tag that a proven head states for the last row.
        """
        if self._pending:
            self._explain_pending(None, head_tag)
        key_id = self.result.state.key_id
        if self._last is not None and self._last.kind == "key" and key_id != self._last.key_id:
            self._check_last_key(self._last, key_id)
        return self.result

    def _check_last_key(self, entry: Entry, key_id: bytes | None) -> None:
        """Without entries of the new key behind it, nothing else says that it is not known."""
        if key_id is not None and self._keys.get(key_id) is None:
            what = f"hands over to key {key_id.hex()}, which is not in the ring: its proof was not "
            self._add("key-unknown", entry.seq, "body", what + "checked", found=key_id)

    # --- position ----------------------------------------------------------------------------

    def _pass_hole(self, seq: int) -> None:
        expected = self.result.state.expected_seq
        explained = list(self._explain_hole(expected, seq - 1))
        self.result.faults += len(explained)
        self.result.findings += explained
        self.result.state = State(seq, (), self.result.state.key_id)
        self._last = None

    def _check_repeated(self, entry: Entry | RowFault, seq: int) -> None:
        """Report a second row with the ``seq`` of the one before it."""
        first, state = self._last, self.result.state
        forked = (
            first is not None
            and isinstance(entry, Entry)
            and first.prev_tag == entry.prev_tag
            and first.tag != entry.tag
            and holds(first, self._keys)
            and holds(entry, self._keys)
        )
        if forked:
            what = "two sealed entries follow the same one: the chain was continued twice"
            self._add("forked", seq, "seq", what, found=seq)
        else:
            self._add("seq-repeat", seq, "seq", "a second row has this seq", found=seq)
        if isinstance(entry, Entry) and state.prev_tags:
            self.result.state = state._replace(prev_tags=(*state.prev_tags, entry.tag))

    def _report_fault(self, fault: RowFault, seq: int) -> None:
        message = f"{fault.column}: expected {fault.expected}, found {fault.found}"
        self._add(
            fault.code, seq, fault.column, message, expected=fault.expected, found=fault.found
        )
        self.result.last_tag_reported = True
        self.result.state = State(seq + 1, (), self.result.state.key_id)
        self._last = None

    # --- content -----------------------------------------------------------------------------

    def _check(self, entry: Entry) -> None:
        result, last = self.result, self._last
        result.kinds[entry.kind] += 1
        result.last_tag_reported = False
        key_id, prev_tags = result.state.key_id, result.state.prev_tags
        if key_id is None:
            key_id = genesis_key_id(entry) or entry.key_id
        result.state = State(entry.seq + 1, (entry.tag,), key_id)
        self._last = entry
        if last is not None and entry.sealed_at_unix_nano < last.sealed_at_unix_nano:
            result.notices.append(clock_step(self._chain, entry.seq))
        before = result.faults
        if entry.key_id != key_id:
            what = f"sealed with key {entry.key_id.hex()} where {key_id.hex()} is in force"
            self._add("key-order", entry.seq, "key_id", what, expected=key_id, found=entry.key_id)
        elif prev_tags and entry.prev_tag not in prev_tags:
            self._add(
                "link-mismatch",
                entry.seq,
                "prev_tag",
                "prev_tag is not the tag of the entry before",
                expected=prev_tags[0],
                found=entry.prev_tag,
            )
        elif entry.body_hash != (computed := body_hash(entry.body)):
            self._report_body(entry, computed)
        else:
            self._check_tag(entry, last.sealed_at_unix_nano if last else 0)
        if self._hash_tree:
            self.result.tree.append(entry.seq, 0, entry_leaf(entry_header(entry), entry.tag))
        if self._deep and result.faults == before and not self._pending:
            self._check_deep(entry)

    def _report_body(self, entry: Entry, computed: bytes) -> None:
        """One of the two was changed; the tag tells which, since it covers the hash."""
        column = "body_hash" if holds(entry._replace(body_hash=computed), self._keys) else "body"
        self._add(
            "body-hash-mismatch",
            entry.seq,
            column,
            "the body does not have the sealed hash",
            expected=entry.body_hash,
            found=computed,
        )

    def _check_tag(self, entry: Entry, sealed_after: int) -> None:
        key = self._keys.get(entry.key_id)
        if key is None:
            what = f"sealed with key {entry.key_id.hex()}, which is not in the ring: not checked"
            self._add("key-unknown", entry.seq, None, what, found=entry.key_id)
        elif not holds(entry, self._keys):
            self._pending = (entry, sealed_after)
            return
        elif KNOWN_FORMATS.get(entry.kind) != entry.fmt:
            self._add(
                "format-unknown",
                entry.seq,
                "fmt" if entry.kind in KNOWN_FORMATS else "kind",
                f"kind {entry.kind}, format {entry.fmt}: sealed by a newer library",
                found=f"{entry.kind} {entry.fmt}",
            )
        elif entry.kind == "checkpoint" and (fault := note_fault(entry)) is not None:
            self._add(fault[0], entry.seq, "body", fault[1])
        if entry.kind == "key":
            self._rotate(entry)

    def _explain_pending(self, successor: Entry | None, head_tag: bytes | None) -> None:
        assert self._pending is not None  # noqa: S101 - for the type checker
        (entry, earliest), self._pending = self._pending, None
        latest = MAX_INTEGER
        if successor is not None and successor.seq == entry.seq + 1:
            latest = successor.sealed_at_unix_nano
            head_tag = successor.prev_tag if holds(successor, self._keys) else None
        self.result.state = self.result.state._replace(prev_tags=())
        for code, column, reason in diagnose(entry, self._keys, head_tag, (earliest, latest)):
            found = getattr(entry, column) if column and column != "body" else None
            if isinstance(found, str):
                found = found[:MAX_SHOWN_CHARACTERS]
            self._add(code, entry.seq, column, f"the tag does not hold: {reason}", found=found)
        self.result.last_tag_reported = True

    def _rotate(self, entry: Entry) -> None:
        rotation = read_rotation(entry)
        new_key = self._keys.get(rotation.new_key_id) if rotation else None
        if rotation is None:
            self._add("rotation-proof", entry.seq, "body", "the key entry names no new key")
        elif new_key is not None and not rotation.proven_by(new_key, entry):
            what = "the new key's proof in the body does not hold"
            self._add("rotation-proof", entry.seq, "body", what)
        elif rotation.new_key_id in {entry.key_id, *self._left_keys()}:
            what = f"rotates back to key {rotation.new_key_id.hex()}, which the chain has left"
            self._add("key-order", entry.seq, "body", what, found=rotation.new_key_id)
        else:
            self.result.rotations.append(rotation)
            self.result.state = self.result.state._replace(key_id=rotation.new_key_id)

    def _left_keys(self) -> Iterator[bytes]:
        return (earlier.old_key_id for earlier in self.result.rotations)

    def _check_deep(self, entry: Entry) -> None:
        for code, column, message in deep_faults(entry):
            self._add(code, entry.seq, column, message)

    def _add(self, code: str, seq: int, column: str | None, message: str, **more: Any) -> None:
        self.result.faults += 1
        finding = Finding(
            code,
            f"entry {seq}: {message}",
            chain=self._chain,
            seq=seq,
            column=column,
            last_seq=seq,
            **more,
        )
        # A chain of any length may have the same fault in every entry.
        add_to_runs(self.result.findings, finding)


def clock_step(chain: str, seq: int) -> Notice:
    """Note that the wall clock was set back between two entries."""
    message = f"entry {seq}: the wall clock was set back before it was sealed"
    return Notice("clock-step", message, chain, seq)
