"""``bijotel seal``: seal the spans that were written to files."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import click

from bijotel.cli.options import db_option, json_option, key_option
from bijotel.cli.session import COULD_NOT_CHECK, FINE, Session
from bijotel.cli.text import escape
from bijotel.errors import UnavailableError
from bijotel.growing import GrowingFiles, Part, files_of
from bijotel.keys import KeyRing
from bijotel.offline import OfflineSealing, UnreadableFileError
from bijotel.sealer import Sealer
from bijotel.stores.open import open_store
from bijotel.traces.model import SkippedLine

POLL_SECONDS: Final = 1.0
"""How often growing files are looked at."""
_SKIPPED_SHOWN: Final = 10


@click.command(short_help="Seal the spans that were written to files.")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILES..."
)
@db_option
@key_option
@click.option("--chain", default="default", show_default=True, metavar="NAME", help="The chain.")
@click.option(
    "--content",
    type=click.Choice(["full", "digest"]),
    default="full",
    show_default=True,
    help="With digest, seal keyed digests in place of what may hold people's words.",
)
@click.option("--follow", is_flag=True, help="Go on with what the files and folders grow by.")
@json_option
@click.pass_obj
def seal(
    session: Session,
    *,
    paths: tuple[Path, ...],
    location: str,
    keys: tuple[str, ...],
    chain: str,
    content: str,
    follow: bool,
) -> None:
    """Seal the generative AI spans of trace files, each exactly once.

    FILES are OTLP/JSON lines, OTLP protobuf, Console exporter output or Jaeger JSON, or folders
    of them; with --follow lines or length-prefixed messages, until SIGINT or SIGTERM. Whoever
    writes a file is believed: such entries say "via": "file".

    Exit codes: 0 done; 2 asked wrongly (the key is missing, or the chain has another one);
    3 a file or a line could not be read (all else is sealed), or the store not be written.
    With --follow they are those of the end: a line that was skipped since the start counts,
    a file that can be read by now does not.
    """
    sealer = Sealer(open_store(location), chain, KeyRing(*keys))
    run = _Run(session, sealer, digest=content == "digest")
    try:
        if follow:
            run.follow(GrowingFiles(paths))
        else:
            run.seal_once(paths)
    finally:
        sealer.close()
    run.summarise(chain)


class _Run:
    """One run of the command."""

    def __init__(self, session: Session, sealer: Sealer, *, digest: bool) -> None:
        self._session = session
        self._location = sealer.store.location
        self._sealing = OfflineSealing(sealer, digest=digest, skipped=self._skip)
        self._part: Part | None = None

    def seal_once(self, paths: tuple[Path, ...]) -> None:
        """Seal whole files; one that cannot be read costs no other."""
        for path in paths:
            self._try(partial(self._seal_all, path))

    def follow(self, files: GrowingFiles) -> None:
        """Seal what files grow by, until somebody says that it is enough."""
        said: dict[Path, str | None] = {}
        with _interrupted_by_sigterm(), suppress(KeyboardInterrupt):
            while True:
                done = self._try(partial(self._seal_new, files))
                self._say_unread(files.unread, said)
                said = files.unread
                fine = done and not any(said.values())
                self._session.verdict = FINE if fine else COULD_NOT_CHECK
                time.sleep(POLL_SECONDS)

    def summarise(self, chain: str) -> None:
        """Say what became of the spans."""
        tally = self._sealing.tally
        if tally.skipped_lines:
            self._session.verdict = COULD_NOT_CHECK
        if self._session.json:
            document = {**asdict(tally), "chain": chain, "store": self._location}
            self._session.output.document(document)
            return
        self._session.output.line(
            f"chain {escape(chain)}: {tally.sealed} spans sealed, {tally.known} sealed before, "
            f"{tally.left_out} belong to no generative AI call, {tally.skipped_lines} lines skipped"
        )

    def _seal_all(self, path: Path) -> None:
        for file in files_of(path):
            self._try(partial(self._sealing.seal, file))

    def _seal_new(self, files: GrowingFiles) -> None:
        for part in files.new_parts():
            self._part = part
            with tempfile.NamedTemporaryFile(prefix="bijotel-") as file:
                file.write(part.octets)
                file.flush()
                try:
                    self._sealing.seal(Path(file.name))
                except UnreadableFileError as error:
                    files.unread[part.path] = str(error).replace(file.name, str(part.path))

    def _say_unread(
        self, unread: Mapping[Path, str | None], said: Mapping[Path, str | None]
    ) -> None:
        """Say what cannot be read, once; again only when the reason is another one."""
        for path, why in unread.items():
            if said.get(path, "") != why:
                line = f"waiting for {path}" if why is None else f"error: {why}"
                self._session.messages.line(escape(line))
        self._session.messages.flush()

    def _try(self, action: Callable[[], None]) -> bool:
        try:
            action()
        except UnavailableError as error:
            self._session.verdict = COULD_NOT_CHECK
            self._session.messages.line(f"error: {escape(str(error))}")
            self._session.messages.flush()
            return False
        return True

    def _skip(self, line: SkippedLine) -> None:
        part = self._part
        if part is not None:
            line = replace(line, file=str(part.path), line=line.line + part.lines_before)
        count = self._sealing.tally.skipped_lines
        if count <= _SKIPPED_SHOWN:
            self._session.messages.line(f"skipped: {escape(str(line))}")
        elif count == _SKIPPED_SHOWN + 1:
            self._session.messages.line("skipped: further lines are counted only")


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Let a service manager's stop end the command as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
