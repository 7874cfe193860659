"""Connections to PostgreSQL that give up in time, and names of databases without their secrets.

A server that stopped answering (frozen, or behind a network that is gone) would hold a writer
for as long as it stays so: the driver itself waits for ever. Nothing is set at the start of a
session, so that a pooler which hands one session to many clients may stand in between.

Source: https://www.postgresql.org/docs/current/libpq-connect.html.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from itertools import zip_longest
from typing import Any, Final
from urllib.parse import quote

from bijotel.errors import ConfigurationError

try:
    import psycopg
except ImportError:  # pragma: no cover - the extra is not installed
    raise ConfigurationError(
        "a PostgreSQL store needs psycopg: install the extra, bijotel[postgres]"
    ) from None

# The driver too, so that the message above is the only one about its absence.
__all__ = ["ANSWER_SECONDS", "Connection", "connect", "name_of", "one_line", "psycopg"]

CONNECT_SECONDS: Final = 5
ANSWER_SECONDS: Final = 10.0
"""How long a server may take to answer one statement of a writer."""


class Connection(psycopg.Connection[Any]):
    """A connection that fails when the server does not answer."""

    answer_seconds: float | None = None
    """The longest wait for an answer; None waits as long as it takes."""
    _given_up = False

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait for an answer, as the driver does for each of its own calls.

        Raises:
            psycopg.OperationalError: there was none in time. The connection is of no more use.
        """
        if self.answer_seconds is None:
            return super().wait(gen, *args, **options)
        return super().wait(self._within(gen, self.answer_seconds), *args, **options)

    def _within(self, gen: Any, seconds: float) -> Generator[Any, Any, Any]:
        deadline = time.monotonic() + seconds
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if self._given_up or (not ready and time.monotonic() > deadline):
                    self._given_up = True
                    raise psycopg.OperationalError(f"no answer within {seconds:g} seconds")
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value


def connect(url: str) -> Connection:
    """Connect to a database.

    Raises:
        psycopg.Error: it cannot be reached, or does not let us in.
    """
    return Connection.connect(
        url,
        autocommit=True,
        # A pooler may run each transaction in another session, where nothing is prepared.
        prepare_threshold=None,
        connect_timeout=CONNECT_SECONDS,
        keepalives_idle=10,
        keepalives_interval=3,
        keepalives_count=3,
        tcp_user_timeout=10_000,
        application_name="bijotel",
    )


def name_of(url: str) -> str:
    """Name a database for people: user, hosts and database, and nothing that may be a secret.

    Raises:
        ConfigurationError: it is no address that libpq can read; what it says is not repeated.
    """
    try:
        found = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise ConfigurationError(
            "store: no address that libpq can read; expected "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE with special characters percent-encoded"
        ) from None
    user, database = (quote(str(found.get(name, "")), safe="") for name in ("user", "dbname"))
    hosts, ports = (str(found.get(name, "")).split(",") for name in ("host", "port"))
    named = ",".join(
        f"{host}:{port}" if port else host
        for host, port in zip_longest(hosts, ports, fillvalue=ports[-1])
    )
    at = f"{user}@" if user else ""
    if named.startswith("/"):  # the folder of a socket
        return f"postgresql://{at}/{database}?host={named}"
    return f"postgresql://{at}{named}/{database}"


def one_line(error: Exception) -> str:
    """Put a server's message on one line."""
    return " ".join(str(error).split())
