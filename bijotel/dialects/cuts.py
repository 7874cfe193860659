"""Values that the tracer cut without a sign.

The limit on the length of values leaves no mark. It shows when two or more different texts of one
resource share one exact maximal length; then every text of that length was cut. Texts that all
stand in one field, such as the passages of a splitter, may have one length without being cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from bijotel.dialects.model import Capture, ModelCall, Retrieval
from bijotel.model import SpanRecord

REASON = "cut: it has the length at which the values of this trace end"


class Cuts:
    """At which length the values of each resource of a trace end."""

    __slots__ = ("_ends",)

    def __init__(self, spans: Iterable[SpanRecord]) -> None:
        longest: dict[str, dict[str, set[str]]] = {}
        for resource, span in _by_resource(spans):
            # The longest texts so far, and the fields in which each of them stands.
            known = longest.setdefault(resource, {"": set()})
            size = len(next(iter(known)))
            for key, text in _texts(span):
                if len(text) < size:
                    continue
                if len(text) > size:
                    known.clear()
                    size = len(text)
                known.setdefault(text, set()).add(_field(key))
        self._ends = {
            resource: len(next(iter(known)))
            for resource, known in longest.items()
            if len(known) > 1 and not set.intersection(*known.values())
        }

    def length(self, span: SpanRecord) -> int | None:
        """Give the length at which the values of a span's resource end, None if at none."""
        return self._ends.get(repr(span.resource)) if self._ends else None


def _by_resource(spans: Iterable[SpanRecord]) -> Iterator[tuple[str, SpanRecord]]:
    """Give each span with a text that is equal for equal resources."""
    resource, text = None, ""
    for span in spans:
        if span.resource is not resource:
            resource, text = span.resource, repr(span.resource)
        yield text, span


def mark_call(call: ModelCall, length: int) -> ModelCall:
    """Mark a call whose prompt holds a text of the length at which values end."""
    cut = any(len(text) == length for message in call.messages for text in _parts(message.content))
    return replace(call, capture=Capture("incomplete", REASON)) if cut else call


def mark_retrieval(retrieval: Retrieval, length: int) -> Retrieval:
    """Mark the passages whose text has the length at which values end."""
    return replace(
        retrieval,
        passages=tuple(
            replace(passage, reason=REASON) if len(passage.text or "") == length else passage
            for passage in retrieval.passages
        ),
    )


def _field(key: str) -> str:
    """Give what an attribute is of whatever it belongs to: the last two parts of its name."""
    return ".".join(key.split(".")[-2:])


def _texts(span: SpanRecord) -> Iterator[tuple[str, str]]:
    for attributes in (span.attributes, *(event.attributes for event in span.events)):
        for key, value in attributes.items():
            if isinstance(value, str):
                yield key, value
            elif isinstance(value, (list, tuple)):
                for item in value:
                    if isinstance(item, str):
                        yield key, item


def _parts(content: Any) -> Iterator[str]:
    """Give the texts of a message's content and of its parts."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            yield from (value for value in part.values() if isinstance(value, str))
