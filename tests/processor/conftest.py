"""A provider with the processor, and what a test reads back from its chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

import bijotel.processor
from bijotel import HmacChainSpanProcessor, verify_chain
from bijotel.model import Entry, SpanRecord
from bijotel.spans.decode import decode_record
from bijotel.stores.sqlite import SqliteStore

KEY = bytes(range(32))
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "chain.db"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[TracerProvider]:
    monkeypatch.setattr(bijotel.processor, "SHUTDOWN_SECONDS", 0.5)
    provider = TracerProvider(shutdown_on_exit=False)
    yield provider
    provider.shutdown()


@pytest.fixture
def make(provider: TracerProvider, db: Path) -> Callable[..., HmacChainSpanProcessor]:
    """Add a processor to the provider."""

    def make(**options: Any) -> HmacChainSpanProcessor:
        options = {"store": db, "key": KEY} | options
        processor = HmacChainSpanProcessor(options.pop("store"), **options)
        provider.add_span_processor(processor)
        return processor

    return make


def entries(db: Path) -> list[Entry]:
    """All entries of the only chain, after it was verified."""
    report = verify_chain(db, KEY, deep=True)
    assert report.findings == ()
    with SqliteStore(db).snapshot() as snapshot:
        ((chain_id, *_),) = snapshot.head_rows()
        return [Entry._make(row.columns) for row in snapshot.select(chain_id)]


def spans(db: Path) -> list[SpanRecord]:
    """All sealed spans of the only chain, after it was verified."""
    return [decode_record(entry.body) for entry in entries(db) if entry.kind == "span"]
