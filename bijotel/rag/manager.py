"""``rag_provenance``: the decorator's scope as a ``with`` block.

Unlike a decorated body, a block's steps cannot be told apart. A generator that yields inside the
block shows the scope to its consumer; decorate it instead.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from contextvars import Token
from typing import TYPE_CHECKING

from opentelemetry.context import attach, detach, get_current

from bijotel.rag.context import Prompt, provenance_of, record_of
from bijotel.rag.scope import Run, Scope, inside

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Any

    from opentelemetry.trace import Span

    from bijotel.rag.source import RAGSource


def rag_provenance(
    sources: Iterable[RAGSource],
    *,
    total_context_tokens: int | None = None,
    prompt: Prompt | None = None,
    span: Span | None = None,
) -> ProvenanceBlock:
    """Record which sources the calls in a block use; as :func:`with_rag_provenance`.

    ``with rag_provenance(sources) as span:`` or ``async with``. What comes out is the span that
    carries the record; its ``is_recording()`` is false if no span could be stamped.

    Args:
        sources: In the retriever's order.
        total_context_tokens: Tokens of the whole context, if known.
        prompt: What the model gets to see.
        span: The span to stamp instead of the current one, even if it carries another record. If
            it does not record any more, a child of it is opened.

    Returns:
        A context manager for one block.

    Raises:
        TypeError: As :func:`rag_context`.

    Added in 0.1.
    """
    record = record_of(provenance_of(sources, total_context_tokens), prompt)
    return ProvenanceBlock(Scope("rag_provenance", lambda: record, span))


class ProvenanceBlock(AbstractContextManager["Span"], AbstractAsyncContextManager["Span"]):
    """The context manager that :func:`rag_provenance` returns; for one block."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._outer = get_current()
        self._token: Token[Any] | None = None
        self._mark: Token[Run | None] | None = None

    def __enter__(self) -> Span:
        if self._mark is not None:
            raise RuntimeError("rag_provenance: a block is entered once; make one for each use")
        self._scope.begin()
        self._outer = get_current()
        self._token = attach(self._scope.context)
        self._mark = inside.set(self._scope.current)
        return self._scope.span

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        self._leave()
        self._scope.end(error)

    async def __aenter__(self) -> Span:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    def _leave(self) -> None:
        if self._mark is None or self._token is None:
            return
        try:
            # That it fails shows, without a log, that the block is left in another
            # contextvars.Context than it was entered in.
            inside.reset(self._mark)
        except ValueError:  # there, its own state is all that can be put right
            if get_current() is self._scope.context:
                attach(self._outer)
        else:
            detach(self._token)
