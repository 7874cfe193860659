"""Sealed RAG provenance for OpenTelemetry.

What did the model know when it said that, and can you prove it? The public names stand here and
nowhere else; each is loaded when it is first used, so that ``import bijotel`` costs next to
nothing and only what needs OpenTelemetry loads it (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from bijotel._version import __version__

if TYPE_CHECKING:
    from bijotel.audit import audit_trace
    from bijotel.context_matching import match_context
    from bijotel.errors import (
        BijotelError,
        CanonicalizationError,
        ConfigurationError,
        UnavailableError,
        VerificationError,
    )
    from bijotel.installation import install
    from bijotel.keys import KeyRing
    from bijotel.processor import HmacChainSpanProcessor
    from bijotel.rag import (
        RAGSource,
        rag_context,
        rag_provenance,
        sources_from,
        with_rag_provenance,
    )
    from bijotel.regression import detect
    from bijotel.verify import verify_chain

_HOMES: Final = {
    "BijotelError": "bijotel.errors",
    "CanonicalizationError": "bijotel.errors",
    "ConfigurationError": "bijotel.errors",
    "HmacChainSpanProcessor": "bijotel.processor",
    "KeyRing": "bijotel.keys",
    "RAGSource": "bijotel.rag",
    "UnavailableError": "bijotel.errors",
    "VerificationError": "bijotel.errors",
    "audit_trace": "bijotel.audit",
    "detect": "bijotel.regression",
    "install": "bijotel.installation",
    "match_context": "bijotel.context_matching",
    "rag_context": "bijotel.rag",
    "rag_provenance": "bijotel.rag",
    "sources_from": "bijotel.rag",
    "verify_chain": "bijotel.verify",
    "with_rag_provenance": "bijotel.rag",
}

__all__ = [
    "BijotelError",
    "CanonicalizationError",
    "ConfigurationError",
    "HmacChainSpanProcessor",
    "KeyRing",
    "RAGSource",
    "UnavailableError",
    "VerificationError",
    "__version__",
    "audit_trace",
    "detect",
    "install",
    "match_context",
    "rag_context",
    "rag_provenance",
    "sources_from",
    "verify_chain",
    "with_rag_provenance",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
