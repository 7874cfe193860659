"""Files that hold evidence: read whole and no further than what can be evidence."""

from __future__ import annotations

import os
from pathlib import Path

from bijotel.errors import UnavailableError


def read_evidence(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Read a file; of a longer one a byte more than allowed, for its parser to refuse.

    Raises:
        UnavailableError: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(most_bytes + 1)
    except (OSError, ValueError) as error:  # ValueError: NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise UnavailableError(f"{os.fspath(path)}: cannot be read: {reason}") from None
