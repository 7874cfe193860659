"""One stream of text for people or machines, as its reader can take it.

Decides once whether there is a terminal, whether it wants colour (``NO_COLOR``,
``FORCE_COLOR``, ``TERM=dumb``; an empty variable is one that is not set) and how wide it is.
What a code page cannot print is written as an escape, so that printing cannot fail on it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TextIO

import click

from bijotel.cli.text import clean
from bijotel.errors import BijotelError

_COLOURS: Final = {"good": "green", "bad": "red", "doubtful": "yellow", "heading": None}


class Output:
    """Standard output, or standard error."""

    def __init__(self, stream: TextIO) -> None:
        """Take a stream over; its code page stays what it is."""
        self._stream = stream
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
        self.is_terminal = stream.isatty()
        """A person reads this: lines may be cut to fit, long ids shortened."""
        self._colour = _wants_colour(is_terminal=self.is_terminal)
        self.answered = False
        """The one JSON document has been begun."""

    @property
    def width(self) -> int | None:
        """The columns of a terminal; None where nothing is to be cut."""
        return shutil.get_terminal_size().columns if self.is_terminal else None

    def line(self, text: str = "") -> None:
        """Write one line; stored text in it is escaped by the caller."""
        self._stream.write(f"{text}\n")

    def styled(self, text: str, style: str) -> str:
        """Dress text as ``good``, ``bad``, ``doubtful`` or ``heading`` where colour is wanted."""
        return click.style(text, fg=_COLOURS[style], bold=True) if self._colour else text

    def document(self, value: Any) -> None:
        """Write the one JSON document of a command."""
        self.answered = True
        self.line(_json(value))

    @contextmanager
    def array(self) -> Iterator[Callable[[Any], None]]:
        """Write the one JSON document as an array, member by member, each on a line.

        An error in between becomes the last member, so that what was written stays one
        document and nobody takes it for the whole answer. After an interruption the array stays
        open, and so is none.
        """
        self.answered = True
        members = 0

        def add(value: Any) -> None:
            nonlocal members
            self._stream.write(f"{',' if members else '['}\n{_json(value)}")
            members += 1

        def end() -> None:
            self.line("\n]" if members else "[]")

        try:
            yield add
        except BrokenPipeError:
            raise
        except Exception as error:
            add(_failure(error))
            end()
            raise
        end()

    def flush(self) -> None:
        """Hand everything to the reader."""
        self._stream.flush()

    def abandon(self) -> None:
        """Forget a reader who has gone, so that the interpreter's last flush stays silent."""
        with suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)


def error_document(code: str, message: str) -> dict[str, Any]:
    """Make the JSON document of a command that failed."""
    return {"error": {"code": code, "message": message}}


def _failure(error: Exception) -> dict[str, Any]:
    if isinstance(error, BijotelError):
        return error_document(error.code, str(error))
    return error_document("internal", f"{type(error).__name__}: {error}")


def fill_missing_streams() -> None:
    """Give a process that was started without standard streams ones that lead nowhere."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - lasts as long as the process
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _wants_colour(*, is_terminal: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"


def _json(value: Any) -> str:
    return json.dumps(clean(value), allow_nan=False)
