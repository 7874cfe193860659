"""Run the benchmarks and print one table: every one, or those named on the command line.

``--write`` also puts the figures of all of them into the README and their page.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
import sys
from pathlib import Path

from benchmarks.pages import write_pages
from benchmarks.table import Row, print_rows

PREFIX = "bench_"


def main() -> None:
    """Measure and print."""
    logging.disable(logging.WARNING)
    folder = str(Path(__file__).parent)
    found = [module.name for module in pkgutil.iter_modules([folder])]
    names = [name for name in found if name.startswith(PREFIX)]
    write = sys.argv[1:] == ["--write"]
    wanted = sys.argv[1 + write :] or [name.removeprefix(PREFIX) for name in names]
    rows: list[Row] = []
    for name in wanted:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.{PREFIX}{name}").rows()
    print_rows(rows)
    missed = [row.name for row in rows if not row.met]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} targets met on this machine.")
    if write:
        write_pages(rows)


if __name__ == "__main__":
    main()
