"""Passages of one length are not cut, and a reranker's texts are its hits' texts."""

from __future__ import annotations

from bijotel.audit.join import join_trace
from bijotel.model import SpanRecord
from bijotel.traces.model import Trace

TEXTS = [
    "the warranty of the kettle lasts three years from now on",
    "the grinder has nine burrs of steel that are never worn!",
    "the service desk speaks Swedish and German on weekdays..",
]
TRACE = "0" * 31 + "1"


def span(number: int, kind: str, **attributes: object) -> SpanRecord:
    return SpanRecord(
        name=kind,
        trace_id=TRACE,
        span_id=f"{number:016x}",
        start_time_unix_nano=number * 10,
        end_time_unix_nano=number * 10 + 5,
        attributes={"openinference.span.kind": kind, **attributes},
    )


def documents(prefix: str, *, texts: bool) -> dict[str, str]:
    named = {f"{prefix}.{n}.document.id": f"c{n}" for n in range(3)}
    held = {f"{prefix}.{n}.document.content": text for n, text in enumerate(TEXTS)}
    return {**named, **(held if texts else {})}


def call(prompt: str) -> SpanRecord:
    message = {"llm.input_messages.0.message.role": "user"}
    return span(9, "LLM", **message, **{"llm.input_messages.0.message.content": prompt})


def test_passages_of_one_length_are_whole():
    """A splitter makes texts of one length; that is no sign of a limit on values."""
    assert len({len(text) for text in TEXTS}) == 1
    retrieval = span(1, "RETRIEVER", **documents("retrieval.documents", texts=True))
    context = join_trace(Trace(TRACE, (retrieval, call("nothing of it")), ()))
    assert [passage.verdict.status for passage in context.passages] == ["absent"] * 3


def test_a_rerankers_texts_are_those_of_its_hits():
    """A search that lists ids only is told by what its reranker was given."""
    retrieval = span(1, "RETRIEVER", **documents("retrieval.documents", texts=False))
    inputs = documents("reranker.input_documents", texts=True)
    outputs = documents("reranker.output_documents", texts=True)
    reranker = span(2, "RERANKER", **inputs, **outputs)
    prompt = f"Context: {TEXTS[1]}"
    context = join_trace(Trace(TRACE, (retrieval, reranker, call(prompt)), ()))
    assert [passage.text for passage in context.passages] == TEXTS
    statuses = [passage.verdict.status for passage in context.passages]
    assert statuses == ["absent", "included", "absent"]


def test_prompts_of_odd_types_are_read_as_nothing():
    """A number where prompts belong is no prompt and no error."""
    retrieval = span(1, "RETRIEVER", **documents("retrieval.documents", texts=True))
    odd = span(9, "LLM", **{"llm.prompts": 7})
    context = join_trace(Trace(TRACE, (retrieval, odd), ()))
    assert [passage.verdict.status for passage in context.passages] == ["unknown"] * 3
