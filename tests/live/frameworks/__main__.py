"""Run one framework's pipeline under one published instrumentation and seal what it emits.

``python tests/live/frameworks NAME STORE``: every span of the process goes into chain ``default``.
"""

from __future__ import annotations

import importlib
import os
import sys

import instrumentations
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import bijotel


def main(name: str, store: str) -> None:
    instrumentation = instrumentations.ALL[name]
    os.environ.update(instrumentation.environment)
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    processor = bijotel.install(provider, store=store, select=lambda _: True)
    instrumentation.switch_on()
    answer = importlib.import_module(instrumentation.pipeline).run()
    assert answer == "Nine years.", answer
    provider.shutdown()
    print(processor.stats())


if __name__ == "__main__":
    main(*sys.argv[1:])
