"""Audits the traces of long input in several processes, in order; the edge of this pure room.

Each worker has one batch of traces at a time, and gets the next one when its answer is read, so
that what waits is bounded. Workers are started as commands, neither forked nor spawned: the
parent may have threads, and its main module is not to be run again.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from typing import Final, TypeAlias

from bijotel.audit.result import TraceAudit, audit_trace
from bijotel.errors import UnavailableError
from bijotel.traces.grouping import Part
from bijotel.traces.reader import assemble_trace
from bijotel.usable_cpus import usable_cpus

# Isolated, with the parent's own path: started plainly, Python would first look for modules in
# the current folder.
_COMMAND: Final = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "sys.path[:] = sys.argv[1:]; from bijotel.audit.workers import work; work()"
)
_BATCH_BYTES: Final = 1_000_000
_MOST_WORKERS: Final = 3
"""Each takes some 60 MB."""

Child: TypeAlias = "subprocess.Popen[bytes]"
Batch: TypeAlias = "list[list[Part]]"


def usable_workers() -> int:
    """Say how many workers are worth starting: none where there is one processor."""
    processors = usable_cpus()
    return min(processors, _MOST_WORKERS) if processors > 1 else 0


def audits_of(traces: Iterable[list[Part]], workers: int) -> Iterator[TraceAudit]:
    """Audit traces, given as their parts, in order.

    Args:
        traces: The parts of each trace; an error that they end with is raised after the audits.
        workers: How many processes share the work; 0 to do all of it in this one.

    Raises:
        UnavailableError: A worker ended, or failed.
    """
    if not workers:
        yield from _audits(traces)
        return
    failed: list[UnavailableError] = []
    with ExitStack() as stack:
        idle = deque(_start(stack) for _ in range(workers))
        busy: deque[Child] = deque()
        for batch in _batches(traces, failed):
            answer: list[TraceAudit] = []
            if not idle:
                answer = _receive(busy[0])
                idle.append(busy.popleft())
            _send(idle[0], batch)
            busy.append(idle.popleft())
            yield from answer
        for child in busy:
            yield from _receive(child)
    if failed:
        raise failed[0]


def work() -> None:
    """Answer the batches on standard input; the body of a worker process."""
    while True:
        try:
            batch = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by our own parent
        except EOFError:
            return
        answer: list[TraceAudit] | str
        try:
            answer = list(_audits(batch))
        except Exception as error:  # noqa: BLE001 - the parent says it
            answer = f"{type(error).__name__}: {error}"
        pickle.dump(answer, sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()


def _audits(traces: Iterable[list[Part]]) -> Iterator[TraceAudit]:
    for parts in traces:
        trace = assemble_trace(parts)
        if trace is not None:
            yield audit_trace(trace)


def _batches(traces: Iterable[list[Part]], failed: list[UnavailableError]) -> Iterator[Batch]:
    batch: Batch = []
    size = 0
    try:
        for parts in traces:
            batch.append(parts)
            size += sum(len(part.octets) for part in parts)
            if size > _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    except UnavailableError as error:
        failed.append(error)
    if batch:
        yield batch


def _start(stack: ExitStack) -> Child:
    child = subprocess.Popen(
        [sys.executable, "-I", "-c", _COMMAND, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    stack.callback(_end, child)
    return child


def _send(child: Child, batch: Batch) -> None:
    assert child.stdin is not None  # noqa: S101 - for the type checker
    try:
        pickle.dump(batch, child.stdin, pickle.HIGHEST_PROTOCOL)
        child.stdin.flush()
    except BrokenPipeError:
        raise _ended(child) from None


def _receive(child: Child) -> list[TraceAudit]:
    assert child.stdout is not None  # noqa: S101 - for the type checker
    try:
        answer: list[TraceAudit] | str = pickle.load(child.stdout)  # noqa: S301 - our own child
    except (EOFError, pickle.UnpicklingError):
        raise _ended(child) from None
    if isinstance(answer, str):
        raise UnavailableError(f"a trace could not be audited: {answer}")
    return answer


def _ended(child: Child) -> UnavailableError:
    return UnavailableError(f"an auditing process ended with code {child.wait()}")


def _end(child: Child) -> None:
    """Leave no process and no pipe behind, whatever happened meanwhile."""
    child.kill()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    child.wait()
