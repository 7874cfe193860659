"""``bijotel list`` as a search: every filter, its pages, and bad values."""

from __future__ import annotations

import itertools

import pytest

from bijotel.entries import chains
from bijotel.model import Resource, Status
from bijotel.stores.open import open_store
from tests.cli.conftest import STARTED_AT, append, gap, rag, source, span, tamper

MINUTE = 60 * 10**9


@pytest.fixture
def mixed(tmp_path):
    """Six spans a minute apart, of two services and two models; a gap between them."""
    spans = [
        span(
            n,
            start_time_unix_nano=STARTED_AT + n * MINUTE,
            end_time_unix_nano=STARTED_AT + n * MINUTE + 5,
            resource=Resource({"service.name": "shop" if n % 2 else "desk"}),
            status=Status("ERROR" if n == 5 else "OK"),
            attributes={
                "gen_ai.response.model": "big" if n > 3 else "small",
                **({"bijotel.blocked": True} if n == 2 else {}),
                **rag([source(document_id=f"doc-{n}", source_uri=f"s3://docs/{n % 3}"), source()]),
            },
        )
        for n in range(1, 7)
    ]
    return append(tmp_path / "chain.db", [*spans[:3], gap(1), *spans[3:]])


def seqs(result) -> list[int]:
    assert (result.code, result.err) == (0, "")
    return [int(line.split()[0]) for line in result.out.splitlines()[1:-1]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--since", "2023-11-14T22:17:20Z"), [5, 6, 7]),
        (("--until", "2023-11-14T22:17:20Z"), [1, 2, 3]),
        (("--since", "2023-11-14T22:15:20Z", "--until", "2023-11-14T23:17:20+01:00"), [2, 3]),
        (("--since", "2023-11-15"), []),
        (("--trace", f"{3:032x}"), [3]),
        (("--span", f"{4:016X}"), [5]),
        (("--service", "shop"), [1, 3, 6]),
        (("--model", "big"), [5, 6, 7]),
        (("--model", "gpt-test"), [1, 2, 3, 5, 6, 7]),
        (("--status", "error"), [6]),
        (("--status", "BLOCKED"), [2]),
        (("--document", "doc-3"), [3]),
        (("--document", "doc-9"), []),
        (("--document", "doc-1"), [1, 2, 3, 5, 6, 7]),
        (("--source-uri", "s3://docs/2"), [2, 6]),
        (("--source-uri", "s3://docs/2", "--service", "shop"), [6]),
        (("--service", "shop", "--newest"), [6, 3, 1]),
        (("--service", "shop", "--from", 2), [3, 6]),
        (("--service", "shop", "--newest", "--from", 5), [3, 1]),
    ],
)
def test_filters(bijotel, mixed, options, expected):
    """Every one alone and several together; a filter finds spans only."""
    assert seqs(bijotel("list", "--db", mixed, *options)) == expected


def test_pages_of_a_search(bijotel, mixed):
    """The limit is that of what is found, and the next page begins at the next hit."""
    out = bijotel("list", "--db", mixed, "--service", "shop", "--limit", 2).out
    assert out.endswith(
        '2 listed as stored, not verified (see "bijotel verify"); more from --from 6 on\n'
    )
    assert seqs(bijotel("list", "--db", mixed, "--service", "shop", "--from", 6)) == [6]
    result = bijotel("list", "--db", mixed, "--service", "shop", "--limit", 2, "--json")
    assert [each["seq"] for each in result.document] == [1, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--since", "2023-11-14T22:17:20"), "time '2023-11-14T22:17:20': expected a date like "),
        (("--until", "now"), "time 'now': expected a date like "),
        (("--trace", "xyz"), "--trace 'xyz': expected 32 hex digits"),
        (("--span", "12"), "--span '12': expected 16 hex digits"),
        (("--status", "fine"), "Invalid value for '--status': 'fine' is not one of "),
    ],
)
def test_bad_values(bijotel, mixed, options, message):
    """The option, the value and what was expected."""
    result = bijotel("list", "--db", mixed, *options)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {message}")


def test_rows_that_cannot_be_read_are_not_found(bijotel, mixed):
    """A search by content cannot find what has none; they are listed without one."""
    tamper(mixed, "UPDATE entries SET body = x'00' WHERE seq = 1")
    tamper(mixed, "UPDATE entries SET body = 'text' WHERE seq = 2")
    tamper(mixed, "UPDATE entries SET name = NULL WHERE seq = 3")
    assert seqs(bijotel("list", "--db", mixed, "--document", "doc-1")) == [5, 6, 7]
    assert seqs(bijotel("list", "--db", mixed)) == list(range(8))


def test_the_cost_of_a_call_is_listed(bijotel, tmp_path):
    """With all its digits; nothing where it is not known."""
    path = append(
        tmp_path / "chain.db", [span(1, attributes={"gen_ai.request.model": "gpt-4o"}), span(2)]
    )
    first, second = bijotel("list", "--db", path, "--from", 1).out.splitlines()[1:-1]
    assert first.split()[7] == "$0.00047"
    assert second.split()[7] == "-"
    document = bijotel("list", "--db", path, "--from", 1, "--json").document
    assert document[0]["cost"] == {"usd": 0.00047, "reason": None}


def moment(minutes: int) -> int:
    return STARTED_AT + minutes * MINUTE


@pytest.mark.parametrize("stretch", [1, 5, 4096])
def test_a_page_by_time_is_the_beginning_of_all_by_time(tmp_path, monkeypatch, stretch):
    """Whether it was found near an end of the chain or not, and whatever order spans began in."""
    monkeypatch.setattr("bijotel.stores.sqlite_snapshot._STRETCH", stretch)
    began = [*range(20, 30), *range(10), 7, 7, *range(10, 20)]
    calls = [span(n, start_time_unix_nano=moment(at)) for n, at in enumerate(began, 1)]
    path = append(tmp_path / "chain.db", [*calls[:12], gap(1), *calls[12:]])
    asked = [
        [("start_from", moment(8)), ("kind", "span")],
        [("start_to", moment(7)), ("kind", "span")],
        [("start_from", moment(5)), ("start_to", moment(12)), ("kind", "span"), ("seq_from", 9)],
        [("start_from", moment(25)), ("kind", "span"), ("seq_to", 25)],
        [("start_from", moment(99)), ("kind", "span")],
    ]
    with open_store(path).snapshot() as snapshot:
        (chain,) = chains(snapshot, None)
        for conditions, newest in itertools.product(asked, (False, True)):
            rows = list(snapshot.select(chain.chain_id, conditions, newest=newest))
            for limit in (1, 3, 8, 100):
                page = snapshot.select(chain.chain_id, conditions, newest=newest, limit=limit)
                assert list(page) == rows[:limit]
