"""Calls that ask the same again, and what the repeats cost."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal

import pytest

from bijotel.cost import Prices, Rates
from bijotel.dedup import Groups
from bijotel.model import Entry
from bijotel.spans.encode import encode_record
from tests.ops.calls import chat, span

OWN = {"gpt-4o": Rates(Decimal(10), Decimal(10))}
PROVENANCE = {
    "bijotel__rag__source_count": 1,
    "bijotel__rag__sources": '[{"document_id": "a", "similarity_score": 0.9}]',
    "bijotel__rag__retriever_id": "qdrant",
    "bijotel__rag__embedding_model": "small",
}


def entry(seq: int, record) -> Entry:
    draft = encode_record(record)
    return Entry(
        b"c", seq, 0, b"k", "span", 0, "span/1", draft.body_hash, b"p", draft.trace_id,
        draft.span_id, draft.name, draft.start_unix_nano, draft.end_unix_nano, draft.dedup_key,
        b"t", draft.body,
    )  # fmt: skip


def groups(*records, own=OWN):
    with closing(Groups(Prices(own))) as found:
        for seq, record in enumerate(records):
            found.add(entry(seq, record), record)
        return list(found.repeated())


def ask(number: int, question: str = "why", **rest):
    return chat(1000, 500, number=number, trace=number, gen_ai__input__messages=question, **rest)


def test_the_same_question_again():
    """Count, first and last entry; the first call is not a repeat, so it costs nothing here."""
    (group,) = groups(ask(1), ask(2, "who"), ask(3), ask(4))
    assert (group.name, group.count, group.first_seq, group.last_seq) == ("chat", 3, 0, 3)
    assert group.tokens == 3000
    assert str(group.cost) == "$0.03"
    assert group.as_dict() == {
        "dedup_key": encode_record(ask(1)).dedup_key.hex(),
        "name": "chat",
        "count": 3,
        "first_seq": 0,
        "last_seq": 3,
        "repeated_tokens": 3000,
        "repeated_cost_known": 0.03,
        "repeated_calls": 2,
        "repeated_unpriced_calls": 0,
    }


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ({"start": 999, "end": 1000}, True),
        ({"bijotel__rag__sources": '[{"document_id": "b", "similarity_score": 0.1}]'}, True),
        ({"gen_ai__usage__output_tokens": 7, "gen_ai__response__id": "x"}, True),
        ({"bijotel__rag__retriever_id": "chroma"}, False),
        ({"bijotel__rag__embedding_model": "large"}, False),
        ({"bijotel__rag__source_count": 2}, False),
        ({"gen_ai__input__messages": "else"}, False),
    ],
)
def test_what_makes_a_question_the_same(change, is_same):
    """Time, scores and the answer do not; retriever, embedding model and prompt do."""
    again = {"gen_ai__input__messages": "why", **PROVENANCE, **change}
    found = groups(
        chat(number=1, trace=1, gen_ai__input__messages="why", **PROVENANCE),
        chat(number=2, trace=2, **again),
    )
    assert bool(found) is is_same


def test_groups_come_by_size():
    """The largest first, of equal ones the earliest."""
    found = groups(*(ask(n, q) for n, q in enumerate("abbcaccdd", 1)))
    assert [(group.count, group.first_seq) for group in found] == [(3, 3), (2, 0), (2, 1), (2, 7)]


def test_repeats_without_usage_or_price_are_a_lower_bound():
    """No tokens are not zero tokens that cost nothing."""
    (group,) = groups(ask(1), ask(2), ask(3, model="gpt-4o-x"), own={})
    assert group.cost.unpriced + (group.cost.known > 0) == group.cost.calls
    (silent,) = groups(*(chat(None, None, number=n, trace=n) for n in (1, 2, 3)))
    assert (silent.count, silent.tokens) == (3, 0)
    assert str(silent.cost) == "at least $0.00, 2 of 2 calls unpriced"
    (other,) = groups(*(span(n, trace=n) for n in (1, 2, 3)))
    assert (other.count, other.tokens, other.cost.calls) == (3, 0, 0)


def test_nested_spans_of_a_repeated_call_count_once():
    """Agent and call are repeated both; the tokens are those of the call."""

    def run(first: int) -> tuple:
        return (
            chat(
                1000, 500, number=first + 1, parent=first, trace=first, gen_ai__input__messages="q"
            ),
            chat(
                1000, 500, number=first, trace=first, end=5, gen_ai__operation__name="invoke_agent"
            ),
        )

    found = groups(*run(10), *run(20))
    assert sorted(group.tokens for group in found) == [0, 1500]


def test_hostile_counts_do_not_overflow():
    """The sum of two largest counts is beyond any column."""
    (group,) = groups(*(chat(2**63 - 1, 0, number=n, trace=n) for n in (1, 2, 3)))
    assert group.tokens == 2 * (2**63 - 1)
