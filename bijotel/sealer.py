"""Drafts -> sealed entries in a store: what happens under the store's write lock.

Decides which key seals and whether the chain may be continued at all: a chain whose head is not
what a holder of the key left is never continued, and never repaired.

Source: docs/spec (head, rotation).
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.gaps import Gap
from bijotel.keys import HmacKey, KeyRing
from bijotel.model import ChainHead, Draft, Entry
from bijotel.rotation import read_rotation, rotation_draft
from bijotel.seal import Batch, head_holds, open_chain, seal_entries
from bijotel.stores.base import AlreadySealedError, SpanIdentity, Store

_log = logging.getLogger("bijotel")

ReadEntry: TypeAlias = "Callable[[bytes, int], tuple[Any, ...] | None]"
"""Given chain id and ``seq``, give an entry's columns; see ``Store.key_entry``."""


MAX_BATCH: Final = 512
"""The most spans in one transaction: bounds how long it holds the store's lock."""
MAX_BATCH_BYTES: Final = 8 * 1024 * 1024
"""A transaction takes no further span once its bodies are this long: bounds memory."""


def batches(drafts: Iterable[Draft]) -> Iterator[list[Draft]]:
    """Cut drafts into what one transaction takes."""
    batch: list[Draft] = []
    size = 0
    for draft in drafts:
        batch.append(draft)
        size += len(draft.body)
        if len(batch) >= MAX_BATCH or size >= MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Sealer:
    """Appends drafts to one chain of one store. One thread at a time."""

    def __init__(self, store: Store, chain: str, keys: KeyRing) -> None:
        """Bind a chain; nothing is opened yet."""
        self.store = store
        self.chain = chain
        self._keys = keys
        self._last: ChainHead | None = None
        self._chain_id = b""
        self._key_in_force = keys.sealing

    def check(self) -> None:
        """Read the chain's head and refuse to continue a chain of another key.

        Raises:
            ConfigurationError: the chain was sealed with a key that is not in the ring.
            UnavailableError: the store cannot be read, or does not exist yet.
        """
        with self.store.snapshot() as snapshot:
            rows = [row for row in snapshot.head_rows() if row[1] == self.chain]
            if rows:
                head = ChainHead._make(rows[0])
                self._chain_id = head.chain_id
                last = next(snapshot.select(head.chain_id, [("seq", head.seq)]), None)
                self._key_after(head, lambda *_: last.columns if last else None)

    def open(self) -> bytes:
        """Begin the chain if there is none yet.

        Returns:
            The chain's id.

        Raises:
            StoreBusyError, UnavailableError, ConfigurationError: as :meth:`append`.
        """
        if not self._chain_id:
            self._append(())
        return self._chain_id

    def digest_key(self) -> bytes:
        """Give the key of the chain's digests; as :meth:`open`."""
        return self.key_in_force.digest_key(self.open())

    @property
    def is_open(self) -> bool:
        """True once the chain's id is known, so that :meth:`open` does no I/O."""
        return bool(self._chain_id)

    @property
    def key_in_force(self) -> HmacKey:
        """The key that seals the next entry."""
        return self._key_in_force

    def append(self, drafts: Sequence[Draft]) -> int:
        """Seal drafts in order, in one transaction.

        Spans that the chain holds already are skipped, whichever process sealed them.

        Returns:
            How many entries were appended.

        Raises:
            StoreBusyError: another writer holds the store; nothing was sealed.
            UnavailableError: the store cannot be written, or its head is not to be trusted.
            ConfigurationError: the chain was sealed with a key that is not in the ring.
        """
        remaining = _distinct(drafts)
        while remaining:
            try:
                self._append(remaining)
            except AlreadySealedError as error:
                remaining = self._without_sealed(remaining, error)
            else:
                return len(remaining)
        return 0

    def rotate(self, new_key: HmacKey) -> ChainHead:
        """Seal the entry that hands over to a new key, which is in the ring.

        Returns:
            The head behind it.

        Raises:
            ConfigurationError: there is no such chain, or the key is the one in force or one
                that the chain has left.
            StoreBusyError, UnavailableError: as :meth:`append`.
        """
        left = self._left_keys()

        def make(head: ChainHead | None) -> Batch:
            if head is None:
                raise ConfigurationError(f"chain {self.chain!r}: not in {self.store.location}")
            key = self._key_after(head)
            if key.key_id == new_key.key_id:
                what = f"key {key.key_id.hex()} is in force already"
                raise ConfigurationError(f"chain {self.chain!r}: {what}")
            if new_key.key_id in left:
                what = f"key {new_key.key_id.hex()} was left, and never returns"
                raise ConfigurationError(f"chain {self.chain!r}: {what}")
            return seal_entries(head, [rotation_draft(head, key, new_key)], key, time.time_ns())

        self._last = self.store.append(self.chain, make)
        self._key_in_force = new_key
        return self._last

    def _left_keys(self) -> set[bytes]:
        """Find the keys that the chain has handed over from: each sealed the entry that did."""
        with self.store.snapshot() as snapshot:
            ids = [row[0] for row in snapshot.head_rows() if row[1] == self.chain]
            rows = snapshot.select(ids[0], [("kind", "key")]) if ids else ()
            return {Entry._make(row.columns).key_id for row in rows}

    def report_errors_to(self, note_error: Callable[[BaseException, str], object]) -> None:
        """Say who gets the errors of what is done beside the sealing; here nothing is."""

    def close(self) -> None:
        """Let go of the store; the next call opens it again. Never raises."""
        self.store.release()

    def _append(self, drafts: Sequence[Draft]) -> None:
        opened = False

        def make(head: ChainHead | None) -> Batch:
            nonlocal opened
            opened = head is None
            now = time.time_ns()
            items = drafts
            if self._is_replaced(head):
                items = [Gap("store-replaced", None, now, now).draft(), *drafts]
            if head is None:
                key = self._keys.sealing
                return open_chain(self.chain, secrets.token_bytes(16), key, items, now)
            return seal_entries(head, items, self._key_after(head), now)

        self._last = self.store.append(self.chain, make)
        self._chain_id = self._last.chain_id
        if opened:
            self._key_in_force = self._keys.sealing
            # A new chain where one was expected is how a replaced store looks from inside.
            _log.warning(
                "bijotel: began chain %r (%s) in %s",
                self.chain,
                self._last.chain_id.hex(),
                self.store.location,
            )

    def _is_replaced(self, head: ChainHead | None) -> bool:
        """Tell whether the store has lost entries that were committed to it."""
        last = self._last
        if last is None or (head and head.chain_id == last.chain_id and head.seq >= last.seq):
            return False
        _log.error(
            "bijotel: %s: entries up to %d of chain %r were committed and are gone",
            self.store.location,
            last.seq,
            self.chain,
        )
        return True

    def _key_after(self, head: ChainHead, key_entry: ReadEntry | None = None) -> HmacKey:
        """Find the key that seals the entry behind a head, and check the head with its own."""
        if self._last is not None and head == self._last:
            return self._key_in_force
        sealed_with = self._held(head.key_id, "sealed with")
        if not head_holds(head, sealed_with):
            raise UnavailableError(
                f"{self.store.location}: the head record of chain {self.chain!r} does not verify; "
                "the chain is not continued"
            )
        columns = (key_entry or self.store.key_entry)(head.chain_id, head.seq)
        entry = Entry._make(columns) if columns else None
        self._key_in_force = self._key_put_in_force(head, entry) or sealed_with
        return self._key_in_force

    def _key_put_in_force(self, head: ChainHead, entry: Entry | None) -> HmacKey | None:
        """Find the key that the last entry hands over to, if that is what it does."""
        if entry is None or entry.kind != "key" or entry.tag != head.tag:
            return None
        rotation = read_rotation(entry)
        if rotation is None:
            return None
        # Going on with the key that was left is what a forger would do.
        return self._held(rotation.new_key_id, "handed over to")

    def _held(self, key_id: bytes, what: str) -> HmacKey:
        key = self._keys.get(key_id)
        if key is None:
            given = ", ".join(key.key_id.hex() for key in self._keys)
            raise ConfigurationError(
                f"{self.store.location}: chain {self.chain!r} was {what} key {key_id.hex()}, "
                f"which is not among the given keys ({given})"
            )
        return key

    def _without_sealed(
        self, drafts: Sequence[Draft], error: AlreadySealedError
    ) -> Sequence[Draft]:
        with self.store.snapshot() as snapshot:
            ids = [row[0] for row in snapshot.head_rows() if row[1] == self.chain]
        spans = [_identity(draft) for draft in drafts if draft.kind == "span"]
        sealed = self.store.sealed(ids[0], spans) if ids else set()
        if not sealed:
            raise UnavailableError(f"the chain cannot be continued: {error}") from None
        return [draft for draft in drafts if _identity(draft) not in sealed]


def _identity(draft: Draft) -> SpanIdentity:
    return (draft.trace_id, draft.span_id, draft.body_hash)


def _distinct(drafts: Sequence[Draft]) -> Sequence[Draft]:
    """Keep the first of several drafts of one span."""
    seen: set[SpanIdentity] = set()
    kept = []
    for draft in drafts:
        if draft.kind == "span":
            identity = _identity(draft)
            if identity in seen:
                continue
            seen.add(identity)
        kept.append(draft)
    return kept
