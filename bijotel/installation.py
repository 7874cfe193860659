"""Add the processor to a tracer provider, once. The edge for applications that have one."""

from __future__ import annotations

import logging
from typing import Any, Final

from opentelemetry import trace

from bijotel.errors import ConfigurationError
from bijotel.processor import HmacChainSpanProcessor
from bijotel.stores.open import StoreLocation, open_store

_log = logging.getLogger("bijotel")

# Kept on the provider itself, so that it lives and dies with it and survives a reload of ours.
_INSTALLED: Final = "_bijotel_processors"


def install(
    provider: Any = None, *, store: StoreLocation, chain: str = "default", **options: Any
) -> HmacChainSpanProcessor:
    """Add a :class:`HmacChainSpanProcessor` to a provider, last in line.

    Called again with the same provider, store and chain it changes nothing and returns the
    processor that is there. When the provider's sampler does not record every span, a warning
    says so once: what is never recorded cannot be sealed.

    Args:
        provider: An SDK tracer provider; None for the global one.
        store: A path, a URL or a store.
        chain: The chain's name.
        **options: As for :class:`HmacChainSpanProcessor`.

    Raises:
        ConfigurationError: no SDK provider is set, or an option is wrong.
    """
    provider = trace.get_tracer_provider() if provider is None else provider
    if not hasattr(provider, "add_span_processor"):
        raise ConfigurationError(
            f"no tracer provider of the SDK is set: {type(provider).__name__} takes no span "
            "processors; call opentelemetry.trace.set_tracer_provider(TracerProvider()) first"
        )
    opened = open_store(store)
    installed = provider.__dict__.setdefault(_INSTALLED, {})
    key = (opened.location, chain)
    if key not in installed:
        processor = HmacChainSpanProcessor(opened, chain=chain, **options)
        installed[key] = processor
        provider.add_span_processor(processor)
        _warn_of_sampling(provider)
    found: HmacChainSpanProcessor = installed[key]
    return found


def _warn_of_sampling(provider: Any) -> None:
    sampler = getattr(provider, "sampler", None)
    description = sampler.get_description() if sampler is not None else ""
    root = description.removeprefix("ParentBased{root:")
    if description and not root.startswith("AlwaysOnSampler"):
        _log.warning(
            "bijotel: the sampler %s does not record every span; "
            "a span that is not recorded cannot be sealed",
            description,
        )
