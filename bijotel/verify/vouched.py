"""Which sizes and roots somebody vouched for: by checkpoints, from outside or sealed in a chain.

Here notes are read and their signatures checked; ``verify.against`` compares what they say with
the rows. A note from outside has to be signed by every key that was given. One that was sealed
into the chain may be older than a key, so it counts when some of the keys signed it, and none of
theirs may be false.

Source: docs/spec (checkpoint, entry).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from bijotel import canonical
from bijotel.checkpoint import Checkpoint, parse_checkpoint, verify_checkpoint
from bijotel.errors import CanonicalizationError
from bijotel.evidence_files import read_evidence
from bijotel.findings import Finding, Notice
from bijotel.model import Entry
from bijotel.note import MAX_NOTE_BYTES, EvidenceError, parse_note
from bijotel.seal import body_hash
from bijotel.signing import load_verifier_key
from bijotel.stores.base import Snapshot
from bijotel.verifier_key import VerifierKey
from bijotel.verify.rows import check_columns

CheckpointSource: TypeAlias = "bytes | str | os.PathLike[str]"
"""A signed note, or the path of a file that holds one."""
PubkeySource: TypeAlias = "VerifierKey | str | os.PathLike[str]"
"""A verifier key, its line, or the path of a file that holds the line."""


class NamedNote(NamedTuple):
    """A checkpoint and what people call it."""

    name: str
    """A path, for messages."""
    octets: bytes
    """The signed note."""


class Signed(NamedTuple):
    """A size and root that somebody vouched for, and where it says so."""

    size: int
    root_hash: bytes
    source: str
    note: str = ""
    seq: int | None = None
    """Of the entry of the chain itself that holds the note; None for one from outside."""


@dataclass(slots=True)
class Vouched:
    """What is vouched for, by chain id."""

    signed: dict[bytes, list[Signed]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    listed: dict[bytes, set[int]] = field(default_factory=dict)
    """Sizes that entries of kind ``fleet`` list, whether they will count or not."""

    def add(self, chain_id: bytes, signed: Signed) -> None:
        """Add one statement."""
        self.signed.setdefault(chain_id, []).append(signed)

    def sizes(self) -> dict[bytes, frozenset[int]]:
        """For each chain the sizes at which its root will be asked for."""
        sizes = {chain_id: set(listed) for chain_id, listed in self.listed.items()}
        for chain_id, signed in self.signed.items():
            sizes.setdefault(chain_id, set()).update(each.size for each in signed)
        return {chain_id: frozenset(wanted) for chain_id, wanted in sizes.items()}


def load_notes(sources: Iterable[CheckpointSource]) -> tuple[NamedNote, ...]:
    """Read checkpoints from wherever callers have them.

    Raises:
        UnavailableError: a file cannot be read.
    """
    notes = []
    for number, source in enumerate(sources, 1):
        if isinstance(source, bytes):
            notes.append(NamedNote(str(number), source))
        else:
            notes.append(NamedNote(os.fspath(source), read_evidence(source, MAX_NOTE_BYTES)))
    return tuple(notes)


def load_pubkeys(sources: Iterable[PubkeySource]) -> tuple[VerifierKey, ...]:
    """Read verifier keys from wherever callers have them.

    Raises:
        ConfigurationError: a file cannot be read, or holds no verifier key.
    """
    return tuple(
        source if isinstance(source, VerifierKey) else load_verifier_key(os.fspath(source))
        for source in sources
    )


def read_outside(notes: Sequence[NamedNote], keys: Sequence[VerifierKey]) -> Vouched:
    """Verify checkpoints that were kept outside the store.

    Args:
        notes: The checkpoints.
        keys: At least one, when there are notes; every one must have signed every checkpoint.

    Returns:
        What is vouched for, and findings of the codes ``malformed-note``,
        ``checkpoint-signature`` and ``checkpoint-origin``.
    """
    vouched = Vouched()
    for note in notes:
        try:
            checkpoint = verify_checkpoint(note.octets, keys)
        except EvidenceError as error:
            message = f"checkpoint {note.name}{_claimed_size(note)}: {error}"
            vouched.findings.append(Finding(error.code, message, column=error.where))
            continue
        vouched.add(checkpoint.chain_id, _signed(checkpoint, note.name, note.octets))
    return vouched


def _claimed_size(note: NamedNote) -> str:
    """Name the size that an unverified note claims, to tell people which one it is."""
    try:
        return f" of size {parse_checkpoint(note.octets).size}"
    except EvidenceError:
        return ""


def _signed(checkpoint: Checkpoint, name: str, octets: bytes, seq: int | None = None) -> Signed:
    return Signed(checkpoint.size, checkpoint.root_hash, name, octets.decode(), seq)


def read_sealed(
    snapshot: Snapshot, chain_ids: Collection[bytes], keys: Sequence[VerifierKey], vouched: Vouched
) -> None:
    """Add what entries of some chains themselves say about sizes and roots.

    Whether these entries are what was sealed is for the walk to find; here they only say which
    roots to compare.
    """
    for chain_id in chain_ids:
        unsigned: list[int] = []
        for entry in _entries(snapshot, chain_id, "checkpoint"):
            note = sealed_note(entry)
            if note is not None and note_fault(entry) is None:
                unsigned += _add_sealed(vouched, entry, note, keys)
        if unsigned:
            message = f"{len(unsigned)} checkpoints in the chain, from entry {unsigned[0]} on, "
            message += "are signed by none of the given keys: not checked"
            notice = Notice("checkpoint-unsigned", message, chain_id.hex(), unsigned[0])
            vouched.notices.append(notice)
        for entry in _entries(snapshot, chain_id, "fleet"):
            for listed_id, listed in read_fleet(entry):
                vouched.listed.setdefault(listed_id, set()).add(listed.size)


def _entries(snapshot: Snapshot, chain_id: bytes, kind: str) -> Iterator[Entry]:
    for row in snapshot.select(chain_id, (("kind", kind),)):
        entry = check_columns(row.columns)
        if isinstance(entry, Entry):
            yield entry


def _add_sealed(
    vouched: Vouched, entry: Entry, octets: bytes, keys: Sequence[VerifierKey]
) -> Iterator[int]:
    """Add what a note within the chain vouches for; yield its entry when no key signed it."""
    note = parse_note(octets)
    signers = [key for key in keys if note.signature_of(key)]
    if not signers:
        yield entry.seq
        return
    name = f"the checkpoint in entry {entry.seq}"
    try:
        checkpoint = verify_checkpoint(octets, signers)
    except EvidenceError as error:
        chain, seq = entry.chain_id.hex(), entry.seq
        vouched.findings.append(
            Finding(error.code, f"entry {seq}: {name}: {error}", chain, seq, "body", seq)
        )
    else:
        vouched.add(entry.chain_id, _signed(checkpoint, name, octets, entry.seq))


def sealed_note(entry: Entry) -> bytes | None:
    """Read the note of a ``checkpoint`` entry; None when its body is none or not the sealed one."""
    if body_hash(entry.body) != entry.body_hash:
        return None
    try:
        body = canonical.loads(entry.body)
        note = body["note"]
        return note.encode() if body.keys() == {"note"} else None
    except (CanonicalizationError, ValueError, TypeError, AttributeError, LookupError):
        return None


def note_fault(entry: Entry) -> tuple[str, str] | None:
    """Say with code and words why a ``checkpoint`` entry holds no checkpoint of its own chain.

    Nobody's signature is checked.
    """
    note = sealed_note(entry)
    if note is None:
        return "malformed-note", "the body holds no note"
    try:
        checkpoint = parse_checkpoint(note)
    except EvidenceError as error:
        return error.code, str(error)
    if checkpoint.chain_id != entry.chain_id:
        return "checkpoint-origin", f"the note is of chain {checkpoint.chain_id.hex()}"
    if checkpoint.size > entry.seq:
        what = f"the note counts {checkpoint.size} entries, {entry.seq} stand before it"
        return "checkpoint-mismatch", what
    return None


def read_fleet(entry: Entry) -> Iterator[tuple[bytes, Signed]]:
    """Read which chains a ``fleet`` entry lists; a body that is not the sealed one lists none."""
    if body_hash(entry.body) != entry.body_hash:
        return
    source = f"fleet entry {entry.seq} of chain {entry.chain_id.hex()}"
    try:
        for chain in canonical.loads(entry.body)["chains"]:
            chain_id, root_hash = (bytes.fromhex(chain[name]) for name in ("chain_id", "root_hash"))
            if len(chain_id) == 16 and type(chain["size"]) is int and chain["size"] >= 0:
                yield chain_id, Signed(chain["size"], root_hash, source)
    except (CanonicalizationError, ValueError, TypeError, LookupError):
        return
