"""Where a record goes: the span that carries it, and the context that hands it on.

One :class:`Scope` is one run of a decorated call. It stamps the current recording span, or opens
one of its own when there is none to stamp, and it keeps the OpenTelemetry context of the body.
That context is attached only while the body runs and detached in the same step, on the same
thread and in the same :class:`contextvars.Context`, so nothing leaks to a caller between two
steps and no token ever meets another context. How bodies are stepped through is the duty of
:mod:`bijotel.rag.drive`; what a record says, that of :mod:`bijotel.rag.context`.

Nothing here raises into the host's call: what fails in a tracer or a span processor is logged
once for each kind.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from opentelemetry.context import (
    Context,
    attach,
    create_key,
    detach,
    get_current,
    get_value,
    set_value,
)
from opentelemetry.trace import (
    INVALID_SPAN,
    Span,
    Status,
    StatusCode,
    get_current_span,
    get_tracer,
    set_span_in_context,
)

from bijotel._version import __version__
from bijotel.rag.context import Provenance, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from typing_extensions import Self

T = TypeVar("T")

_RUN = create_key("bijotel-rag-run")
_logger = logging.getLogger("bijotel.rag")
_reported: set[str] = set()

# What each span that is still alive was stamped with: a second call under the same span must not
# overwrite the record of the first.
_stamped: WeakKeyDictionary[Span, Mapping[str, Any]] = WeakKeyDictionary()


class Run:
    """What a context holds of a run. Not its scope, which must not live as long as a context."""

    __slots__ = ("ended", "provenance")

    def __init__(self, provenance: Provenance) -> None:
        self.provenance = provenance
        self.ended = False


# The run whose step this is. An instrumentation that leaves its own context late, because a stream
# was read after the call that opened it, puts the context of a run that is over back in place,
# where it would speak for all that its caller does next. This variable nobody else sets.
inside: ContextVar[Run | None] = ContextVar("bijotel-rag-inside", default=None)


def current_provenance(context: Context | None = None) -> Provenance | None:
    """Return the provenance of the innermost scope of a context (the current one if None).

    A run that is over speaks only for what was begun in one of its steps, such as a task, and for
    what is handed its context on purpose.
    """
    run = get_value(_RUN, context)
    if isinstance(run, Run) and run.ended and run is get_value(_RUN):
        run = inside.get()
    return run.provenance if isinstance(run, Run) else None


def report_once(what: str, error: Exception) -> None:
    """Log a failure that the host's call must not feel, the first time that it happens."""
    kind = f"{what}: {type(error).__qualname__}"
    if kind not in _reported:
        _reported.add(kind)
        _logger.warning("%s; the call goes on, this is logged once", what, exc_info=error)


@contextmanager
def _guard(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - tracers and processors are not ours
        report_once(what, error)


def _claim(span: Span, stamp: Mapping[str, Any], *, anyway: bool = False) -> bool:
    """Return whether a span may carry a record: it has none, or this one, or ``anyway``."""
    try:
        if anyway:
            _stamped.pop(span, None)
        return _stamped.setdefault(span, stamp) == stamp
    except TypeError:  # a span class without weak references or hash cannot be remembered
        return True


class Scope:
    """One run of a decorated call, from its first step to its end."""

    def __init__(
        self, name: str, make_record: Callable[[], Record], span: Span | None = None
    ) -> None:
        """Prepare a run; nothing happens before :meth:`begin`.

        Args:
            name: Of the span that is opened if none can be stamped.
            make_record: Called once, when the run begins. Must not raise.
            span: To be stamped instead of the current one, whatever it was stamped with before.
        """
        self.span = INVALID_SPAN if span is None else span
        """The span that carries the record, once the run has begun."""
        self.context = Context()
        """Of the body, once the run has begun."""
        self.current: Run | None = None
        """What :data:`inside` holds in each step, once the run has begun."""
        self._given = span
        self._name = name
        self._make_record: Callable[[], Record] | None = make_record
        self._own: Span | None = None

    def begin(self) -> Self:
        """Begin the run; again is harmless."""
        make_record, self._make_record = self._make_record, None
        if make_record is not None:
            record = make_record()
            self.context = get_current()
            with _guard("stamping a span with its sources failed"):
                self._place(record.stamp)
            self.current = Run(record.provenance)
            self.context = set_value(_RUN, self.current, self.context)
        return self

    def run(self, step: Callable[..., T], /, *arguments: Any, **named: Any) -> T:
        """Run one step of the body in its context, and leave the caller's as it was."""
        token = attach(self.context)
        mark = inside.set(self.current)
        try:
            return step(*arguments, **named)
        finally:
            inside.reset(mark)
            # The body may have made a span current that outlives the step.
            self.context = get_current()
            detach(token)
            del arguments  # an exception among them would hold this frame by its traceback

    def end(self, error: BaseException | None = None) -> None:
        """End the run, and its own span if it has one; again is harmless."""
        if self.current is not None:
            self.current.ended = True
        own, self._own = self._own, None
        if own is None:
            return
        if error is not None and not isinstance(error, GeneratorExit):
            with _guard("recording an exception failed"):
                own.record_exception(error)
                own.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
        with _guard("ending a span failed"):
            own.end()

    __enter__ = begin

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        self.end(error)

    def __del__(self) -> None:
        # A run that is dropped half-way, with no event loop left to close it.
        self.end()

    def _place(self, stamp: Mapping[str, Any]) -> None:
        """Put the record on a span that will keep it."""
        given = self._given
        self.span = target = get_current_span() if given is None else given
        if target.is_recording() and _claim(target, stamp, anyway=given is not None):
            target.set_attributes(stamp)
            return
        parent = self.context if given is None else set_span_in_context(given, self.context)
        own = get_tracer("bijotel", __version__).start_span(self._name, parent, attributes=stamp)
        self.span = own
        if not own.is_recording():
            # Nor is it made current: calls within are sampled as they would be without us.
            _report_unrecorded()
            return
        _claim(own, stamp)
        self._own = own
        self.context = set_span_in_context(own, self.context)


def _report_unrecorded() -> None:
    if "unrecorded" not in _reported:
        _reported.add("unrecorded")
        _logger.info("no span records: the provenance of calls is not kept (logged once)")
