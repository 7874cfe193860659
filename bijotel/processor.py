"""The OpenTelemetry edge: ended spans go in, sealed entries come out.

Every callback is guarded: an exception of ours never reaches the application, is logged once a
kind and is counted in ``stats()``. What a callback does on the application's thread is choose,
copy and queue; everything else is the writer's.

Source: the SpanProcessor contract of the OpenTelemetry SDK, docs/explanation/design.
"""

from __future__ import annotations

import logging
import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from bijotel.count_page import holds_pages
from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.exits import call_at_exit
from bijotel.keys import KeyRing, KeySource, as_key_ring
from bijotel.metrics import observe
from bijotel.model import EMPTY, Draft, Dropped, SpanRecord
from bijotel.outbox import MAX_SPOOL_BYTES, Outbox
from bijotel.privacy import Redact, private_draft
from bijotel.propagation import (
    ProvenanceMemory,
    Remembered,
    inherited_attributes,
    is_call_in_scope,
)
from bijotel.rag.scope import current_provenance
from bijotel.seal import check_name
from bijotel.sealer import Sealer
from bijotel.spans.encode import encode_record
from bijotel.spans.read import read_span
from bijotel.spans.select import is_genai_span
from bijotel.stats import Stats
from bijotel.stores.open import StoreLocation, open_store
from bijotel.writer import Writer

if TYPE_CHECKING:
    from bijotel.checkpointing import SigningKeySource
    from bijotel.stores.base import Store

_log = logging.getLogger("bijotel")

MAX_QUEUE_SIZE: Final = 8192
"""How many ended spans may wait to be sealed, by default."""
COMMIT_TIMEOUT_MILLIS: Final = 100
"""How long ``on_end`` waits for its commit in ``commit`` mode, by default."""
SHUTDOWN_SECONDS: Final = 4.0
"""How long an exit waits for the last commits."""

Durability = Literal["queued", "commit"]
Content = Literal["full", "digest"]


class _Ended(NamedTuple):
    """A span at the moment of its end. The span itself may be changed by later processors."""

    span: ReadableSpan
    attributes: Mapping[str, Any]
    dropped: Dropped
    remembered: Remembered | None


class _Checkpoints(NamedTuple):
    """The options about checkpoints."""

    signing_key: SigningKeySource | Sequence[SigningKeySource] | None
    every: int | None
    out: str | os.PathLike[str] | None


class HmacChainSpanProcessor(SpanProcessor):
    """Seals every ended generative AI span into a chain.

    Add it last: what is sealed is the span as the processors before it left it. Spans that a
    sampler does not record never reach any processor.

    Args:
        store: A path, a URL or a store.
        key: 32 bytes, ``"env:NAME"``, ``"file:PATH"``, a callable, a :class:`KeyRing`, or None
            for ``BIJOTEL_HMAC_SECRET`` or ``BIJOTEL_HMAC_SECRET_FILE``.
        chain: The chain's name; several processes may share one.
        durability: ``"queued"``: ``on_end`` returns in microseconds and the span is committed
            behind it. ``"commit"``: ``on_end`` returns after the commit, or after
            ``commit_timeout_millis``.
        select: Which ended spans are sealed.
        max_queue_size: How many spans may wait; a span beyond that is dropped and counted in a
            sealed ``gap`` entry.
        spool: The folder in which spans wait while the store cannot be written and the queue is
            half full, and between an exit and the next start; by default beside a SQLite file.
        max_spool_bytes: How long this process's file in it may grow; what is moved at once, up
            to 8 MiB, may go beyond.
        redact: Gets a copy of each record and returns what is sealed in its place. When it
            raises or returns no record, the content is withheld and the entry says so.
        content: ``"full"``, or ``"digest"``: values that may hold what people wrote are sealed
            as keyed digests.
        commit_timeout_millis: The longest wait of ``on_end`` in ``commit`` mode. Once exceeded,
            ``on_end`` does not wait again until the writer has caught up.
        signing_key: ``file:PATH`` of an Ed25519 key, an object that signs, or a sequence of one
            and an ML-DSA-44 key: a checkpoint is signed at shutdown and sealed into the chain.
        checkpoint_every: Entries after whose commit there is a checkpoint as well.
        checkpoint_out: A file that always holds the newest checkpoint, and never goes back.

    Raises:
        ConfigurationError: no usable key, an unknown option, or the chain was sealed with
            another key.
    """

    def __init__(
        self,
        store: StoreLocation,
        *,
        key: KeyRing | KeySource | None = None,
        chain: str = "default",
        durability: Durability = "queued",
        select: Callable[[ReadableSpan], bool] = is_genai_span,
        max_queue_size: int = MAX_QUEUE_SIZE,
        commit_timeout_millis: float = COMMIT_TIMEOUT_MILLIS,
        spool: str | os.PathLike[str] | None = None,
        max_spool_bytes: int = MAX_SPOOL_BYTES,
        redact: Redact | None = None,
        content: Content = "full",
        signing_key: SigningKeySource | Sequence[SigningKeySource] | None = None,
        checkpoint_every: int | None = None,
        checkpoint_out: str | os.PathLike[str] | None = None,
    ) -> None:
        check_name(chain)
        _check_choices(durability, content)
        _check_numbers(max_queue_size, commit_timeout_millis, max_spool_bytes)
        if not callable(select):
            raise ConfigurationError(f"select: expected a function, got {select!r}")
        if spool is not None and not os.fspath(spool):
            raise ConfigurationError("spool: expected the name of a folder, got ''")
        keys = as_key_ring(key)
        checkpoints = _Checkpoints(signing_key, checkpoint_every, checkpoint_out)
        sealer = _make_sealer(open_store(store), chain, keys, checkpoints)
        folder = sealer.store.spool_folder if spool is None else Path(spool)
        open_outbox = partial(Outbox, folder, chain, keys, max_spool_bytes) if folder else None
        self._select = select
        self._wait_seconds = commit_timeout_millis / 1000 if durability == "commit" else None
        self._memory = ProvenanceMemory()
        is_digest = content == "digest"
        encode = partial(_encode, redact=redact, digest_for=sealer if is_digest else None)
        self._writer: Writer[_Ended] = Writer(
            sealer,
            encode,
            max_queue_size,
            open_outbox,
            needs_chain=is_digest,
            on_commit=observe(weakref.WeakMethod(self.stats), chain),
        )
        sealer.report_errors_to(self._writer.note_error)
        self.location = sealer.store.location
        """What names the store for people."""
        self.chain = chain
        """The chain's name."""
        self._check(sealer)
        call_at_exit(self._writer, _shut_down_at_exit)  # which its own thread keeps alive
        if folder is not None and holds_pages(folder):
            self._writer.start()

    def __repr__(self) -> str:
        return f"HmacChainSpanProcessor({self.location!r}, chain={self.chain!r})"

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Remember the provenance in scope, and stamp a span that is known as a model call."""
        try:
            provenance = current_provenance(parent_context)
            if provenance is not None:
                self._memory.remember(span, provenance)
        except Exception as error:  # noqa: BLE001 - never into the application
            self._writer.note_error(error, "a span started")

    def on_end(self, span: ReadableSpan) -> None:
        """Queue the span, if it is to be sealed."""
        try:
            remembered = self._memory.recall(span)
            if self._select(span):
                self._writer.put(_snapshot(span, remembered), self._wait_seconds)
        except Exception as error:  # noqa: BLE001 - never into the application
            self._writer.note_error(error, "a span ended")

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Wait until every span ended so far is committed; False on timeout."""
        try:
            return self._writer.flush(timeout_millis / 1000)
        except Exception as error:  # noqa: BLE001 - never into the application
            self._writer.note_error(error, "flushing")
            return False

    def shutdown(self) -> None:
        """Commit what is queued, waiting at most ``SHUTDOWN_SECONDS``."""
        _shut_down(self._writer, SHUTDOWN_SECONDS)

    def stats(self) -> Stats:
        """Count what became of the spans so far, in this process."""
        return self._writer.stats()

    def _check(self, sealer: Sealer) -> None:
        """Notice a wrong key now; a store that is not there yet is made by the first span."""
        token = otel_context.attach(
            otel_context.set_value(otel_context._SUPPRESS_INSTRUMENTATION_KEY, True)  # noqa: SLF001
        )
        try:
            sealer.check()
        except UnavailableError as error:
            # A file that is not there is made by the first span; one that is there is not ours.
            if os.path.lexists(self.location):
                _log.error("bijotel: nothing is sealed as long as this lasts: %s", error)
        finally:
            otel_context.detach(token)


def _shut_down(writer: Writer[_Ended], seconds: float) -> None:
    try:
        writer.stop(seconds)
    except Exception as error:  # noqa: BLE001 - never into the application
        writer.note_error(error, "shutting down")


class _Exit:
    """One span of time for all processors of a process that ends."""

    deadline: float | None = None


def _shut_down_at_exit(writer: Writer[_Ended]) -> None:
    now = time.monotonic()
    if _Exit.deadline is None:
        _Exit.deadline = now + SHUTDOWN_SECONDS
    _shut_down(writer, max(0.0, _Exit.deadline - now))


def _snapshot(span: ReadableSpan, remembered: Remembered | None) -> _Ended:
    attributes = span.attributes
    dropped = Dropped(span.dropped_attributes, span.dropped_events, span.dropped_links)
    # The mapping is a view of what later processors may change; its own copy() is the fastest.
    copy = attributes.copy() if attributes else EMPTY  # type: ignore[attr-defined]
    return _Ended(span, copy, dropped, remembered)


def _read(ended: _Ended) -> SpanRecord:
    """Read a span, and give a model call what its scope knows."""
    span, attributes, dropped, remembered = ended
    if remembered is None or not is_call_in_scope(attributes, remembered):
        return read_span(span, attributes, dropped)
    provenance = remembered.provenance
    record = read_span(span, attributes, dropped, inherited_attributes(attributes, provenance))
    if not any(provenance.contents):
        return record
    # Loads the dialect readers, which an application without passages' texts never needs.
    from bijotel.in_context import with_context  # noqa: PLC0415

    return with_context(record, provenance)


def _encode(ended: _Ended, *, redact: Redact | None, digest_for: Sealer | None) -> Draft:
    record = _read(ended)
    if redact is None and digest_for is None:
        return encode_record(record)
    return private_draft(record, redact, digest_for.digest_key if digest_for else None)


def _make_sealer(store: Store, chain: str, keys: KeyRing, checkpoints: _Checkpoints) -> Sealer:
    signing_key, every, out = checkpoints
    if signing_key is None:
        if every is not None or out is not None:
            raise ConfigurationError("checkpoint_every, checkpoint_out: need a signing_key")
        return Sealer(store, chain, keys)
    if every is not None and every < 1:
        raise ConfigurationError(f"checkpoint_every: expected at least 1, got {every}")
    from bijotel.checkpointing import (  # noqa: PLC0415 - cryptography, for signers only
        CheckpointingSealer,
        make_notary,
    )

    return CheckpointingSealer(store, chain, make_notary(keys, signing_key, out), every)


def _check_choices(durability: str, content: str) -> None:
    if content not in {"full", "digest"}:
        raise ConfigurationError(f"content: expected 'full' or 'digest', got {content!r}")
    if durability not in {"queued", "commit"}:
        raise ConfigurationError(f"durability: expected 'queued' or 'commit', got {durability!r}")


def _check_numbers(max_queue_size: int, commit_timeout_millis: float, max_spool_bytes: int) -> None:
    for name, value, least in (
        ("max_queue_size", max_queue_size, 1),
        ("max_spool_bytes", max_spool_bytes, 0),
    ):
        if type(value) is not int or value < least:
            raise ConfigurationError(f"{name}: expected at least {least}, got {value!r}")
    timeout: object = commit_timeout_millis
    if not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ConfigurationError(f"commit_timeout_millis: expected more than 0, got {timeout!r}")
