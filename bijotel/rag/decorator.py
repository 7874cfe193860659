"""``with_rag_provenance``: a function's calls carry the sources that they used.

Decides whose sources a call has and when its scope begins; the scope itself is
:mod:`bijotel.rag.scope`. Rules kept: the decorated function stays what it was (kind, signature,
name, types, result, exception); no state of a call is kept on the decorator; a failing
``sources`` or ``prompt`` callable never breaks the call and never goes unseen.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from bijotel import semconv
from bijotel.rag.context import Prompt, Provenance, Record, provenance_of, record_of
from bijotel.rag.drive import drive
from bijotel.rag.plain import type_name
from bijotel.rag.scope import Scope, report_once
from bijotel.rag.source import whole_number

if TYPE_CHECKING:
    from bijotel.rag.source import RAGSource

F = TypeVar("F", bound="Callable[..., Any] | classmethod[Any, ..., Any] | staticmethod[..., Any]")

_LAZY = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


def with_rag_provenance(
    sources: Iterable[RAGSource] | Callable[..., Iterable[RAGSource]],
    *,
    total_context_tokens: int | None = None,
    prompt: Prompt | Callable[..., Prompt | None] | None = None,
) -> Callable[[F], F]:
    """Record which sources the calls of a function use.

    The attributes of :func:`rag_context` are set on the current recording span before the body
    runs. If there is none, or if it carries the record of another call, a span of the tracer
    ``bijotel`` is opened around the call, named like the function; an exception that leaves the
    body is recorded there. The sources are also known to every model call inside the body,
    through the OpenTelemetry context; the innermost decorated call wins.

    Works on functions, methods, coroutine functions, generators and async generators, above or
    below ``classmethod`` and ``staticmethod``. A generator's scope begins with its first step and
    ends with it; between two steps the caller's context is in place. Where a plain function
    returns a coroutine or generator, the scope lasts until that ends.

    Args:
        sources: The sources of every call, copied now; or a callable that gets each call's own
            arguments (``self`` or ``cls`` included) and returns the sources of that call.
        total_context_tokens: Tokens of the whole context, if known.
        prompt: What the model gets to see, or a callable of the call's own arguments. With it
            the record says which passages stand in it.

    Raises:
        TypeError: When decorating: what is decorated is no function or method, or an argument is
            wrong. What fails during a call is logged once, and the record has the name of the
            exception's type in ``bijotel.rag.error``.

    Added in 0.1.
    """
    recipe = _Recipe.of(sources, total_context_tokens, prompt)

    def decorate(function: F) -> F:
        # wrapt takes a while to import, and who only builds sources has no use for it.
        from bijotel.rag.wrapping import wrap  # noqa: PLC0415

        target = _undecorated(function)
        name = getattr(target, "__qualname__", None) or type_name(target)
        code = getattr(target, "__code__", None)
        caller = _Caller(recipe, name)
        is_lazy = code is not None and code.co_flags & _LAZY
        return wrap(function, caller.call_lazily if is_lazy else caller.call)

    return decorate


@dataclass(frozen=True, slots=True)
class _Recipe:
    """How the record of one call is made. What no call can change is made once."""

    sources: Callable[..., Iterable[RAGSource]] | Provenance
    total_context_tokens: int | None
    prompt: Prompt | Callable[..., Prompt | None] | None
    fixed: Record | None

    @classmethod
    def of(cls, sources: Any, total_context_tokens: int | None, prompt: Any) -> _Recipe:
        for name, given in (("sources", sources), ("prompt", prompt)):
            if callable(given) and _is_async(given):
                raise TypeError(f"{name}: expected a plain callable, got a coroutine function")
        if total_context_tokens is not None:
            whole_number("total_context_tokens", total_context_tokens)
        if not callable(sources):
            sources = provenance_of(sources, total_context_tokens)
        fixed = None if callable(sources) or callable(prompt) else record_of(sources, prompt)
        return cls(sources, total_context_tokens, prompt, fixed)

    def record(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Record:
        """Make the record of one call; never raises an ``Exception``."""
        if self.fixed is not None:
            return self.fixed
        provenance: Provenance | None = None
        try:
            provenance = self._provenance(arguments, named)
            prompt = self.prompt(*arguments, **named) if callable(self.prompt) else self.prompt
            return record_of(provenance, prompt)
        except Exception as error:  # noqa: BLE001 - the user's callable must not break the call
            what = "sources" if provenance is None else "prompt"
            report_once(f"the {what} of a call could not be recorded", error)
            failed = {semconv.RAG_ERROR: type(error).__qualname__}
        if provenance is None:
            return Record(Provenance(failed, ()), failed)
        return Record(provenance, {**provenance.attributes, **failed})

    def _provenance(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Provenance:
        if isinstance(self.sources, Provenance):
            return self.sources
        return provenance_of(self.sources(*arguments, **named), self.total_context_tokens)


@dataclass(frozen=True, slots=True)
class _Caller:
    """What wrapt calls in place of the decorated function. Holds nothing of any call."""

    recipe: _Recipe
    name: str

    def call(self, wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Call a plain function in a scope."""
        scope = self._scope(instance, args, kwargs).begin()
        try:
            result = scope.run(wrapped, *args, **kwargs)
        except BaseException as error:
            scope.end(error)
            raise
        return drive(result, scope)

    def call_lazily(self, wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Call a function whose body does not run before its result's first step."""
        return drive(wrapped(*args, **kwargs), self._scope(instance, args, kwargs))

    def _scope(self, instance: Any, args: tuple[Any, ...], kwargs: Any) -> Scope:
        own = args if instance is None else (instance, *args)
        return Scope(self.name, functools.partial(self.recipe.record, own, kwargs))


def _undecorated(function: Any) -> Any:
    """Return the function inside of descriptors and partials.

    Raises:
        TypeError: There is none.
    """
    target = function
    while isinstance(target, (classmethod, staticmethod, functools.partial)):
        target = target.func if isinstance(target, functools.partial) else target.__func__
    if inspect.isclass(target) or not callable(target):
        kind = f"class {target.__qualname__}" if inspect.isclass(target) else type_name(target)
        raise TypeError(f"with_rag_provenance: expected a function or method, got {kind}")
    return target


def _is_async(function: Callable[..., Any]) -> bool:
    # An object's own __call__ is looked up on its type, as Python does.
    called = getattr(type(function), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
