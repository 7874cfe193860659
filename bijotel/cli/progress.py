"""A bar on standard error while long input is read, for a person at a terminal alone.

The bar is one line that is rewritten. Whoever prints elsewhere on the same terminal clears it
first; the next step draws it again.
"""

from __future__ import annotations

import time
from typing import Final

import click

from bijotel.cli.output import Output

_BAR: Final = 30
_EVERY_SECONDS: Final = 0.1
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """One bar; says nothing where nobody would see it."""

    def __init__(self, messages: Output, *, wanted: bool) -> None:
        """Make a bar.

        Args:
            messages: Standard error.
            wanted: The input is long.
        """
        self._active = wanted and messages.is_terminal
        self._shown = False
        self._drawn_at = 0.0
        self._done = self._total = 0

    def say(self, text: str) -> None:
        """Show a text in place of the bar, until something is counted."""
        if self._active:
            click.echo(f"{_CLEAR}{text}", nl=False, err=True)
            self._shown = True

    def begin(self, total: int) -> None:
        """Say how many steps there are."""
        self._total = total

    def step(self) -> None:
        """Count one step."""
        self._done += 1
        now = time.monotonic()
        if self._active and now - self._drawn_at > _EVERY_SECONDS:
            self._drawn_at = now
            filled = self._done * _BAR // max(self._total, self._done)
            bar = "#" * filled + "-" * (_BAR - filled)
            self.say(f"[{bar}] {self._done} of {self._total} traces")

    def clear(self) -> None:
        """Take the bar off the line."""
        if self._shown:
            click.echo(_CLEAR, nl=False, err=True)
            self._shown = False
