"""A path, a URL or a store -> a store. The only place that knows which engines there are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from bijotel.errors import ConfigurationError
from bijotel.stores.memory import MemoryStore
from bijotel.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from bijotel.stores.base import Store

StoreLocation: TypeAlias = "str | os.PathLike[str] | Store"


def open_store(location: StoreLocation) -> Store:
    """Make a store object; nothing is opened yet.

    Args:
        location: A store (returned as it is), a path, ``sqlite:///`` and an absolute path,
            ``postgresql://...``, or ``:memory:``.

    Raises:
        ConfigurationError: the location is empty or its scheme is not known.
    """
    if not isinstance(location, (str, os.PathLike)):
        return location
    text = os.fspath(location)
    if not text:
        raise ConfigurationError("store: expected a path or a URL, got an empty text")
    if text == ":memory:":
        return MemoryStore()
    scheme, separator, rest = text.partition("://")
    if not separator:
        return SqliteStore(text)
    if scheme in {"postgresql", "postgres"}:
        from bijotel.stores.postgres import PostgresStore  # noqa: PLC0415 - an extra

        return PostgresStore(text)
    if scheme == "sqlite":
        return SqliteStore(rest.removeprefix("/") if rest.startswith("//") else rest)
    raise ConfigurationError(
        f"store: scheme {scheme!r} is not known; expected a path, sqlite:///PATH or postgresql://..."
    )
