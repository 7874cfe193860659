"""What importing costs, beyond bare Python."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.table import Row, print_rows


def _milliseconds(statement: str) -> float:
    times = []
    for _ in range(11):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def rows() -> list[Row]:
    """Measure."""
    bare = _milliseconds("pass")
    package = _milliseconds("import bijotel")
    api = _milliseconds("import opentelemetry.trace, opentelemetry.context")
    source = _milliseconds("from bijotel import RAGSource")
    sdk = _milliseconds("import opentelemetry.sdk.trace")
    processor = _milliseconds("import bijotel.processor")
    return [
        Row(
            "import bijotel",
            f"{package:.0f} ms",
            f"{bare:.0f} ms (bare Python)",
            f"+{package - bare:.1f} ms",
            "<= +15 ms",
            package - bare <= 15,
        ),
        Row(
            "from bijotel import RAGSource",
            f"{source:.0f} ms",
            f"{api:.0f} ms (the API)",
            f"+{source - api:.1f} ms",
            "shown",
            True,
        ),
        Row(
            "import bijotel.processor",
            f"{processor:.0f} ms",
            f"{sdk:.0f} ms (the SDK)",
            f"+{processor - sdk:.1f} ms",
            "shown",
            True,
        ),
    ]


if __name__ == "__main__":
    print_rows(rows())
