"""A span exporter for those who configure exporters only. The weaker way.

It sees what the batch processor in front of it hands over: sampled spans alone, late, and not
those that its queue dropped. The processor (:mod:`bijotel.processor`) sees every recorded span at
its end.

Source: docs/how-to/no-code.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from bijotel.environment_variables import BIJOTEL_CHAIN, BIJOTEL_DB
from bijotel.errors import ConfigurationError
from bijotel.keys import KeyRing, KeySource
from bijotel.processor import HmacChainSpanProcessor
from bijotel.stores.open import StoreLocation


class BijotelSpanExporter(SpanExporter):
    """Seals the generative AI spans that are exported.

    Args:
        store: A path, a URL or a store; None for ``BIJOTEL_DB``.
        key: As for the processor.
        chain: The chain's name; None for ``BIJOTEL_CHAIN``, or ``default``.

    Raises:
        ConfigurationError: no store or no usable key is configured.
    """

    def __init__(
        self,
        store: StoreLocation | None = None,
        *,
        key: KeyRing | KeySource | None = None,
        chain: str | None = None,
    ) -> None:
        store = os.environ.get(BIJOTEL_DB) if store is None else store
        if not store:
            raise ConfigurationError(f"no store: set {BIJOTEL_DB} to a path or a URL")
        chain = chain or os.environ.get(BIJOTEL_CHAIN) or "default"
        self._processor = HmacChainSpanProcessor(store, key=key, chain=chain)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Queue the spans; what cannot be sealed now is kept as the processor keeps it."""
        for span in spans:
            self._processor.on_end(span)
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Wait until everything exported is committed."""
        return self._processor.force_flush(timeout_millis)

    def shutdown(self) -> None:
        """Commit what is queued."""
        self._processor.shutdown()
