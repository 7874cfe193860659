"""Real servers that fork: gunicorn with a preloaded application, Celery with recycled children."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bijotel import verify_chain
from tests.processor.conftest import KEY, entries, spans

pytestmark = [pytest.mark.fork, pytest.mark.slow]

WEB = """
import os
from opentelemetry.sdk.trace import TracerProvider
from bijotel import install
provider = TracerProvider()
processor = install(provider, store=os.environ["HERE"] + "/chain.db", key=bytes(range(32)))
def chat(name):
    provider.get_tracer("t").start_span(name, attributes={"gen_ai.operation.name": "chat"}).end()
chat("loading")
assert processor.force_flush()
def app(environ, start_response):
    chat(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
"""
TASKS = """
import os
from celery import Celery
from opentelemetry.sdk.trace import TracerProvider
from bijotel import install
here = os.environ["HERE"]
folder = {"data_folder_in": here + "/queue", "data_folder_out": here + "/queue"}
app = Celery("tasks", broker="filesystem://")
app.conf.update(
    broker_transport_options={**folder, "control_folder": here + "/control"},
    task_ignore_result=True,
)
provider = TracerProvider()
install(provider, store=here + "/chain.db", key=bytes(range(32)))
@app.task
def work(number):
    tracer = provider.get_tracer("t")
    tracer.start_span(f"task {number}", attributes={"gen_ai.operation.name": "chat"}).end()
"""
SEND = "import tasks\nfor number in range(10): tasks.work.delay(number)"


@pytest.fixture
def start(tmp_path: Path):
    """Start a module of the temporary folder; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*arguments: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=tmp_path,
            env={**os.environ, "HERE": str(tmp_path), "HOME": str(tmp_path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.append(child)
        return child

    yield run
    for child in started:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def wait_until(done: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def get(port: int, path: str) -> bytes | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.read()
    except OSError:
        return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_gunicorn_with_a_preloaded_application(tmp_path: Path, start):
    """Two workers, a reload under way, a stop: every request's span once, and no gap."""
    (tmp_path / "web.py").write_text(textwrap.dedent(WEB))
    port = free_port()
    options = ("--preload", "--workers=2", f"--bind=127.0.0.1:{port}")
    server = start("gunicorn", "web:app", *options)
    wait_until(lambda: get(port, "/up") is not None, "gunicorn does not answer")
    asked, workers = ["/up"], set()
    for number in range(60):
        answer = get(port, f"/{number}")
        if answer is not None:
            asked.append(f"/{number}")
            workers.add(answer)
        if number == 30:  # new workers, from a master that has sealed before
            server.send_signal(signal.SIGHUP)
            time.sleep(0.3)
    server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=30) == 0
    sealed = Counter(span.name for span in spans(tmp_path / "chain.db"))
    assert len(workers) > 2
    assert len(asked) > 50
    # The application is loaded a second time by the reload, where it is not preloaded any more.
    assert sealed.pop("loading") >= 1
    assert max(sealed.values()) == 1
    assert set(asked) <= set(sealed)
    assert "gap" not in {entry.kind for entry in entries(tmp_path / "chain.db")}


def test_celery_children_that_are_recycled(tmp_path: Path, start):
    """Ten tasks, each in a child that is then retired with its spans still queued: ten spans."""
    (tmp_path / "tasks.py").write_text(textwrap.dedent(TASKS))
    for folder in ("queue", "control"):
        (tmp_path / folder).mkdir()
    subprocess.run(
        [sys.executable, "-c", SEND],
        cwd=tmp_path,
        env={**os.environ, "HERE": str(tmp_path)},
        check=True,
        capture_output=True,
    )
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=error")
    pool = ("--pool=prefork", "--concurrency=2", "--max-tasks-per-child=1")
    worker = start("celery", "-A", "tasks", "worker", *pool, *quiet)
    wait_until(lambda: not list((tmp_path / "queue").iterdir()), "tasks are left")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=60) == 0
    names = sorted(span.name for span in spans(tmp_path / "chain.db"))
    assert names == sorted(f"task {number}" for number in range(10))
    report = verify_chain(tmp_path / "chain.db", KEY, deep=True)
    assert report.chains[0].kinds == {"genesis": 1, "span": 10}
    assert list((tmp_path / "chain.db-spool").iterdir()) == []
