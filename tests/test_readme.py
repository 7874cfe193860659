"""What the README shows runs as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.pages import BEGIN, END, HEADLINES, PAGE
from bijotel import verify_chain
from bijotel.dialects.registry import dialects
from bijotel.legacy.check import UNCOVERED
from bijotel.stores.sqlite import SqliteStore
from tests.spans.test_encode import REJECTED_BEFORE

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
KEY = bytes(range(32))

BEFORE = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

trace.set_tracer_provider(TracerProvider())


class model:
    @staticmethod
    def chat(question):
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": question}
        with trace.get_tracer("app").start_as_current_span("chat m", attributes=attributes):
            return "nine years"
"""


def test_the_first_lines_seal_a_span(tmp_path: Path):
    """The five lines, put into an application, leave a chain that names the passage."""
    lines = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert lines is not None
    code = lines[1]
    assert len([line for line in code.splitlines() if line.strip()]) <= 6
    program = f"{BEFORE}\n{code}\nassert answer('how long?') == 'nine years'\n"
    environment = {**os.environ, "BIJOTEL_HMAC_SECRET": KEY.hex()}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)
    assert verify_chain(tmp_path / "chain.db", KEY, deep=True).ok
    with SqliteStore(tmp_path / "chain.db").snapshot() as snapshot:
        bodies = [row.columns[-1] for row in snapshot.scan(0, 100)]
    call = next(body for body in bodies if b'"name":"chat m"' in body)
    assert b"warranty.pdf" in call


def test_the_readme_says_whose_name_it_is():
    """Nobody installs the other project by mistake."""
    assert "The name `bijotel` on PyPI belongs to an earlier, independent project" in README


def test_its_links_lead_somewhere():
    """Each path is one of the repository."""
    paths = re.findall(r"\]\((?!https?://)([^)#]+)\)", README)
    assert len(paths) >= 20
    for path in paths:
        assert (ROOT / path).exists(), path


def test_what_it_says_of_a_literal_test(data: Path):
    """``passage in prompt`` decides this many cases as they are meant."""
    cases = json.loads((data / "context-matching.json").read_text(encoding="utf-8"))
    right = 0
    for case in cases:
        prompt = case["prompt"]
        text = prompt if isinstance(prompt, str) else json.dumps(prompt or "")
        right += all(
            expected["status"] == ("included" if passage and passage in text else "absent")
            for passage, expected in zip(case["passages"], case["expect"], strict=True)
        )
    assert f"a literal test is right in [{right} of our {len(cases)} cases]" in README
    assert f"right in [all {len(cases)}](tests/context_matching)" in README


def test_what_it_says_of_the_earlier_project():
    """As many columns are open, and as many kinds of values cost a span, as the tests have."""
    assert len(UNCOVERED) == 7
    assert "[not in seven columns](tests/evidence/test_legacy.py)" in README
    assert len(REJECTED_BEFORE) == 9
    assert "[nine kinds](tests/spans/test_encode.py)" in README


def test_how_many_dialects_it_says():
    """A new one is counted."""
    assert f"[read from {len(dialects())} dialects](tests/dialects)" in README


def test_its_figures_are_there():
    """``make bench BENCH_ARGS=--write`` put each of them beside its floor."""

    def figures(text: str) -> list[str]:
        table = text.partition(BEGIN)[2].partition(END)[0].split("| --- | --- |")[-1]
        return [line.split(" | ")[0].removeprefix("| ") for line in table.strip().splitlines()[1:]]

    assert figures(README) == list(HEADLINES)
    assert set(HEADLINES) < set(figures(PAGE.read_text(encoding="utf-8")))
