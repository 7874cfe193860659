"""What is made once of objects that come again and again: a provider's resource, its scopes.

Reading and writing them anew for each span would take longer than the rest of the span. Only
what cannot change may be remembered; that is for the caller to know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

MOST: Final = 64
"""How many objects are held on to; an application has one resource and a scope a library."""

Source = TypeVar("Source")
Made = TypeVar("Made")


class PerObject(Generic[Source, Made]):
    """A function of one object that remembers what it gave for that very object."""

    def __init__(self, make: Callable[[Source], Made]) -> None:
        """Wrap a function whose argument never changes."""
        self._make = make
        self._made: dict[int, tuple[Source, Made]] = {}

    def __call__(self, source: Source) -> Made:
        """Give what the function makes of an object."""
        found = self._made.get(id(source))
        if found is not None:
            return found[1]
        made = self._make(source)
        if len(self._made) >= MOST:
            self._made = {}
        # The object is kept too: while it lives, no other can have its id.
        self._made[id(source)] = (source, made)
        return made
