"""The arrows between the rooms point down, and every room keeps its duty."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import bijotel

PACKAGE = Path(bijotel.__file__).parent

# From the bottom up. A module may import from layers below its own, and from its own room.
LAYERS = (
    {
        "_version",
        "beginnings",
        "environment_variables",
        "errors",
        "exits",
        "quoting",
        "semconv",
        "stats",
        "usable_cpus",
    },
    {"key_files"},
    {"model", "canonical", "keys", "merkle", "verifier_key"},
    {
        "context_matching",
        "findings",
        "metrics",
        "merkle_proof",
        "note",
        "regression",
        "seal",
        "signing",
    },
    {
        "checkpoint",
        "evidence_files",
        "gaps",
        "output_files",
        "rag",
        "range_proof",
        "rotation",
        "spans",
    },
    {"count_page", "growing", "privacy", "spool_format", "stores", "traces"},
    {"dialects", "spool", "verify", "waiting"},
    {
        "audit",
        "cost",
        "digest_match",
        "dimensions",
        "entry_line",
        "fleet",
        "in_context",
        "legacy",
        "provenance",
        "search",
    },
    {"dedup", "entries", "export_header", "export_lines", "outbox", "proof", "sealer", "verified"},
    {"checkpoint_file", "consistency", "export", "export_check", "importing", "ledger", "report"},
    {"offline"},
    {"checkpointing", "forks", "propagation"},
    {"writer"},
    {"processor"},
    {"exporter", "installation"},
    {"instrumentor"},
    {"cli"},
    {"__main__"},
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}

PURE = ("canonical", "seal", "merkle", "context_matching", "findings", "model", "quoting")
IMPURE = {
    "asyncio", "datetime", "io", "multiprocessing", "os", "pathlib", "random", "secrets", "shutil",
    "socket", "sqlite3", "subprocess", "sys", "tempfile", "threading", "time", "opentelemetry",
}  # fmt: skip

# What a verifier needs; it must run where neither OpenTelemetry nor a database driver is.
VERIFYING = (
    "canonical", "checkpoint", "consistency", "export", "export_check", "keys", "legacy.carry",
    "legacy.export", "merkle", "note", "proof", "range_proof", "seal", "signing", "stores.open",
    "stores.sqlite", "stores.sqlite_tiles", "verifier_key", "verify", "verify.against",
)  # fmt: skip


def modules() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name below the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__") or "__init__"
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


MODULES = modules()


def imports(tree: ast.Module) -> Iterator[str]:
    """Dotted names of everything a module imports, wherever the statement stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(module: str) -> str:
    return module.partition(".")[0]


@pytest.mark.parametrize("module", [name for name in MODULES if name != "__init__"])
def test_arrows_point_down(module: str):
    """A module imports from lower rooms and its own, never from the package root."""
    assert room(module) in LEVEL, f"give the room {room(module)} its layer"
    level = LEVEL[room(module)]
    for name in imports(MODULES[module]):
        package, _, below = name.partition(".")
        target = room(below)
        if package == "bijotel" and below and target != room(module):
            assert LEVEL[target] < level, f"{module} (level {level}) imports {name}"


def test_no_module_imports_the_package_root():
    """``from bijotel import ...`` makes a knot of everything; only submodules are imported."""
    for module, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "bijotel":
                submodules = {alias.name for alias in node.names}
                assert submodules <= {room(name) for name in MODULES}, module
            if isinstance(node, ast.Import):
                assert "bijotel" not in {alias.name for alias in node.names}, module


@pytest.mark.parametrize("module", MODULES)
def test_pure_rooms_do_no_io_and_read_no_clock(module: str):
    """What decides about bytes gets time and randomness as arguments."""
    if room(module) in PURE:
        assert not IMPURE & {name.split(".")[0] for name in imports(MODULES[module])}


@pytest.mark.parametrize("module", MODULES)
def test_nothing_imports_the_command_line(module: str):
    """The commands are the outermost room."""
    if room(module) not in {"cli", "__main__"}:
        assert not any(name.startswith("bijotel.cli") for name in imports(MODULES[module]))
        assert not {"click", "rich"} & {name.split(".")[0] for name in imports(MODULES[module])}


def loaded_by(statement: str) -> set[str]:
    """Names of the modules that a fresh interpreter has after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_itself_loads_nothing():
    """``import bijotel`` loads no OpenTelemetry and no third party at all."""
    extra = loaded_by("import bijotel") - loaded_by("import importlib, typing, __future__")
    assert {name.split(".")[0] for name in extra} == {"bijotel"}
    assert not any(name.startswith("opentelemetry") for name in extra)


def test_a_source_loads_only_the_api():
    """``from bijotel import RAGSource`` loads the OpenTelemetry API, never its SDK."""
    loaded = loaded_by("from bijotel import RAGSource, rag_context, with_rag_provenance")
    assert "opentelemetry.trace" in loaded
    assert not [name for name in loaded if name.startswith("opentelemetry.sdk")]
    assert not {"numpy", "cryptography", "click", "rich", "sqlite3"} & loaded


@pytest.mark.parametrize("module", VERIFYING)
def test_verifying_needs_no_telemetry(module: str):
    """An auditor's machine has neither OpenTelemetry nor psycopg."""
    loaded = loaded_by(f"import bijotel.{module}")
    assert not [name for name in loaded if name.split(".")[0] in {"opentelemetry", "psycopg"}]


def test_the_processor_adds_nothing_heavy():
    """Beyond what the SDK itself imports: our rooms, orjson, sqlite3 and small parts of stdlib."""
    sdk = loaded_by("import opentelemetry.sdk.trace, opentelemetry.trace")
    added = {name.split(".")[0] for name in loaded_by("import bijotel.processor") - sdk}
    third_party = {name for name in added if name not in sys.stdlib_module_names}
    third_party = {name for name in third_party if not name.startswith("_")}
    assert third_party <= {"bijotel", "orjson", "wrapt"}


def test_modules_and_functions_stay_readable():
    """No module over 400 lines, no function over 60."""
    too_long = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if len(text.splitlines()) > 400:
            too_long.append(f"{path.name}: {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or 0) - node.lineno
                if length > 60:
                    too_long.append(f"{path.name}: {node.name} has {length} lines")
    assert too_long == []


def test_every_module_says_its_duty():
    """The first lines of a module say what it is for."""
    assert [name for name, tree in MODULES.items() if not ast.get_docstring(tree)] == []


def test_the_public_names():
    """A name is public when it stands here; a new one is a decision."""
    assert bijotel.__all__ == [
        "BijotelError",
        "CanonicalizationError",
        "ConfigurationError",
        "HmacChainSpanProcessor",
        "KeyRing",
        "RAGSource",
        "UnavailableError",
        "VerificationError",
        "__version__",
        "audit_trace",
        "detect",
        "install",
        "match_context",
        "rag_context",
        "rag_provenance",
        "sources_from",
        "verify_chain",
        "with_rag_provenance",
    ]
    for name in bijotel.__all__:
        assert getattr(bijotel, name) is not None
    with pytest.raises(AttributeError, match="module 'bijotel' has no attribute 'nothing'"):
        bijotel.nothing  # noqa: B018
