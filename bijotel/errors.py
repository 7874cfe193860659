"""The one error tree of the package.

::

    BijotelError
    ├── ConfigurationError      asked wrongly (exit code 2)
    ├── UnavailableError        could not be checked (exit code 3)
    ├── VerificationError       the evidence is false (exit code 1)
    └── CanonicalizationError   octets or a value that the canonical form does not allow

No other exception leaves a public function of the package, and each message says what is
wrong, where, what was expected and what was found. All of them can be pickled.
"""

from __future__ import annotations


class BijotelError(Exception):
    """The root of every error that this package raises."""

    code = "error"
    """A stable word for machines, printed by ``--json``."""

    exit_code = 3
    """What a command that ends with this error exits with."""


class ConfigurationError(BijotelError):
    """The caller asked for something that cannot be done as asked."""

    code = "configuration"
    exit_code = 2


class UnavailableError(BijotelError):
    """Something needed could not be reached or read, so nothing was checked."""

    code = "unavailable"


class VerificationError(BijotelError):
    """The evidence is false: a check ran and failed."""

    code = "verification"
    exit_code = 1


class CanonicalizationError(BijotelError):
    """Octets that are not canonical JSON, or a value beyond its limits."""

    code = "canonicalization"
