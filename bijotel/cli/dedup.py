"""``bijotel dedup``: groups of calls that ask the same, and what the repeats cost."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import click

from bijotel.cli.analysis import (
    Analysed,
    analysed,
    counted,
    prices,
    prices_option,
    unverified_option,
)
from bijotel.cli.options import chain_option, db_option, json_option, key_option
from bijotel.cli.output import Output
from bijotel.cli.session import Session
from bijotel.cli.text import escape
from bijotel.cost import CostTotal
from bijotel.dedup import Group, Groups
from bijotel.verified import skim


@click.command(short_help="Find calls that ask the same again.")
@db_option
@chain_option
@key_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="List the N largest groups; all are counted.",
)
@prices_option
@unverified_option
@json_option
@click.pass_obj
def dedup(
    session: Session,
    *,
    location: str,
    chain: str | None,
    keys: tuple[str, ...],
    limit: int,
    price_file: str | None,
    unverified: bool,
) -> None:
    """Find calls that ask the same again: groups of entries with the same dedup key.

    The same are prompt, model and settings, retriever and embedding model; time, scores, sources
    and answers are not compared. Where prompts were not recorded, only the settings are the same.
    Tokens and cost are those of all entries of a group but the first.

    Exit codes: 0 fine; 1 the chain is false; 2 asked wrongly; 3 could not check (for example no
    key, without --unverified).
    """
    with closing(Groups(prices(price_file))) as groups:
        with analysed(session, location, chain, keys, unverified=unverified) as opened:
            for entry, record in opened.chain.spans(skim):
                groups.add(entry, record)
        listed: list[Group] = []
        total = _Total(groups.entries)
        for group in groups.repeated():
            total.add(group)
            if len(listed) < limit:
                listed.append(group)
    if session.json:
        session.output.document(_document(opened, total, listed))
    else:
        _print(session.output, opened, total, listed)


@dataclass(slots=True)
class _Total:
    """The sum over all groups, also those that are not listed."""

    entries: int
    groups: int = 0
    repeats: int = 0
    """Entries of groups but the first of each."""
    tokens: int = 0
    cost: CostTotal = field(default_factory=CostTotal)

    def add(self, group: Group) -> None:
        self.groups += 1
        self.repeats += group.count - 1
        self.tokens += group.tokens
        self.cost.join(group.cost)


def _document(opened: Analysed, total: _Total, listed: list[Group]) -> dict[str, Any]:
    return {
        **opened.as_dict(),
        "entries": total.entries,
        "groups_found": total.groups,
        "repeats": total.repeats,
        "repeated_tokens": total.tokens,
        "repeated_cost_known": float(total.cost.known),
        "repeated_calls": total.cost.calls,
        "repeated_unpriced_calls": total.cost.unpriced,
        "groups": [group.as_dict() for group in listed],
    }


def _print(output: Output, opened: Analysed, total: _Total, listed: list[Group]) -> None:
    if opened.chain.unreadable:
        output.line(f"{counted(opened.chain.unreadable, 'row')} could not be read")
    output.line(
        f"{counted(total.entries, 'span')}, {counted(total.groups, 'group')} that ask the same, "
        f"{counted(total.repeats, 'repeat')}"
    )
    if not total.groups:
        return
    output.line(f"spent on repeats: {_spent(total.tokens, total.cost)}")
    for group in listed:
        output.line(
            f"  {group.count} x {escape(group.name) or '(no name)'}, entries {group.first_seq} to "
            f"{group.last_seq}: {_spent(group.tokens, group.cost)} on repeats, "
            f"key {group.key.hex()}"
        )
    if total.groups > len(listed):
        output.line(f"  ... and {total.groups - len(listed)} more, see --limit")


def _spent(tokens: int, cost: CostTotal) -> str:
    """Say what was spent; nothing is known of the cost where no call reports its tokens."""
    return f"{tokens} tokens, {cost if cost.calls else 'cost not known'}"
