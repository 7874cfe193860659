"""A run that is over does not speak for its caller, whatever others do with contexts.

Some instrumentations attach a context when a stream is opened and detach it when the stream has
been read. Where that is after the decorated call, detaching puts the context of the finished run
back in place.
"""

from __future__ import annotations

import asyncio
import contextvars

import pytest
from opentelemetry.context import attach, detach, get_current, set_value

from bijotel.rag import RAGSource, current_provenance, rag_provenance, with_rag_provenance


def seen(context=None):
    provenance = current_provenance(context)
    return None if provenance is None else provenance.attributes["bijotel.rag.sources"]


def decorated(name):
    return with_rag_provenance([RAGSource(name, 0)])


@decorated("opener")
def open_stream():
    """What an instrumentation does that keeps its context until the stream was read."""
    return attach(set_value("instrumentation", 1))


@pytest.fixture(autouse=True)
def _own_context():
    """What these tests leave in place is put right."""
    token = attach(get_current())
    yield
    detach(token)


def test_a_caller_that_reads_a_stream_to_its_end_has_no_sources():
    """The context of the finished run is the current one again, but it says nothing."""
    detach(open_stream())
    assert seen() is None


def test_the_run_around_it_is_seen_again():
    """Within another run it is that run's sources that the next call has."""

    @decorated("reader")
    def read():
        before = seen()
        detach(open_stream())
        return before, seen()

    before, after = read()
    assert before is not None
    assert after == before


def test_the_block_around_it_is_seen_again():
    """The same in a ``with`` block; a block that is over says nothing either."""
    with rag_provenance([RAGSource("reader", 0)]):
        before = seen()
        detach(open_stream())
        assert seen() == before
        token = attach(set_value("instrumentation", 1))
    detach(token)
    assert seen() is None


def test_a_task_that_outlives_its_run_keeps_the_sources():
    """It was begun in a step of the run."""

    async def main():
        over = asyncio.Event()

        async def left_behind():
            await over.wait()
            return seen()

        @decorated("starter")
        async def start():
            return asyncio.create_task(left_behind()), seen()

        task, within = await start()
        over.set()
        return await task, within, seen()

    later, within, outside = asyncio.run(main())
    assert later == within is not None
    assert outside is None


def test_a_context_that_is_handed_on_keeps_the_sources():
    """Whoever starts a span with a context of the run means it; so does a copied Context."""

    @decorated("giver")
    def give():
        return get_current(), contextvars.copy_context(), seen()

    given, copied, within = give()
    assert within is not None
    assert seen(given) == within
    assert copied.run(seen) == within
    assert seen() is None
