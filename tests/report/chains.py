"""Chains with decisions to report on: a retriever's span and a model call for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bijotel.checkpoint import sign_checkpoint
from bijotel.keys import HmacKey, KeyRing
from bijotel.model import ChainHead, SpanRecord, Status
from bijotel.output_files import new_file
from bijotel.report.make import Made, Request, make_report
from bijotel.report.page import write_page
from bijotel.signing import SigningKey, generate_signing_key
from bijotel.stores.sqlite import SqliteStore
from tests.cli.conftest import CHAIN_ID, append
from tests.conftest import MASTER_KEY

RING = KeyRing(MASTER_KEY)
BEGIN = 1_767_225_600_000_000_000
"""2026-01-01T00:00:00Z"""
MINUTE = 60 * 10**9

PASSAGES = (
    "The Ostra kettle has a warranty of 3 years from the date of purchase; keep the receipt.",
    "Descale the kettle once a month: boil it with 20 grams of citric acid and wait a while.",
    "Spare parts are delivered for eight years after a kettle was last made, on weekdays only.",
    "Fill the kettle to at least 0.3 litres; if it boils dry, the cut-out switches it off.",
)


def question(number: int) -> str:
    return f"How long is the warranty of kettle number {number}?"


def decision(
    number: int,
    *,
    passages: tuple[str, ...] = PASSAGES,
    used: tuple[str, ...] = PASSAGES[:2],
    asked: str = "",
    answer: str = "Three years from the date of purchase.",
    name: str = "ChatOpenAI",
    **attributes: Any,
) -> list[SpanRecord]:
    """The two spans of one decision: the retriever finds ``passages``, the prompt has ``used``."""
    trace_id, begun = f"{number:032x}", BEGIN + number * MINUTE
    documents = {}
    for place, text in enumerate(passages):
        key = f"retrieval.documents.{place}.document"
        documents |= {
            f"{key}.content": text,
            f"{key}.id": f"manual.md#{place}",
            f"{key}.score": 0.9 - place / 10,
        }
    sources = [
        {
            "chunk_index": place,
            "document_id": "manual.md",
            "embedding_model": "small",
            "metadata": {},
            "retrieved_at": "2026-01-01T00:00:00Z",
            "retriever": "qdrant",
            "similarity_score": 0.9 - place / 10,
            "source_uri": f"s3://manuals/{place}",
        }
        for place in range(len(passages))
    ]
    asked = asked or question(number)
    prompt = "Passages:\n" + "\n".join(f"- {text}" for text in used) + f"\n\nQuestion: {asked}"
    retriever = SpanRecord(
        "retrieve",
        "INTERNAL",
        trace_id,
        f"{2 * number:016x}",
        start_time_unix_nano=begun,
        end_time_unix_nano=begun + 30_000_000,
        attributes={
            "openinference.span.kind": "RETRIEVER",
            "input.value": asked,
            **documents,
        },
    )
    call = SpanRecord(
        name,
        "INTERNAL",
        trace_id,
        f"{2 * number + 1:016x}",
        start_time_unix_nano=begun + 40_000_000,
        end_time_unix_nano=begun + 840_000_000,
        status=attributes.pop("status", Status("OK")),
        attributes={
            "openinference.span.kind": "LLM",
            "llm.model_name": "gpt-4o-mini",
            "llm.provider": "openai",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": prompt,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": answer,
            "llm.token_count.prompt": 120 + number % 7,
            "llm.token_count.completion": 17,
            "bijotel.rag.source_count": len(sources),
            "bijotel.rag.sources": json.dumps(sources, sort_keys=True),
            "bijotel.rag.retriever_id": "qdrant",
            "bijotel.rag.embedding_model": "small",
            **attributes,
        },
    )
    return [retriever, call]


def checkpoint(path: Path) -> tuple[bytes, SigningKey]:
    """Sign what a store's chain is now, and give the note and the key."""
    key = generate_signing_key("example.com/audit")
    with SqliteStore(path).snapshot() as snapshot:
        (row,) = snapshot.head_rows()
    return sign_checkpoint(ChainHead(*row), RING, [key]), key


def write(path: Path, target: Path, **wanted: Any) -> Made:
    """Write a report of a store, as the command does."""
    request = Request(str(path), **{"ring": RING, "made_at": "2026-02-03T04:05:06Z", **wanted})
    with make_report(request) as made, new_file(target) as output:
        write_page(output, made.page, made.decisions.details())
    return made


__all__ = ["BEGIN", "CHAIN_ID", "HmacKey", "append", "checkpoint", "decision", "question", "write"]
