"""Long chains of realistic entries, sealed without a processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from benchmarks.sealing import drafts
from bijotel.keys import HmacKey
from bijotel.model import ChainHead, Draft
from bijotel.seal import Batch, body_hash, open_chain, seal_entries
from bijotel.stores.sqlite import SqliteStore

KEY = HmacKey(bytes(range(32)))
CHAIN_ID = bytes(range(16))
SEALED_AT = 1_700_000_000_000_000_000


def endless_drafts() -> Iterator[Draft]:
    """One encoded body, again and again with other ids."""
    (template,) = drafts(1)
    trace_id, span_id = template.trace_id.hex().encode(), template.span_id.hex().encode()
    for number in range(1, 2**32):
        new_trace_id, new_span_id = number.to_bytes(16, "big"), number.to_bytes(8, "big")
        body = template.body.replace(trace_id, new_trace_id.hex().encode())
        body = body.replace(span_id, new_span_id.hex().encode())
        yield template._replace(
            trace_id=new_trace_id, span_id=new_span_id, body=body, body_hash=body_hash(body)
        )


def extend_with(waiting: list[Draft]) -> Callable[[ChainHead | None], Batch]:
    """What a store's append asks: the entries behind a head, or those of a new chain."""

    def make(head: ChainHead | None) -> Batch:
        if head is None:
            return open_chain("default", CHAIN_ID, KEY, waiting, SEALED_AT)
        return seal_entries(head, waiting, KEY, SEALED_AT)

    return make


def build_chain(path: Path, count: int) -> Path:
    """Seal a chain of so many entries."""
    store, waiting = SqliteStore(path), endless_drafts()
    for first in range(0, count, 1000):
        batch = min(1000, count - first) - (first == 0)  # the first entry is the chain's own
        store.append("default", extend_with(list(islice(waiting, batch))))
    store.release()
    return path
