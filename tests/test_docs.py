"""The documentation runs, and nothing that people can name is left out of it.

A page is one session in an empty folder: its Python blocks share one namespace, its console
blocks are typed into bash, and what they print is compared with what the page says. HTML comments
before a block say what differs:

    <!-- file: app.py -->                       the block is written to that file
    <!-- fixture: t.jsonl from tests/data/t -->  a file of the repository is put there first
    <!-- not run: why -->                       parsed and counted, not run

``python tests/test_docs.py PAGE FOLDER`` runs one page without pytest.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import inspect
import io
import json
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import yaml
from markdown_it import MarkdownIt

import bijotel
from bijotel.cli.app import cli
from tests.postgres_server import new_database
from tests.requirements import missing

ROOT = Path(__file__).resolve().parent.parent
KEY = bytes(range(32))
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "examples/README.md")
)

HELD_ELSEWHERE = {
    "docs/reference/audit.md": "tests/cli/test_audit_command.py",
    "docs/reference/cli.md": "is what --help prints: tests/cli/test_reference.py",
    **{page: "tests/evidence/test_spec.py" for page in PAGES if page.startswith("docs/spec/")},
}
"""Pages whose blocks another test compares with the code."""

SERVED = frozenset({"docs/how-to/postgresql.md"})
"""Pages whose ``db.example.com/audit`` is a database of a real server."""

BEFORE = {
    "README.md": """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from bijotel import install

provider = TracerProvider()
trace.set_tracer_provider(provider)
install(provider, store="chain.db")


class model:
    @staticmethod
    def chat(question):
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": question}
        with trace.get_tracer("app").start_as_current_span("chat m", attributes=attributes):
            return "three years"


for _ in range(3):
    model.chat("How long is the warranty of the kettle?")
provider.force_flush()
""",
    "docs/how-to/postgresql.md": """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from bijotel import install

provider = TracerProvider()
trace.set_tracer_provider(provider)
""",
}
"""What the application around a page's fragments has, or the files that the page is about."""

NOT_RUN = {
    "docs/how-to/ci-gate.md": 1,
    "docs/how-to/collector-file.md": 1,
    "docs/how-to/kubernetes-postgresql.md": 3,
    "docs/how-to/offline-sealing.md": 1,
}
"""How many blocks of each page are parsed and not run."""

OUTPUT = frozenset({"", "text"})
"""Blocks that show what is printed or laid out, and are nothing to run."""


@dataclass(frozen=True)
class Block:
    """A fenced block with the comments before it."""

    line: int
    language: str
    code: str
    file: str
    not_run: str


@dataclass(frozen=True)
class Page:
    blocks: tuple[Block, ...]
    fixtures: tuple[tuple[str, str], ...]


def read_page(name: str) -> Page:
    """Read the blocks of a page and the comments that concern them."""
    blocks: list[Block] = []
    fixtures: list[tuple[str, str]] = []
    said: dict[str, str] = {}
    for token in MarkdownIt().parse((ROOT / name).read_text(encoding="utf-8")):
        if token.type == "html_block":
            for key, value in re.findall(r"<!-- (file|fixture|not run): (.+?) -->", token.content):
                if key == "fixture":
                    target, _, source = value.partition(" from ")
                    fixtures.append((target, source))
                else:
                    said[key] = value
        elif token.type == "fence":
            assert token.map is not None
            language = token.info.split()[0] if token.info else ""
            file, not_run = said.pop("file", ""), said.pop("not run", "")
            blocks.append(Block(token.map[0] + 1, language, token.content, file, not_run))
            assert not said, f"{name}: a comment concerns no block: {said}"
    return Page(tuple(blocks), tuple(fixtures))


# What is different in each run: ids, hashes, times, durations.
_VARYING = (
    (re.compile(r"\b(?:[a-z]+-)?[0-9a-f]{12,}\b"), "<hex>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?"), "<time>"),
    (re.compile(r"\b\d{18,}\b"), "<nanoseconds>"),
    (re.compile(r"\b\d+ (?:KiB|MiB|bytes)"), "<size>"),
)


def plain(text: str) -> list[str]:
    for pattern, name in _VARYING:
        text = pattern.sub(name, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def same(expected: list[str], got: list[str]) -> bool:
    """Compare lines; ``...`` stands for the rest of a line, on a line of its own for any lines."""
    if not expected:
        return not got
    if expected[0] == "...":
        return any(same(expected[1:], got[start:]) for start in range(len(got) + 1))
    head, dots, _ = expected[0].partition("...")
    alike = bool(got) and (got[0].startswith(head) if dots else got[0] == head)
    return alike and same(expected[1:], got[1:])


def commands(code: str) -> Iterator[tuple[str, str]]:
    """Give the commands of a console block, each with the output that follows it."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        size = 1
        while lines[size - 1].rstrip().endswith("\\"):
            size += 1
        yield "".join(lines[:size]), "".join(lines[size:])


class Session:
    """Runs the blocks of one page, in the current folder."""

    def __init__(self, name: str) -> None:
        self.name = name
        # A module of its own: frameworks look up the names in annotations in it.
        module = types.ModuleType("page")
        sys.modules["page"] = module
        self.namespace = module.__dict__

    def run(self, page: Page) -> None:
        exec(BEFORE.get(self.name, ""), self.namespace)
        for target, source in page.fixtures:
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, target)
        for block in page.blocks:
            if block.not_run or block.language in OUTPUT:
                continue
            try:
                self._block(block)
            except BaseException as error:
                error.add_note(f"{self.name}, block at line {block.line}") if hasattr(
                    error, "add_note"
                ) else None
                raise

    def _block(self, block: Block) -> None:
        block = replace(block, code=_on_this_machine(block.code))
        if block.file:
            Path(block.file).write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            place = f"{self.name}:{block.line}"
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile("\n" * block.line + block.code, place, "exec"), self.namespace)
        elif block.language == "console":
            for command, expected in commands(block.code):
                self._command(command, expected, block.line)
        elif block.language == "bash":
            self._shell(block.code)
        elif block.language == "json":
            json.loads(block.code)
        elif block.language == "sql":
            with psycopg.connect(os.environ["SERVED"], autocommit=True) as administrator:
                administrator.execute(block.code)
        else:
            raise AssertionError(f"line {block.line}: no runner for {block.language!r}")

    def _command(self, command: str, expected: str, line: int) -> None:
        if is_install(command):
            check_install(command)
            return
        if re.fullmatch(r"export(?: [A-Z_]+=[^\s$]+)+\n", command):
            settings = dict(word.split("=", 1) for word in command.split()[1:])
            os.environ.update(settings)
            # The page has a key of its own; a secret and a file of one contradict each other.
            if "BIJOTEL_HMAC_SECRET_FILE" in settings:
                os.environ.pop("BIJOTEL_HMAC_SECRET", None)
            return
        got = self._shell(command)
        wanted, found = plain(expected), plain(got)
        if expected.strip() and not same(wanted, found):
            difference = "\n".join(difflib.unified_diff(wanted, found, "page", "printed"))
            raise AssertionError(f"line {line}: $ {command}{difference}")

    @staticmethod
    def _shell(code: str) -> str:
        if is_install(code):
            check_install(code)
            return ""
        done = subprocess.run(
            ["bash", "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        # A command that fails says so on the page: ``; echo "exit code $?"``.
        assert done.returncode == 0, f"$ {code}\n{done.stdout}"
        return done.stdout


def _on_this_machine(code: str) -> str:
    """Put the database that is there in the place of the example's."""
    served = urlsplit(os.environ.get("SERVED", ""))

    def url(match: re.Match[str]) -> str:
        host = served.netloc.rpartition("@")[2]
        return urlunsplit(served._replace(netloc=f"{match[1]}@{host}"))

    return re.sub(r"postgresql://(\w+)@db\.example\.com/audit", url, code)


def is_install(code: str) -> bool:
    """What changes the machine or takes minutes is checked, not run."""
    return re.match(r"(?:pip|python -m venv|\.|source|make|git|cd)\s", code) is not None


def check_install(code: str) -> None:
    """Extras, groups and targets that are named exist, and nobody gets the other bijotel."""
    for line in re.findall(r"pip install .*", code.replace("\\\n", " ")):
        stranger = re.search(r"(?<![\w./-])bijotel(?![\w.-])(?!(?:\[[a-z,]+\])? @ git\+)", line)
        assert not stranger, f"another author's package: {line}"
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extras in re.findall(r"(?:\.|bijotel)\[([a-z,]+)\]", code):
        for extra in extras.split(","):
            assert re.search(rf"^{extra} = \[", project, re.MULTILINE), f"no extra {extra!r}"
    for group in re.findall(r"--group ([a-z]+)", code):
        assert re.search(rf"^{group} = \[", project, re.MULTILINE), f"no group {group!r}"
    for target in re.findall(r"^make ([a-z-]+)", code, re.MULTILINE):
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"no target {target!r}"


def parse(block: Block) -> None:
    """What is not run is at least what it says it is."""
    if block.language == "python":
        ast.parse(block.code)
    elif block.language == "yaml":
        assert [part for part in yaml.safe_load_all(block.code) if part]
    elif block.language == "json":
        json.loads(block.code)
    elif block.language == "console":
        for command, _ in commands(block.code):
            subprocess.run(["bash", "-n", "-c", command], check=True)
    elif block.language == "bash":
        subprocess.run(["bash", "-n", "-c", block.code], check=True)
    elif block.language == "sql":
        statements = [part for part in block.code.split(";") if part.strip()]
        assert all(re.match(r"\s*(?:--|[A-Z]+ )", part) for part in statements)
    elif block.language == "dockerfile":
        assert block.code.startswith("FROM ")
    else:
        raise AssertionError(f"line {block.line}: no parser for {block.language!r}")


def main(name: str, folder: str) -> None:
    """Run one page in a folder, against the model server on loopback."""
    from demo.server import ModelServer

    os.chdir(folder)
    sys.path.insert(0, folder)
    with ModelServer() as server:
        os.environ["OPENAI_BASE_URL"] = f"{server.url}/v1"
        os.environ["ANTHROPIC_BASE_URL"] = server.url
        Session(name).run(read_page(name))
    teaches_sealing = "rag_provenance" in (ROOT / name).read_text(encoding="utf-8")
    if Path("chain.db").exists() and name not in BEFORE and teaches_sealing:
        check_chain()


def check_chain() -> None:
    """What a page about recording sources leaves holds, with a call that has its sources."""
    from bijotel import verify_chain
    from bijotel.model import Entry
    from bijotel.spans.decode import decode_record
    from bijotel.spans.select import is_model_call
    from bijotel.stores.sqlite import SqliteStore

    assert verify_chain("chain.db", deep=True).findings == ()
    with SqliteStore("chain.db").snapshot() as snapshot:
        entries = [Entry._make(row.columns) for row in snapshot.scan(0, 1000)]
    spans = [decode_record(entry.body) for entry in entries if entry.kind == "span"]
    known = [
        {**span.inherited, **span.attributes} for span in spans if is_model_call(span.attributes)
    ]
    assert any("bijotel.rag.sources" in attributes for attributes in known), known


# -- what pytest runs ----------------------------------------------------------------------


def environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if "PROXY" not in key.upper()}
    kept = {key: value for key, value in kept.items() if not key.startswith("LANG")}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "BIJOTEL_HMAC_SECRET": KEY.hex(),
        "OPENAI_API_KEY": "none-needed-on-loopback",
        "ANTHROPIC_API_KEY": "none-needed-on-loopback",
        "HAYSTACK_TELEMETRY_ENABLED": "False",
        # What is installed for other pages is none of an application's business.
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": ",".join(
            point.name
            for point in entry_points(group="opentelemetry_instrumentor")
            if point.name != "bijotel"
        ),
        "COLUMNS": "100",
    }


RUN = [name for name in PAGES if name not in HELD_ELSEWHERE]


def need(sources: Iterable[str]) -> None:
    """Skip where a fixture from beside the project is not there; where CI says so, fail."""
    absent = [source for source in sources if not (ROOT / source).exists()]
    if absent:
        missing(f"not in this checkout: {', '.join(absent)}")


def test_a_page_without_its_fixture_is_skipped_but_not_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who has the repository alone sees what is missing; an automatic run does not pass over it."""
    monkeypatch.delenv("CI", raising=False)
    need(["README.md"])
    with pytest.raises(pytest.skip.Exception, match=r"not in this checkout: \.\./nowhere\.db"):
        need(["README.md", "../nowhere.db"])
    monkeypatch.setenv("CI", "true")
    with pytest.raises(
        pytest.fail.Exception, match=r"not in this checkout: \.\./nowhere\.db, and CI=true"
    ):
        need(["../nowhere.db"])


@pytest.mark.live
@pytest.mark.parametrize("name", [name for name in RUN if read_page(name).blocks])
def test_every_block_of_a_page_runs(name: str, tmp_path: Path, request: Any) -> None:
    """In the order of the page, in a folder of its own, printing what the page says."""
    need(source for _, source in read_page(name).fixtures)
    served = {"SERVED": request.getfixturevalue("database")} if name in SERVED else {}
    done = subprocess.run(
        [sys.executable, __file__, name, str(tmp_path)],
        cwd=tmp_path,
        env=environment() | served,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.fixture
def database(postgres_server: str) -> Iterator[str]:
    """A database of its own; the roles that a page makes are the whole server's."""
    with new_database(postgres_server) as url:
        yield url
    with psycopg.connect(postgres_server, autocommit=True) as administrator:
        for role in ("bijotel_writer", "bijotel_verifier"):
            administrator.execute(f"DROP ROLE IF EXISTS {role}")


def test_a_block_that_is_wrong_fails_its_page(tmp_path: Path) -> None:
    """Code that raises, a command that fails and output that differs are all noticed."""
    for language, code, message in (
        ("python", "1 / 0", "division by zero"),
        ("console", "$ false\n", "false"),
        ("console", "$ echo yes\nno\n", "-no"),
        ("ruby", "puts 1", "no runner for 'ruby'"),
    ):
        block = Block(1, language, code, "", "")
        with pytest.raises((AssertionError, ZeroDivisionError), match=message):
            Session("page").run(Page((block,), ()))


@pytest.mark.parametrize(
    "code",
    [
        "pip install bijotel",
        'pip install "bijotel[all]" openai',
        "pip install openai 'bijotel>=0.1'",
        "pip install openai \\\n  bijotel",
        'pip install ".[nothing]"',
        "pip install -e . --group nothing",
        "make nothing",
    ],
)
def test_a_wrong_install_line_is_refused(code: str) -> None:
    """The name alone is another author's package; what does not exist is no extra of ours."""
    with pytest.raises(AssertionError, match=r"another author|no extra|no group|no target"):
        check_install(code)


@pytest.mark.parametrize(
    "code",
    [
        'pip install ".[all]" openai',
        "pip install . opentelemetry-distro",
        'pip install "bijotel @ git+https://example.com/bijotel"',
        'pip install "bijotel[all] @ git+https://example.com/bijotel.git" openai',
        "pip install -e . --group test",
        "make demo",
    ],
)
def test_a_right_install_line_passes(code: str) -> None:
    """From the folder, or from the repository's address."""
    check_install(code)


def test_no_text_names_the_other_package_as_ours() -> None:
    """Install lines in sentences and in messages of the code are held to the same."""
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in PAGES}
    texts["bijotel"] = sources_of_the_package()
    for name, text in texts.items():
        for line in re.findall(r"pip install .*", text):
            try:
                check_install(line)
            except AssertionError as error:
                raise AssertionError(f"{name}: {line}") from error


def test_blocks_that_are_not_run_parse_and_are_counted() -> None:
    """What needs a cluster, a service or a package that is not here is little, and well-formed."""
    counts = {}
    for name in RUN:
        idle = [block for block in read_page(name).blocks if block.not_run]
        for block in idle:
            parse(block)
        if idle:
            counts[name] = len(idle)
    assert counts == NOT_RUN


def test_pages_have_one_sentence_a_line() -> None:
    """A change of one sentence is a change of one line."""
    for name in PAGES:
        if name in HELD_ELSEWHERE or name.startswith("docs/adr/"):  # records are not rewritten
            continue
        text = re.sub(
            r"^```.*?^```",
            "",
            (ROOT / name).read_text(encoding="utf-8"),
            flags=re.MULTILINE | re.DOTALL,
        )
        for line in text.splitlines():
            if not re.match(r"[|#]|- |\d+\. ", line):
                bare = re.sub(r"`[^`]*`", "x", line)
                assert not re.search(r"[a-z)][.?!] [A-Z]", bare), f"{name}: {line}"


# -- nothing is left out -------------------------------------------------------------------


def test_every_page_is_on_the_first_one() -> None:
    """Who begins at the index finds each page of the documentation."""
    text = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    linked = {f"docs/{path}" for path in re.findall(r"\]\(([^)#:]+\.md)\)", text)}
    pages = {name for name in PAGES if name.startswith("docs/")}
    assert linked == pages - {"docs/index.md"}


def reference(name: str) -> str:
    return (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")


def sources_of_the_package() -> str:
    files = sorted((ROOT / "bijotel").rglob("*.py"))
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def test_every_public_name_is_in_the_reference() -> None:
    """Each name of ``bijotel.__all__`` has its place on the page, and nothing else has one."""
    page = reference("python.md")
    shown = re.findall(r"^::: bijotel\.(\w+)$", page, re.MULTILINE)
    assert sorted([*shown, "__version__"]) == sorted(bijotel.__all__)
    assert "`bijotel.__version__`" in page
    for name in shown:
        assert inspect.getdoc(getattr(bijotel, name)), f"{name} has no docstring"


def test_every_module_that_may_be_imported_has_its_names() -> None:
    """What the page calls stable is there, and says what it does."""
    rows = re.findall(
        r"^\| `(bijotel\.[a-z_.]+)` \| (`.+?`) \|", reference("python.md"), re.MULTILINE
    )
    assert len(rows) == 11
    for module, names in rows:
        for name in re.findall(r"`(\w+)`", names):
            value = getattr(import_module(module), name)
            assert name.isupper() or inspect.getdoc(value), f"{module}.{name} has no docstring"


def test_every_command_is_in_the_reference() -> None:
    """Each command has a section; its text is compared with --help by the test of that page."""
    sections = re.findall(r"^## bijotel (\S+)$", reference("cli.md"), re.MULTILINE)
    assert sections == sorted(cli.commands)


WORDS_OF_OTHER_KINDS = {
    "verdicts": {"no-content", "no-prompt", "prompt-truncated", "too-short", "too-large"},
    "causes of gaps": {
        *("after-shutdown", "encode-failed", "process-ended"),
        *("queue-full", "spool-damaged", "spool-full", "store-replaced"),
    },
    "answers of a store": {"already-sealed", "store-busy"},
    "commands": {"rotate-key", "verify-export", "verify-proof"},
    "dialects": {"google-adk", "pydantic-ai", "traceloop-legacy", "vector-stores"},
    "a page's policy": {
        *("base-uri", "default-src", "form-action", "script-src", "style-src"),
        *("require-trusted-types-for", "trusted-types"),
    },
    "others": {
        *("bijotel-rag-inside", "bijotel-rag-run", "by-volume", "non-finite", "not-verified"),
        *("too-deep", "x-ai"),
    },
}
"""Words with a hyphen in the code that are no codes of findings. A new word is one or the other."""


def test_every_finding_code_is_in_the_reference() -> None:
    """A word that anything can report as a finding stands on the page."""
    documented = set(re.findall(r"^\| `([a-z-]+)`", reference("findings.md"), re.MULTILINE))
    constants = {
        node.value
        for node in ast.walk(ast.parse(sources_of_the_package()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    words = {word for word in constants if re.fullmatch(r"[a-z]+(?:-[a-z]+)+", word)}
    others = set().union(*WORDS_OF_OTHER_KINDS.values())
    assert {"tag-mismatch", "seq-gap", "malformed-proof"} <= words & documented
    assert words - documented - others == set()
    assert documented - constants - {"0", "1", "2", "3"} == set(), "on the page, not in the code"


def test_every_attribute_is_in_the_reference() -> None:
    """Attributes and metrics of ours that stand in the code as a whole name."""
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs/reference").glob("*.md"))
    named = set(re.findall(r'"(bijotel\.[a-z_.]+[a-z])"', sources_of_the_package()))
    modules = {
        name for name in named if (ROOT / name.replace(".", "/")).with_suffix(".py").exists()
    }
    modules |= {name for name in named if (ROOT / name.replace(".", "/")).is_dir()}
    modules.add("bijotel.heads")  # a table of PostgreSQL
    assert "bijotel.rag.sources" in named - modules
    assert {name for name in named - modules if f"`{name}`" not in pages} == set()


def test_every_environment_variable_is_in_the_reference() -> None:
    """Whatever begins with BIJOTEL_ in the code."""
    named = set(re.findall(r"\bBIJOTEL_[A-Z_]+\b", sources_of_the_package()))
    assert len(named) >= 5
    assert {name for name in named if f"`{name}`" not in reference("environment.md")} == set()


if __name__ == "__main__":
    main(*sys.argv[1:])
