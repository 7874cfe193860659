"""Checked by mypy --strict and never run: decorating changes no type."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from opentelemetry.trace import Span
from typing_extensions import assert_type

from bijotel.rag import (
    RAGSource,
    rag_context,
    rag_provenance,
    sources_from,
    with_rag_provenance,
)

SOURCES = [RAGSource(UUID(int=1), 0, Path("a.md"), similarity_score=0.5), RAGSource("b", 1)]


@with_rag_provenance(SOURCES)
def plain(a: int, b: str = "x", *, c: float | None = None) -> dict[str, int]:
    return {b: a, str(c): 0}


@with_rag_provenance(lambda question: sources_from([question]), prompt=lambda question: question)
async def coroutine(question: str) -> bytes:
    return question.encode()


@with_rag_provenance(SOURCES, total_context_tokens=7)
def generator(n: int) -> Generator[int, str, bool]:
    return (yield n) == ""


@with_rag_provenance(SOURCES)
def iterator(n: int) -> Iterator[int]:
    yield n


@with_rag_provenance(SOURCES)
async def async_generator(n: int) -> AsyncGenerator[int, str]:
    yield n


@with_rag_provenance(SOURCES)
async def async_iterator(n: int) -> AsyncIterator[int]:
    yield n


class Service:
    @with_rag_provenance(SOURCES)
    def method(self, n: int) -> str:
        return str(n)

    @with_rag_provenance(lambda self, n: SOURCES)
    async def async_method(self, n: int) -> str:
        return str(n)

    @classmethod
    @with_rag_provenance(SOURCES)
    def class_below(cls, n: int) -> str:
        return str(n)

    @staticmethod
    @with_rag_provenance(SOURCES)
    def static_below(n: int) -> str:
        return str(n)

    @with_rag_provenance(SOURCES)
    @classmethod
    def class_above(cls, n: int) -> str:
        return str(n)

    @with_rag_provenance(SOURCES)
    @staticmethod
    def static_above(n: int) -> str:
        return str(n)


async def calls() -> None:
    assert_type(plain(1, "x", c=None), dict[str, int])
    assert_type(await coroutine("q"), bytes)
    assert_type(generator(1), Generator[int, str, bool])
    assert_type(iterator(1), Iterator[int])
    assert_type(async_generator(1), AsyncGenerator[int, str])
    assert_type(async_iterator(1), AsyncIterator[int])
    assert_type(Service().method(1), str)
    assert_type(Service.method(Service(), 1), str)
    assert_type(await Service().async_method(1), str)
    assert_type(Service.class_below(1), str)
    assert_type(Service().static_below(1), str)
    assert_type(Service.class_above(1), str)
    assert_type(Service().static_above(1), str)
    plain("1")  # type: ignore[arg-type]
    plain(1, d=2)  # type: ignore[call-arg]
    Service().method()  # type: ignore[call-arg]
    with_rag_provenance(["text"])  # type: ignore[list-item]
    with_rag_provenance(SOURCES)(5)  # type: ignore[type-var]


async def blocks() -> None:
    with rag_provenance(SOURCES) as span:
        assert_type(span, Span)
    async with rag_provenance(SOURCES, span=span) as other:
        assert_type(other, Span)


def values() -> None:
    exact: Callable[[str], Coroutine[Any, Any, bytes]] = coroutine
    assert_type(exact, Callable[[str], Coroutine[Any, Any, bytes]])
    source = SOURCES[0]
    assert_type(source.document_id, str | int)
    assert_type(source.similarity_score, float | None)
    assert_type(source.content, str | None)
    assert_type(source.to_dict(), dict[str, Any])
    assert_type(sources_from(["a"]), tuple[RAGSource, ...])
    assert_type(rag_context(SOURCES, prompt=[{"role": "user", "content": "q"}]), dict[str, Any])
    source.chunk_index = 2  # type: ignore[misc]
    RAGSource("a")  # type: ignore[call-arg]
    RAGSource(None, 0)  # type: ignore[arg-type]
