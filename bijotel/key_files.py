"""Files that hold keys: a private one is read when it is private, and none is ever overwritten.

What stands in them is the business of ``keys`` and ``signing``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from bijotel.errors import ConfigurationError, UnavailableError

MAX_KEY_FILE_BYTES: Final = 65536
"""What is read of a file; no key is longer."""
PRIVATE: Final = 0o600
"""Readable and writable by the owner alone."""
PUBLIC: Final = 0o644


class NewFile(NamedTuple):
    """A file that is to be made."""

    path: Path
    octets: bytes
    mode: int


def read_key_file(path: Path, what: str, *, private: bool) -> bytes:
    """Read a key's file.

    Args:
        path: A regular file, or something else that can be read (a pipe has no mode to check).
        what: What it is to hold, for messages.
        private: Refuse a file that others than its owner can use.

    Raises:
        ConfigurationError: it cannot be read, or is not private.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            octets = file.read(MAX_KEY_FILE_BYTES)
    except (OSError, ValueError) as error:  # ValueError: NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{what} file {path}: {reason}") from None
    if private and stat.S_ISREG(mode) and mode & 0o077:
        raise ConfigurationError(
            f"{what} file {path}: mode is {stat.S_IMODE(mode):04o}, expected 0600 (readable by "
            "its owner alone)"
        )
    return octets


def write_new_files(files: Iterable[NewFile]) -> None:
    """Write files that must not exist yet and put them on the disk: all of them, or none.

    Raises:
        ConfigurationError: one of them exists.
        UnavailableError: one of them cannot be written.
    """
    written: list[Path] = []
    try:
        for path, octets, mode in files:
            _write_new(path, octets, mode, written)
    except BaseException:
        for path in written:
            with suppress(OSError):
                path.unlink()
        raise


def _write_new(path: Path, octets: bytes, mode: int, written: list[Path]) -> None:
    try:
        # O_EXCL also refuses a symbolic link, so nobody can choose another place for a key.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        written.append(path)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - an open descriptor, not a path
            file.write(octets)
            file.flush()
            os.fsync(descriptor)
    except FileExistsError:
        raise ConfigurationError(f"{path}: exists already and is not overwritten") from None
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be written: {error.strerror}") from None
