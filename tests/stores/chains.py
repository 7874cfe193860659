"""What the tests of the stores append, and how they read it back."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from bijotel import seal
from bijotel.keys import HmacKey
from bijotel.model import ChainHead, Draft, Entry, SpanRecord
from bijotel.seal import Batch
from bijotel.spans.encode import encode_record
from bijotel.stores.base import Store, StoreBusyError

MASTER = bytes(range(32))
KEY = HmacKey(MASTER)
AT = 1_700_000_000_000_000_000


def span(number: int, **attributes: object) -> Draft:
    """A span that differs for every number."""
    record = SpanRecord(
        f"chat {number}",
        "CLIENT",
        f"{number + 1:032x}",
        f"{number + 1:016x}",
        start_time_unix_nano=AT + number,
        end_time_unix_nano=AT + number + 1,
        attributes={"n": number, **attributes},
    )
    return encode_record(record)


def sealing(drafts: Sequence[Draft], chain: str = "default") -> Callable[[ChainHead | None], Batch]:
    """Make the function that a store calls under its lock."""

    def make(head: ChainHead | None) -> Batch:
        if head is None:
            return seal.open_chain(chain, secrets.token_bytes(16), KEY, drafts, AT)
        return seal.seal_entries(head, drafts, KEY, AT)

    return make


def append(store: Store, *numbers: int, chain: str = "default") -> ChainHead:
    """Append spans, patiently."""
    make = sealing([span(number) for number in numbers], chain)
    while True:
        try:
            return store.append(chain, make)
        except StoreBusyError:
            continue


def entries(store: Store, chain: str = "default") -> list[Entry]:
    """All entries of a chain, by ``seq``."""
    with store.snapshot() as snapshot:
        ids = [row[0] for row in snapshot.head_rows() if row[1] == chain]
        return [Entry._make(row.columns) for row in snapshot.select(ids[0])] if ids else []


def names(store: Store, chain: str = "default") -> list[str]:
    """Names of all spans of a chain, by ``seq``."""
    return [entry.name for entry in entries(store, chain) if entry.kind == "span"]
