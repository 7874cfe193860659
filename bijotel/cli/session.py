"""What a command is given: where to write, and where to leave its verdict."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from bijotel.cli.output import Output

FINE, FINDINGS, USAGE, COULD_NOT_CHECK, INTERRUPTED = 0, 1, 2, 3, 130
"""The exit codes of every command."""


@dataclass(slots=True)
class Session:
    """One run of one command."""

    json: bool
    """Write one JSON document and nothing else to standard output."""
    output: Output = field(default_factory=lambda: Output(sys.stdout))
    messages: Output = field(default_factory=lambda: Output(sys.stderr))
    verdict: int = FINE
    """The exit code so far. A command sets it before it writes, because a reader who leaves
    early does not change the verdict."""


def wants_json(arguments: Sequence[str]) -> bool:
    """Tell whether ``--json`` is given, also where the rest cannot be understood."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options
