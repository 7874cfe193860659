"""The wrapt edge: a proxy that is its function in every respect, pickling and copying included.

Imported when the first function is decorated, since wrapt loads asyncio.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar, cast

import wrapt

F = TypeVar("F")


class _BoundMethod(wrapt.BoundFunctionWrapper):  # type: ignore[type-arg]
    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (self.__self__, self.__name__)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return getattr(copy.deepcopy(self.__self__, memo), self.__name__)


class _Function(wrapt.FunctionWrapper):  # type: ignore[type-arg]
    __bound_function_wrapper__ = _BoundMethod

    def __reduce_ex__(self, protocol: Any) -> Any:
        # By name, as functions are: a worker process imports it decorated.
        return self.__qualname__

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


def wrap(function: F, call: Callable[..., Any]) -> F:
    """Return ``function`` with its calls going to ``call(wrapped, instance, args, kwargs)``."""
    return cast("F", _Function(cast("Any", function), call))
