"""By what calls are counted together: model, retriever, service or day. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Final, Literal, TypeAlias

from bijotel.dialects.span import Span
from bijotel.dialects.usage import models_of
from bijotel.semconv import RAG_RETRIEVER_ID

GroupBy: TypeAlias = Literal["model", "retriever", "service", "day"]

MOST_GROUPS: Final = 1000
"""Further ones are one group, so that hostile names cannot fill the memory."""
OTHERS: Final = "(others)"
NONE: Final = "(none)"
"""The groups of spans beyond ``MOST_GROUPS``, and of spans that name none."""

_DAY: Final = 86_400 * 10**9
_FIRST_DAY: Final = date(1970, 1, 1)


def group_of(span: Span, by: GroupBy) -> str:
    """Name the group that a span belongs to."""
    return _NAMES[by](span) or NONE


def _model(span: Span) -> str:
    return next(iter(models_of(span)), "")


def _retriever(span: Span) -> str:
    found = span.attributes.get(RAG_RETRIEVER_ID, span.inherited.get(RAG_RETRIEVER_ID))
    return found if isinstance(found, str) else ""


def _service(span: Span) -> str:
    found = span.resource.attributes.get("service.name")
    return found if isinstance(found, str) else ""


def _day(span: Span) -> str:
    """Give the date on which a span began, in UTC."""
    start = span.start_time_unix_nano
    if start is None:
        return ""
    try:
        return (_FIRST_DAY + timedelta(days=start // _DAY)).isoformat()
    except (OverflowError, ValueError):
        return ""


_NAMES: Final[dict[GroupBy, Callable[[Span], str]]] = {
    "model": _model,
    "retriever": _retriever,
    "service": _service,
    "day": _day,
}
