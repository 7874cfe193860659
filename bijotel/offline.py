"""Seal spans that somebody else wrote to files: each once, and marked as coming from a file.

What a file says is believed: whoever writes it decides what is sealed, and the body says
``"via":"file"``. From then on it is protected as any entry is. Reading files is ``traces``'
duty, what a file has grown by ``growing``'s.

Source: docs/how-to/offline-sealing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bijotel.errors import UnavailableError
from bijotel.model import Draft
from bijotel.privacy import private_draft
from bijotel.sealer import Sealer, batches
from bijotel.spans.select import is_genai_span
from bijotel.stores.retry import patiently
from bijotel.traces.model import SkippedLine, Trace
from bijotel.traces.reader import read_traces

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


class UnreadableFileError(UnavailableError):
    """A file cannot be read; nothing is wrong with the store."""


@dataclass(slots=True)
class Tally:
    """What became of the spans of files."""

    sealed: int = 0
    known: int = 0
    """The chain held them already, whichever process sealed them from a file."""
    left_out: int = 0
    """They belong to no generative AI call."""
    skipped_lines: int = 0
    """Lines, or parts of lines, that could not be read."""


class OfflineSealing:
    """Seals files into one chain. One thread at a time."""

    def __init__(
        self, sealer: Sealer, *, digest: bool, skipped: Callable[[SkippedLine], None]
    ) -> None:
        """Bind a chain.

        Args:
            sealer: Appends to it.
            digest: Seal keyed digests in place of what may hold people's words.
            skipped: Called for each line that could not be read.
        """
        self._sealer = sealer
        self._digest = digest
        self._skipped = skipped
        self.tally = Tally()

    def seal(self, path: Path) -> None:
        """Seal the generative AI spans of a file that the chain does not hold yet.

        An empty file has none: a Collector leaves one whenever it begins a new one.

        Raises:
            UnreadableFileError: the file cannot be read; what could be read of it is sealed.
            UnavailableError: the store cannot be written; what was sealed before that stays
                sealed, and is skipped the next time.
            ConfigurationError: the chain was sealed with another key, or the file needs an
                extra that is not installed.
        """
        if _is_empty(path):
            return
        for batch in batches(self._drafts(path)):
            sealed = patiently(partial(self._sealer.append, batch))
            self.tally.sealed += sealed
            self.tally.known += len(batch) - sealed

    def _drafts(self, path: Path) -> Iterator[Draft]:
        for trace in self._traces(path):
            for record in trace.spans:
                if is_genai_span(cast("ReadableSpan", record)):
                    kept = replace(record, via="file")
                    yield private_draft(kept, None, self._digest_key if self._digest else None)
                else:
                    self.tally.left_out += 1

    def _traces(self, path: Path) -> Iterator[Trace]:
        try:
            yield from read_traces([path], skipped=self._skip)
        except UnavailableError as error:
            raise UnreadableFileError(str(error)) from None

    def _digest_key(self) -> bytes:
        return patiently(self._sealer.digest_key)

    def _skip(self, line: SkippedLine) -> None:
        self.tally.skipped_lines += 1
        self._skipped(line)


def _is_empty(path: Path) -> bool:
    """Tell whether a file is empty; a pipe, whose size is 0 as well, is none."""
    with suppress(OSError):  # which opening it says again
        return path.is_file() and path.stat().st_size == 0
    return False
