"""What the calls of a chain spent, as a table: ``bijotel stats --by``."""

from __future__ import annotations

from typing import Any

from bijotel.cli.analysis import Analysed, analysed, counted, prices
from bijotel.cli.output import Output
from bijotel.cli.session import Session
from bijotel.cli.text import escape
from bijotel.cost import Spending, Spent
from bijotel.dialects.groups import GroupBy
from bijotel.verified import skim


def print_spending(
    session: Session,
    location: str,
    chain: str | None,
    keys: tuple[str, ...],
    *,
    by: GroupBy,
    price_file: str | None,
    unverified: bool,
) -> None:
    """Verify a chain, count what its calls spent and write it.

    Raises:
        VerificationError: the chain is false.
        UnavailableError: there is no key, or a part could not be checked.
    """
    spending = Spending(by, prices(price_file))
    with analysed(session, location, chain, keys, unverified=unverified) as opened:
        for _entry, record in opened.chain.spans(skim):
            spending.add(record)
    groups = spending.finish()
    total = Spent()
    for spent in groups.values():
        total.join(spent)
    if session.json:
        session.output.document(_document(opened, by, groups, total))
    else:
        _print(session.output, opened, by, groups, total)


def _document(
    opened: Analysed, by: GroupBy, groups: dict[str, Spent], total: Spent
) -> dict[str, Any]:
    return {
        **opened.as_dict(),
        "by": by,
        "groups": [{by: name, **spent.as_dict()} for name, spent in groups.items()],
        "total": total.as_dict(),
    }


def _print(
    output: Output, opened: Analysed, by: GroupBy, groups: dict[str, Spent], total: Spent
) -> None:
    if opened.chain.unreadable:
        output.line(f"{counted(opened.chain.unreadable, 'row')} could not be read")
    rows = [(escape(name), spent) for name, spent in groups.items()] + [("total", total)]
    width = max(len(by), *(len(name) for name, _ in rows))
    heading = f"{by:<{width}}  {'calls':>8}  {'input':>12}  {'output':>12}  cost"
    output.line(output.styled(heading, "heading"))
    for name, spent in rows:
        output.line(
            f"{name:<{width}}  {spent.calls:>8}  {spent.input_tokens:>12}  "
            f"{spent.output_tokens:>12}  {spent.cost}"
        )
    for reason, count in total.cost.reasons.most_common():
        output.line(f"unpriced: {counted(count, 'call')}: {escape(reason)}")
