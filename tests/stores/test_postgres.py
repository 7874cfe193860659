"""What is PostgreSQL's own: roles, hidden rows, odd rows, lost and frozen servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from opentelemetry.sdk.trace import TracerProvider

from bijotel import HmacChainSpanProcessor
from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.findings import Report
from bijotel.stores import postgres_connection
from bijotel.stores.base import StoreBusyError
from bijotel.stores.postgres import PostgresStore
from bijotel.stores.postgres_schema import statements
from bijotel.verify import verify_chain
from tests.conftest import ROOT
from tests.postgres_server import Server, new_database
from tests.stores.chains import KEY, MASTER, append, names, sealing, span

pytestmark = pytest.mark.postgres

Execute = Callable[..., list[Any]]


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    made = PostgresStore(postgres_url)
    yield made
    made.release()


@pytest.fixture
def execute(postgres_url: str) -> Iterator[Execute]:
    """Run statements as whoever owns the database."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:

        def run(statement: str, *values: object) -> list[Any]:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

        yield run


def codes(report: Report) -> list[tuple[str, int | None, str | None]]:
    return [(finding.code, finding.seq, finding.column) for finding in report.findings]


def as_role(url: str, role: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}@{host}"))


# --- names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://u:s3cret@h:5433/d", "postgresql://u@h:5433/d"),
        ("postgresql://u@h/d?password=s3cret&sslpassword=s3cret", "postgresql://u@h/d"),
        ("postgresql://u:s3cret@h1:1,h2:2/d", "postgresql://u@h1:1,h2:2/d"),
        ("postgresql://u:s3cret@/d?host=/run/pg", "postgresql://u@/d?host=/run/pg"),
        ("postgresql:///d", "postgresql:///d"),
        ("postgres://u%20x@h/a%2Fb", "postgresql://u%20x@h/a%2Fb"),
    ],
)
def test_a_name_holds_no_secret(url: str, name: str):
    """User, hosts and database name a store; two spellings of one address are one store."""
    assert PostgresStore(url).location == name
    assert repr(PostgresStore(url)) == f"PostgresStore('{name}')"


@pytest.mark.parametrize("url", ["postgresql://u:s3cret%zz@h/d", "postgresql://h/d?s3cret=1"])
def test_an_address_that_cannot_be_read_is_not_repeated(url: str):
    """The driver's own message would say the password."""
    with pytest.raises(ConfigurationError, match="no address that libpq can read") as caught:
        PostgresStore(url)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_default_spool_is_in_the_users_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """One folder for each database; the state folder is made when it is missing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "a" / "state"))
    folders = {PostgresStore(f"postgresql://h/{name}").spool_folder for name in "ab"}
    assert {folder.parent for folder in folders if folder} == {tmp_path / "a" / "state"}
    assert len(folders) == 2
    assert (tmp_path / "a" / "state").is_dir()


def test_without_the_driver_the_extra_is_named():
    """An installation without psycopg says what to install."""
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from bijotel.stores.open import open_store\n"
        "from bijotel.errors import ConfigurationError\n"
        "try: open_store('postgresql://h/d')\n"
        "except ConfigurationError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "install the extra, bijotel[postgres]" in done.stdout


# --- roles -----------------------------------------------------------------------------------


def sql_of_the_page() -> list[str]:
    page = (ROOT / "docs" / "how-to" / "postgresql.md").read_text()
    return re.findall(r"```sql\n(.*?)```", page, re.DOTALL)


def test_the_page_makes_the_tables_of_the_schema():
    """The statements of the how-to page are those of the library."""
    written = [line.rstrip(";") for line in sql_of_the_page()[0].splitlines() if line]
    assert written == list(statements())


@pytest.fixture
def roles(postgres_url: str, execute: Execute) -> Iterator[dict[str, str]]:
    """The page's two roles under names of this database, and what they own."""
    tables, grants = sql_of_the_page()
    suffix = urlsplit(postgres_url).path[-12:]
    execute(tables)
    execute(re.sub(r"(bijotel_writer|bijotel_verifier)", rf"\1_{suffix}", grants))
    made = [f"bijotel_{name}_{suffix}" for name in ("writer", "verifier")]
    yield dict(zip(("writer", "verifier"), made, strict=True))
    for role in made:
        execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_the_writers_role_appends_and_no_more(postgres_url: str, roles: dict[str, str]):
    """It begins chains and continues them, but takes no entry away and changes none."""
    store = PostgresStore(as_role(postgres_url, roles["writer"]))
    append(store, 0, 1)
    append(store, 2)
    append(store, 0, chain="another")
    store.release()
    with psycopg.connect(as_role(postgres_url, roles["writer"]), autocommit=True) as connection:
        for statement in (
            "UPDATE bijotel.entries SET name = 'x'",
            "DELETE FROM bijotel.entries",
            "TRUNCATE bijotel.entries",
            "DELETE FROM bijotel.heads",
            "DROP TABLE bijotel.entries",
            "ALTER TABLE bijotel.entries ADD COLUMN x text",
            "CREATE TABLE bijotel.another (x text)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    assert names(PostgresStore(postgres_url)) == ["chat 0", "chat 1", "chat 2"]


def test_the_verifiers_role_verifies_and_no_more(postgres_url: str, roles: dict[str, str]):
    """It reads everything and can append nothing."""
    writer = PostgresStore(as_role(postgres_url, roles["writer"]))
    append(writer, 0, 1)
    writer.release()
    store = PostgresStore(as_role(postgres_url, roles["verifier"]))
    for workers in (1, 2):
        report = verify_chain(store, KEY, deep=True, workers=workers)
        assert (report.findings, report.checked["entries"]) == ((), 3)
    with pytest.raises(UnavailableError, match="permission denied for table heads"):
        append(store, 2)
    with pytest.raises(UnavailableError, match="permission denied"):
        append(store, 2, chain="another")
    store.release()


# --- hidden and odd rows ---------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_row_33_row_security(
    store: PostgresStore, postgres_url: str, execute: Execute, roles: dict[str, str], workers: int
):
    """A policy that hides an entry from the verifier is a finding, before anything is read."""
    append(store, *range(5))
    execute("ALTER TABLE bijotel.entries ENABLE ROW LEVEL SECURITY")
    execute("CREATE POLICY hide ON bijotel.entries USING (seq <> 3)")
    for url in (as_role(postgres_url, roles["verifier"]), postgres_url):
        report = verify_chain(PostgresStore(url), KEY, workers=workers)
        assert codes(report) == [("row-security", None, "entries")]
        assert report.exit_code == 1
        assert "policies may hide rows from this role" in report.findings[0].message


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_row_33_search_path(
    postgres_url: str, store: PostgresStore, execute: Execute, workers: int
):
    """Neither a table nor a function of the same name is taken for ours."""
    append(store, 0, 1)
    execute("CREATE SCHEMA evil")
    execute("CREATE TABLE evil.entries AS SELECT * FROM bijotel.entries WITH NO DATA")
    execute("CREATE TABLE evil.heads AS SELECT * FROM bijotel.heads WITH NO DATA")
    execute(
        "CREATE FUNCTION evil.octet_length(bytea) RETURNS int LANGUAGE sql AS 'SELECT 99999999';"
        "CREATE FUNCTION evil.to_regclass(text) RETURNS regclass LANGUAGE sql AS 'SELECT NULL::regclass';"
        "CREATE FUNCTION evil.pg_advisory_xact_lock(bigint) RETURNS void LANGUAGE sql "
        "AS 'DROP TABLE bijotel.entries'"
    )
    database = urlsplit(postgres_url).path[1:]
    execute(f"ALTER DATABASE {database} SET search_path = evil, pg_catalog, bijotel")
    attacked = PostgresStore(postgres_url)
    append(attacked, 2)
    append(attacked, 0, chain="another")
    report = verify_chain(attacked, KEY, deep=True, workers=workers)
    assert (report.findings, report.checked["entries"]) == ((), 6)
    attacked.release()
    assert execute("SELECT count(*) FROM evil.entries") == [(0,)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("seq = NULL", [("type-mismatch", None, "seq"), ("truncated", 3, None)]),
        ("seq = -7", [("type-mismatch", -7, "seq"), ("truncated", 3, None)]),
        (
            "seq = 9000000000000000000",
            [("seq-gap", 3, None), ("tag-mismatch", 9000000000000000000, None)],
        ),
        ("chain_id = NULL", [("type-mismatch", 3, "chain_id")]),
        ("chain_id = ''", [("type-mismatch", 3, "chain_id")]),
        ("body = NULL", [("type-mismatch", 3, "body")]),
        ("tag = NULL", [("type-mismatch", 3, "tag")]),
        ("name = NULL", [("type-mismatch", 3, "name")]),
        ("kind = NULL", [("type-mismatch", 3, "kind")]),
        ("epoch = NULL", [("type-mismatch", 3, "epoch")]),
        ("epoch = -1", [("type-mismatch", 3, "epoch")]),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_odd_rows_are_seen(store: PostgresStore, execute: Execute, change: str, expected: Any, workers: int):  # fmt: skip
    """A row without a sound place is found, wherever an ordered reading would not come by."""
    append(store, 0, 1, 2)
    execute(f"UPDATE bijotel.entries SET {change} WHERE seq = 3")
    assert codes(verify_chain(store, KEY, workers=workers)) == expected


def test_a_column_of_another_type_is_a_finding(store: PostgresStore, execute: Execute):
    """``jsonb`` would rewrite a body's octets; the schema says ``bytea``."""
    append(store, 0)
    execute(
        "ALTER TABLE bijotel.entries ALTER COLUMN body TYPE jsonb "
        "USING convert_from(body, 'UTF8')::jsonb"
    )
    report = verify_chain(store, KEY)
    assert codes(report) == [
        ("schema-mismatch", None, "entries.body"),
        ("schema-mismatch", None, "entries"),
    ]
    assert "is jsonb, expected bytea" in report.findings[0].message


# --- losing the server -----------------------------------------------------------------------


def test_a_lost_connection_is_one_failure(store: PostgresStore, execute: Execute):
    """What the server ended is opened again by the next call."""
    append(store, 0)
    execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'bijotel' AND datname = current_database()"
    )
    with pytest.raises(UnavailableError, match="terminat"):
        append(store, 1)
    append(store, 1)
    assert names(store) == ["chat 0", "chat 1"]


def test_a_transaction_that_holds_the_chain_makes_it_busy(store: PostgresStore, execute: Execute):
    """The server's lock timeout ends an attempt in a quarter of a second."""
    append(store, 0)
    execute("BEGIN; SELECT 1 FROM bijotel.heads FOR UPDATE")
    started = time.monotonic()
    with pytest.raises(StoreBusyError, match="lock timeout"):
        store.append("default", sealing([span(1)]))
    assert 0.2 <= time.monotonic() - started < 2
    append(store, 0, chain="another")  # which shares no lock
    execute("ROLLBACK")
    append(store, 1)
    assert names(store) == ["chat 0", "chat 1"]


def test_a_commit_is_on_the_disk_whatever_the_servers_default(
    store: PostgresStore, execute: Execute, postgres_url: str
):
    """``synchronous_commit = off`` would lose the last commits with the power."""
    execute(f"ALTER DATABASE {urlsplit(postgres_url).path[1:]} SET synchronous_commit = off")
    seen: list[Any] = []
    make = sealing([span(0)])

    def watched(head: Any) -> Any:
        connection = store._connection
        assert connection is not None
        names = ("synchronous_commit", "search_path", "transaction_isolation")
        seen.extend(connection.execute(f"SHOW {name}").fetchone() for name in names)
        return make(head)

    store.append("default", watched)
    assert seen == [("on",), ("pg_catalog",), ("read committed",)]


@pytest.mark.fork
def test_a_connection_that_crossed_a_fork_stays_the_parents(store: PostgresStore):
    """A child that was forked without the writer's hook opens its own and closes nothing."""
    append(store, 0)
    child = os.fork()
    if child == 0:
        try:
            append(store, 1)
            store.release()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    append(store, 2)
    assert names(store) == ["chat 0", "chat 1", "chat 2"]


def test_a_frozen_server_is_given_up(mortal_server: Server, monkeypatch: pytest.MonkeyPatch):
    """A server that takes the connection and never answers costs one limit, not for ever."""
    monkeypatch.setattr("bijotel.stores.postgres.ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(postgres_connection, "CONNECT_SECONDS", 2)
    with new_database(mortal_server.url) as url:
        store = PostgresStore(url)
        append(store, 0)
        with mortal_server.frozen():
            started = time.monotonic()
            with pytest.raises(UnavailableError, match=r"no answer within 0\.5 seconds"):
                append(store, 1)
            with pytest.raises(UnavailableError, match="time"):
                append(store, 1)
            assert time.monotonic() - started < 8
        append(store, 1)
        assert names(store) == ["chat 0", "chat 1"]
        store.release()


def provider_of(processor: HmacChainSpanProcessor) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


EXITING = """
import sys, time
from opentelemetry.sdk.trace import TracerProvider
from bijotel import install
provider = TracerProvider()
processor = install(provider, store=sys.argv[1], spool=sys.argv[2], key=bytes(range(32)))
def chat(name):
    provider.get_tracer("t").start_span(name, attributes={"gen_ai.operation.name": "chat"}).end()
chat("first")
assert processor.force_flush()
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    chat(f"chat {number}")
    time.sleep(0.01)
print(time.monotonic(), flush=True)
sys.exit(7)
"""


def test_an_exit_with_a_frozen_server_keeps_every_span(mortal_server: Server, tmp_path: Path):
    """Five seconds at most, the code unchanged, and the next start seals what was left."""
    with new_database(mortal_server.url) as url:
        command = [sys.executable, "-c", EXITING, url, str(tmp_path / "spool")]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        with mortal_server.frozen():
            output, _ = child.communicate(b"\n", timeout=60)
            took = time.monotonic() - float(output)
        assert child.returncode == 7
        assert took < 6
        processor = HmacChainSpanProcessor(url, spool=tmp_path / "spool", key=MASTER)
        chat = provider_of(processor).get_tracer("t").start_span
        chat("next", attributes={"gen_ai.operation.name": "chat"}).end()
        assert processor.force_flush()
        processor.shutdown()
        store = PostgresStore(url)
        assert names(store) == ["first", *(f"chat {number}" for number in range(20)), "next"]
        assert verify_chain(store, KEY, deep=True).ok
        store.release()
