"""Options that several commands share, and what is made of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from bijotel.errors import ConfigurationError
from bijotel.keys import SECRET_FILE_VARIABLE, SECRET_VARIABLE, KeyRing

Command = TypeVar("Command", bound=Callable[..., Any])

db_option = click.option(
    "--db", "location", required=True, metavar="STORE", help="The store: a path or a URL."
)
key_option = click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="SOURCE",
    help="HMAC key, env:NAME or file:PATH; may be repeated. Default: BIJOTEL_HMAC_SECRET, "
    "or the file that BIJOTEL_HMAC_SECRET_FILE names.",
)
chain_option = click.option(
    "--chain", metavar="NAME", help="Only the chain of this name or id (32 hex digits)."
)
# Read by the session before the arguments are parsed, so that errors in them are JSON too.
json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    help="Print one JSON document to standard output, all else to standard error.",
)


def ring_or_none(keys: tuple[str, ...]) -> KeyRing | None:
    """Load the keys, or None when none is configured at all.

    Raises:
        ConfigurationError: a key is named that is missing or malformed.
    """
    configured = any(os.environ.get(name) for name in (SECRET_VARIABLE, SECRET_FILE_VARIABLE))
    return KeyRing(*keys) if keys or configured else None


def parse_id(option: str, text: str | None, digits: int = 32) -> bytes | None:
    """Read the id that an option names; None stays None.

    Raises:
        ConfigurationError: not exactly so many hex digits.
    """
    if text is None:
        return None
    if not re.fullmatch(f"[0-9A-Fa-f]{{{digits}}}", text):
        raise ConfigurationError(f"{option} {text!r}: expected {digits} hex digits")
    return bytes.fromhex(text)
