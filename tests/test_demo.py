"""The demo does what it says, in a folder of its own, and fits on a screen and a half."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "demo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, run(folder)


def test_it_succeeds_and_nothing_but_its_story_is_on_the_screen(demo) -> None:
    """Exit code 0, no warning and no log of an SDK, at most 75 lines of 100 columns."""
    _, done = demo
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert 50 <= len(lines) <= 75
    assert max(map(len, lines)) <= 100
    assert [line for line in lines if "log:" in line] == [
        line for line in lines if "began chain 'default'" in line
    ]


def test_both_sdks_answer_from_the_passages_that_were_retrieved(demo) -> None:
    """The question, the nearest passage with its similarity, and the answer, for each SDK."""
    _, done = demo
    assert re.search(
        r"ask_openai: How long is the warranty of the kettle\?\n"
        r"     retrieved  warranty\.md#0 \(0\.\d\d\), .*\n"
        r"     answered   The Ostra kettle has a warranty of 3 years",
        done.stdout,
    )
    assert re.search(
        r"ask_anthropic: How do I descale the kettle\?\n"
        r"     retrieved  manual\.md#1 \(0\.\d\d\), .*\n"
        r"     answered   Descale the kettle once a month",
        done.stdout,
    )


def test_the_model_call_spans_have_their_sources(demo) -> None:
    """In the list, the spans of both instrumentations carry three sources, and tokens."""
    _, done = demo
    for name in ("openai.chat", "messages.create"):
        assert re.search(rf" ALLOWED +3 +\d+ +\d+ +-  demo-model +{re.escape(name)}\n", done.stdout)
    assert "VERIFIED: entry 1 of chain default" in done.stdout
    assert "source 3: doc=4  chunk=1  retriever=qdrant  sim=0.289" in done.stdout


def test_the_changed_byte_is_found_with_its_entry_and_column(demo) -> None:
    """The first verification finds nothing, the second names entry and column."""
    _, done = demo
    before, _, after = done.stdout.partition("5. Change one byte")
    assert "OK: chain default" in before
    assert "no findings, 5 entries read (1 genesis, 4" in before
    assert "FAILED: chain default" in after
    assert "1 finding, 5 entries read" in after
    assert "body-hash-mismatch: entry 1, column body" in after
    assert after.rstrip().endswith(
        "Caught: exit code 1, entry 1, column body; every other entry holds."
    )


def test_the_store_differs_from_what_was_sealed_in_that_one_byte(demo) -> None:
    """What was told is what was done: the prompt says 5 years, the answer still 3."""
    folder, _ = demo
    output = folder / "demo-output"
    assert stat.S_IMODE((output / "hmac.key").stat().st_mode) == 0o600
    with closing(sqlite3.connect(output / "chain.db")) as connection:
        ((body,),) = connection.execute("SELECT body FROM entries WHERE seq = 1").fetchall()
    prompt, answer = body.split(b'"gen_ai.output.messages"')
    assert (prompt.count(b"of 5 years"), prompt.count(b"of 3 years")) == (1, 0)
    assert answer.count(b"of 3 years") == 1


def test_it_runs_again_whatever_the_shell_has_set(demo) -> None:
    """A second run starts afresh; keys, proxies and switches in the environment do not matter."""
    folder, _ = demo
    done = run(
        folder,
        BIJOTEL_HMAC_SECRET="not a key",
        HTTP_PROXY="http://127.0.0.1:9",
        HTTPS_PROXY="http://127.0.0.1:9",
        ALL_PROXY="http://127.0.0.1:9",
        OTEL_SDK_DISABLED="true",
        TRACELOOP_TRACE_CONTENT="false",
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_step_that_fails_fails_the_demo(tmp_path: Path) -> None:
    """A verifier that finds nothing after the tampering is not passed over."""
    program = (
        "import demo.__main__ as story\nstory.change_one_byte = lambda *_: None\nstory.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stderr == "demo: failed: expected exit code 1, got 0\n"
