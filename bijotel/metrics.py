"""What an operator watches: the processor's counts as OpenTelemetry metrics.

The numbers are read when a metric reader collects them; only the commit's duration is recorded
where it happens. Without a meter provider all of it costs nothing.

Source: docs/reference/metrics.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Final

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Observation

from bijotel._version import __version__
from bijotel.stats import Stats

ReadStats = Callable[[], Stats]

_COUNTERS: Final = (
    ("bijotel.spans.taken", "taken", "Spans that were to be sealed"),
    ("bijotel.spans.sealed", "sealed", "Spans that are committed"),
    ("bijotel.spans.dropped", "dropped", "Spans that were lost; gap entries say so"),
    ("bijotel.spans.recovered", "recovered", "Spans that earlier processes had spooled"),
)
_LEVELS: Final = (
    ("bijotel.spans.spooled", "spooled", "Spans that wait on the disk"),
    ("bijotel.queue.depth", "queued", "Spans that wait in memory"),
)


def observe(stats: weakref.WeakMethod[ReadStats], chain: str) -> Callable[[float], None]:
    """Make the instruments of one processor, without keeping it alive.

    Args:
        stats: Reads the counts.
        chain: The chain's name, an attribute of every number.

    Returns:
        To be called with the seconds that each commit took.
    """
    meter = metrics.get_meter("bijotel", __version__)
    attributes = {"bijotel.chain": chain}

    def reader(field: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(_: CallbackOptions) -> Iterable[Observation]:
            if (read_stats := stats()) is not None:
                yield Observation(getattr(read_stats(), field), attributes)

        return read

    for name, field, description in _COUNTERS:
        meter.create_observable_counter(name, [reader(field)], "{span}", description)
    for name, field, description in _LEVELS:
        meter.create_observable_up_down_counter(name, [reader(field)], "{span}", description)
    duration = meter.create_histogram("bijotel.commit.duration", "s", "How long a commit took")
    return lambda seconds: duration.record(seconds, attributes)
