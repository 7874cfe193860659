"""How many processors this process may use."""

from __future__ import annotations

import os


def usable_cpus() -> int:
    """Count the processors that the system lets this process run on; at least 1."""
    if hasattr(os, "sched_getaffinity"):  # Linux: fewer than there are in a container
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
