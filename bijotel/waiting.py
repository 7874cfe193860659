"""What waits on the disk for a store, counted from outside. The disk's edge.

Spools are only listed: those of living processes are in use, and the others are for the next start
to adopt. The page of a process that has ended is locked for a moment, while it is read: a start
passes it over then, and the next one adopts it.

Source: docs/explanation/durability.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bijotel.count_page import left_pages
from bijotel.errors import UnavailableError


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is in a spool folder and not in the store."""

    files: int = 0
    """Spools, whoever they belong to."""
    bytes: int = 0
    """Their size, what is sealed of it already included."""
    unsettled: int = 0
    """Spans that processes which have ended took, and then neither sealed nor put into a spool
    as far as they could still note it."""


def read_waiting(folder: Path, chains: Iterable[str]) -> Waiting:
    """Look into a spool folder; one that is not there holds nothing.

    Args:
        folder: The folder.
        chains: The names of the chains whose unsettled spans are counted.

    Raises:
        UnavailableError: the folder cannot be read.
    """
    try:
        sizes = tuple(_sizes(folder))
    except FileNotFoundError:
        return Waiting()
    except OSError as error:
        raise UnavailableError(f"{folder}: cannot be read: {error.strerror}") from None
    return Waiting(len(sizes), sum(sizes), sum(_unsettled(folder, name) for name in chains))


def _sizes(folder: Path) -> Iterator[int]:
    for path in folder.iterdir():
        if path.suffix == ".spool":
            with suppress(FileNotFoundError):  # sealed and removed meanwhile
                yield path.stat().st_size


def _unsettled(folder: Path, chain: str) -> int:
    count = 0
    for page in left_pages(folder, chain):
        os.close(page.descriptor)  # at once: a start passes a locked page over
        count += max(0, page.taken - page.settled)
    return count
