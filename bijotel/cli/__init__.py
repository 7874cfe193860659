"""The command line: one file for each command, ``app`` for what all of them share.

Nothing in the package imports this room.
"""

from bijotel.cli.app import main

__all__ = ["main"]
