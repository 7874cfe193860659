"""The real ``opentelemetry-instrument`` on a small application: nothing in it knows of us."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from bijotel import verify_chain
from tests.processor.conftest import KEY, entries, spans

pytestmark = pytest.mark.slow

APP = """
from opentelemetry import trace
tracer = trace.get_tracer("app")
for number in range(3):
    with tracer.start_as_current_span(f"chat {number}", attributes={"gen_ai.operation.name": "chat",
                                                                    "gen_ai.prompt": "secret"}):
        pass
with tracer.start_as_current_span("GET /"):
    pass
print("the application is done")
"""
CONFIGURATION = """
file_format: "1.0"
tracer_provider:
  processors: [{simple: {exporter: {console: {}}}}]
instrumentation/development:
  python:
    bijotel:
      db: "${HERE}/chain.db"
      chain: audit
      key_file: "${HERE}/key"
      content: digest
      durability: commit
      commit_timeout_millis: 2000
      max_queue_size: 100
      spool: "${HERE}/elsewhere"
"""
# What else is installed beside the tests is none of this application's business.
OTHERS = sorted(
    point.name
    for point in entry_points(group="opentelemetry_instrumentor")
    if point.name != "bijotel"
)
CHATS = ["chat 0", "chat 1", "chat 2"]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "chain.db"


def instrument(
    db: Path, *, disabled: tuple[str, ...] = (), quiet: bool = True, **environment: str
) -> str:
    """Run the application under ``opentelemetry-instrument``; give its standard error.

    Where the SDK itself prints a traceback for what is configured wrongly, it is not quiet.
    """
    folder = db.parent
    (folder / "app.py").write_text(APP)
    key = folder / "key"
    key.write_text(f"{KEY.hex()}\n")
    key.chmod(0o600)
    done = subprocess.run(
        [str(Path(sys.executable).with_name("opentelemetry-instrument")), sys.executable, "app.py"],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HERE": str(folder),
            "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": ",".join((*OTHERS, *disabled)),
            "OTEL_TRACES_EXPORTER": "none",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "the application is done" in done.stdout
    assert quiet is ("Traceback" not in done.stderr)
    return done.stderr


def store(db: Path) -> dict[str, str]:
    return {"BIJOTEL_DB": str(db), "BIJOTEL_HMAC_SECRET_FILE": str(db.with_name("key"))}


@pytest.mark.parametrize("missing", ["BIJOTEL_DB", "BIJOTEL_HMAC_SECRET_FILE", "both"])
def test_it_is_inert_until_it_is_configured(db: Path, missing: str):
    """An installation alone makes no file and says nothing."""
    given = {name: value for name, value in store(db).items() if missing not in {name, "both"}}
    assert "bijotel" not in instrument(db, **given)
    assert sorted(path.name for path in db.parent.iterdir()) == ["app.py", "key"]


def test_a_store_and_a_key_are_enough(db: Path):
    """Two environment variables seal every generative AI span of the application."""
    instrument(db, **store(db))
    assert [span.name for span in spans(db)] == CHATS
    assert entries(db)[0].kind == "genesis"


def test_variables_name_the_chain_and_the_key(db: Path):
    """The secret may stand in the environment, and the chain may have a name."""
    variables = {"BIJOTEL_DB": str(db), "BIJOTEL_HMAC_SECRET": KEY.hex(), "BIJOTEL_CHAIN": "audit"}
    instrument(db, **variables)
    assert [chain.name for chain in verify_chain(db, KEY).chains] == ["audit"]


def test_it_is_switched_off_as_any_instrumentation(db: Path):
    """``OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=bijotel``."""
    instrument(db, disabled=("bijotel",), **store(db))
    assert not db.exists()


def test_a_wrong_key_stops_no_application(db: Path):
    """It starts without us, and one line says why nothing is sealed."""
    error = instrument(db, BIJOTEL_DB=str(db), BIJOTEL_HMAC_SECRET="too short")
    assert "bijotel: nothing is sealed: HMAC key in environment variable" in error
    assert not db.exists()


def test_options_in_the_declarative_configuration(db: Path):
    """``instrumentation/development.python.bijotel`` says it all; no variable of ours is set."""
    configuration = db.with_name("otel.yaml")
    configuration.write_text(textwrap.dedent(CONFIGURATION))
    instrument(db, OTEL_CONFIG_FILE=str(configuration))
    assert [span.name for span in spans(db)] == CHATS
    assert [chain.name for chain in verify_chain(db, KEY).chains] == ["audit"]
    octets = b"".join(path.read_bytes() for path in db.parent.glob("chain.db*") if path.is_file())
    assert b"secret" not in octets
    assert db.with_name("elsewhere").is_dir()


def test_an_option_that_does_not_exist_is_said(db: Path):
    """A mistyped name is refused by the loader of the file, and the application runs."""
    configuration = db.with_name("otel.yaml")
    configuration.write_text(textwrap.dedent(CONFIGURATION) + "      contents: digest\n")
    error = instrument(db, quiet=False, OTEL_CONFIG_FILE=str(configuration))
    assert "contents" in error
    assert not db.exists()


def test_the_exporter_is_the_weaker_way(db: Path):
    """``OTEL_TRACES_EXPORTER=...,bijotel``: what the batch processor hands over is sealed."""
    exporters = {"OTEL_TRACES_EXPORTER": "console,bijotel"}
    instrument(db, disabled=("bijotel",), **store(db), **exporters)
    assert [span.name for span in spans(db)] == CHATS
    assert list(db.with_name("chain.db-spool").iterdir()) == []


def test_the_exporter_without_a_store_stops_no_application(db: Path):
    """Asked for by name and not configured: the SDK says so, and the application runs."""
    error = instrument(db, quiet=False, OTEL_TRACES_EXPORTER="bijotel")
    assert "no store: set BIJOTEL_DB to a path or a URL" in error


def test_what_the_package_registers():
    """An instrumentor and an exporter; no distro and no configurator, which would compete."""
    ours = {
        group: [point.name for point in entry_points(group=group) if "bijotel" in point.value]
        for group in (
            "opentelemetry_instrumentor",
            "opentelemetry_traces_exporter",
            "opentelemetry_environment_variables",
            "opentelemetry_distro",
            "opentelemetry_configurator",
        )
    }
    assert ours == {
        "opentelemetry_instrumentor": ["bijotel"],
        "opentelemetry_traces_exporter": ["bijotel"],
        "opentelemetry_environment_variables": ["bijotel"],
        "opentelemetry_distro": [],
        "opentelemetry_configurator": [],
    }
