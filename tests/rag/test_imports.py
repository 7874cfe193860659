"""What importing the room loads, and how long it takes."""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import json, sys, time
from opentelemetry import context, trace
before = set(sys.modules)
api = time.process_time()
from bijotel.rag import RAGSource, sources_from, rag_context
took = time.process_time() - api
loaded = {name.split(".")[0] for name in set(sys.modules) - before}
rag_context([RAGSource("a", 0)])
sdk = [name for name in sys.modules if name.startswith("opentelemetry.sdk")]
print(json.dumps({"took": took, "loaded": sorted(loaded), "sdk": sdk}))
"""


def test_the_room_loads_the_api_only():
    """No SDK, no cryptography, no numpy, no click, no wrapt; 100 ms of work beyond the API at most."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE], capture_output=True, text=True, check=True
    )
    found = json.loads(run.stdout)
    assert found["sdk"] == []
    heavy = {"cryptography", "numpy", "click", "rich", "orjson", "wrapt", "asyncio", "sqlite3"}
    assert heavy.isdisjoint(found["loaded"])
    assert found["took"] < 0.1
