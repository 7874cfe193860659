"""``bijotel stats --by``: what the calls of a chain spent, by model, day, service, retriever."""

from __future__ import annotations

import pytest

from bijotel.model import Resource
from tests.cli.conftest import CHAIN_HEX, STARTED_AT, append, rag, source, span, tamper

DAY = 86_400 * 10**9


@pytest.fixture
def mixed(tmp_path):
    """Two models and a third without a price, on two days, an agent around the first two calls."""

    def call(number, model, day, **changes):
        attributes = {"gen_ai.request.model": model, **changes.pop("attributes", {})}
        start = STARTED_AT + day * DAY + number
        times = {"start_time_unix_nano": start, "end_time_unix_nano": start + 10}
        service = Resource({"service.name": "shop\x1b"} if day else {})
        return span(number, attributes=attributes, resource=service, **times, **changes)

    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.usage.input_tokens": 240,
        "gen_ai.usage.output_tokens": 34,
    }
    return append(
        tmp_path / "chain.db",
        [
            call(1, "gpt-4o", 0, trace_id="a" * 32, parent_span_id=f"{3:016x}"),
            call(2, "gpt-4o-mini", 0, trace_id="a" * 32, parent_span_id=f"{3:016x}"),
            call(3, "gpt-4o", 0, trace_id="a" * 32, attributes=agent),
            call(4, "gpt-4o", 1, attributes=rag([source()])),
            call(5, "acme", 1),
            call(6, "acme", 1, attributes={"gen_ai.usage.output_tokens": None}),
        ],
    )


def test_by_model(bijotel, secret, mixed):
    """A table; nested spans of one call count once, and an unknown price is never zero."""
    assert bijotel("stats", "--db", mixed, "--by", "model") == (
        0,
        """\
model           calls         input        output  cost
acme                2           240            17  at least $0.00, 2 of 2 calls unpriced
gpt-4o              2           240            34  $0.00094
gpt-4o-mini         1           120            17  $0.0000282
total               5           600            68  at least $0.0009682, 2 of 5 calls unpriced
unpriced: 1 call: no price is known for acme
unpriced: 1 call: the span reports no output tokens
""",
        "",
    )


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("day", ["2023-11-14", "2023-11-15"]),
        ("service", ["(none)", r"shop\x1b"]),
        ("retriever", ["(none)", "qdrant"]),
    ],
)
def test_by_other_keys(bijotel, secret, mixed, by, names):
    """Days in UTC, services and retrievers as recorded, escaped."""
    lines = bijotel("stats", "--db", mixed, "--by", by).out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == [by, *names, "total"]


def test_the_json_document(bijotel, secret, mixed):
    """One document with every group and the total."""
    document = bijotel("stats", "--db", mixed, "--by", "day", "--json").document
    assert {
        name: document[name] for name in ("chain", "verified", "caveat", "unreadable", "by")
    } == {
        "chain": CHAIN_HEX,
        "verified": True,
        "caveat": None,
        "unreadable": 0,
        "by": "day",
    }
    first, second = document["groups"]
    assert first == {
        "day": "2023-11-14",
        "input_tokens": 240,
        "output_tokens": 34,
        "calls_without_usage": 0,
        "cost_known": 0.0004982,
        "calls": 2,
        "unpriced_calls": 0,
        "unpriced_reasons": {},
    }
    assert second["unpriced_reasons"] == {
        "no price is known for acme": 1,
        "the span reports no output tokens": 1,
    }
    assert document["total"]["calls"] == 5


def test_own_prices(bijotel, secret, mixed, tmp_path):
    """A free model is priced at zero."""
    own = tmp_path / "prices.toml"
    own.write_text("[models.acme]\ninput = 0\noutput = 0\n")
    out = bijotel("stats", "--db", mixed, "--by", "model", "--prices", own).out
    assert "at least $0.00, 1 of 2 calls unpriced\n" in out


def test_calls_without_usage_are_counted(bijotel, secret, tmp_path):
    """A stream without usage has no tokens, not zero tokens."""
    silent = {"gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None}
    path = append(tmp_path / "chain.db", [span(1), span(2, attributes=silent)])
    document = bijotel("stats", "--db", path, "--by", "model", "--json").document
    assert document["total"]["calls"] == 2
    assert document["total"]["calls_without_usage"] == 1


def test_an_unverified_chain(bijotel, secret, mixed):
    """Refused, or said first; without a key it could not be checked."""
    tamper(mixed, "UPDATE entries SET name = 'x' WHERE seq = 3")
    assert bijotel("stats", "--db", mixed, "--by", "model").code == 1
    out = bijotel("stats", "--db", mixed, "--by", "model", "--unverified").out
    assert out.startswith("NOT VERIFIED: the chain does not verify: ")


def test_without_a_key(bijotel, mixed):
    """The plain counts need none."""
    assert bijotel("stats", "--db", mixed, "--by", "model").code == 3
    assert bijotel("stats", "--db", mixed).code == 0
    tamper(mixed, "UPDATE entries SET body = x'00' WHERE seq = 3")
    out = bijotel("stats", "--db", mixed, "--by", "model", "--unverified").out
    assert out.startswith("NOT VERIFIED: no key, nothing was verified\n1 row could not be read\n")
