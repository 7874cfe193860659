"""``bijotel dedup``: groups of repeated calls, and what the repeats cost."""

from __future__ import annotations

import pytest

from tests.cli.conftest import CHAIN_HEX, append, span, tamper

GPT = {"gen_ai.request.model": "gpt-4o", "gen_ai.response.id": "r"}


def ask(number: int, question: str, **attributes):
    return span(number, attributes={**GPT, "gen_ai.input.messages": question, **attributes})


@pytest.fixture
def repeated(tmp_path):
    """Three times one question, twice another one, and one that was asked once."""
    return append(
        tmp_path / "chain.db",
        [ask(n, question) for n, question in enumerate("abacab", 1)],
    )


KEY = "ffa2"


def test_the_groups(bijotel, secret, repeated):
    """The largest first, with count, entries, tokens and cost of all but the first."""
    result = bijotel("dedup", "--db", repeated)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[:2] == [
        "6 spans, 2 groups that ask the same, 3 repeats",
        "spent on repeats: 411 tokens, $0.00141",
    ]
    assert [line.rpartition(" ")[0] for line in lines[2:]] == [
        "  3 x chat gpt-test, entries 1 to 5: 274 tokens, $0.00094 on repeats, key",
        "  2 x chat gpt-test, entries 2 to 6: 137 tokens, $0.00047 on repeats, key",
    ]


def test_the_json_document(bijotel, secret, repeated):
    """The same as one document."""
    document = bijotel("dedup", "--db", repeated, "--json", "--limit", 1).document
    (group,) = document.pop("groups")
    assert len(group.pop("dedup_key")) == 64
    assert group == {
        "name": "chat gpt-test",
        "count": 3,
        "first_seq": 1,
        "last_seq": 5,
        "repeated_tokens": 274,
        "repeated_cost_known": 0.00094,
        "repeated_calls": 2,
        "repeated_unpriced_calls": 0,
    }
    assert document == {
        "chain": CHAIN_HEX,
        "verified": True,
        "caveat": None,
        "unreadable": 0,
        "entries": 6,
        "groups_found": 2,
        "repeats": 3,
        "repeated_tokens": 411,
        "repeated_cost_known": 0.00141,
        "repeated_calls": 3,
        "repeated_unpriced_calls": 0,
    }


def test_a_limit_is_said(bijotel, secret, repeated):
    """All groups are counted, also those that are not listed."""
    lines = bijotel("dedup", "--db", repeated, "--limit", 1).out.splitlines()
    assert len(lines) == 4
    assert lines[-1] == "  ... and 1 more, see --limit"


def test_nothing_is_repeated(bijotel, secret, db):
    """Five different questions."""
    assert bijotel("dedup", "--db", db).out == "5 spans, 0 groups that ask the same, 0 repeats\n"


def test_unpriced_repeats_are_a_lower_bound(bijotel, secret, tmp_path):
    """A model without a price, and a call without tokens."""
    silent = {"gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None}
    path = append(
        tmp_path / "chain.db",
        [
            *(ask(n, "a") for n in (1, 2)),
            *(ask(n, "b", **{"gen_ai.request.model": "acme"}) for n in (3, 4)),
            *(ask(n, "c", **silent) for n in (5, 6)),
        ],
    )
    out = bijotel("dedup", "--db", path).out
    assert "274 tokens, at least $0.00047, 2 of 3 calls unpriced\n" in out
    own = tmp_path / "prices.toml"
    own.write_text("[models.acme]\ninput = 0\noutput = 0\n")
    assert (
        "at least $0.00047, 1 of 3 calls unpriced\n"
        in bijotel("dedup", "--db", path, "--prices", own).out
    )


def test_an_unverified_chain(bijotel, secret, repeated):
    """Refused, or said first."""
    tamper(repeated, "UPDATE entries SET dedup_key = x'' WHERE seq = 3")
    result = bijotel("dedup", "--db", repeated)
    assert (result.code, result.out) == (1, "")
    assert "error: the chain does not verify: " in result.err
    out = bijotel("dedup", "--db", repeated, "--unverified").out
    assert out.startswith("NOT VERIFIED: the chain does not verify: ")
    assert "\n5 spans, 2 groups that ask the same, 2 repeats\n" in out
    document = bijotel("dedup", "--db", repeated, "--unverified", "--json").document
    assert (document["verified"], document["repeats"]) == (False, 2)


def test_without_a_key(bijotel, repeated):
    """Could not check."""
    assert bijotel("dedup", "--db", repeated).code == 3
    out = bijotel("dedup", "--db", repeated, "--unverified").out
    assert out.startswith("NOT VERIFIED: no key, nothing was verified\n6 spans, ")


def test_stored_names_cannot_steer_the_terminal(bijotel, secret, tmp_path):
    """A name with an escape sequence is shown by its number."""
    path = append(
        tmp_path / "chain.db",
        [span(1, name="x\x1b[2K"), span(1, name="x\x1b[2K", trace_id="b" * 32)],
    )
    assert r"  2 x x\x1b[2K, entries 1 to 2: " in bijotel("dedup", "--db", path).out
