"""A verification's report as lines: a verdict for each chain, and what it does not say. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from bijotel.cli.findings import finding_line, notice_line
from bijotel.cli.output import Output
from bijotel.cli.session import COULD_NOT_CHECK, FINDINGS, FINE
from bijotel.cli.text import escape
from bijotel.findings import ChainReport, Finding, Report
from bijotel.verify.chain import TAIL, WHICH_CHAIN

_PLAIN_WORDS: Final = {
    TAIL: "not provable without a checkpoint: entries cut off at the end, together with an older "
    "head record, leave a chain that passes",
    WHICH_CHAIN: "any chain sealed with this key passes; name the one you mean with --chain ID",
}


class _Verdict(NamedTuple):
    """What is said about one chain, or about the store where it is about none."""

    name: str
    found: list[Finding]
    chain: ChainReport | None


def print_report(output: Output, report: Report, place: str) -> None:
    """Print a report.

    Args:
        output: Standard output.
        report: What was found.
        place: What findings that belong to no chain are said about, escaped.
    """
    # The worst first: who reads but one line must not read of the one chain that holds.
    for name, found, chain in sorted(_verdicts(report, place), key=_rank):
        _print_verdict(output, name, found, chain)
    for chain_id, size in report.checked.get("checkpoints", {}).items():
        output.line(f"checkpoint: the first {size} entries of chain {chain_id} are what was signed")
    for notice in report.notices:
        output.line(notice_line(notice))
    for subject in report.not_checked:
        reason = _PLAIN_WORDS.get(subject, "")
        output.line(f"not checked: {escape(subject)}{f' ({reason})' if reason else ''}")


def _verdicts(report: Report, place: str) -> Iterator[_Verdict]:
    known = {chain.chain for chain in report.chains}
    for chain in report.chains:
        found = [each for each in report.findings if (each.chain or "") == chain.chain]
        yield _Verdict(_name(chain), found, chain)
    elsewhere = [each for each in report.findings if (each.chain or "") not in known]
    if elsewhere or not report.chains:
        yield _Verdict(place, elsewhere, None)


def _rank(verdict: _Verdict) -> int:
    exit_code = Report((), tuple(verdict.found)).exit_code
    return (FINDINGS, COULD_NOT_CHECK, FINE).index(exit_code)


def _name(chain: ChainReport) -> str:
    name = escape(chain.name)
    if not chain.chain:  # of bijotel 2.x, whose chains have no id
        return name
    return f"chain {name} ({chain.chain})" if name else f"chain {chain.chain}"


def _print_verdict(
    output: Output, name: str, found: list[Finding], chain: ChainReport | None
) -> None:
    read = f", {_what_was_read(chain)}" if chain else ""
    exit_code = Report((), tuple(found)).exit_code
    if exit_code == FINE:
        output.line(f"{output.styled('OK', 'good')}: {name}: no findings{read}")
        return
    word, style = ("NOT CHECKED", "doubtful") if exit_code == COULD_NOT_CHECK else ("FAILED", "bad")
    count = f"{len(found)} finding{'' if len(found) == 1 else 's'}"
    output.line(f"{output.styled(word, style)}: {name}: {count}{read}")
    for finding in found:
        output.line(f"  {finding_line(finding)}")


def _what_was_read(chain: ChainReport) -> str:
    kinds = ", ".join(f"{count} {escape(kind)}" for kind, count in sorted(chain.kinds.items()))
    entries = f"{chain.entries} entr{'y' if chain.entries == 1 else 'ies'} read"
    return f"{entries} ({kinds})" if kinds else entries
