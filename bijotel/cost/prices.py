"""One price list out of two: the user's own prices come before those of the package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Final

from bijotel.cost.listed import Listed, find
from bijotel.cost.model import Cost, Rates
from bijotel.dialects.model import Usage
from bijotel.dialects.span import Span
from bijotel.dialects.usage import Counted, is_embedding, models_of, provider_of

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Prices:
    """Prices the tokens of spans."""

    def __init__(self, own: Mapping[str, Rates] | None = None) -> None:
        """Take the user's own prices by model, see :func:`bijotel.cost.own.read_price_file`."""
        self._own = own or {}
        self._resolve = lru_cache(maxsize=4096)(self._find)

    def cost(self, span: Span, counted: Counted) -> Cost:
        """Price one call.

        Args:
            span: Names model, provider and the time of the start.
            counted: Its tokens, see :func:`bijotel.dialects.usage.usage_of`.
        """
        usage, faults = counted
        if usage.output_tokens is None and is_embedding(span):
            usage, faults = Usage(usage.input_tokens, 0), ()
        models = models_of(span)
        reason = "; ".join(faults) or _why_not(models, usage)
        if reason:
            return Cost(None, reason)
        found = self._resolve(models, provider_of(span))
        if isinstance(found, Rates):
            return Cost(found.cost(usage))
        if isinstance(found, str):
            return Cost(None, found)
        begun = _moment(span.start_time_unix_nano)
        return found.cost(usage, begun) if begun else Cost(None, "the span has no start time")

    def _find(self, models: tuple[str, ...], provider: str) -> Rates | Listed | str:
        """Find the price of the first of a call's models that has one, or say why there is none."""
        for name in (name for model in models for name in _spellings(model, provider)):
            if name in self._own:
                return self._own[name]
        found = [find(model, provider) for model in models]
        return next((each for each in found if isinstance(each, Listed)), found[0])


def _why_not(models: tuple[str, ...], usage: Usage) -> str:
    """Say why tokens cannot be priced, or give the empty text."""
    if usage.input_tokens is None or usage.output_tokens is None:
        counts = (("input", usage.input_tokens), ("output", usage.output_tokens))
        missing = [what for what, count in counts if count is None]
        return f"the span reports no {' and no '.join(missing)} tokens"
    if not models:
        return "the span names no model"
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    if cached > usage.input_tokens:
        return f"{cached} cached tokens exceed {usage.input_tokens} input tokens"
    return ""


def _spellings(model: str, provider: str) -> Iterator[str]:
    """Give the names under which a user may have listed a model, the most exact one first."""
    name = model.lower()
    yield f"{provider.lower()}/{name}"
    yield name
    yield name.rpartition("/")[2]


def _moment(unix_nano: float | None) -> datetime | None:
    try:
        return None if unix_nano is None else _EPOCH + timedelta(seconds=unix_nano // 10**9)
    except (OverflowError, ValueError):
        return None
