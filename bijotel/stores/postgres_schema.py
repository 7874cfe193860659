"""The schema of the PostgreSQL store, version 1. Statements only.

All names are qualified, so that a table of the same name earlier in a search path has no effect.
Tables are ordinary: no constraint, no trigger, no rule, no policy; ``bytea``, never ``jsonb``,
because what is stored is octets.
"""

from __future__ import annotations

from typing import Final

SCHEMA_NAME: Final = "bijotel"
ENTRIES: Final = "bijotel.entries"
HEADS: Final = "bijotel.heads"

COLUMNS: Final = {
    "entries": {
        "chain_id": "bytea",
        "seq": "bigint",
        "epoch": "bigint",
        "key_id": "bytea",
        "kind": "text",
        "sealed_at_unix_nano": "bigint",
        "fmt": "text",
        "body_hash": "bytea",
        "prev_tag": "bytea",
        "trace_id": "bytea",
        "span_id": "bytea",
        "name": "text",
        "start_unix_nano": "bigint",
        "end_unix_nano": "bigint",
        "dedup_key": "bytea",
        "tag": "bytea",
        "body": "bytea",
    },
    "heads": {
        "chain_id": "bytea",
        "name": "text",
        "seq": "bigint",
        "epoch": "bigint",
        "key_id": "bytea",
        "tag": "bytea",
        "tree": "bytea",
        "mac": "bytea",
    },
}
INDEXES: Final = {
    "entries_by_seq": f"ON {ENTRIES} (chain_id, seq)",
    "entries_by_prev_tag": f"ON {ENTRIES} (chain_id, prev_tag)",
    "entries_by_span": (
        f"ON {ENTRIES} (chain_id, trace_id, span_id, body_hash) WHERE kind = 'span'"
    ),
    "heads_by_chain_id": f"ON {HEADS} (chain_id)",
    "heads_by_name": f"ON {HEADS} (name)",
    "entries_by_span_id": f"ON {ENTRIES} (chain_id, span_id) WHERE kind = 'span'",
    "entries_by_start": f"ON {ENTRIES} (chain_id, start_unix_nano, seq) WHERE kind = 'span'",
    "entries_by_dedup_key": f"ON {ENTRIES} (chain_id, dedup_key, seq) WHERE kind = 'span'",
}
GUARDS: Final = frozenset(
    {
        "entries_by_seq",
        "entries_by_prev_tag",
        "entries_by_span",
        "heads_by_chain_id",
        "heads_by_name",
    }
)
"""The unique ones, which keep two writers from forking a chain; the others serve searches."""
# Whoever makes the tables holds this lock, so that two first writers make one chain.
SETUP_LOCK: Final = 0x62696A6F74656C01


def statements() -> tuple[str, ...]:
    """Write the statements that make the tables; each is harmless when they are there."""
    tables = (
        f"CREATE TABLE IF NOT EXISTS {SCHEMA_NAME}.{table} "
        f"({', '.join(f'{column} {kind}' for column, kind in columns.items())})"
        for table, columns in COLUMNS.items()
    )
    indexes = (
        f"CREATE {'UNIQUE ' if name in GUARDS else ''}INDEX IF NOT EXISTS {name} {definition}"
        for name, definition in INDEXES.items()
    )
    return (f"CREATE SCHEMA IF NOT EXISTS {SCHEMA_NAME}", *tables, *indexes)
