"""Put measured figures into the documentation: all on a page of their own, a few in the README."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.table import Row

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "benchmarks.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"

HEADLINES = (
    "on_end, queued, in a burst",
    "on_end, queued, one a millisecond",
    "on_end, commit mode",
    "sealing, queued, sustained",
    "PostgreSQL, queued",
    "verify 150,000 entries, one process",
    "memory for 150,000 entries, beyond the interpreter",
    "context: ASCII, 1,000 passages, mixed",
    "audit, OTLP/JSON lines",
    "checkpoint, 1,000,000 entries",
    "inclusion proof, 1,000,000 entries",
    "import bijotel",
)
"""What an application or an auditor pays, in the order in which the README says it."""


def write_pages(rows: Sequence[Row]) -> None:
    """Write all figures into both pages.

    Raises:
        SystemExit: a figure of the README was not measured.
    """
    measured = {row.name: row for row in rows}
    if missing := [name for name in HEADLINES if name not in measured]:
        raise SystemExit(f"not written: nothing measured {', '.join(missing)}")
    _put(PAGE, rows)
    _put(README, [measured[name] for name in HEADLINES])


def _put(path: Path, rows: Iterable[Row]) -> None:
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(f"{before}{BEGIN}\n\n{markdown(rows)}\n{END}{after}", encoding="utf-8")


def markdown(rows: Iterable[Row]) -> str:
    """Write a table."""
    lines = [
        "| figure | ours | floor | ratio | target | |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {' | '.join(row[:5])} | {'met' if row.met else 'missed'} |" for row in rows]
    return "\n".join(lines) + "\n"
