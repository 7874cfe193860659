"""Prices of the ``genai-prices`` package: finding a model, and pricing tokens with it.

The package is loaded at the first question and needs the extra ``cost``. It knows aliases, dated
names, tiers and the times at which prices changed; what it does not know is how the
instrumentations call the providers.

Source: https://github.com/pydantic/genai-prices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, localcontext
from importlib import import_module
from typing import Any, Final, Literal

from bijotel.cost.model import EXACT, MILLION, Cost, Rates
from bijotel.dialects.model import Usage

NOT_INSTALLED: Final = (
    "the extra 'cost' is not installed; pip install '.[cost]' in the folder of the repository"
)

_PROVIDERS: Final = {
    "aws.bedrock": "aws",
    "aws_bedrock": "aws",
    "az.ai.inference": "azure",
    "az.ai.openai": "azure",
    "azure.ai.inference": "azure",
    "azure.ai.openai": "azure",
    "azure_ai": "azure",
    "azure_openai": "azure",
    "fireworks_ai": "fireworks",
    "gcp.gemini": "google",
    "gcp.gen_ai": "google",
    "gcp.vertex_ai": "google",
    "google_genai": "google",
    "mistral_ai": "mistral",
    "mistralai": "mistral",
    "moonshot_ai": "moonshotai",
    "together_ai": "together",
    "x_ai": "x-ai",
    "xai": "x-ai",
}
"""What instrumentations call a provider -> what the package does."""


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A model of the price list."""

    model: Any
    provider: Any
    periods: dict[int, Rates | Literal["by-volume", "none"]] = field(default_factory=dict)
    """What a million tokens cost in each period of prices, by the period's identity."""

    def cost(self, usage: Usage, begun: datetime) -> Cost:
        """Price tokens as of a moment; cached tokens are part of the input."""
        period = self.model.get_prices(begun)
        rates = self.periods.get(id(period))
        if rates is None:
            rates = self.periods[id(period)] = self._rates(period, begun)
        if rates == "none":
            return Cost(None, f"the price list has no price for {self.model.id}")
        return Cost(self._charge(usage, begun) if rates == "by-volume" else rates.cost(usage))

    def _rates(self, period: Any, begun: datetime) -> Rates | Literal["by-volume", "none"]:
        """Ask what a million of each costs, once: to ask anew for each call is slow."""
        prices = [price for price in vars(period).values() if price is not None]
        tiered = import_module("genai_prices.types").TieredPrices
        if any(isinstance(price, tiered) for price in prices):
            return "by-volume"
        if not prices:
            return "none"
        request = self._charge(Usage(0, 0), begun)

        def rate(usage: Usage) -> Decimal:
            return EXACT.subtract(self._charge(usage, begun), request)

        return Rates(
            input=rate(Usage(MILLION, 0)),
            output=rate(Usage(0, MILLION)),
            cache_read=rate(Usage(MILLION, 0, MILLION, 0)),
            cache_write=rate(Usage(MILLION, 0, 0, MILLION)),
            request=request,
        )

    def _charge(self, usage: Usage, begun: datetime) -> Decimal:
        tokens = import_module("genai_prices").Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        with localcontext(EXACT):
            charge: Decimal = self.model.calc_price(
                tokens, self.provider, genai_request_timestamp=begun
            ).total_price
            return charge


def find(model: str, provider: str) -> Listed | str:
    """Find a model in the price list, or say why it is not found.

    Args:
        model: As a span names it.
        provider: The same; empty when it names none. One that the list does not know is as
            good as none, a model that a known provider does not offer is not found.
    """
    try:
        snapshot = import_module("genai_prices.data_snapshot").get_snapshot()
    except ImportError:
        return NOT_INSTALLED
    for name, offered_by in _attempts(snapshot, model, provider):
        try:
            return Listed(*snapshot.find_provider_model(name, None, offered_by, None)[::-1])
        except LookupError:
            continue
    return f"no price is known for {model}" + (f" of {provider}" if provider else "")


def _attempts(snapshot: Any, model: str, provider: str) -> Iterator[tuple[str, str | None]]:
    """Give pairs of a model's and a provider's name under which the price may stand."""
    offered_by = _known(snapshot, provider)
    prefix, _, rest = model.partition("/")
    if offered_by is not None:
        yield model, offered_by
    by_prefix = _known(snapshot, prefix) if rest else None
    if by_prefix is not None:
        yield rest, by_prefix
    yield model.rpartition("/")[2], offered_by


def _known(snapshot: Any, provider: str) -> str | None:
    """Give a provider's name in the list, None when it is not there."""
    name = _PROVIDERS.get(provider.lower(), provider)
    try:
        snapshot.find_provider(None, name or None, None)
    except LookupError:
        return None
    return name
