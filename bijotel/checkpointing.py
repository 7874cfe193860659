"""Make checkpoints of a chain: on demand, every so many entries, and at the end.

Signed is only a head that was committed and whose MAC holds. Each note is recorded in the chain
itself, and put into a file when one is wanted. The log is not read, but for the few hashes that
show that the file's earlier checkpoint is extended.

Source: docs/how-to/checkpoints, docs/spec (checkpoint).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, cast

from bijotel.checkpoint import Checkpoint, Signer, check_signers, checkpoint_draft, sign_checkpoint
from bijotel.checkpoint_file import replace_checkpoint
from bijotel.consistency import check_extends
from bijotel.entries import only_chain
from bijotel.keys import KeyRing
from bijotel.model import ChainHead, Draft
from bijotel.note import EvidenceError
from bijotel.sealer import Sealer
from bijotel.signing import load_signing_key
from bijotel.stores.base import Snapshot, Store
from bijotel.stores.retry import patiently
from bijotel.stores.sqlite_tiles import open_tiles
from bijotel.stores.tiles import with_tree
from bijotel.verify.judge import read_heads
from bijotel.verify.leaves import leaf_reader

_log = logging.getLogger("bijotel")

PATIENCE_SECONDS: Final = 0.5
"""How long the sealing thread waits for another writer to record a checkpoint."""


SigningKeySource: TypeAlias = "str | os.PathLike[str] | Signer"
"""``file:PATH``, a path, or an object that signs, wherever it keeps its key."""


class Notary(NamedTuple):
    """Who signs, and where the newest checkpoint is kept."""

    ring: KeyRing
    """Holds the key that sealed the head."""
    signers: Sequence[Signer]
    """An Ed25519 key, and on request an ML-DSA-44 key of the same name behind it."""
    out: Path | None = None
    """The file with the newest checkpoint."""

    def publish(self, store: Store, chain: str, record: Callable[[Draft], object]) -> bytes:
        """Sign the head of a chain, record the note in the chain and put it into the file.

        Args:
            store: Holds the chain.
            chain: Its name, or its id as 32 hex digits.
            record: Seals an entry into the chain.

        Returns:
            The signed note.

        Raises:
            EvidenceError: ``head-mismatch`` when no key of the ring made the head; what
                ``check_extends`` raises for a file whose checkpoint this one does not extend.
                Then nothing was written.
            BijotelError: there is no such chain, or store or file cannot be used.
        """

        def sign() -> bytes:
            with store.snapshot() as snapshot:
                head = read_head(snapshot, self.ring, chain)
            return sign_checkpoint(head, self.ring, self.signers)

        def record_note(note: bytes) -> None:
            record(checkpoint_draft(note))

        if self.out is not None:
            return replace_checkpoint(self.out, sign, partial(_check_extends, store), record_note)
        note = sign()
        record_note(note)
        return note


def make_notary(
    ring: KeyRing,
    signing_key: SigningKeySource | Sequence[SigningKeySource],
    out: str | os.PathLike[str] | None,
) -> Notary:
    """Load signing keys.

    Raises:
        ConfigurationError: a key cannot be loaded, or they do not belong together.
    """
    several = isinstance(signing_key, (list, tuple))
    sources = cast("Sequence[SigningKeySource]", signing_key if several else (signing_key,))
    signers = tuple(
        load_signing_key(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else source
        for source in sources
    )
    check_signers(signers)
    return Notary(ring, signers, None if out is None else Path(out))


def read_head(snapshot: Snapshot, ring: KeyRing, chain: str | None) -> ChainHead:
    """Read the head of a chain; whether a key of the ring made it is for the signing to check.

    Raises:
        ConfigurationError: there is no such chain, or several and none is named.
        VerificationError: the tables are gone; ``head-mismatch``: a head record is malformed,
            or stands there twice.
    """
    place = only_chain(snapshot, chain)
    heads = read_heads(snapshot, ring)
    check = heads.sound.get(place.chain_id)
    if heads.broken or check is None:
        what = heads.broken[0].message if heads.broken else "the chain has no head record"
        raise EvidenceError(f"{what}; nothing was signed", "head-mismatch", "head")
    return check.head


def _check_extends(store: Store, old: Checkpoint, new: Checkpoint) -> None:
    with store.snapshot() as snapshot, open_tiles(store, new.chain_id) as tiles:
        leaves = leaf_reader(snapshot, new.chain_id)
        with_tree(new.size, leaves, tiles, lambda node: check_extends(old, new, node))


class CheckpointingSealer(Sealer):
    """Appends as any sealer does; makes a checkpoint every so many entries, and at the end.

    A checkpoint that cannot be made is reported and left to the next turn; what was sealed stays
    sealed.
    """

    def __init__(self, store: Store, chain: str, notary: Notary, every: int | None) -> None:
        """Bind a chain; nothing is opened yet.

        Args:
            store: Holds the chain.
            chain: Its name.
            notary: Signs.
            every: Entries between two checkpoints; None makes one at the end only.
        """
        super().__init__(store, chain, notary.ring)
        self._notary = notary
        self._every = every
        # Sizes of the chain; what others sealed before the first append is not ours to count.
        self._tried_at: int | None = None
        self._made_at: int | None = None
        self._note_error: Callable[[BaseException, str], object] = _log_error

    def report_errors_to(self, note_error: Callable[[BaseException, str], object]) -> None:
        """Say who gets what went wrong, and what was being done; else it is logged."""
        self._note_error = note_error

    def append(self, drafts: Sequence[Draft]) -> int:
        """Seal drafts, and make a checkpoint behind their commit when one is due."""
        count = super().append(drafts)
        size = self._size()
        if self._tried_at is None:
            self._tried_at = self._made_at = size - count
        if self._every is not None and size - self._tried_at >= self._every:
            self._make_checkpoint()
        return count

    def close(self) -> None:
        """Make the last checkpoint, if it is of more entries, and let go of the store."""
        if self._made_at is not None and self._size() > self._made_at:
            self._make_checkpoint()
        super().close()

    def _size(self) -> int:
        return 0 if self._last is None else self._last.seq + 1

    def _make_checkpoint(self) -> None:
        self._tried_at = self._size()
        try:
            self._notary.publish(self.store, self.chain, self._record)
        except Exception as error:  # noqa: BLE001 - a signer may be anyone's code
            self._note_error(error, "making a checkpoint")
        else:
            self._tried_at = self._made_at = self._size()

    def _record(self, draft: Draft) -> None:
        patiently(partial(super().append, [draft]), PATIENCE_SECONDS)


def _log_error(error: BaseException, doing: str) -> None:
    _log.error("bijotel: %s while %s: %s", type(error).__name__, doing, error)
