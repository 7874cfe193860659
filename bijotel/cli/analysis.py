"""What commands share that compute something out of a chain: verified first, or said not to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import click

from bijotel.cli.options import ring_or_none
from bijotel.cli.session import Session
from bijotel.cli.text import escape
from bijotel.cost import Prices, read_price_file
from bijotel.entries import Chain, only_chain
from bijotel.stores.open import open_store
from bijotel.verified import VerifiedChain, verify_to_read

Command = TypeVar("Command", bound=Callable[..., Any])

unverified_option = click.option(
    "--unverified",
    is_flag=True,
    help="Go on where the chain does not verify, or without a key; the first line says so.",
)
prices_option = click.option(
    "--prices",
    "price_file",
    metavar="FILE",
    help='Own prices, TOML: [models."NAME"], input and output in dollars for a million tokens.',
)


class Analysed(NamedTuple):
    """A chain that is open for an analysis."""

    place: Chain
    chain: VerifiedChain

    def as_dict(self) -> dict[str, Any]:
        """Give the members that every document of an analysis has, once all was read."""
        return {
            "chain": self.place.chain_id.hex(),
            "verified": not self.chain.caveat,
            "caveat": self.chain.caveat or None,
            "unreadable": self.chain.unreadable,
        }


@contextmanager
def analysed(
    session: Session, location: str, chain: str | None, keys: tuple[str, ...], *, unverified: bool
) -> Iterator[Analysed]:
    """Open the chain that is meant, verify it, and say first when it does not verify."""
    ring = ring_or_none(keys)
    with open_store(location).snapshot() as snapshot:
        place = only_chain(snapshot, chain)
        verified = verify_to_read(
            snapshot, place.chain_id, ring, location=location, unverified=unverified
        )
        if verified.caveat and not session.json:
            word = session.output.styled("NOT VERIFIED", "doubtful")
            session.output.line(f"{word}: {escape(verified.caveat)}")
        yield Analysed(place, verified)


def prices(price_file: str | None) -> Prices:
    """Make the price list: the user's own prices before those that are installed."""
    return Prices(read_price_file(price_file) if price_file else None)


def counted(number: int, what: str) -> str:
    """Say how many there are."""
    return f"{number} {what}{'' if number == 1 else 's'}"
