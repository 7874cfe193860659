"""What the figures of sealing share: spans handed to a processor, and how long that takes."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan

from benchmarks.spans import realistic_spans
from benchmarks.table import Row, percentile
from bijotel import HmacChainSpanProcessor
from bijotel.model import Draft, Dropped
from bijotel.spans.encode import encode_record
from bijotel.spans.read import read_span

KEY = bytes(range(32))


def drafts(count: int) -> list[Draft]:
    """What realistic spans are once they are encoded."""
    return [
        encode_record(read_span(span, span.attributes, Dropped()))
        for span in realistic_spans(count)
    ]


def on_end_times(
    processor: HmacChainSpanProcessor, spans: list[ReadableSpan], pause: float = 0
) -> list[float]:
    """Microseconds of each call, after so many seconds of rest before it."""
    times = []
    for span in spans:
        if pause:
            time.sleep(pause)
        started = time.perf_counter_ns()
        processor.on_end(span)
        times.append((time.perf_counter_ns() - started) / 1000)
    return times


def latency_row(name: str, times: list[float], median_target: float, p99_target: float) -> Row:
    """The row of such times; targets in microseconds."""
    median, p99 = statistics.median(times), percentile(times, 0.99)
    return Row(
        name,
        f"{median:.1f} us, p99 {p99:.1f}",
        "",
        "",
        f"<= {median_target:g} us, p99 <= {p99_target:g}",
        median <= median_target and p99 <= p99_target,
    )


def sealing_seconds(store: str | Path, spans: list[ReadableSpan], **options: object) -> float:
    """Seconds from the first span's end until all of them are sealed."""
    processor = HmacChainSpanProcessor(store, key=KEY, max_queue_size=len(spans), **options)
    started = time.perf_counter()
    for span in spans:
        processor.on_end(span)
    assert processor.force_flush(300_000)
    seconds = time.perf_counter() - started
    assert processor.stats().sealed == len(spans)
    processor.shutdown()
    return seconds
