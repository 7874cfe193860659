"""A chain of a few decisions, its checkpoint, and a way to run the command."""

from __future__ import annotations

from tests.cli.conftest import bijotel, secret

__all__ = ["bijotel", "secret"]
