"""The file that holds the newest checkpoint of a chain: never put back by an older one.

Several processes may keep one file. Each looks at what is there, and replaces it, while it holds
the folder's lock; so whatever order they come in, the file only ever moves forward.

Source: docs/how-to/checkpoints.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bijotel.checkpoint import Checkpoint, parse_checkpoint
from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.evidence_files import read_evidence
from bijotel.note import MAX_NOTE_BYTES, EvidenceError
from bijotel.output_files import PUBLIC, new_file


def replace_checkpoint(
    path: Path,
    sign: Callable[[], bytes],
    check_extends: Callable[[Checkpoint, Checkpoint], None],
    record: Callable[[bytes], object],
) -> bytes:
    """Put a checkpoint into its file, in place of one that it extends.

    Args:
        path: The file; it need not exist.
        sign: Makes the new checkpoint; called under the lock, so that it is the newest one.
        check_extends: Gets the checkpoint that is there and the new one; raises when the new one
            does not extend it.
        record: Gets the new one when nothing speaks against it, before the file is replaced.

    Returns:
        The new checkpoint.

    Raises:
        ConfigurationError: the file holds something else than a checkpoint.
        UnavailableError: the file cannot be read or written.
        BijotelError: what the functions raise. Then the file is as it was.
    """
    with _locked(path.parent):
        old = _read(path) if path.exists() else None
        note = sign()
        if old is not None:
            check_extends(old, parse_checkpoint(note))
        record(note)
        with new_file(path, PUBLIC) as file:
            file.write(note)
    return note


def _read(path: Path) -> Checkpoint:
    octets = read_evidence(path, MAX_NOTE_BYTES)
    try:
        return parse_checkpoint(octets)
    except EvidenceError as error:
        raise ConfigurationError(
            f"{path}: holds no checkpoint and is not overwritten: {error}"
        ) from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    # The folder, because the file itself is replaced and a lock file would be left behind.
    with ExitStack() as stack:
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except (OSError, ValueError) as error:  # ValueError: NUL in the path
            reason = getattr(error, "strerror", None) or error
            raise UnavailableError(f"{folder}: cannot be used: {reason}") from None
        yield
