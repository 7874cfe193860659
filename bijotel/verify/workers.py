"""Share the fast path's reading between processes.

Each worker reads a range of places on a snapshot of its own and returns the stretches that it
proved; the ranges were fixed by the parent, so rows appended meanwhile belong to none. Workers
are started as commands, not forked and not spawned: the parent may have threads, and its main
module is not to be run again.

Key material goes to a worker through its standard input, never through its command line.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from itertools import pairwise
from typing import Final, NamedTuple

from bijotel.errors import UnavailableError
from bijotel.stores.base import Snapshot
from bijotel.stores.open import open_store
from bijotel.verify.clean import Reading, Stretch, read_stretches

# Isolated, with the parent's own path: started plainly, Python would first look for modules in
# the current folder, which may be the one with the evidence.
_COMMAND: Final = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "sys.path[:] = sys.argv[1:]; from bijotel.verify.workers import work; work()"
)
FEWEST_ROWS: Final = 2
"""A worker with fewer places than this to read is not worth starting."""


class Task(NamedTuple):
    """What one worker reads. Pickled between processes of one user only."""

    address: str
    first: int
    last: int
    reading: Reading


Stretches = tuple[dict[bytes, Stretch], bool]


def read_chains(
    snapshot: Snapshot, reading: Reading, address: str | None, workers: int
) -> Stretches:
    """Read all rows of a snapshot on the fast path.

    Where no other process can open the store, the ranges are read here, one after another.

    Returns:
        One stretch for each chain id, and whether there was a row whose chain cannot be told.
    """
    places = snapshot.places()
    if places is None:
        return {}, False
    ranges = list(_split(*places, workers))
    if len(ranges) == 1 or address is None:
        return _join([read_stretches(snapshot.scan(*part), reading) for part in ranges])
    tasks = [Task(address, low, high, reading) for low, high in ranges]
    with ExitStack() as stack:
        children = [_start(task, stack) for task in tasks[1:]]
        own = read_stretches(snapshot.scan(*ranges[0]), reading)
        return _join([own, *(_finish(child) for child in children)])


def work() -> None:
    """Do one task given on standard input; the body of a worker process."""
    task: Task = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by our own parent
    try:
        with open_store(task.address).snapshot() as snapshot:
            rows = snapshot.scan(task.first, task.last)
            result: Stretches | str = read_stretches(rows, task.reading)
    except UnavailableError as error:
        result = str(error)
    pickle.dump(result, sys.stdout.buffer)


def _split(first: int, last: int, workers: int) -> Iterable[tuple[int, int]]:
    rows = last - first + 1
    parts = max(1, min(workers, rows // FEWEST_ROWS))
    borders = [first + rows * part // parts for part in range(parts)] + [last + 1]
    return [(low, high - 1) for low, high in pairwise(borders)]


def _start(task: Task, stack: ExitStack) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-I", "-c", _COMMAND, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    stack.callback(_end, child)
    assert child.stdin is not None  # noqa: S101 - for the type checker
    with suppress(BrokenPipeError), child.stdin as pipe:
        pipe.write(pickle.dumps(task))
    return child


def _finish(child: subprocess.Popen[bytes]) -> Stretches:
    assert child.stdout is not None  # noqa: S101 - for the type checker
    octets = child.stdout.read()
    if child.wait() != 0:
        raise UnavailableError(f"a verifying process ended with code {child.returncode}")
    result: Stretches | str = pickle.loads(octets)  # noqa: S301 - written by our own child
    if isinstance(result, str):
        raise UnavailableError(result)
    return result


def _end(child: subprocess.Popen[bytes]) -> None:
    """Leave no process and no pipe behind, whatever happened meanwhile."""
    child.kill()
    with child:
        pass


def _join(parts: list[Stretches]) -> Stretches:
    joined: dict[bytes, Stretch] = {}
    stray = False
    for stretches, part_stray in parts:
        stray = stray or part_stray
        for chain_id, stretch in stretches.items():
            before = joined.get(chain_id)
            if before is None:
                joined[chain_id] = stretch
            elif before.clean and stretch.clean and stretch.follows(before):
                before.join(stretch)
            else:
                before.clean = False
    return joined, stray
