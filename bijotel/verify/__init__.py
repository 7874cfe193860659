"""Walk a chain and report what is wrong. ``verify_chain`` is the way in.

Needs neither OpenTelemetry nor a database driver for a SQLite store, changes nothing that it
reads, and never trusts a row before it is checked.
"""

from bijotel.verify.chain import verify_chain

__all__ = ["verify_chain"]
