"""Chains to run commands on, and two ways to run a command: in this process, or installed."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bijotel import canonical
from bijotel.cli.app import run
from bijotel.keys import HmacKey
from bijotel.model import ChainHead, Draft, SpanRecord, Status
from bijotel.seal import Batch, draft, open_chain, seal_entries
from bijotel.spans.encode import encode_record
from bijotel.stores.sqlite import SqliteStore
from tests.conftest import MASTER_KEY

KEY = HmacKey(MASTER_KEY)
KEY_ID = KEY.key_id.hex()
CHAIN_ID = bytes(range(16))
CHAIN_HEX = CHAIN_ID.hex()
SEALED_AT = 1_700_000_100_000_000_000
STARTED_AT = 1_700_000_000_000_000_000
OTHER_SECRET = "f0" * 16 + "0f" * 16


class Result(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as the one JSON document that it must be."""
        assert self.out.endswith("\n")
        return json.loads(self.out)


def span(number: int = 1, /, **changes: Any) -> SpanRecord:
    """Make a model-call span; ``attributes`` are added to those that all have."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-test",
        "gen_ai.input.messages": f"question {number}",
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 17,
        **changes.pop("attributes", {}),
    }
    values: dict[str, Any] = {
        "name": "chat gpt-test",
        "kind": "CLIENT",
        "trace_id": f"{number:032x}",
        "span_id": f"{number:016x}",
        "start_time_unix_nano": STARTED_AT + number,
        "end_time_unix_nano": STARTED_AT + number + 5_000,
        "status": Status("OK"),
    }
    return SpanRecord(**{**values, **changes}, attributes=attributes)


def source(**changes: Any) -> dict[str, Any]:
    """Make one recorded source of eight fields."""
    return {
        "document_id": "doc-1",
        "chunk_index": 0,
        "source_uri": "s3://docs/1",
        "retriever": "qdrant",
        "embedding_model": "text-embedding-3-small",
        "similarity_score": 0.89,
        "retrieved_at": "2026-01-01T00:00:00Z",
        "metadata": {},
        **changes,
    }


def rag(sources: Any, **changes: Any) -> dict[str, Any]:
    """Make the attributes of a RAG call; ``sources`` is a list, or the text as recorded."""
    text = sources if isinstance(sources, str) else json.dumps(sources, sort_keys=True)
    return {
        "bijotel.rag.source_count": len(sources),
        "bijotel.rag.sources": text,
        "bijotel.rag.retriever_id": "qdrant",
        "bijotel.rag.embedding_model": "text-embedding-3-small",
        "bijotel.rag.total_context_tokens": 720,
        **changes,
    }


def body(kind: str, members: Mapping[str, Any]) -> Draft:
    """Make the draft of an entry that is no span."""
    return draft(kind, canonical.dumps(members))


def gap(count: int | None, reason: str = "queue-full") -> Draft:
    """Make the draft of a gap."""
    members = {"count": count, "first_unix_nano": "1", "last_unix_nano": "2", "reason": reason}
    return body("gap", members)


def append(
    path: Path,
    items: Iterable[SpanRecord | Draft] = (),
    *,
    chain: str = "default",
    chain_id: bytes = CHAIN_ID,
    key: HmacKey = KEY,
    sealed_at: int = SEALED_AT,
) -> Path:
    """Seal items into a chain of a store, which is made when it is not there."""
    drafts = [item if isinstance(item, Draft) else encode_record(item) for item in items]

    def make(head: ChainHead | None) -> Batch:
        if head is None:
            return open_chain(chain, chain_id, key, drafts, sealed_at)
        return seal_entries(head, drafts, key, sealed_at)

    store = SqliteStore(path)
    store.append(chain, make)
    store.release()
    return path


def tamper(path: Path, statement: str, *values: Any) -> None:
    """Change a store as somebody with a database tool would."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A store of one chain with five spans: entries 0 to 5."""
    return append(tmp_path / "chain.db", [span(number) for number in range(1, 6)])


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """The key of the chains, in the environment."""
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", MASTER_KEY.hex())
    return MASTER_KEY.hex()


@pytest.fixture
def bijotel(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run a command in this process."""

    def call(*arguments: Any) -> Result:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return Result(code, *capsys.readouterr())

    return call


COMMAND = (str(Path(sys.executable).with_name("bijotel")),)


def clean_environment(**variables: str) -> dict[str, str]:
    """The environment of a process that knows the key, with nothing about terminals in it."""
    about_terminals = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "PYTHONIOENCODING"}
    kept = {name: value for name, value in os.environ.items() if name not in about_terminals}
    return {**kept, "BIJOTEL_HMAC_SECRET": MASTER_KEY.hex(), **variables}


def installed(
    *arguments: Any, encoding: str = "utf-8", file_limit: int | None = None, **variables: str
) -> Result:
    """Run the installed command in a process of its own, its files limited to so many bytes."""

    def limit_files() -> None:
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=clean_environment(**variables),
        timeout=60,
        check=False,
        preexec_fn=limit_files,
    )
    return Result(done.returncode, done.stdout.decode(encoding), done.stderr.decode(encoding))
