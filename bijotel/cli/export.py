"""``bijotel export``: entries as a file that proves itself, or as OTLP/JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import click

from bijotel.cli.evidence import check_chain, output_option, read_checkpoint
from bijotel.cli.options import (
    chain_option,
    db_option,
    json_option,
    key_option,
    parse_id,
    ring_or_none,
)
from bijotel.cli.session import Session
from bijotel.cli.text import escape
from bijotel.entries import only_chain
from bijotel.errors import CanonicalizationError, ConfigurationError, UnavailableError
from bijotel.export import make_selection, write_export
from bijotel.keys import KeyRing
from bijotel.merkle_proof import NodeHash
from bijotel.model import Entry
from bijotel.note import EvidenceError
from bijotel.output_files import check_target, new_file
from bijotel.range_proof import Ranges, ranges_of
from bijotel.seal import KNOWN_FORMATS
from bijotel.spans.decode import decode_record
from bijotel.stores.base import Snapshot
from bijotel.stores.open import open_store
from bijotel.stores.sqlite_tiles import open_tiles
from bijotel.stores.tiles import with_tree
from bijotel.traces.otlp_write import otlp_line
from bijotel.verified import verify_to_read
from bijotel.verify.leaves import leaf_reader, read_entries


class _Wish(NamedTuple):
    """Which entries are wanted."""

    first: int | None
    last: int | None
    trace_id: bytes | None

    def ranges(self, snapshot: Snapshot, chain_id: bytes, size: int) -> Ranges:
        """Name them, as far as they are below a size.

        Raises:
            ConfigurationError: there is none.
        """
        if self.trace_id is None:
            return ((self.first or 0, size - 1 if self.last is None else self.last),)
        rows = snapshot.select(chain_id, (("trace_id", self.trace_id),))
        seqs = [row.columns[1] for row in rows if type(row.columns[1]) is int]
        ranges = ranges_of(seq for seq in seqs if 0 <= seq < size)
        if not ranges:
            raise ConfigurationError(
                f"--trace {self.trace_id.hex()}: none of the first {size} entries is of this trace"
            )
        return ranges


@click.command(short_help="Write entries as a file that proves itself, or as OTLP/JSON.")
@db_option
@click.option(
    "--checkpoint",
    "note_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A checkpoint of the chain; entries below its size are exported.",
)
@click.option("--from", "first", type=click.IntRange(min=0), metavar="SEQ", help="First entry.")
@click.option("--to", "last", type=click.IntRange(min=0), metavar="SEQ", help="Last entry.")
@click.option("--trace", metavar="ID", help="Only the entries of this trace (32 hex digits).")
@click.option(
    "--format",
    "form",
    type=click.Choice(["bijotel", "otlp"]),
    default="bijotel",
    show_default=True,
    help="otlp: the spans as OTLP/JSON lines, which prove nothing by themselves.",
)
@output_option
@key_option
@chain_option
@json_option
@click.pass_obj
def export(
    session: Session,
    *,
    location: str,
    note_path: Path | None,
    first: int | None,
    last: int | None,
    trace: str | None,
    form: str,
    target: Path,
    keys: tuple[str, ...],
    chain: str | None,
) -> None:
    """Write entries as a file (mode 0600) that proves itself to whoever has the public key.

    What is written is compared with the checkpoint before the file gets its name; a name that
    ends in .gz compresses. No secret is needed. With --format otlp the checkpoint may be left
    out: then the chain is verified with the HMAC key (--key, --chain).

    Exit codes: 0 written; 1 the store is not what was signed or sealed; 2 asked wrongly; 3 could
    not be done. Nothing is written but with 0.
    """
    if trace is not None and (first is not None or last is not None):
        raise ConfigurationError("expected --trace or --from and --to, one of the two")
    wish = _Wish(first, last, parse_id("--trace", trace))
    check_target(target, (location, note_path))
    if note_path is None:
        if form != "otlp":
            raise ConfigurationError(
                "--checkpoint is required: without one an export proves nothing"
            )
        exported = _export_verified(location, chain, ring_or_none(keys), wish, target)
    else:
        if chain is not None or keys:
            raise ConfigurationError(
                "--chain, --key: the checkpoint names the chain, no key is used"
            )
        exported = _export_signed(location, note_path, wish, target, form)
    if session.json:
        session.output.document({**exported, "file": str(target)})
        return
    ranges = ", ".join(f"{low} to {high}" for low, high in exported["ranges"])
    session.output.line(f"exported: entries {ranges} of {exported['size']}")
    session.output.line(f"written:  {escape(str(target))} ({exported['lines']} lines)")


def _export_signed(
    location: str, note_path: Path, wish: _Wish, target: Path, form: str
) -> dict[str, Any]:
    note, checkpoint = read_checkpoint(note_path)
    chain_id, store = checkpoint.chain_id, open_store(location)
    with store.snapshot() as snapshot, open_tiles(store, chain_id) as tiles:
        check_chain(snapshot, checkpoint)
        ranges = wish.ranges(snapshot, chain_id, checkpoint.size)

        def write(node: NodeHash) -> int:
            entries = read_entries(snapshot, chain_id, ranges)
            with new_file(target) as output:
                if form == "bijotel":
                    return 1 + write_export(output, note, entries, node, ranges)
                lines = _Lines(output)
                make_selection(note, node, ranges).check(entries, lines.add)
                return lines.count

        lines = with_tree(checkpoint.size, leaf_reader(snapshot, chain_id), tiles, write)
    return _summary(checkpoint.chain_id, checkpoint.size, ranges, lines)


def _export_verified(
    location: str, chain: str | None, ring: KeyRing | None, wish: _Wish, target: Path
) -> dict[str, Any]:
    with open_store(location).snapshot() as snapshot:
        place = only_chain(snapshot, chain)
        if ring is None:
            raise UnavailableError("neither --checkpoint nor a key: the entries cannot be verified")
        verified = verify_to_read(
            snapshot, place.chain_id, ring, location=location, unverified=None
        )
        size = (place.last_seq or 0) + 1
        ranges = wish.ranges(snapshot, place.chain_id, size)
        if not ranges[0][0] <= ranges[-1][1] < size:
            raise ConfigurationError(f"the chain has entries 0 to {size - 1}")
        with new_file(target) as output:
            lines = _Lines(output)
            for entry in _within(verified.entries(), ranges):
                lines.add(entry)
    return _summary(place.chain_id, size, ranges, lines.count)


def _within(entries: Iterable[Entry], ranges: Ranges) -> Iterator[Entry]:
    wanted = iter(ranges)
    first, last = next(wanted)
    for entry in entries:
        if entry.seq > last:
            first, last = next(wanted, (entry.seq + 1, entry.seq))
            if last < first:
                return
        if first <= entry.seq:
            yield entry


class _Lines:
    """Writes the spans among the entries that it gets."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self.count = 0

    def add(self, entry: Entry) -> None:
        if entry.kind != "span":
            return
        if entry.fmt != KNOWN_FORMATS["span"]:
            raise UnavailableError(f"entry {entry.seq}: format {entry.fmt} is not known")
        try:
            record = decode_record(entry.body)
        except CanonicalizationError as error:
            what = f"entry {entry.seq}: {error}"
            raise EvidenceError(what, "body-not-canonical", "body") from None
        self._output.write(otlp_line(record) + b"\n")
        self.count += 1


def _summary(chain_id: bytes, size: int, ranges: Ranges, lines: int) -> dict[str, Any]:
    return {
        "chain": chain_id.hex(),
        "size": size,
        "ranges": [list(pair) for pair in ranges],
        "lines": lines,
    }
