"""The contract that every store keeps, and the few values that cross it. No I/O.

Writing: a store is handed a pure function of the chain's head and calls it under its write
lock, so that no two writers can ever extend the same head. Reading: a snapshot shows the store
at one moment and never changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from bijotel.errors import BijotelError
from bijotel.findings import Finding, Notice
from bijotel.model import ChainHead, Entry
from bijotel.seal import Batch

MakeBatch: TypeAlias = "Callable[[ChainHead | None], Batch]"
"""Given the chain's head, or None for a chain that does not exist yet, make what follows it."""

SpanIdentity: TypeAlias = "tuple[bytes, bytes, bytes]"
"""trace_id, span_id and body_hash: what makes a span's entry unique within a chain."""

ENTRY_COLUMNS: tuple[str, ...] = Entry._fields
HEAD_COLUMNS: tuple[str, ...] = ChainHead._fields


class AlreadySealedError(BijotelError):
    """The store's unique guard refused a span that the chain holds already."""

    code = "already-sealed"


class StoreBusyError(BijotelError):
    """Another writer holds the store; the same call may succeed later."""

    code = "store-busy"


class RawRow(NamedTuple):
    """One row of entries as the engine returned it: of any type, of any length."""

    place: int
    """Where the row physically stands; rises with the order of insertion."""
    columns: tuple[Any, ...]
    """In the order of ``ENTRY_COLUMNS``. In place of a body that is no blob stands the name of
    its type, in place of one over the limit its length."""


class Store(Protocol):
    """A place for chains.

    Contract:
        atomicity: ``append`` stores all entries of the batch and the new head, or nothing.
        durability: when ``append`` returns, the batch survives the loss of power.
        isolation: ``make`` sees the head that the last successful append of any process left,
            and no other append to that chain happens until this one ends.
        repetition: ``make`` may be called more than once for one ``append``; after an error
            the same call may be made again.
        threads: any thread may call; calls of one store object are serialised.
        processes: any number may append to one chain.
        fork: ``release`` closes everything that must not cross a fork; the next call opens
            it again, in the parent and in the child.
    """

    location: str
    """What names the store for people: a path, or a URL without its password."""
    address: str | None
    """What another process opens the same store by; may hold a password. None: nothing does."""

    @property
    def spool_folder(self) -> Path | None:
        """Where spans wait by default while the store cannot be written; None: in memory only."""
        ...

    def append(self, chain: str, make: MakeBatch) -> ChainHead:
        """Append what ``make`` returns to a chain, creating tables and chain when needed.

        Raises:
            AlreadySealedError: a span of the batch is in the chain; nothing was stored.
            StoreBusyError: another writer holds the lock; nothing was stored.
            UnavailableError: the store cannot be written; nothing was stored.
        """
        ...

    def sealed(self, chain_id: bytes, spans: Iterable[SpanIdentity]) -> set[SpanIdentity]:
        """Find out which of these spans the chain holds."""
        ...

    def key_entry(self, chain_id: bytes, seq: int) -> tuple[Any, ...] | None:
        """Read an entry of kind ``key``; None when that entry is of another kind.

        ``make`` may call this: it sees what ``make`` appends to, and takes no other lock.
        """
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Open a read-only view of the store at one moment.

        Raises:
            UnavailableError: there is no store of ours, or it cannot be read.
        """
        ...

    def release(self) -> None:
        """Close connections; the next call opens them again. Never raises."""
        ...


class Snapshot(Protocol):
    """A store at one moment, for reading. Rows are raw: whoever reads them checks them."""

    def faults(self) -> tuple[list[Finding], list[Notice]]:
        """Compare the store's objects with the schema.

        A finding with the code ``schema-missing``, or ``schema-mismatch`` on a table itself,
        means that the rows cannot be read.
        """
        ...

    def head_rows(self) -> list[tuple[Any, ...]]:
        """All head records in the order of ``HEAD_COLUMNS``, ordered by name."""
        ...

    def places(self) -> tuple[int, int] | None:
        """The first and the last place of all rows; None when there are none."""
        ...

    def scan(self, first: int, last: int) -> Iterator[RawRow]:
        """Rows of all chains from place ``first`` to ``last``, by place and through no index."""
        ...

    def ordered(self, chain_id: bytes) -> Iterator[RawRow]:
        """Rows of a chain by ``seq`` (integers from 0 on) and place, through no index."""
        ...

    def misplaced(self, chain_id: bytes) -> list[Any]:
        """Values of ``seq`` in a chain that are no integer from 0 on."""
        ...

    def strangers(self, chain_ids: Sequence[bytes]) -> Iterator[tuple[Any, Any]]:
        """Chain id and ``seq`` of the rows of none of these chains, by ``seq``; long ones cut."""
        ...

    def unlisted(self, chain_id: bytes) -> int | None:
        """The first ``seq`` that a chain's index by ``seq`` and its rows do not agree on."""
        ...

    def select(
        self,
        chain_id: bytes,
        conditions: Sequence[tuple[str, Any]] = (),
        *,
        limit: int | None = None,
        newest: bool = False,
    ) -> Iterator[RawRow]:
        """Rows of a chain by ``seq``, oldest or newest first.

        Args:
            chain_id: The chain.
            conditions: Pairs of a condition of :data:`CONDITIONS` and its value.
            limit: At most so many rows.
            newest: Start with the highest ``seq``.
        """
        ...


CONDITIONS: frozenset[str] = frozenset(
    {
        "seq",
        "seq_from",
        "seq_to",
        "trace_id",
        "span_id",
        "kind",
        "dedup_key",
        "start_from",
        "start_to",
    }
)
"""What :meth:`Snapshot.select` can ask for: equality, or an inclusive bound."""
