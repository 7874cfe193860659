"""How a file begins, told without taking it away. The disk's edge.

A pipe may hand out one octet at a time, and ``peek`` reads no more than once.
"""

from __future__ import annotations

import os
from io import BufferedReader, RawIOBase
from typing import Any


def beginning(file: BufferedReader, most_bytes: int) -> tuple[bytes, BufferedReader]:
    """Give the first octets of what is left of a file, and a file that begins with them.

    Raises:
        OSError: it cannot be read.
    """
    octets = file.read(most_bytes)
    if file.seekable():
        file.seek(-len(octets), os.SEEK_CUR)
        return octets, file
    return octets, BufferedReader(_Joined(octets, file))


class _Joined(RawIOBase):
    """Octets that were read already, and the file that they came from."""

    def __init__(self, octets: bytes, file: BufferedReader) -> None:
        self._octets = octets
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._octets:
            return self._file.readinto1(buffer)
        octets, self._octets = self._octets[: len(buffer)], self._octets[len(buffer) :]
        buffer[: len(octets)] = octets
        return len(octets)
