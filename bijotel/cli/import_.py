"""``bijotel import``: carry a database of bijotel 2.x over into a chain of ours."""

from __future__ import annotations

from pathlib import Path

import click

from bijotel.cli.options import db_option, json_option, key_option
from bijotel.cli.session import Session
from bijotel.cli.text import escape
from bijotel.cli.verdicts import print_report
from bijotel.importing import import_database
from bijotel.keys import KeyRing
from bijotel.stores.open import open_store


@click.command("import", short_help="Carry a database of bijotel 2.x over.")
@db_option
@key_option
@click.option(
    "--chain", default="default", show_default=True, metavar="NAME", help="The new chain's name."
)
@json_option
@click.argument("old", metavar="OLD_DB", type=click.Path(path_type=Path))
@click.pass_obj
def import_command(
    session: Session, location: str, keys: tuple[str, ...], chain: str, old: Path
) -> None:
    """Carry every row of OLD_DB, of bijotel 2.x, over into a new chain.

    OLD_DB is verified first, by that version's formulas, and is not changed. Each row becomes one
    sealed entry that holds all of its columns, old hashes included; then it is proven that none
    was lost. The first key seals the new chain; any key given may be the old secret.

    Exit codes: 0 carried over; 1 OLD_DB does not verify: nothing was written; 2 asked wrongly (a
    chain of that name is there already); 3 could not be done.
    """
    imported = import_database(old, open_store(location), chain, KeyRing(*keys))
    session.verdict = imported.report.exit_code
    if session.json:
        session.output.document(
            {
                "old": imported.report.as_dict(),
                "chain": imported.chain_id.hex() or None,
                "rows": imported.rows,
            }
        )
        return
    print_report(session.output, imported.report, f"database {escape(str(old))}")
    if imported.chain_id:
        session.output.line(
            f"imported: {imported.rows} rows into chain {escape(chain)} "
            f"({imported.chain_id.hex()}); every one was read back and compared"
        )
    else:
        session.output.line("nothing was written")
