"""Findings and notices as lines: what, where, expected, found. Pure."""

from __future__ import annotations

from bijotel.cli.text import escape
from bijotel.findings import Finding, Notice, plain


def finding_line(finding: Finding) -> str:
    """Say a finding on one line."""
    where = _where(finding)
    message = finding.message
    if finding.seq is not None:
        message = message.removeprefix(f"entry {finding.seq}: ")
    facts = [
        f"{word} {plain(value)}"
        for word, value in (("expected", finding.expected), ("found", finding.found))
        if value is not None
    ]
    text = f"{finding.code}: {f'{where}: ' if where else ''}{message}"
    return escape(f"{text} ({', '.join(facts)})" if facts else text)


def notice_line(notice: Notice) -> str:
    """Say a notice on one line."""
    return escape(f"notice: {notice.code}: {notice.message}")


def _where(finding: Finding) -> str:
    places = []
    if finding.seq is not None:
        run = finding.last_seq is not None and finding.last_seq != finding.seq
        places.append(
            f"entries {finding.seq} to {finding.last_seq}" if run else f"entry {finding.seq}"
        )
    if finding.column is not None:
        places.append(f"column {finding.column}")
    return ", ".join(places)
