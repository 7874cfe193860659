"""What the demo's assistant knows: passages about a kettle that nobody makes."""

from __future__ import annotations

from typing import NamedTuple


class Passage(NamedTuple):
    """One passage as it is indexed."""

    source: str
    chunk_index: int
    text: str


PASSAGES = (
    Passage(
        "warranty.md",
        0,
        "The Ostra kettle has a warranty of 3 years from the date of purchase. "
        "Keep the receipt: it is the only proof that we accept.",
    ),
    Passage(
        "warranty.md",
        1,
        "The warranty does not cover the lid seal and the limescale filter, which are wear parts.",
    ),
    Passage(
        "manual.md",
        0,
        "Fill the kettle to at least 0.3 litres. If it boils dry, the cut-out switches it off and "
        "it cannot be switched on again for ten minutes.",
    ),
    Passage(
        "manual.md",
        1,
        "Descale the kettle once a month: boil it with 20 grams of citric acid, wait fifteen "
        "minutes, rinse it twice.",
    ),
    Passage(
        "manual.md",
        2,
        "The limescale filter is pulled upwards out of the spout and washed by hand, never in a "
        "dishwasher.",
    ),
    Passage(
        "service.md",
        0,
        "Spare parts are delivered for eight years after a kettle was last made. "
        "The service desk answers on weekdays between 9 and 17.",
    ),
)
