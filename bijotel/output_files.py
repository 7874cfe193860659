"""Files that get their name only when they are whole, and then stay whole.

A crash leaves the file that was there, or none, and never half of one.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

from bijotel.errors import ConfigurationError, UnavailableError

GZIP_LEVEL: Final = 1
"""Higher levels save little on text that is mostly hashes and cost the speed of the export."""
PRIVATE: Final = 0o600
"""For what the log holds: readable by the owner alone."""
PUBLIC: Final = 0o644
"""For what proves something and shows nothing."""


_KEPT: Final = {
    b"SQLite format 3\0": "a database",
    b"\x37\x7f\x06\x82": "the log of a database",
    b"\x37\x7f\x06\x83": "the log of a database",
    b"-----BEGIN ": "a key",
}
"""How files begin that nothing here ever replaces."""


@contextmanager
def new_file(
    path: str | os.PathLike[str],
    mode: int = PRIVATE,
    *,
    inputs: Iterable[str | os.PathLike[str] | None] = (),
) -> Iterator[BinaryIO]:
    """Open a file that takes the place of any other of its name when all went well.

    Args:
        path: Where it will be; ``.gz`` at its end compresses.
        mode: Who may read it.
        inputs: What the file is made from; none of them is replaced.

    Raises:
        ConfigurationError: what has that name is no file, is a database or a key, or is among
            the inputs.
        UnavailableError: the file cannot be written.
    """
    check_target(path, inputs)
    # Behind a link, its own place: the link stays one.
    target = Path(path).resolve()
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except (OSError, ValueError) as error:  # ValueError: NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise UnavailableError(f"{path}: cannot be written: {reason}") from None
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - an open descriptor, not a path
            if target.suffix == ".gz":
                # No name and no time in it: the same entries give the same octets.
                with gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0) as packed:
                    yield cast("BinaryIO", packed)
            else:
                yield file
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        Path(name).replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise UnavailableError(f"{path}: cannot be written: {error.strerror}") from None
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_target(
    path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None] = ()
) -> None:
    """Refuse a name under which something lies that must not be lost.

    Raises:
        ConfigurationError: as for :func:`new_file`.
    """
    target = Path(path)
    if str(target) == "-":
        raise ConfigurationError("-: expected the name of a file; nothing is written to a pipe")
    try:
        if not target.exists():
            return
        if not target.is_file():
            raise ConfigurationError(f"{target}: expected the name of a file, found something else")
        if any(name is not None and _is_same(name, target) for name in inputs):
            raise ConfigurationError(f"{target}: is read here; expected another name to write to")
        with target.open("rb") as file:
            begin = file.read(16)
    except (OSError, ValueError):  # what cannot be looked at is told when it is written
        return
    for magic, what in _KEPT.items():
        if begin.startswith(magic):
            raise ConfigurationError(f"{target}: is {what}; nothing is written over it")


def _is_same(name: str | os.PathLike[str], target: Path) -> bool:
    try:
        return Path(name).samefile(target)
    except (OSError, ValueError):  # a URL, or a line that is given in place of a file
        return False


def _sync_folder(folder: Path) -> None:
    """Put the new name on the disk: after a loss of power the old file would be back."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
