"""Run every call under one instrumentation and seal what it emits.

``python tests/live/app NAME STORE``: chain ``all`` has every span of the process, chain
``default`` those that the processor selects by itself.
"""

from __future__ import annotations

import gc
import sys

import calls
import instrumentations
import routes
import sdks
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import bijotel
from demo.server import ModelServer


def main(name: str, store: str) -> None:
    instrumentation = instrumentations.ALL[name]
    instrumentation.prepare()
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    everything = bijotel.install(provider, store=store, chain="all", select=lambda _: True)
    selected = bijotel.install(provider, store=store)
    instrumentation.switch_on()
    with ModelServer(routes.ALL) as server:
        sdk = getattr(sdks, instrumentation.sdk)(server.url)
        calls.run_all(sdk)
        sdk.close()
    gc.collect()
    provider.shutdown()
    for processor in (everything, selected):
        print(processor.stats())


if __name__ == "__main__":
    main(*sys.argv[1:])
