"""What calls cost: :class:`Prices` gives each an exact amount, or says why there is none.

Prices come from the user's own file first (``own``), then from the ``genai-prices`` package
(``listed``; the extra ``cost``), as they were when the call began. An unknown price is never
zero: the call is unpriced and a total over it a lower bound. Which of several spans of one call
counts is the business of :mod:`bijotel.dialects.leafmost`.

Rules kept: decimal numbers only, never rounded; cached tokens are priced once, as the part of
the input that they are; nothing is looked up over the network.
"""

from bijotel.cost.model import Cost, CostTotal, Rates, money
from bijotel.cost.own import read_price_file
from bijotel.cost.prices import Prices
from bijotel.cost.spending import Spending, Spent

__all__ = [
    "Cost",
    "CostTotal",
    "Prices",
    "Rates",
    "Spending",
    "Spent",
    "money",
    "read_price_file",
]
