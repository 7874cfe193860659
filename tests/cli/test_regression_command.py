"""``bijotel regression``: verdicts, exit codes, and what is said where there is nothing to say."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree as ET

import pytest

from bijotel.cli.regression import regression
from bijotel.dimensions import DIMENSIONS
from bijotel.model import Resource
from tests.cli.conftest import (
    CHAIN_HEX,
    STARTED_AT,
    append,
    installed,
    rag,
    source,
    span,
    tamper,
)

SECOND = 10**9


def call(number: int, sources: int | None = None, **changes):
    """A call of one second, with retrieval or without."""
    attributes = changes.pop("attributes", {})
    if sources is not None:
        attributes = {**rag([source()] * sources), **attributes}
    start = STARTED_AT + number * SECOND
    times = {"start_time_unix_nano": start, "end_time_unix_nano": start + SECOND}
    return span(number, attributes=attributes, **{**times, **changes})


@pytest.fixture
def shrunk(tmp_path):
    """Forty calls with five sources, ten with three, and a call without retrieval among them."""
    calls = [call(n, 5 if n <= 40 else 3) for n in range(1, 51)]
    return append(tmp_path / "chain.db", [*calls[:20], call(99), *calls[20:]])


def test_a_shrunken_retrieval_is_an_alarm(bijotel, secret, shrunk):
    """Both layers are printed with their figures, and the exit code says that something is."""
    result = bijotel("regression", "--db", shrunk, "--dimension", "rag_source_count")
    assert result == (
        1,
        """\
rag_source_count: ANOMALY  50 used, 1 skipped  ████████████████████████████████▁▁▁▁▁▁▁▁
  outliers: none; entry 51 is 3 (z -2.09, robust z -40.00, beyond Tukey's fences 5 to 5)
  shifts:   from entry 42 on: 5 -> 3 (-40%, p = 0.0005)
""",
        "",
    )


def test_the_json_of_one_dimension(bijotel, secret, shrunk):
    """One object, with every member that is promised."""
    result = bijotel("regression", "--db", shrunk, "--dimension", "rag_source_count", "--json")
    assert (result.code, result.err) == (1, "")
    assert result.document == {
        "dimension": "rag_source_count",
        "used": 50,
        "skipped": 1,
        "verdict": "ANOMALY",
        "needed": None,
        "unjudged": 0,
        "outliers": [],
        "shifts": [{"first_seq": 42, "before": 5.0, "after": 3.0, "p_value": 0.0005}],
        "group": None,
        "chain": CHAIN_HEX,
        "verified": True,
        "caveat": None,
        "unreadable": 0,
        "faulty": 0,
        "faults": {},
        "unpriced_reasons": {},
    }


def test_every_dimension(bijotel, secret, shrunk):
    """Without a name all of them are judged, in one document."""
    result = bijotel("regression", "--db", shrunk, "--json")
    assert [each["dimension"] for each in result.document] == list(DIMENSIONS)
    verdicts = {each["dimension"]: each["verdict"] for each in result.document}
    assert verdicts["input_tokens"] == verdicts["duration"] == "NO_ANOMALY"
    assert verdicts["cache_ratio"] == "INSUFFICIENT_DATA"
    text = bijotel("regression", "--db", shrunk).out
    assert [line.split(":")[0] for line in text.splitlines() if line[0] != " "] == [
        *DIMENSIONS,
        "unpriced",
    ]


def test_an_outlier(bijotel, secret, tmp_path):
    """The newest call against the earlier ones; all of those since a place or a time."""
    calls = [call(n) for n in range(1, 30)]
    slow = call(30, end_time_unix_nano=STARTED_AT + 60 * SECOND)
    path = append(tmp_path / "chain.db", [*calls, slow])
    options = ("regression", "--db", path, "--dimension", "duration")
    result = bijotel(*options)
    assert result.code == 1
    assert (
        "  outliers: entry 30 is 30 (z null: zero spread, robust z 2900.00, beyond Tukey's fences "
        "1 to 1)\n  shifts:   none\n"
    ) in result.out
    append(path, [call(31)])
    assert bijotel(*options).code == 0
    for since in ("29", "2023-11-14T22:13:49Z"):
        document = bijotel(*options, "--since", since, "--json").document
        assert [outlier["seq"] for outlier in document["outliers"]] == [30]
    assert "outliers: no data point since then" in bijotel(*options, "--since", 99).out


def test_what_is_new_beyond_the_window_is_not_passed_over(bijotel, secret, tmp_path):
    """A spike that the window no longer holds is no all-clear; a wider window finds it."""
    slow = STARTED_AT + 99 * SECOND
    calls = [call(n, **({"end_time_unix_nano": slow} if n == 30 else {})) for n in range(1, 101)]
    path = append(tmp_path / "chain.db", calls)
    options = ("regression", "--db", path, "--dimension", "duration", "--since", 11)
    result = bijotel(*options, "--window", 50)
    assert result.code == 0
    assert "duration: INSUFFICIENT_DATA  50 used, 0 skipped" in result.out
    assert (
        "outliers: 45 data points since then not judged: the window is too small, see --window\n"
        "  outliers: none; entry 100 is 1 ("
    ) in result.out
    document = bijotel(*options, "--window", 50, "--json").document
    assert (document["verdict"], document["unjudged"]) == ("INSUFFICIENT_DATA", 45)
    document = bijotel(*options, "--window", "all", "--json").document
    assert (document["verdict"], document["unjudged"]) == ("ANOMALY", 0)
    assert [outlier["seq"] for outlier in document["outliers"]] == [30]
    options = ("regression", "--db", path, "--dimension", "duration", "--window", 50)
    for since, unjudged in ((51, 5), (56, 0)):
        document = bijotel(*options, "--since", since, "--json").document
        assert document["unjudged"] == unjudged
    options = ("regression", "--db", path, "--dimension", "error_rate", "--window", 50)
    assert bijotel(*options, "--since", 11, "--json").document["verdict"] == "NO_ANOMALY"


@pytest.mark.parametrize(
    ("count", "lines"),
    [
        (0, ["n = 0 earlier values, 5 needed", "n = 0 data points, 20 needed"]),
        (5, ["n = 4 earlier values, 5 needed", "n = 5 data points, 20 needed"]),
        (19, ["n = 19 data points, 20 needed"]),
    ],
)
def test_too_few_data_points(bijotel, secret, tmp_path, count, lines):
    """They are said to be too few, with the number needed; that is no alarm, and no all-clear."""
    path = append(tmp_path / "chain.db", [call(n, 5) for n in range(1, count + 1)])
    result = bijotel("regression", "--db", path, "--dimension", "rag_source_count")
    assert result.code == 0
    assert result.out.startswith("rag_source_count: INSUFFICIENT_DATA")
    assert "NO_ANOMALY" not in result.out
    assert re.findall(r": +INSUFFICIENT_DATA \((.*)\)", result.out) == lines


def test_failures_are_a_rate(bijotel, secret, tmp_path):
    """Single failures are not judged."""
    path = append(tmp_path / "chain.db", [call(n) for n in range(1, 22)])
    out = bijotel("regression", "--db", path, "--dimension", "error_rate").out
    assert "  outliers: not judged, each value is 0 or 1\n  shifts:   none\n" in out


def test_a_rise_from_zero_has_no_percentage(bijotel, secret, tmp_path):
    """It is new, by so much."""
    calls = [call(n, 0 if n <= 40 else 3) for n in range(1, 51)]
    path = append(tmp_path / "chain.db", calls)
    out = bijotel("regression", "--db", path, "--dimension", "rag_source_count").out
    assert "  shifts:   from entry 41 on: 0 -> 3 (+3, new, p = 0.0005)\n" in out


def test_groups_are_judged_apart(bijotel, secret, tmp_path):
    """One service's retrieval shrank; stored names cannot steer the terminal."""
    calls = [
        call(
            n,
            3 if n > 80 and n % 2 else 5,
            resource=Resource({"service.name": "shop\x1b" if n % 2 else "desk"}),
        )
        for n in range(1, 101)
    ]
    path = append(tmp_path / "chain.db", calls)
    options = ("--dimension", "rag_source_count", "--group-by", "service")
    result = bijotel("regression", "--db", path, *options)
    assert r"rag_source_count (shop\x1b): ANOMALY  50 used, 0 skipped" in result.out
    assert "rag_source_count (desk): NO_ANOMALY  50 used, 0 skipped" in result.out
    document = bijotel("regression", "--db", path, *options, "--json").document
    assert [each["group"] for each in document] == ["shop\x1b", "desk"]


def test_only_one_model(bijotel, secret, shrunk):
    """Calls of others are not looked at."""
    options = ("regression", "--db", shrunk, "--dimension", "duration", "--model")
    assert " 51 used, 0 skipped" in bijotel(*options, "gpt-test").out
    assert " 0 used, 0 skipped" in bijotel(*options, "other").out


def test_a_window_and_a_season(bijotel, secret, shrunk):
    """The last ones only, or all; what is usual at that hour taken out."""
    options = ("regression", "--db", shrunk, "--dimension", "rag_source_count")
    assert " 20 used, 1 skipped" in bijotel(*options, "--window", 20).out
    assert " 50 used, 1 skipped" in bijotel(*options, "--window", "all").out
    for season in ("day", "week"):
        assert bijotel(*options, "--season", season).code == 1


def test_the_cost_of_calls(bijotel, secret, tmp_path):
    """By the price list, or by one's own file; what has no price is said."""
    gpt = {"gen_ai.request.model": "gpt-4o"}
    calls = [call(n, attributes=gpt if n != 7 else {}) for n in range(1, 31)]
    path = append(tmp_path / "chain.db", calls)
    options = ("regression", "--db", path, "--dimension", "cost")
    out = bijotel(*options).out
    assert "cost: NO_ANOMALY  29 used, 1 skipped" in out
    assert "entry 30 is 0.00047 (" in out
    assert out.endswith("unpriced: 1 span: no price is known for gpt-test (1 time)\n")
    document = bijotel(*options, "--json").document
    assert document["unpriced_reasons"] == {"no price is known for gpt-test": 1}
    own = tmp_path / "prices.toml"
    own.write_text('[models."gpt-test"]\ninput = 0\noutput = 0\n')
    assert " 30 used, 0 skipped" in bijotel(*options, "--prices", own).out
    own.write_text("[models.x]\ninput = 1\n")
    result = bijotel(*options, "--prices", own)
    assert (result.code, result.err) == (2, f"error: price file {own}: x: output is missing\n")


def test_what_is_no_number_is_said(bijotel, secret, tmp_path):
    """Negative tokens, a text, NaN: skipped, counted, and shown where they stand."""
    bad = [-1, "many\x1b", float("nan")]
    calls = [call(n, attributes={"gen_ai.usage.input_tokens": bad[n % 3]}) for n in range(4)]
    path = append(tmp_path / "chain.db", [*calls, *(call(n) for n in range(4, 30))])
    result = bijotel("regression", "--db", path, "--dimension", "input_tokens")
    assert result.code == 0
    assert "input_tokens: NO_ANOMALY  26 used, 4 skipped" in result.out
    assert (
        "what is no number, in 4 spans: gen_ai.usage.input_tokens is -1, expected a count "
        "(2 times), gen_ai.usage.input_tokens is 'many\\x1b', expected a count (1 time), "
        "gen_ai.usage.input_tokens is nan, expected a count (1 time)\n"
    ) in result.out
    document = bijotel("regression", "--db", path, "--dimension", "input_tokens", "--json").document
    assert document["faulty"] == 4
    assert document["faults"] == {
        "gen_ai.usage.input_tokens is -1, expected a count": 2,
        "gen_ai.usage.input_tokens is 'many\\x1b', expected a count": 1,
        "gen_ai.usage.input_tokens is nan, expected a count": 1,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--dimension", "latency"), "dimension 'latency': not known; expected one of rag_source_"),
        (("--window", 19), "window: expected 'all' or a number from 20 to 1000000000, got 19"),
        (("--window", "9" * 23), "window: expected 'all' or a number from 20 to 1000000000, got 9"),
        (("--window", "x"), "--window 'x': expected a number of data points, or all"),
        (("--since", "yesterday"), "time 'yesterday': expected a date like 2026-05-26, or a time"),
        (("--since", "9" * 30), "time '9999"),
        (("--season", "year"), "Invalid value for '--season': 'year' is not one of 'day', 'week'"),
        (("--plot", "x.pdf"), "--plot x.pdf: expected a name that ends in .png or .svg"),
        (("--prices", "none.toml"), "price file none.toml: cannot be read: "),
    ],
)
def test_bad_options(bijotel, secret, shrunk, options, message):
    """Clear words on one line, and the exit code of a wrong question."""
    result = bijotel("regression", "--db", shrunk, *options)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {message}")
    assert result.err.count("\n") == 1


def test_a_chain_that_does_not_verify(bijotel, secret, shrunk):
    """Refused, unless the caller goes on unverified: then the first line says so."""
    tamper(shrunk, "UPDATE entries SET end_unix_nano = 0 WHERE seq = 7")
    result = bijotel("regression", "--db", shrunk)
    assert (result.code, result.out) == (1, "")
    assert re.fullmatch(
        r"error: the chain does not verify: column-mismatch: .*; to go on all the same use "
        r"--unverified\n",
        result.err,
    )
    options = ("--dimension", "input_tokens", "--unverified")
    result = bijotel("regression", "--db", shrunk, *options)
    assert result.code == 0
    first, second, *_ = result.out.splitlines()
    assert first.startswith("NOT VERIFIED: the chain does not verify: column-mismatch: ")
    assert second.startswith("input_tokens: NO_ANOMALY  51 used")
    document = bijotel("regression", "--db", shrunk, *options, "--json").document
    assert document["verified"] is False
    assert document["caveat"].startswith("the chain does not verify: ")


def test_without_a_key(bijotel, shrunk):
    """Nothing could be checked, which is another exit code."""
    result = bijotel("regression", "--db", shrunk)
    assert (result.code, result.out) == (3, "")
    assert "no key (--key, or BIJOTEL_HMAC_SECRET)" in result.err
    result = bijotel("regression", "--db", shrunk, "--unverified")
    assert result.code == 1
    assert result.out.startswith("NOT VERIFIED: no key, nothing was verified\nrag_source_count: ")


def test_rows_that_cannot_be_read_are_counted(bijotel, secret, shrunk):
    """An analysis of what is left says that something is missing."""
    tamper(shrunk, "UPDATE entries SET body = x'00' WHERE seq = 7")
    out = bijotel("regression", "--db", shrunk, "--unverified").out
    assert "\n1 row could not be read\n" in out
    documents = bijotel("regression", "--db", shrunk, "--unverified", "--json").document
    assert {document["unreadable"] for document in documents} == {1}


def test_a_chain_must_be_named_among_several(bijotel, secret, shrunk):
    """Series of different chains are not mixed."""
    append(shrunk, [], chain="other", chain_id=b"o" * 16)
    result = bijotel("regression", "--db", shrunk)
    assert result.code == 2
    assert "the store has 2 chains, name one of them: default, other" in result.err
    assert bijotel("regression", "--db", shrunk, "--chain", "default").code == 1


@pytest.mark.parametrize("name", ["plot.svg", "plot.PNG"])
def test_a_picture(bijotel, secret, tmp_path, name):
    """Hostile names are text, not formulas; the verdict stays what it is."""
    calls = [
        call(n, 5 if n < 40 else 3, attributes={"bijotel.rag.retriever_id": "$\\frac{\x1b日"})
        for n in range(50)
    ]
    path = append(tmp_path / "chain.db", calls)
    picture = tmp_path / name
    options = ("--dimension", "rag_source_count", "--group-by", "retriever", "--plot", picture)
    result = bijotel("regression", "--db", path, *options)
    assert (result.code, result.err) == (1, "")
    octets = picture.read_bytes()
    if name.endswith("svg"):
        assert ET.fromstring(octets).tag.endswith("svg")
    else:
        assert octets.startswith(b"\x89PNG\r\n")


def test_a_picture_that_cannot_be_written(bijotel, secret, shrunk, tmp_path):
    """After the work, but with the reason."""
    result = bijotel("regression", "--db", shrunk, "--plot", tmp_path / "no" / "plot.png")
    assert result.code == 3
    assert "plot.png: cannot be written: " in result.err


def test_a_picture_needs_the_extra(bijotel, secret, shrunk, monkeypatch):
    """It is said before anything is read."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = bijotel("regression", "--db", shrunk, "--plot", "x.png")
    assert result.code == 2
    assert result.err == (
        "error: --plot: the extra 'plot' is not installed; "
        "pip install '.[plot]' in the folder of the repository\n"
    )


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_narrow_code_page(shrunk, encoding):
    """Bars that it cannot print are drawn with other letters; the verdict is the same."""
    options = ("--db", shrunk, "--dimension", "rag_source_count")
    result = installed("regression", *options, encoding=encoding, PYTHONIOENCODING=encoding)
    assert (result.code, result.err) == (1, "")
    bars = result.out.splitlines()[0].split("  ")[-1]
    assert bars == ("█" * 32 + "▁" * 8 if encoding == "utf-8" else "#" * 32 + "_" * 8)


def test_help_names_the_exit_codes():
    """What 0, 1, 2 and 3 mean stands in the help text."""
    assert "Exit codes: 0 no alarm, or too few data; 1 an alarm" in regression.help
