"""What a verification means for a reader: the verdict, what it covers, what it does not. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bijotel.checkpoint import Checkpoint
from bijotel.findings import Report
from bijotel.keys import KeyRing
from bijotel.report.model import Style
from bijotel.report.text import counted
from bijotel.verify.chain import TAIL

_ALWAYS: Final = (
    "That what was sealed is true: records have not changed since they were sealed.",
    "That the model used a passage: shown is whether the recorded prompt holds it.",
)
_TAIL_WORDS: Final = (
    "entries cut off at the end, together with an older head record, leave a chain that passes; "
    "a checkpoint kept elsewhere (--checkpoint) shows it"
)


def verdict(report: Report | None) -> tuple[str, Style, str]:
    """Give the word that stands first, its style, and the rest of the sentence."""
    if report is None:
        words = "No key was given, so no entry could be verified. All is shown as stored."
        return "NOT VERIFIED", "doubtful", words
    read = counted(int(report.checked.get("entries", 0)), "entry", "entries")
    findings = counted(len(report.findings), "finding")
    if report.exit_code == 0:
        return "VERIFIED", "good", f"Every one of {read} holds. Nothing was found."
    if report.exit_code == 1:
        words = f"{findings} in {read}. Entries that a finding names are not to be trusted."
        return "DOES NOT VERIFY", "bad", words
    return "NOT CHECKED IN FULL", "doubtful", f"{findings} in {read}: a part could not be checked."


def covered(
    report: Report | None, ring: KeyRing | None, checkpoint: Checkpoint | None, signers: str
) -> Iterator[str]:
    """Say what was checked.

    Args:
        report: Of the verification; None when there was no key.
        ring: The keys that it used.
        checkpoint: The one whose signatures hold, if one was given.
        signers: Names of the keys that signed it.
    """
    if report is None or ring is None:
        yield "Nothing: without the HMAC key no tag can be checked."
        return
    keys = ", ".join(key.key_id.hex() for key in ring)
    for chain in report.chains:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(chain.kinds.items()))
        yield (
            f"{counted(chain.entries, 'entry', 'entries')} of the chain ({kinds}): columns, body, "
            f"place, link to the entry before, and HMAC tag under the key {keys}."
        )
    if checkpoint is not None:
        signed = f"size {checkpoint.size}, root {checkpoint.root_hash.hex()}, signed by {signers}"
        confirmed = report.checked.get("checkpoints", {}).get(checkpoint.chain_id.hex())
        if confirmed == checkpoint.size:
            yield f"The first {confirmed} entries are those of the checkpoint of {signed}."
        else:
            yield f"The chain was compared with the checkpoint of {signed}: see the findings."


def not_covered(report: Report | None, unreadable: int) -> Iterator[str]:
    """Say what a pass does not mean."""
    yield from _ALWAYS
    for subject in report.not_checked if report is not None else ():
        words = f": {_TAIL_WORDS}" if subject == TAIL else ""
        yield f"{subject[:1].upper()}{subject[1:]}{words}."
    if unreadable:
        yield f"{counted(unreadable, 'row')} that cannot be read as an entry."
