"""The processor's counts as OpenTelemetry metrics, while it happens."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from bijotel.metrics import _COUNTERS, _LEVELS
from tests.conftest import ROOT

PROGRAM = """
import json, sqlite3, sys, time
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from bijotel import install
reader = InMemoryMetricReader()
db, early = sys.argv[1], sys.argv[2] == "early"
if early:
    metrics.set_meter_provider(MeterProvider([reader]))
provider = TracerProvider()
processor = install(provider, store=db, key=bytes(range(32)), chain="audit", max_queue_size=40)
if not early:
    metrics.set_meter_provider(MeterProvider([reader]))
def chat(count):
    for number in range(count):
        provider.get_tracer("t").start_span("chat", attributes={"gen_ai.operation.name": "chat"}).end()
def collect():
    found = {}
    for resource in reader.get_metrics_data().resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                (point,) = metric.data.data_points
                value = getattr(point, "value", None)
                assert dict(point.attributes) == {"bijotel.chain": "audit"}
                found[metric.name] = [metric.unit, point.count if value is None else value]
    return found
chat(3)
assert processor.force_flush()
seen = [collect()]
blocker = sqlite3.connect(db, isolation_level=None)
blocker.execute("BEGIN IMMEDIATE")
chat(10)
while not processor.stats().queued == 10: time.sleep(0.01)
seen.append(collect())
while processor.stats().spooled == 0:
    chat(5); time.sleep(0.01)
seen.append(collect())
blocker.close()
assert processor.force_flush()
seen.append(collect())
seen.append(processor.stats()._asdict())
print(json.dumps(seen))
"""


def run(db: Path, when: str) -> list[dict[str, list[float]]]:
    command = [sys.executable, "-c", PROGRAM, str(db), when]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def test_the_numbers_while_it_happens(tmp_path: Path):
    """Sealed, queued, spooled and dropped spans, and how long commits take, each for its chain."""
    sealed, queued, spooled, after, stats = run(tmp_path / "chain.db", "early")
    assert sealed["bijotel.spans.taken"] == ["{span}", 3]
    assert sealed["bijotel.spans.sealed"] == ["{span}", 3]
    assert sealed["bijotel.queue.depth"] == ["{span}", 0]
    assert sealed["bijotel.commit.duration"][0] == "s"
    assert sealed["bijotel.commit.duration"][1] >= 1
    assert queued["bijotel.queue.depth"] == ["{span}", 10]
    assert spooled["bijotel.spans.spooled"][1] > 0
    assert after["bijotel.spans.spooled"] == ["{span}", 0]
    for name in ("taken", "sealed", "dropped", "recovered"):
        assert after[f"bijotel.spans.{name}"] == ["{span}", stats[name]]
    assert stats["taken"] == stats["sealed"] + stats["dropped"]


def test_a_meter_provider_that_is_set_later_is_found(tmp_path: Path):
    """The order in which an application sets its providers does not matter."""
    first, *_ = run(tmp_path / "chain.db", "late")
    assert first["bijotel.spans.sealed"] == ["{span}", 3]


def test_the_page_lists_every_metric():
    """The reference names what is measured, and nothing else."""
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    listed = set(re.findall(r"^\| `(bijotel\.[a-z.]+)`", page, re.MULTILINE))
    assert listed == {name for name, *_ in (*_COUNTERS, *_LEVELS)} | {"bijotel.commit.duration"}
