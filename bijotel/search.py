"""Which entries someone is looking for: conditions for the store, and a filter for the rest. Pure.

Place, time, trace and span are columns, so the store finds them. Model, service, status and
documents stand in the bodies and are looked for there; a document can often be ruled out
without parsing.

Rules kept: a filter never drops an entry that a full look would keep; times are never local.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final

from bijotel.dialects.recorded import recorded_sources
from bijotel.dialects.registry import read_span
from bijotel.dialects.span import Span
from bijotel.dialects.usage import models_of
from bijotel.errors import ConfigurationError
from bijotel.model import SpanRecord

MAX_NANOS: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d))?",
    re.ASCII,
)
# What JSON spells in one way only, unless it is spelled by number or with a needless backslash.
_PLAIN: Final = re.compile(r"[ !#-\[\]-~]+")
_OTHER_SPELLING: Final = re.compile(rb"\\\\(?:u00[2-7]|/)")


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for; every part that is given must fit."""

    since_unix_nano: int | None = None
    """Spans that began then or later."""
    until_unix_nano: int | None = None
    """Spans that began before."""
    trace_id: bytes | None = None
    span_id: bytes | None = None
    service: str | None = None
    """``service.name`` of the resource."""
    model: str | None = None
    """The one that answered, or that was asked for."""
    status: str | None = None
    """A word for how the span ended or what a policy decided, in any case."""
    document: str | None = None
    """The id of a recorded source, or of a passage that a span of any dialect retrieved; a number
    is looked for as its digits."""
    source_uri: str | None = None

    @property
    def reads_bodies(self) -> bool:
        """Whether the store alone cannot tell."""
        return any(
            wanted is not None
            for wanted in (self.service, self.model, self.status, self.document, self.source_uri)
        )

    def conditions(self) -> list[tuple[str, Any]]:
        """Say what the store can find, in its words; see ``stores.base.CONDITIONS``."""
        wanted = {
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "start_from": self.since_unix_nano,
            "start_to": None if self.until_unix_nano is None else self.until_unix_nano - 1,
        }
        found: list[tuple[str, Any]] = [
            (name, value) for name, value in wanted.items() if value is not None
        ]
        if found or self.reads_bodies:
            found.append(("kind", "span"))
        return found

    def may_fit(self, body: bytes) -> bool:
        """Tell from the octets of a body whether it is worth parsing."""
        for wanted in (self.document, self.source_uri):
            if wanted and _PLAIN.fullmatch(wanted) and wanted.encode() not in body:
                # The list is JSON within JSON, so that its own backslashes are doubled.
                return _OTHER_SPELLING.search(body) is not None
        return True

    def fits(self, record: Span, statuses: Collection[str]) -> bool:
        """Tell whether a span is looked for, as far as its body tells.

        Args:
            record: The span. One that was skimmed tells of recorded sources alone.
            statuses: Every word for its status, in capitals.
        """
        service = record.resource.attributes.get("service.name")
        return (
            (self.service is None or service == self.service)
            and (self.model is None or self.model in models_of(record))
            and (self.status is None or self.status.upper() in statuses)
            and (
                (self.document is None and self.source_uri is None)
                or any(map(self._is_source, recorded_sources(record)))
                or (bool(self.document) and not self.source_uri and self._is_retrieved(record))
            )
        )

    def _is_retrieved(self, record: Span) -> bool:
        found = read_span(record).retrieval if isinstance(record, SpanRecord) else None
        return found is not None and any(
            passage.id == self.document for passage in (*found.passages, *found.inputs)
        )

    def _is_source(self, source: Any) -> bool:
        if not isinstance(source, Mapping):
            return False
        wanted = (("document_id", self.document), ("source_uri", self.source_uri))
        return all(text is None or _same(source.get(name), text) for name, text in wanted)


def parse_time(text: str) -> int:
    """Read a time as nanoseconds since 1970: a date (its beginning in UTC), or RFC 3339.

    Raises:
        ConfigurationError: another form, a time without offset, or one before 1970 or after 2262.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise ConfigurationError(
            f"time {text!r}: expected a date like 2026-05-26, or a time with an offset like "
            "2026-05-26T10:00:00Z"
        )
    day, clock, fraction, offset = found.groups()
    zone = "+00:00" if offset in {None, "Z", "z"} else offset
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}{zone}") - _EPOCH
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(f"time {text!r}: {error}") from None
    seconds = moment.days * 86_400 + moment.seconds
    unix_nano = seconds * 10**9 + int((fraction or "").ljust(9, "0"))
    if not 0 <= unix_nano <= MAX_NANOS:
        raise ConfigurationError(f"time {text!r}: expected one from 1970 to 2262")
    return unix_nano


def _same(value: Any, text: str) -> bool:
    return str(value) == text if type(value) in {str, int} else False
