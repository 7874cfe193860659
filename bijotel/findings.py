"""What a verification found: findings, notices, and the report that holds them. Pure.

A finding is evidence against the chain (or a part that could not be checked); a notice is not.
Codes are stable words, listed in docs/reference/findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

from bijotel.errors import UnavailableError, VerificationError

COULD_NOT_CHECK: Final = frozenset({"key-unknown", "format-unknown"})
"""Codes that say "not checked", exit code 3, as long as nothing else was found."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a chain, or a run of the same fault over successive entries."""

    code: str
    message: str
    """One line for people: what, where, expected, found."""
    chain: str | None = None
    """The chain's id in hex, or None when the store itself is at fault."""
    seq: int | None = None
    column: str | None = None
    """The column, or the name of the object at fault."""
    last_seq: int | None = None
    """The last entry of a run, else equal to ``seq``."""
    expected: Any = None
    found: Any = None

    def concerns(self, seq: int) -> bool:
        """Tell whether an entry is the one at fault, or one of the run."""
        if self.seq is None:
            return False
        return self.seq <= seq <= (self.seq if self.last_seq is None else self.last_seq)

    def as_dict(self) -> dict[str, Any]:
        """Give the members that ``--json`` prints."""
        names = (
            "code",
            "chain",
            "seq",
            "column",
            "last_seq",
            "expected",
            "found",
            "message",
        )
        return {name: plain(getattr(self, name)) for name in names}


@dataclass(frozen=True, slots=True)
class Notice:
    """Something worth knowing that is no evidence of tampering."""

    code: str
    message: str
    chain: str | None = None
    seq: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Give the members that ``--json`` prints."""
        return {"code": self.code, "chain": self.chain, "seq": self.seq, "message": self.message}


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What was read of one chain."""

    chain: str
    """The chain's id in hex."""
    name: str
    entries: int
    """How many entries were read."""
    last_seq: int | None
    """``seq`` of the head that the report covers."""
    kinds: Mapping[str, int] = field(default_factory=dict)
    """How many entries there are of each kind."""

    def as_dict(self) -> dict[str, Any]:
        """Give the members that ``--json`` prints."""
        return {
            "chain": self.chain,
            "name": self.name,
            "entries": self.entries,
            "last_seq": self.last_seq,
            "kinds": dict(self.kinds),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a verification. Ask ``ok``, or call ``raise_for_findings``."""

    chains: tuple[ChainReport, ...]
    findings: tuple[Finding, ...]
    notices: tuple[Notice, ...] = ()
    checked: Mapping[str, Any] = field(default_factory=dict)
    """What was checked, with counts."""
    not_checked: tuple[str, ...] = ()
    """What a pass does not mean."""

    @property
    def ok(self) -> bool:
        """True when nothing was found."""
        return not self.findings

    @property
    def exit_code(self) -> int:
        """0 nothing found, 1 the evidence is false, 3 a part could not be checked."""
        if self.ok:
            return 0
        return 3 if all(finding.code in COULD_NOT_CHECK for finding in self.findings) else 1

    def raise_for_findings(self) -> None:
        """Raise when anything was found.

        Raises:
            VerificationError: the evidence is false.
            UnavailableError: nothing false was found, but a part could not be checked.
        """
        if self.ok:
            return
        first = self.findings[0]
        more = f" (and {len(self.findings) - 1} more)" if len(self.findings) > 1 else ""
        error = VerificationError if self.exit_code == 1 else UnavailableError
        raise error(f"{first.code}: {first.message}{more}")

    def __bool__(self) -> NoReturn:
        raise TypeError("a Report has no truth value: ask .ok or call .raise_for_findings()")

    def as_dict(self) -> dict[str, Any]:
        """Give the document that ``--json`` prints."""
        return {
            "ok": self.ok,
            "chains": [chain.as_dict() for chain in self.chains],
            "findings": [finding.as_dict() for finding in self.findings],
            "notices": [notice.as_dict() for notice in self.notices],
            "checked": dict(self.checked),
            "not_checked": list(self.not_checked),
        }


def merge_runs(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Join findings of the same code and column over successive entries into one each."""
    merged: list[Finding] = []
    for finding in findings:
        add_to_runs(merged, finding)
    return tuple(merged)


def add_to_runs(findings: list[Finding], finding: Finding) -> None:
    """Append a finding, or extend the last one by it when both are one run."""
    if findings and _continues(findings[-1], finding):
        findings[-1] = replace(findings[-1], last_seq=finding.last_seq)
    else:
        findings.append(finding)


def _continues(last: Finding, finding: Finding) -> bool:
    return (
        (last.code, last.chain, last.column) == (finding.code, finding.chain, finding.column)
        and last.last_seq is not None
        and finding.seq == last.last_seq + 1
    )


def plain(value: Any) -> Any:
    """Make a stored value fit JSON: bytes as hex, long text cut, all else as it is."""
    if isinstance(value, (bytes, bytearray)):
        return value[:64].hex() + ("..." if len(value) > 64 else "")
    if isinstance(value, str):
        text = value.encode("utf-8", "backslashreplace").decode()
        return text if len(text) <= 200 else text[:200] + "..."
    if isinstance(value, float):
        return repr(value)
    return value
