"""Steps through generators, coroutines and async generators inside a scope.

Each driver is of the same kind as the body it drives, begins the scope at the body's first step
and closes it when the body ends, however it ends: by itself, by an exception, by ``close``, by
garbage collection. Values, ``send``, ``throw`` and return values pass through unchanged, and the
caller sees the body's own exception. A body that is never started leaves no trace.

Source: PEP 380 (delegation to a subgenerator), PEP 492, PEP 525.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from inspect import CO_ITERABLE_COROUTINE
from types import AsyncGeneratorType, CoroutineType, GeneratorType, coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from bijotel.rag.scope import Scope


def drive(body: Any, scope: Scope) -> Any:
    """Return the driver of a body, or anything else as it is with its scope closed."""
    driver = _DRIVERS.get(type(body))
    if driver is None:
        scope.end()
        return body
    if type(body) is GeneratorType and body.gi_code.co_flags & CO_ITERABLE_COROUTINE:
        driver = _awaitable_generator
    driven: Any = driver(body, scope)
    driven.__name__, driven.__qualname__ = body.__name__, body.__qualname__
    return driven


def _generator(
    body: Any, scope: Scope, until_end: AbstractContextManager[Any] | None = None
) -> Generator[Any, Any, Any]:
    with until_end or scope:
        step, value = body.send, None
        while True:
            try:
                made = scope.run(step, value)
            except StopIteration as stop:
                return stop.value
            finally:
                value = None  # an exception kept here would keep this frame by its traceback
            try:
                value = yield made
                step = body.send
            except BaseException as error:  # noqa: BLE001 - GeneratorExit too is the body's to see
                step, value = body.throw, error


@coroutine
def _awaitable_generator(body: Any, scope: Scope) -> Generator[Any, Any, Any]:
    return (yield from _generator(body, scope))


class _Steps:
    """An awaitable whose steps run in a scope."""

    def __init__(self, body: Any, scope: Scope, until_end: AbstractContextManager[Any]) -> None:
        self._body = body
        self._scope = scope
        self._until_end = until_end

    def __await__(self) -> Generator[Any, Any, Any]:
        return _generator(self._body.__await__(), self._scope, self._until_end)


class _AllSteps(_Steps):
    """The steps of a coroutine from its first to its last."""

    def __del__(self) -> None:
        # The driver was dropped or cancelled before its first step; that the body was never
        # awaited is then no news.
        self._body.close()


def _coroutine(body: CoroutineType[Any, Any, Any], scope: Scope) -> Awaitable[Any]:
    async def run(steps: _AllSteps) -> Any:
        return await steps

    return run(_AllSteps(body, scope, scope))


async def _async_generator(
    body: AsyncGeneratorType[Any, Any], scope: Scope
) -> AsyncGenerator[Any, Any]:
    with scope:
        step = _first_step(body)
        while True:
            try:
                made = await _Steps(step, scope, nullcontext())
            except StopAsyncIteration:
                return
            try:
                step = body.asend((yield made))
            except BaseException as error:  # noqa: BLE001 - GeneratorExit too is the body's to see
                step = body.athrow(error)


def _first_step(body: AsyncGeneratorType[Any, Any]) -> Awaitable[Any]:
    """Make the first step of a body without registering it with the event loop.

    The loop closes what is registered, and it must not close driver and body at the same time.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return body.asend(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


_DRIVERS: dict[type, Callable[..., Any]] = {
    GeneratorType: _generator,
    CoroutineType: _coroutine,
    AsyncGeneratorType: _async_generator,
}
