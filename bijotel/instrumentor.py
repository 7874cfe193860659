"""No code needed: ``opentelemetry-instrument`` adds the processor.

An entry point of the group ``opentelemetry_instrumentor``. It does nothing until a store
(``BIJOTEL_DB``) and a key are configured, by environment variables or in the declarative
configuration file under ``instrumentation/development.python.bijotel``;
``OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=bijotel`` switches it off.

Source: docs/how-to/no-code.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.instrumentation.instrumentor import (  # type: ignore[attr-defined]
    BaseInstrumentor,
)

from bijotel.environment_variables import (
    BIJOTEL_CHAIN,
    BIJOTEL_DB,
    BIJOTEL_HMAC_SECRET,
    BIJOTEL_HMAC_SECRET_FILE,
)
from bijotel.installation import install

_log = logging.getLogger("bijotel")


@dataclass
class Options:
    """What the declarative configuration file may say; the rest is as for the processor."""

    db: str | None = None
    """A path or a URL; else ``BIJOTEL_DB``."""
    chain: str | None = None
    """The chain's name; else ``BIJOTEL_CHAIN``, or ``default``."""
    key_env: str | None = None
    """The environment variable that holds the secret."""
    key_file: str | None = None
    """The file that holds the secret."""
    durability: str | None = None
    content: str | None = None
    commit_timeout_millis: float | None = None
    max_queue_size: int | None = None
    spool: str | None = None
    max_spool_bytes: int | None = None
    signing_key: str | None = None
    checkpoint_every: int | None = None
    checkpoint_out: str | None = None


_OWN: Final = ("db", "chain", "key_env", "key_file")
"""Those that are not handed on to the processor as they are."""


class BijotelInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Adds the processor to the global tracer provider, when it is configured."""

    configuration = Options

    def instrumentation_dependencies(self) -> Collection[str]:
        """Nothing is instrumented, so nothing is required."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:
        options = _options(kwargs)
        store = options.db or os.environ.get(BIJOTEL_DB)
        key = _key_source(options)
        if not store or not key:
            return
        try:
            install(
                kwargs.get("tracer_provider") or trace.get_tracer_provider(),
                store=store,
                chain=options.chain or os.environ.get(BIJOTEL_CHAIN) or "default",
                key=key,
                **_handed_on(options),
            )
        except Exception as error:  # noqa: BLE001 - an application must start without us
            _log.error("bijotel: nothing is sealed: %s", error)

    def _uninstrument(self, **_: Any) -> None:
        """Nothing to undo: a provider does not give its processors back."""


def _options(given: dict[str, Any]) -> Options:
    known = Options.__dataclass_fields__
    return Options(**{name: value for name, value in given.items() if name in known})


def _handed_on(options: Options) -> dict[str, Any]:
    found = asdict(options).items()
    return {name: value for name, value in found if value is not None and name not in _OWN}


def _key_source(options: Options) -> str:
    if options.key_file:
        return f"file:{options.key_file}"
    variable = options.key_env or BIJOTEL_HMAC_SECRET
    if os.environ.get(variable):
        return f"env:{variable}"
    path = os.environ.get(BIJOTEL_HMAC_SECRET_FILE)
    return f"file:{path}" if path else ""
