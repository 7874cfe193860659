"""Carry rows of bijotel 2.x into a chain of ours, and prove that none was lost. Pure.

Each row becomes one entry of kind ``import`` that holds every column as it was stored, old
hashes included; a closing entry states how many there were and the last hash. So the old chain
can be verified from the new one for ever, by its own formulas.

Source: docs/spec (entry).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, Final

from bijotel import canonical
from bijotel.errors import CanonicalizationError
from bijotel.legacy.rows import COLUMNS, LegacyRow
from bijotel.model import Draft, Entry
from bijotel.note import EvidenceError
from bijotel.seal import draft

SOURCE: Final = "bijotel-2"


def import_drafts(rows: Iterable[LegacyRow]) -> Iterator[Draft]:
    """Make the entries that carry rows over, and the closing one.

    Args:
        rows: Verified rows, in order; at least one.
    """
    count, last_hash = 0, ""
    for count, row in enumerate(rows, 1):  # noqa: B007 - counted for the closing entry
        last_hash = row.hmac_hash
        yield _draft({"row": canonical.encode(row._asdict())})
    yield _draft({"last_hash": last_hash, "rows": count})


def _draft(body: dict[str, Any]) -> Draft:
    return draft("import", canonical.dumps({**body, "source": SOURCE}))


def carried_rows(entries: Iterable[Entry]) -> Iterator[LegacyRow]:
    """Read the rows back from the entries of a chain of ours, up to the closing one.

    Args:
        entries: Entries in order, whose tags were checked; those of other kinds are passed over.

    Raises:
        EvidenceError: ``import-mismatch``: an entry does not hold a row, the closing entry is
            missing or states something else.
    """
    count, last_hash = 0, ""
    for entry in entries:
        if entry.kind != "import":
            continue
        body = _read(entry)
        if "rows" in body:
            if (body["rows"], body.get("last_hash")) != (count, last_hash):
                raise _mismatch(entry.seq, f"states {body['rows']} rows, {count} are there")
            return
        count += 1
        row = _read_row(entry, body)
        last_hash = row.hmac_hash
        yield row
    raise EvidenceError(
        f"import: {count} rows without the closing entry", "import-mismatch", "rows"
    )


def check_carried(rows: Iterable[LegacyRow], entries: Iterable[Entry]) -> int:
    """Prove that a chain of ours holds exactly these rows.

    Returns:
        How many rows were compared.

    Raises:
        EvidenceError: ``import-mismatch``: a row is missing, added or not the same.
    """
    count = 0
    for count, (row, carried) in enumerate(zip_longest(rows, carried_rows(entries)), 1):
        if row != carried:
            raise EvidenceError(
                f"import: row {count} is not the one that was carried over",
                "import-mismatch",
                "row",
            )
    return count


def _read(entry: Entry) -> dict[str, Any]:
    try:
        body = canonical.loads(entry.body)
    except CanonicalizationError as error:
        raise _mismatch(entry.seq, str(error)) from None
    if not isinstance(body, dict) or body.get("source") != SOURCE:
        raise _mismatch(entry.seq, f"is not from {SOURCE}")
    return body


def _read_row(entry: Entry, body: dict[str, Any]) -> LegacyRow:
    try:
        columns = canonical.decode(body["row"])
        if columns.keys() == set(COLUMNS):
            return LegacyRow(**columns)
    except (CanonicalizationError, LookupError, AttributeError):
        pass
    raise _mismatch(entry.seq, "holds no row")


def _mismatch(seq: int, what: str) -> EvidenceError:
    return EvidenceError(f"import entry {seq}: {what}", "import-mismatch", "body")
