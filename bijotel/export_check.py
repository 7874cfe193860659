"""Check an export against public keys, as a stream: memory stays flat at any size.

Two things prove an export. The checkpoint in its first line is signed, and the entries with the
proof beside them lead to the root that it states. So no octet of an entry can be changed, and no
entry removed, added or moved, without another root. Links and numbers are checked on the way,
to say where a fault is; tags are, when the secret is at hand.

Source: docs/spec (export).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from io import BufferedReader
from typing import NoReturn

from bijotel.checkpoint import Checkpoint, verify_checkpoint
from bijotel.entry_line import parse_entry_line
from bijotel.errors import ConfigurationError, VerificationError
from bijotel.export_header import Header, read_header
from bijotel.export_lines import ExportLines
from bijotel.findings import ChainReport, Finding, Notice, Report, merge_runs
from bijotel.keys import KeyRing
from bijotel.merkle_proof import ProofError
from bijotel.model import Entry
from bijotel.note import EvidenceError
from bijotel.range_proof import range_root
from bijotel.seal import KNOWN_FORMATS, ZERO_TAG, entry_header, entry_leaf
from bijotel.verifier_key import VerifierKey
from bijotel.verify.diagnose import diagnose, holds
from bijotel.verify.rows import MAX_INTEGER


def verify_export(
    source: BufferedReader,
    keys: Sequence[VerifierKey],
    *,
    ring: KeyRing | None = None,
    partial: bool = False,
    checkpoint: bytes | None = None,
) -> Report:
    """Check an export file.

    A pass means that the entries are, octet for octet and in this order, what the checkpoint's
    signers vouched for. What it does not mean stands in ``report.not_checked``.

    Args:
        source: The file, plain or compressed with gzip. Read once, from where it stands.
        keys: At least one; every one must have signed the checkpoint.
        ring: Adds a check of the tags of entries sealed with its keys.
        partial: Accept an export that is not all entries of its checkpoint.
        checkpoint: The reader's own copy of the checkpoint; size and root must be equal.

    Raises:
        ConfigurationError: there is no key.
        UnavailableError: the file cannot be read.

    Source:
        docs/spec (export).

    Added in 0.1.
    """
    if not keys:
        raise ConfigurationError("verifier key: at least one is required to check an export")
    lines = ExportLines(source)
    report = _verify(lines, keys, ring, partial=partial, checkpoint=checkpoint)
    damage = lines.damage() if report.findings else None
    return _refusal(damage) if damage else report


def _verify(
    lines: ExportLines,
    keys: Sequence[VerifierKey],
    ring: KeyRing | None,
    *,
    partial: bool,
    checkpoint: bytes | None,
) -> Report:
    try:
        header = read_header(next(lines, b""), keys)
        if checkpoint is not None:
            _compare(header.checkpoint, verify_checkpoint(checkpoint, keys))
    except VerificationError as error:
        return _refusal(error)
    check = _Check(header, ring)
    check.run(lines)
    if not partial and not header.is_whole:
        check.add("export-partial", f"the export holds {header} only", "ranges")
    return check.report(keys)


def _refusal(error: VerificationError) -> Report:
    """Say why nothing of a file could be checked."""
    where = error.where if isinstance(error, EvidenceError) else "header"
    seq = 0 if error.code == "truncated" else None
    return Report((), (Finding(error.code, str(error), None, seq, where, seq),))


def _compare(own: Checkpoint, readers: Checkpoint) -> None:
    """Compare the checkpoint of the file with the reader's own copy."""
    if own == readers:
        return
    what = f"size {own.size}, root {own.root_hash.hex()}: the reader's own checkpoint has size "
    what += f"{readers.size}, root {readers.root_hash.hex()}"
    if own.origin != readers.origin:
        what = f"origin {own.origin}: the reader's own checkpoint is of {readers.origin}"
        raise EvidenceError(what, "checkpoint-origin", "origin line")
    if own.size == readers.size:
        what = f"{what}; both are signed: they prove misconduct of the signer"
        raise EvidenceError(what, "checkpoint-inconsistent", "size")
    raise EvidenceError(what, "checkpoint-mismatch", "size")


class _StopError(Exception):
    """The entries that follow have no place any more; the finding says why."""


class _Check:
    """One pass over the entries of an export."""

    def __init__(self, header: Header, ring: KeyRing | None) -> None:
        self._header = header
        self._chain = header.checkpoint.chain_id.hex()
        self._ring = ring
        self._last: Entry | None = None
        self._pending: tuple[Entry, int] | None = None
        self._newer: list[Finding] = []
        self._untagged: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._entries = self._tags = 0
        self._findings: list[Finding] = []

    def run(self, lines: Iterator[bytes]) -> None:
        """Read all entries and compare their root with the checkpoint's."""
        checkpoint, ranges, proof = self._header
        leaves = self._leaves(lines)
        try:
            root = range_root(checkpoint.size, ranges, leaves, proof)
            next(leaves, None)
        except _StopError:
            return
        except ProofError as error:
            self.add("malformed-export", str(error), "proof")
            return
        if root == checkpoint.root_hash:
            self._findings += self._newer
        else:
            what = f"the entries lead to root {root.hex()}, the checkpoint of size "
            what += f"{checkpoint.size} signs {checkpoint.root_hash.hex()}"
            self.add("checkpoint-mismatch", what, "ranges")

    def _leaves(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        ranges = self._header.ranges
        for first, last in ranges:
            for seq in range(first, last + 1):
                entry = self._read(lines, seq)
                self._check(entry)
                yield entry_leaf(entry_header(entry), entry.tag)
            self._explain_pending(None)
            self._last = None
        self._refuse_surplus(lines, ranges[-1][1])

    def _refuse_surplus(self, lines: Iterator[bytes], last: int) -> None:
        line = self._next(lines, last + 1)
        if line is not None:
            entry = self._parse(line, last + 1)
            code = "seq-repeat" if entry.seq <= last else "checkpoint-mismatch"
            self._stop(code, entry.seq, "stands behind the last entry that the header names")

    def _next(self, lines: Iterator[bytes], seq: int) -> bytes | None:
        try:
            return next(lines, None)
        except EvidenceError as error:
            self._stop(error.code, seq, str(error), error.where)

    def _read(self, lines: Iterator[bytes], seq: int) -> Entry:
        line = self._next(lines, seq)
        if line is None:
            self._stop("truncated", seq, "the file ends where this entry should stand")
        entry = self._parse(line, seq)
        if entry.seq > seq:
            self._stop("seq-gap", seq, f"missing, the next one found is {entry.seq}")
        if entry.seq < seq:
            self._stop("seq-repeat", entry.seq, f"stands where entry {seq} should")
        return entry

    def _parse(self, line: bytes, seq: int) -> Entry:
        try:
            return parse_entry_line(line, self._header.checkpoint.chain_id)
        except EvidenceError as error:
            self._stop(error.code, seq, str(error), error.where)

    def _check(self, entry: Entry) -> None:
        last = self._last
        self._explain_pending(entry)
        self._entries += 1
        self._kinds[entry.kind] += 1
        expected = last.tag if last else ZERO_TAG if entry.seq == 0 else None
        if expected is not None and entry.prev_tag != expected:
            what = "prev_tag is not the tag of the entry before"
            self.add("link-mismatch", what, "prev_tag", entry.seq)
        elif self._ring and self._ring.get(entry.key_id) is None:
            self._untagged[entry.key_id.hex()] += 1
        elif self._ring:
            self._tags += 1
            if not holds(entry, self._ring):
                self._pending = (entry, last.sealed_at_unix_nano if last else 0)
        if KNOWN_FORMATS.get(entry.kind) != entry.fmt:
            what = f"kind {entry.kind}, format {entry.fmt}: sealed by a newer library"
            self._newer.append(self._finding("format-unknown", what, "fmt", entry.seq))
        self._last = entry

    def _explain_pending(self, successor: Entry | None) -> None:
        if self._pending is None or self._ring is None:
            return
        (entry, earliest), self._pending = self._pending, None
        says = successor.prev_tag if successor and holds(successor, self._ring) else None
        latest = successor.sealed_at_unix_nano if successor else MAX_INTEGER
        for code, column, reason in diagnose(entry, self._ring, says, (earliest, latest)):
            self.add(code, f"the tag does not hold: {reason}", column, entry.seq)

    def add(self, code: str, what: str, column: str | None, seq: int | None = None) -> None:
        """Record a finding."""
        self._findings.append(self._finding(code, what, column, seq))

    def _finding(self, code: str, what: str, column: str | None, seq: int | None) -> Finding:
        message = what if seq is None else f"entry {seq}: {what}"
        return Finding(code, message, self._chain, seq, column, seq)

    def _stop(self, code: str, seq: int, what: str, column: str = "seq") -> NoReturn:
        self._explain_pending(None)
        self.add(code, what, column, seq)
        raise _StopError

    def report(self, keys: Sequence[VerifierKey]) -> Report:
        """Say what was found, what was checked and what was not."""
        header = self._header
        last_seq = header.ranges[-1][1]
        chain = ChainReport(self._chain, "", self._entries, last_seq, self._kinds)
        notices = tuple(
            Notice(
                "key-unknown",
                f"tags of {count} entries not checked: key {key_id} is not in the ring",
                self._chain,
            )
            for key_id, count in self._untagged.items()
        )
        checked = {
            "entries": self._entries,
            "tags": self._tags,
            "ranges": [list(pair) for pair in header.ranges],
            "size": header.checkpoint.size,
            "keys": [f"{key.name}+{key.key_hash.hex()}" for key in keys],
        }
        not_checked = [f"entries sealed after the checkpoint of size {header.checkpoint.size}"]
        if not header.is_whole:
            not_checked.append("entries outside the ranges")
        if self._tags < self._entries:
            not_checked.append("tags (they need the HMAC secret)")
        findings = merge_runs(self._findings)
        return Report((chain,), findings, notices, checked, tuple(not_checked))
