"""Says where a decoded trace object is not of the shape that its form prescribes.

Readers leave out what has a wrong type and go on; this finds it, so that nothing is lost without
a word. What a shape does not name may be anything, and null stands for what is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What a value is to be."""

    expected: str
    """In words."""
    types: frozenset[type]
    members: Mapping[str, Shape] = field(default_factory=dict)
    """Of an object: what some of its members are to be."""
    each: Shape | None = None
    """What every item of a list is to be."""


def a_list(each: Shape) -> Shape:
    """Give the shape of a list of such items."""
    return Shape("a list", frozenset({list}), each=each)


def an_object(**members: Shape) -> Shape:
    """Give the shape of an object; a member is known in camel and in snake case."""
    spelled = {camel(name): shape for name, shape in members.items()}
    return Shape("an object", frozenset({dict}), members={**members, **spelled})


TEXT = Shape("a string", frozenset({str}))
NUMBER = Shape("a number", frozenset({int, float, str}))
"""JSON cannot hold 64 bits, so a number may be written as a string."""


def first_fault(value: Any, shape: Shape, name: str = "") -> str:
    """Name the first place where a value has another shape; empty when there is none.

    Args:
        value: Of one of the shape's own types.
        shape: What it is to be.
        name: How it is called in the object around it.
    """
    if shape.each is not None:
        return _fault_of_items(value, shape.each, name)
    members = shape.members
    for key, held in value.items():
        member = members.get(key)
        if member is None or held is None:
            continue
        if type(held) not in member.types:
            return _message(key, member, held)
        if (member.each or member.members) and (fault := first_fault(held, member, key)):
            return fault
    return ""


def _fault_of_items(items: list[Any], each: Shape, name: str) -> str:
    if not each.types.issuperset(map(type, items)):
        number = next(n for n, item in enumerate(items) if type(item) not in each.types)
        return _message(f"{name}[{number}]", each, items[number])
    for item in items:
        if fault := first_fault(item, each, name):
            return fault
    return ""


def camel(name: str) -> str:
    """Spell a name in snake case as protobuf's JSON does."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _message(where: str, shape: Shape, value: Any) -> str:
    return f"{where}: expected {shape.expected}, got {_KINDS.get(type(value), 'another value')}"


_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}
