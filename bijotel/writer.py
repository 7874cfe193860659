"""The bounded queue and the one thread that seals what is in it.

The application's threads only append to the queue; encoding, hashing and all I/O happen here.
There is no timer: whatever is waiting is sealed in one transaction at once. While the store
cannot be written, items wait in the queue; when it is half full, or when the process is to end,
they move to the spool on the disk, and newer ones go behind them. What fits nowhere is counted
and becomes a ``gap`` entry. Items are sealed in the order in which they were taken. The counts
and the way to the disk are ``ledger``'s.

Source: docs/explanation/durability.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar

from opentelemetry import context as otel_context

from bijotel.forks import Forkable, survive_forks
from bijotel.ledger import Ledger
from bijotel.model import Draft
from bijotel.outbox import Outbox
from bijotel.sealer import MAX_BATCH, MAX_BATCH_BYTES, Sealer
from bijotel.stats import Stats
from bijotel.stores.base import StoreBusyError
from bijotel.stores.retry import pauses

_log = logging.getLogger("bijotel")

JOIN_SECONDS: Final = 1.0
"""How long a stop that may take so long waits for the thread at least, whatever flushing took."""

Item = TypeVar("Item")


class _Batch(NamedTuple):
    """Taken from the queue and encoded; neither sealed nor in the spool yet."""

    drafts: list[Draft]
    waiting: list[threading.Lock]
    """Of those who wait for the commit."""


class _TakenOverError(Exception):
    """Another thread moves what waits from now on."""


class Writer(Forkable, Generic[Item]):
    """A queue with a sealing thread behind it."""

    def __init__(
        self,
        sealer: Sealer,
        encode: Callable[[Item], Draft],
        max_queue_size: int,
        open_outbox: Callable[[], Outbox] | None = None,
        *,
        needs_chain: bool = False,
        on_commit: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Make the queue; the thread starts with the first item.

        Args:
            sealer: Appends to the chain.
            encode: Turns an item into a draft; runs on the thread.
            max_queue_size: How many items may wait in memory.
            open_outbox: Makes this process's place on the disk; None keeps all in memory.
            needs_chain: ``encode`` can do nothing before the chain has been begun.
            on_commit: Gets the seconds that each commit took.
        """
        self._sealer = sealer
        self._encode = encode
        self._max_queue_size = max_queue_size
        self._open_outbox = open_outbox
        self._needs_chain = needs_chain
        self._on_commit = on_commit
        self._begin()
        survive_forks(self)

    def _begin(self) -> None:
        """Start from nothing: in a new writer, and in the child of a fork."""
        self._queue: deque[tuple[Item, threading.Lock | None]] = deque()
        self._batch = _Batch([], [])
        self._ledger = Ledger(self._open_outbox)
        self._stalled = self._stopping = self._stopped = self._given_up = False
        self._thread: threading.Thread | None = None
        # Locks that a signal's handler may meet in its own thread can be taken twice.
        self._starting = threading.RLock()
        # The thread sleeps by taking the gate and is woken by opening it: half an Event's time.
        self._gate = threading.Lock()
        self._gate.acquire()
        self._sleeping = False
        self._progress = threading.Condition()
        # Held while the store is used, so that a fork finds it at rest.
        self._at_work = threading.Lock()
        # Held while what waits is moved, by its owner: the thread, or whoever took over from it.
        self._turn = threading.RLock()
        self._owner: threading.Thread | None = None

    # --- the application's side --------------------------------------------------------------

    def put(self, item: Item, wait_seconds: float | None = None) -> None:
        """Queue an item, or count its loss when nothing has room for it.

        Args:
            item: What ``encode`` understands.
            wait_seconds: Wait at most so long for the commit; None returns at once.
        """
        if self._thread is None:
            if self._stopped:
                self._put_late(item)
                return
            self.start()
        committed = None
        if wait_seconds is not None and not self._stalled:
            committed = threading.Lock()
            committed.acquire()
        ledger = self._ledger
        with ledger.counting:
            ledger.take()
            has_room = len(self._queue) < self._max_queue_size
            if has_room:
                self._queue.append((item, committed))
        if not has_room:
            ledger.losses.add("spool-full" if ledger.is_full else "queue-full")
            return
        if self._sleeping:
            self._wake()
        elif self._thread is None:  # it was ending while this one was queued
            self.start()
        if committed is not None and not committed.acquire(timeout=wait_seconds or 0):
            self._stalled = True
            self.note_error(TimeoutError("the store does not keep up"), "waiting for a commit")

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until everything taken so far is committed; False on timeout."""
        deadline = time.monotonic() + timeout_seconds
        if self._thread is None and self._unfinished():
            self.start()
        with self._progress:
            while self._unfinished():
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return False
                self._wake()
                self._progress.wait(min(remaining, 0.1))
        return True

    def stop(self, timeout_seconds: float) -> bool:
        """Commit what waits and end the thread; False when something is left.

        Asked again after that, it waits for nothing: what is left is for the next start.
        """
        deadline = time.monotonic() + timeout_seconds
        asked_again = self._given_up and self._thread is None
        done = not self._unfinished() if asked_again else self.flush(timeout_seconds)
        self._stopping, self._stopped, self._given_up = True, True, not done
        self._wake()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(min(JOIN_SECONDS, timeout_seconds), deadline - time.monotonic()))
        if not done:
            with suppress(_TakenOverError):
                self._rescue()
        if not done and not asked_again:
            spooled, left = self._ledger.spooled, self._left()
            _log.error(
                "bijotel: not sealed in time: %d spans in the spool, %d in memory", spooled, left
            )
        if self._thread is None:
            self._ledger.close()
        return done

    def stats(self) -> Stats:
        """Count what became of the items."""
        return self._ledger.stats(self._left(), stalled=self._stalled)

    def note_error(self, error: BaseException, doing: str) -> None:
        """Count an internal error, and log the first of each kind."""
        self._ledger.note_error(error, doing)

    def _put_late(self, item: Item) -> None:
        """Keep an item that comes after the end: on the disk, for the next start."""
        with self._ledger.counting:
            self._ledger.take()
        try:
            draft = self._encode(item)
            with self._turn:
                self._ledger.spool([draft])
        except Exception as error:  # noqa: BLE001 - never into the application
            self.note_error(error, "keeping a span that ended after shutdown")
            self._ledger.losses.add("after-shutdown")

    def _rescue(self) -> None:
        """Spool what the thread could not finish, taking over from one that hangs in the store.

        What it is committing may be committed after all; the store's guard skips it next time.
        """
        with self._turn:
            if self._thread is not None and not self._at_work.locked():
                return  # at work on the disk, or in a function of the application's
            self._thread = None
            self._owner = threading.current_thread()
        if not self._needs_chain or self._sealer.is_open:
            self._spill()

    def _left(self) -> int:
        return len(self._queue) + len(self._batch.drafts)

    def _unfinished(self) -> bool:
        return self._left() > 0 or self._ledger.waits_on_disk or self._ledger.losses.pending

    def _wake(self) -> None:
        # It may be open already.
        with suppress(RuntimeError):
            self._gate.release()

    def start(self) -> None:
        """Start the thread, unless it runs: the first item does, and what earlier ones left."""
        with self._starting:
            if self._thread is None:
                self._stopping = False
                self._ledger.open()
                # A daemon: an application's exit never waits for it; shutdown flushes instead.
                thread = threading.Thread(target=self._run, name="bijotel", daemon=True)
                if self._thread is None:  # a signal's handler may have been here meanwhile
                    self._thread = thread
                    thread.start()

    # --- the thread's side -------------------------------------------------------------------

    def _run(self) -> None:
        # Our own I/O must not be traced: a span for it would be sealed, with I/O of its own.
        otel_context.attach(
            otel_context.set_value(otel_context._SUPPRESS_INSTRUMENTATION_KEY, True)  # noqa: SLF001
        )
        with self._turn:
            self._owner = threading.current_thread()
        with suppress(_TakenOverError):
            try:
                self._work()
            finally:  # also when it was taken over: what it opened is nobody else's to close
                with self._at_work:
                    self._sealer.close()
            with self._turn:
                self._keep_turn()
                self._thread = None

    def _work(self) -> None:
        while not (self._stopping and not self._unfinished()):
            if not self._unfinished():
                self._sleep()
                continue
            try:
                done = self._step()
            except _TakenOverError:
                raise
            except BaseException as error:  # noqa: BLE001 - the thread must live on
                self.note_error(error, "sealing")
                self._gate.acquire(timeout=0.25)
                done = False
            with self._progress:
                self._progress.notify_all()
            if self._stopping and not done:
                return

    def _keep_turn(self) -> None:
        """Go on as the owner of the turn only; the caller holds it."""
        if threading.current_thread() is not self._owner:
            raise _TakenOverError

    def _sleep(self) -> None:
        self._stalled = False
        self._sleeping = True
        if not self._queue and not self._stopping:
            self._gate.acquire()
        self._sleeping = False

    def _step(self) -> bool:
        """Seal one batch, oldest first; False when that was impossible."""
        self._ledger.open()
        if self._needs_chain and not self._attempt(self._sealer.open):
            self._gate.acquire(timeout=0.1)
            return False
        if self._ledger.waits_on_disk:
            if self._is_crowded():
                self._spill()
            done = self._seal_spooled()
        else:
            done = self._seal_queued()
        if not done:
            self._spill()
        return done

    def _seal_spooled(self) -> bool:
        try:
            delivery = self._ledger.next_spooled(MAX_BATCH)
        except OSError as error:
            self.note_error(error, "reading the spool")
            self._gate.acquire(timeout=0.25)
            return False
        if delivery is None:
            return False
        if delivery.drafts and not self._commit(delivery.drafts):
            return False
        with self._turn:
            self._keep_turn()
            self._ledger.deliver(delivery)
        return True

    def _seal_queued(self) -> bool:
        batch = self._fill()
        gaps = self._ledger.losses.take()
        if not self._commit([*batch.drafts, *(gap.draft() for gap in gaps)]):
            self._ledger.losses.put_back(gaps)
            return False
        with self._turn:
            self._keep_turn()
            self._ledger.seal(len(batch.drafts), gaps)
            self._finish()
        return True

    def _spill(self) -> None:
        """Move everything that waits in memory to the spool, if there is to be one."""
        while self._open_outbox is not None and self._left():
            batch = self._fill()
            try:
                with self._turn:
                    self._keep_turn()
                    self._ledger.spool(batch.drafts)
                    self._finish()
            except OSError as error:
                self.note_error(error, "spooling")
                return

    def _fill(self) -> _Batch:
        """Encode items until the batch is full."""
        batch = self._batch
        size = sum(len(draft.body) for draft in batch.drafts)
        while self._queue and len(batch.drafts) < MAX_BATCH and size < MAX_BATCH_BYTES:
            item, committed = self._queue[0]
            draft = self._try_encode(item)
            with self._turn:
                self._keep_turn()
                if committed is not None:
                    batch.waiting.append(committed)
                if draft is not None:
                    batch.drafts.append(draft)
                    size += len(draft.body)
                # Last, so that a flush never finds it in neither place.
                self._queue.popleft()
        return batch

    def _try_encode(self, item: Item) -> Draft | None:
        try:
            return self._encode(item)
        except BaseException as error:  # noqa: BLE001 - one span must not cost the others
            self.note_error(error, "encoding a span")
            self._ledger.losses.add("encode-failed")
            return None

    def _finish(self) -> None:
        """Let go of a batch that is sealed or on the disk."""
        batch, self._batch = self._batch, _Batch([], [])
        for committed in batch.waiting:
            committed.release()

    def _is_crowded(self) -> bool:
        return len(self._queue) * 2 > self._max_queue_size

    def _commit(self, drafts: list[Draft]) -> bool:
        """Append until it succeeds; False when the drafts are better kept elsewhere."""
        started = time.monotonic()
        for pause in pauses():
            if self._attempt(partial(self._sealer.append, drafts)):
                self._on_commit(time.monotonic() - started)
                return True
            if self._stopping or self._is_crowded():
                break
            self._gate.acquire(timeout=pause)
        return False

    def _attempt(self, action: Callable[[], object]) -> bool:
        """Do one thing with the store; False when it failed, which may pass."""
        try:
            with self._at_work:
                action()
        except StoreBusyError:
            return False
        except Exception as error:  # noqa: BLE001 - the thread must live on
            self.note_error(error, "sealing")
            return False
        return True
