"""Judge chains of bijotel 2.x by the formulas of that version, and say what those leave open.

``hmac_hash = HMAC(secret, prev_hash || canonical_hash)`` over hex digits, with
``canonical_hash = SHA-256(canonical_body)``: nothing else of a row is covered.

Source: the published package bijotel 2.17.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import orjson

from bijotel.findings import ChainReport, Finding, Notice, Report, merge_runs
from bijotel.keys import HmacKey, KeyRing
from bijotel.legacy.rows import LegacyRow, open_database
from bijotel.verify.rows import describe

GENESIS: Final = "0" * 64
"""``prev_hash`` of the first row."""
UNCOVERED: Final = (
    "seq",
    "timestamp_ns",
    "trace_id",
    "span_id",
    "span_name",
    "span_kind",
    "semantic_body_hash",
)
"""Columns that no hash of that format covers."""
_UNCOVERED_TEXT: Final = f"columns that this format does not cover: {', '.join(UNCOVERED)}"
_TAIL_TEXT: Final = "completeness of the tail: this format cannot show that the end was cut off"

_HASH = re.compile(r"[0-9a-f]{64}")
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "seq": (int,),
    "canonical_body": (bytes,),
    "canonical_hash": (str,),
    "prev_hash": (str,),
    "hmac_hash": (str,),
}


def verify_database(path: Path, ring: KeyRing) -> Report:
    """Verify a database of bijotel 2.x.

    Args:
        path: The file; it is not changed.
        ring: Holds the secret.

    Raises:
        UnavailableError: there is no such database, or it cannot be read.
    """
    check = RowCheck(ring, 1, GENESIS)
    with open_database(path) as rows:
        for row in rows:
            check.feed(row)
    return check.report("database", ())


class RowCheck:
    """Checks rows one after the other."""

    def __init__(self, ring: KeyRing | None, first_seq: int, prev_hash: Any) -> None:
        """Begin before the first row.

        Args:
            ring: Holds the secret; None: hashes and links are checked, tags are not.
            first_seq: ``seq`` of the first row.
            prev_hash: What the first row links to.
        """
        self._ring = ring
        self._key: HmacKey | None = None
        self._expected = first_seq
        self._prev_hash = prev_hash
        # Rows whose tag no key made, while it is open which key is the chain's.
        self._undecided: list[int] = []
        self.entries = 0
        self.findings: list[Finding] = []
        self.notices: list[Notice] = []

    @property
    def last_seq(self) -> int:
        """``seq`` of the last row."""
        return self._expected - 1

    @property
    def head_hash(self) -> Any:
        """``hmac_hash`` of the last row."""
        return self._prev_hash

    @property
    def key(self) -> HmacKey | None:
        """The key of the ring that made the chain's tags, once one is found."""
        return self._key

    def feed(self, row: LegacyRow) -> None:
        """Check the next row."""
        self.entries += 1
        fault = next((name for name in _TYPES if not _is_sound(name, getattr(row, name))), None)
        if fault is not None:
            found = describe(getattr(row, fault))
            self._add("type-mismatch", fault, f"{fault}: found {found}", self._expected)
            self._expected, self._prev_hash = self._expected + 1, None
            return
        self._check(row)
        self._expected, self._prev_hash = row.seq + 1, row.hmac_hash
        self.notices += _contradictions(row)

    def _check(self, row: LegacyRow) -> None:
        if row.seq > self._expected:
            what = f"missing, the next one found is {row.seq}"
            self._add("seq-gap", "seq", what, self._expected, row.seq - 1)
        elif row.seq < self._expected:
            self._add("seq-repeat", "seq", f"stands where entry {self._expected} should", row.seq)
        elif self._prev_hash is not None and row.prev_hash != self._prev_hash:
            what = "prev_hash is not the hmac_hash of the entry before"
            self._add("link-mismatch", "prev_hash", what, row.seq)
        elif sha256(row.canonical_body).hexdigest() != row.canonical_hash:
            what = "the body does not have its hash"
            self._add("body-hash-mismatch", "canonical_body", what, row.seq)
        elif self._ring is not None:
            self._check_tag(row)

    def _check_tag(self, row: LegacyRow) -> None:
        if self._key is None:
            self._key = next((key for key in self._ring or () if _tag_holds(key, row)), None)
            if self._key is None:
                self._undecided.append(row.seq)
                return
            for seq in self._undecided:
                self._add("tag-mismatch", "hmac_hash", "the tag does not hold", seq)
            self._undecided = []
        elif not _tag_holds(self._key, row):
            self._add("tag-mismatch", "hmac_hash", "the tag does not hold", row.seq)

    def _add(self, code: str, column: str, what: str, seq: int, last: int | None = None) -> None:
        message = f"entry {seq}: {what}"
        self.findings.append(
            Finding(code, message, None, seq, column, seq if last is None else last)
        )

    def report(self, source: str, not_checked: Iterable[str]) -> Report:
        """Say what was found, and what a pass of this format does not mean."""
        if not self.entries:
            self._add("truncated", "seq", "there is no entry at all", self._expected)
        if self._undecided:
            what = "no key of the ring made this chain's tags: the wrong secret, or a forgery"
            self._add("wrong-key", "hmac_hash", what, self._undecided[0])
        if self._ring is None:
            what = "without the secret nothing in it can be trusted: its signature covers "
            what += "chain_signature alone, which only the secret ties to the entries"
            self.findings.append(Finding("key-unknown", what, column="chain_signature"))
        chain = ChainReport("", "bijotel 2.x", self.entries, self.last_seq)
        checked = {"entries": self.entries, "format": f"bijotel 2.x {source}"}
        open_ends = (_UNCOVERED_TEXT, _TAIL_TEXT, *not_checked)
        return Report((chain,), merge_runs(self.findings), tuple(self.notices), checked, open_ends)


def _is_sound(column: str, value: Any) -> bool:
    if type(value) not in _TYPES[column]:
        return False
    return column in {"seq", "canonical_body"} or _HASH.fullmatch(value) is not None


def _tag_holds(key: HmacKey, row: LegacyRow) -> bool:
    return legacy_mac(key, row.prev_hash + row.canonical_hash) == str(row.hmac_hash)


def legacy_mac(key: HmacKey, message: str) -> str:
    """HMAC under the secret itself, in hex, as that version computed it."""
    return key.master_mac(message.encode()).hex()


def _contradictions(row: LegacyRow) -> Iterable[Notice]:
    """Note each uncovered column that the covered body contradicts."""
    try:
        body = orjson.loads(row.canonical_body)
        stated = {
            "span_name": body["name"],
            "span_kind": body["kind"],
            "timestamp_ns": int(body["end_time_ns"]),
        }
    except (ValueError, TypeError, LookupError):
        return
    for column, value in stated.items():
        found = getattr(row, column)
        if found != value:
            message = f"entry {row.seq}: {column} is {describe(found)}, the covered body says "
            yield Notice("column-mismatch", f"{message}{describe(value)}", seq=row.seq)
