"""Write entries of a chain as a file that proves itself. Streams; nothing is kept.

The first line holds a checkpoint and one proof for all ranges, then comes a line for each entry.
What is written is hashed again and compared with the checkpoint, so that a store that was
tampered with yields no export.

Reading rows is the caller's business, naming the file ``output_files``', checking it
``export_check``'s.

Source: docs/spec (export).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from bijotel.checkpoint import Checkpoint, parse_checkpoint
from bijotel.entry_line import format_entry_line
from bijotel.errors import ConfigurationError
from bijotel.export_header import format_header
from bijotel.merkle_proof import NodeHash, ProofError
from bijotel.model import Entry
from bijotel.note import EvidenceError
from bijotel.range_proof import Ranges, check_ranges, make_range_proof, range_root
from bijotel.seal import body_hash, entry_header, entry_leaf


def write_export(
    output: BinaryIO,
    note: bytes,
    entries: Iterable[Entry],
    node: NodeHash,
    ranges: Ranges | None = None,
) -> int:
    """Write an export and check it against its checkpoint.

    Args:
        output: Takes the octets. On an error it holds a file that must not be given out.
        note: A checkpoint of the chain. Who signed it is not checked.
        entries: Exactly the entries of the ranges, in order, of sound columns.
        node: Knows the perfect subtrees of the chain; not asked for a whole export.
        ranges: First and last ``seq`` of each range; without it all entries of the checkpoint.

    Returns:
        How many entries were written.

    Raises:
        ConfigurationError: the ranges are empty, out of order or beyond the checkpoint.
        EvidenceError: ``malformed-note`` or ``checkpoint-origin`` for the checkpoint; else the
            store is not what it signs: ``wrong-chain``, ``seq-gap``, ``body-hash-mismatch``,
            ``checkpoint-mismatch``.
    """
    selection = make_selection(note, node, ranges)
    output.write(format_header(note, selection.ranges, selection.proof) + b"\n")
    return selection.check(entries, lambda entry: output.write(format_entry_line(entry) + b"\n"))


class Selection(NamedTuple):
    """Ranges of entries, and what proves them."""

    checkpoint: Checkpoint
    ranges: Ranges
    proof: tuple[bytes, ...]

    def check(self, entries: Iterable[Entry], take: Callable[[Entry], object]) -> int:
        """Hand on the entries of the ranges, and compare them with the checkpoint.

        Args:
            entries: Exactly these, in order, of sound columns.
            take: Gets each entry. What it made of them must not be given out on an error.

        Returns:
            How many entries there were.

        Raises:
            EvidenceError: ``wrong-chain``, ``seq-gap``, ``body-hash-mismatch`` or
                ``checkpoint-mismatch``: the entries are not what was signed.
        """
        checkpoint, ranges, proof = self
        root = range_root(checkpoint.size, ranges, self._leaves(entries, take), proof)
        if root != checkpoint.root_hash:
            raise EvidenceError(
                f"checkpoint of size {checkpoint.size}: expected root "
                f"{checkpoint.root_hash.hex()}, the chain's is {root.hex()}",
                "checkpoint-mismatch",
                "ranges",
            )
        return sum(last - first + 1 for first, last in ranges)

    def _leaves(self, entries: Iterable[Entry], take: Callable[[Entry], object]) -> Iterator[bytes]:
        source = iter(entries)
        for first, last in self.ranges:
            for seq in range(first, last + 1):
                entry = self._expect(next(source, None), seq)
                take(entry)
                yield entry_leaf(entry_header(entry), entry.tag)

    def _expect(self, entry: Entry | None, seq: int) -> Entry:
        if entry is None or entry.seq != seq:
            found = "the end" if entry is None else f"entry {entry.seq}"
            raise EvidenceError(f"entry {seq} is missing, {found} was found", "seq-gap", "seq")
        chain_id = self.checkpoint.chain_id
        if entry.chain_id != chain_id:
            what = f"entry {seq}: is of chain {entry.chain_id.hex()}, expected {chain_id.hex()}"
            raise EvidenceError(what, "wrong-chain", "chain_id")
        if body_hash(entry.body) != entry.body_hash:
            what = f"entry {seq}: the body does not have the sealed hash"
            raise EvidenceError(what, "body-hash-mismatch", "body")
        return entry


def make_selection(note: bytes, node: NodeHash, ranges: Ranges | None = None) -> Selection:
    """Make the proof of some ranges of entries, or of all.

    Raises:
        ConfigurationError: the ranges are empty, out of order or beyond the checkpoint.
        EvidenceError: ``malformed-note`` or ``checkpoint-origin`` for the checkpoint.
    """
    checkpoint = parse_checkpoint(note)
    ranges = ranges or ((0, checkpoint.size - 1),)
    try:
        check_ranges(ranges, checkpoint.size)
    except ProofError as error:
        raise ConfigurationError(f"export: {error}; the checkpoint says how many") from None
    return Selection(checkpoint, ranges, tuple(make_range_proof(node, checkpoint.size, ranges)))
