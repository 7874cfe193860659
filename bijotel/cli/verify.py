"""``bijotel verify``: verify the chains of a store."""

from __future__ import annotations

from pathlib import Path

import click

from bijotel.cli.options import chain_option, db_option, json_option, key_option
from bijotel.cli.session import COULD_NOT_CHECK, Session
from bijotel.cli.text import escape
from bijotel.cli.verdicts import print_report
from bijotel.errors import ConfigurationError
from bijotel.findings import Report
from bijotel.keys import KeyRing
from bijotel.legacy.check import verify_database
from bijotel.legacy.rows import is_legacy_database
from bijotel.usable_cpus import usable_cpus
from bijotel.verify.chain import verify_chain


@click.command(short_help="Verify every entry of a store's chains.")
@db_option
@key_option
@chain_option
@click.option(
    "--all",
    "every_chain",
    is_flag=True,
    help="Every chain, as without --chain, with one process for each processor.",
)
@click.option("--deep", is_flag=True, help="Also parse every body and recompute the tree.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Share the work between N processes.  [default: 1]",
)
@click.option(
    "--checkpoint",
    "checkpoints",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="Compare with a checkpoint that was kept elsewhere; may be repeated.",
)
@click.option(
    "--pubkey",
    "pubkeys",
    multiple=True,
    metavar="KEY",
    help="Verifier key, a line or a file; every one given must have signed every checkpoint.",
)
@json_option
@click.pass_obj
def verify(
    session: Session,
    *,
    location: str,
    keys: tuple[str, ...],
    chain: str | None,
    every_chain: bool,
    deep: bool,
    workers: int | None,
    checkpoints: tuple[str, ...],
    pubkeys: tuple[str, ...],
) -> None:
    """Verify every entry of a store's chains, and their heads. Changes nothing.

    Only a checkpoint that was kept elsewhere shows that nothing was cut off at the end. A
    database of bijotel 2.x is verified by that version's formulas.

    Exit codes: 0 nothing found, 1 findings, 2 asked wrongly (the key is missing or malformed,
    --checkpoint without --pubkey, or --all with --chain), 3 could not check.
    """
    session.verdict = COULD_NOT_CHECK
    if every_chain and chain is not None:
        raise ConfigurationError("--all, --chain: give one of them")
    ring = KeyRing(*keys)
    if "://" not in location and is_legacy_database(Path(location)):
        report = _verify_legacy(location, ring, only_ours=(chain, *checkpoints, *pubkeys))
    else:
        report = verify_chain(
            location,
            ring,
            chain=chain,
            deep=deep,
            workers=workers or (usable_cpus() if every_chain else 1),
            checkpoints=checkpoints,
            pubkeys=pubkeys,
        )
    session.verdict = report.exit_code
    if session.json:
        session.output.document(report.as_dict())
    else:
        print_report(session.output, report, f"store {escape(location)}")


def _verify_legacy(location: str, ring: KeyRing, only_ours: tuple[str | None, ...]) -> Report:
    if any(only_ours):
        raise ConfigurationError(
            f"{location}: a database of bijotel 2.x has neither chain ids nor checkpoints"
        )
    return verify_database(Path(location), ring)
