"""Numbers of spans, and the series that a chain makes of them."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import pytest

from bijotel.dialects.places import Recent
from bijotel.dimensions import DIMENSIONS, Collector, Selection, find_dimensions, measure
from bijotel.errors import ConfigurationError
from tests.ops.calls import SECOND, START, chat, span


def read(record, *names, price=None) -> dict[str, float]:
    """Give the numbers of a span; there is nothing wrong with any."""
    values, faults = measure(record, find_dimensions(names), price=price)
    assert faults == ()
    return values


def sources(*scores, **metadata) -> str:
    return json.dumps([{"similarity_score": score, "metadata": metadata} for score in scores])


def test_every_dimension_by_name():
    """The thirteen that exist, in the order in which they are shown."""
    assert list(DIMENSIONS) == [
        "rag_source_count",
        "rag_in_context_ratio",
        "rag_top_score",
        "rag_mean_score",
        "context_tokens",
        "input_tokens",
        "output_tokens",
        "cost",
        "cache_ratio",
        "reasoning_ratio",
        "time_to_first_token",
        "duration",
        "error_rate",
    ]
    assert find_dimensions(()) == tuple(DIMENSIONS.values())
    assert [each.name for each in find_dimensions(["cost", "duration", "cost"])] == [
        "cost",
        "duration",
    ]


def test_a_dimension_that_does_not_exist():
    """The message lists those that do."""
    with pytest.raises(
        ConfigurationError,
        match=r"^dimension 'latency': not known; expected one of rag_source_count, .*, error_rate$",
    ):
        find_dimensions(["duration", "latency"])


def test_all_numbers_of_one_call():
    """Each from its own source."""
    record = chat(
        200,
        50,
        end=2.5,
        status="ERROR",
        gen_ai__usage__cache_read__input_tokens=50,
        gen_ai__usage__reasoning__output_tokens=10,
        gen_ai__response__time_to_first_chunk=0.25,
        bijotel__rag__source_count=3,
        bijotel__rag__sources=sources(0.9, 0.5, None),
        bijotel__rag__total_context_tokens=720,
        bijotel__rag__in_context=["included", "absent", "unknown"],
        bijotel__rag__in_context_count=1,
    )
    assert read(record, price=lambda _span, _counted: Decimal("0.0015")) == {
        "rag_source_count": 3,
        "rag_in_context_ratio": 0.5,
        "rag_top_score": 0.9,
        "rag_mean_score": 0.7,
        "context_tokens": 720,
        "input_tokens": 200,
        "output_tokens": 50,
        "cost": 0.0015,
        "cache_ratio": 0.25,
        "reasoning_ratio": 0.2,
        "time_to_first_token": 0.25,
        "duration": 2.5,
        "error_rate": 1,
    }


def test_what_is_absent_is_not_zero():
    """A call without retrieval, usage or end has none of these numbers."""
    assert read(span()) == {"duration": 1, "error_rate": 0}
    assert read(chat(0, 0)) == {
        "input_tokens": 0,
        "output_tokens": 0,
        "duration": 1,
        "error_rate": 0,
    }
    assert read(chat(), "cost") == {}
    assert read(chat(), "cost", price=lambda _span, _counted: None) == {}


def test_an_empty_retrieval_is_zero_sources():
    """It is a RAG call that found nothing."""
    record = span(bijotel__rag__source_count=0, bijotel__rag__sources="[]")
    assert read(record, "rag_source_count", "rag_top_score") == {"rag_source_count": 0}


def test_own_attributes_outweigh_inherited_ones():
    """What the context carried counts where the span says nothing, or was cut."""
    inherited = {"bijotel.rag.source_count": 5, "bijotel.rag.sources": sources(0.4)}
    assert read(span(inherited=inherited), "rag_source_count", "rag_top_score") == {
        "rag_source_count": 5,
        "rag_top_score": 0.4,
    }
    own = span(
        inherited=inherited, bijotel__rag__source_count=1, bijotel__rag__sources=sources(0.9)[:20]
    )
    assert read(own, "rag_source_count", "rag_top_score") == {
        "rag_source_count": 1,
        "rag_top_score": 0.4,
    }


def test_scores_skip_distances():
    """A distance is better when smaller; the highest one is no top score."""
    names = ("rag_top_score", "rag_mean_score")
    assert read(span(bijotel__rag__sources=sources(0.2, 1.7, score_kind="distance")), *names) == {}
    mixed = json.dumps(
        [
            {"similarity_score": 9, "metadata": {"score_kind": "distance"}},
            {"similarity_score": 0.5},
            {"similarity_score": True},
            {"similarity_score": "0.9"},
            {},
            7,
        ]
    )
    assert read(span(bijotel__rag__sources=mixed), *names) == dict.fromkeys(names, 0.5)
    assert read(span(bijotel__rag__sources='{"no": "list"}'), *names) == {}


@pytest.mark.parametrize(
    ("statuses", "count", "ratio"),
    [
        (["included", "partial", "absent", "absent"], 2, 0.5),
        (["unknown", "unknown"], 0, None),
        ([], 0, None),
        ("included", 1, None),
        (["included"], None, None),
    ],
)
def test_the_share_in_context_leaves_the_undecided_out(statuses, count, ratio):
    """Of two found in four known ones half reached the prompt."""
    given = {} if count is None else {"bijotel__rag__in_context_count": count}
    values = read(span(bijotel__rag__in_context=statuses, **given), "rag_in_context_ratio")
    assert values == ({} if ratio is None else {"rag_in_context_ratio": ratio})


def test_time_to_first_token_is_in_seconds():
    """The first name that is there counts; one instrumentation writes milliseconds."""
    name = "time_to_first_token"
    server = {"gen_ai__server__time_to_first_token": 0.5}
    assert read(span(**server), name) == {name: 0.5}
    assert read(span(gen_ai__response__time_to_first_chunk=0.1, **server), name) == {name: 0.1}
    strands = span(scope="strands.telemetry.tracer", gen_ai__server__time_to_first_token=320)
    assert read(strands, name) == {name: 0.32}


@pytest.mark.parametrize(
    ("attributes", "fault"),
    [
        (
            {"bijotel__rag__source_count": -1},
            "bijotel.rag.source_count is -1, expected a number from 0 on",
        ),
        (
            {"bijotel__rag__total_context_tokens": "720"},
            "bijotel.rag.total_context_tokens is '720', expected a number from 0 on",
        ),
        (
            {"gen_ai__response__time_to_first_chunk": math.nan},
            "gen_ai.response.time_to_first_chunk is nan, expected a number from 0 on",
        ),
        (
            {"gen_ai__response__time_to_first_chunk": 10**400},
            "gen_ai.response.time_to_first_chunk is 1" + "0" * 39 + ", expected a number from 0 on",
        ),
        (
            {"bijotel__rag__source_count": 10**5000, "bijotel__rag__sources_sha256": "a"},
            "bijotel.rag.source_count is int of very many digits, expected a number from 0 on",
        ),
        (
            {"gen_ai__usage__input_tokens": "many"},
            "gen_ai.usage.input_tokens is 'many', expected a count",
        ),
        ({"end": -1}, "the span ends before it starts"),
        (
            {"bijotel__rag__in_context": ["absent"], "bijotel__rag__in_context_count": 2},
            "2 found of 1 known: more than there are",
        ),
        (
            {
                "gen_ai__usage__input_tokens": 10,
                "gen_ai__usage__cache_read__input_tokens": 20,
            },
            "20 cached of 10 input: more than there are",
        ),
    ],
)
def test_what_is_no_number_is_said(attributes, fault):
    """It is left out, and the words say where it stands and what was expected."""
    assert measure(span(**attributes), find_dimensions(())).faults == (fault,)


def test_faults_of_tokens_concern_only_who_asks_for_tokens():
    """The duration of a span is not in doubt because its tokens are."""
    assert measure(chat("many", 1), find_dimensions(["duration"])).faults == ()


def series(collector: Collector, name: str, group: str = "") -> list[tuple[int, float]]:
    (found,) = (
        each for each in collector.finish() if (each.dimension.name, each.group) == (name, group)
    )
    return [(kept.point.seq, kept.point.value) for kept in found.kept]


def collect(records, *names, price=None, **selection) -> Collector:
    collector = Collector(find_dimensions(names), Selection(**selection), price)
    for seq, record in enumerate(records):
        collector.add(seq, record)
    return collector


def test_entries_that_lack_a_dimension_are_skipped():
    """A chain that mixes RAG and other calls works, and both are counted."""
    records = [span(n, bijotel__rag__source_count=5) if n % 2 else span(n) for n in range(60)]
    (found,) = collect(records, "rag_source_count").finish()
    assert [kept.point.seq for kept in found.kept] == list(range(1, 60, 2))
    result = found.judge(Selection())
    assert (result.used, result.skipped, result.verdict) == (30, 30, "NO_ANOMALY")


def test_the_window_is_that_of_data_points():
    """The newest ones of the series, not of the chain; what lies before is not skipped."""
    records = [span(n, bijotel__rag__source_count=n) if n % 2 else span(n) for n in range(100)]
    (found,) = collect(records, "rag_source_count", window=20).finish()
    assert found.values == list(range(61, 100, 2))
    result = found.judge(Selection(window=20))
    assert (result.used, result.skipped) == (20, 50)
    (whole,) = collect(records, "rag_source_count", window="all").finish()
    assert len(whole.values) == 50


def test_a_small_window_is_refused():
    """Before anything is read."""
    with pytest.raises(ConfigurationError, match=r"^window: .* got 5$"):
        collect([], "cost", window=5)


def test_nested_calls_count_once_in_the_series():
    """An agent's sum is no data point, neither of tokens nor of time."""
    records = [
        chat(3000, number=2, parent=1),
        chat(4000, number=3, parent=1),
        chat(7000, number=1, end=9, gen_ai__operation__name="invoke_agent"),
        chat(5, number=4, trace=2),
    ]
    collector = collect(records, "input_tokens", "duration")
    tokens, duration = collector.finish()
    assert [kept.point[:2] for kept in tokens.kept] == [(0, 3000), (1, 4000), (3, 5)]
    assert duration.values == [1, 1, 1]
    assert tokens.judge(Selection()).skipped == duration.judge(Selection()).skipped == 1


def decision(number: int, sources: int, **changes) -> list:
    """A route that asks an agent, which asks a model: three spans with one provenance."""
    stamp = {
        "bijotel__rag__source_count": sources,
        "bijotel__rag__sources_sha256": f"{sources:064x}",
        "bijotel__rag__total_context_tokens": 100 * sources,
    }
    call, agent, route = (3 * number + level for level in (1, 2, 3))
    return [
        chat(number=call, parent=agent, trace=number + 1, **stamp, **changes),
        span(
            agent,
            parent=route,
            trace=number + 1,
            end=5,
            gen_ai__operation__name="invoke_agent",
            **stamp,
            **changes,
        ),
        span(route, trace=number + 1, end=9, **stamp, **changes),
    ]


def test_one_retrieval_is_one_data_point():
    """Else each outlier would stand beside its own copy, which hides it."""
    names = ("rag_source_count", "context_tokens")
    records = [each for n in range(100) for each in decision(n, 0 if n in {30, 99} else 5)]
    for found in collect(records, *names).finish():
        result = found.judge(Selection())
        assert (result.used, result.skipped) == (100, 200)
        assert [n for n, value in enumerate(found.values) if value == 0] == [30, 99]
        assert [outlier.seq for outlier in result.outliers] == [297]


def test_another_retrieval_of_a_trace_is_another_data_point():
    """An agent that looks up twice decides twice; the numbers of one retrieval may be apart."""
    stamps = [
        {"bijotel__rag__sources_sha256": "a", "bijotel__rag__source_count": 3},
        {"bijotel__rag__sources_sha256": "a", "bijotel__rag__in_context_count": 1,
         "bijotel__rag__in_context": ["included", "absent"], "bijotel__rag__source_count": 3},
        {"bijotel__rag__sources_sha256": "b", "bijotel__rag__source_count": 3},
        {"bijotel__rag__sources_sha256": "b", "bijotel__rag__source_count": 2},
        {"bijotel__rag__source_count": 2},
        {"bijotel__rag__source_count": 2},
    ]  # fmt: skip
    records = [span(n, **stamp) for n, stamp in enumerate(stamps)]
    inherited = {"bijotel.rag.sources_sha256": "b", "bijotel.rag.source_count": 2}
    records += [span(8, inherited=inherited), span(9, inherited=inherited, trace=2)]
    collector = collect(records, "rag_source_count", "rag_in_context_ratio")
    assert series(collector, "rag_source_count") == [(0, 3), (2, 3), (3, 2), (4, 2), (5, 2), (7, 2)]
    assert series(collector, "rag_in_context_ratio") == [(1, 0.5)]


def test_time_and_success_are_those_of_the_model_calls():
    """An agent's span and its route's repeat them, whichever comes first in the chain."""
    records = [each for n in range(40) for each in decision(n, 5, status="ERROR")]
    for chain in (records, records[::-1]):
        duration, errors = collect(chain, "duration", "error_rate").finish()
        assert duration.values == errors.values == [1] * 40
        assert errors.judge(Selection()).skipped == 80


def test_a_call_that_failed_counts_beside_one_that_did_not():
    """It reports no tokens, and the agent around it does."""
    records = [
        chat(None, None, number=2, parent=1, status="ERROR"),
        chat(10, 5, number=3, parent=1),
        chat(10, 5, number=1, end=9, gen_ai__operation__name="invoke_agent"),
    ]
    assert series(collect(records, "error_rate"), "error_rate") == [(0, 1), (1, 0)]


def test_a_call_instrumented_twice_is_one_call():
    """One within the other, through what is no call, or beside it at the same time."""
    nested = [
        chat(number=4, parent=3),
        span(3, parent=2, end=2, gen_ai__operation__name="execute_tool"),
        chat(number=2, parent=1, end=3, scope="wrapper"),
    ]
    assert series(collect(nested, "duration"), "duration") == [(0, 1)]
    beside = [
        chat(number=2, parent=1, start=1, end=2, scope="client"),
        chat(number=3, parent=1, start=0, end=3, scope="wrapper"),
        chat(7, number=4, parent=1, start=1, end=2, scope="client"),
        chat(number=5, parent=1, start=1, end=2, scope="wrapper"),
    ]
    assert series(collect(beside, "duration"), "duration") == [(1, 3), (2, 1), (3, 1)]


def test_a_trace_without_a_model_call_has_its_spans():
    """A chain of retrievals or tools works; a chain that mixes both as well."""
    records = [
        span(1, trace=1, end=2, gen_ai__operation__name="execute_tool"),
        chat(number=2, trace=2),
        span(3, trace=2, end=4, gen_ai__operation__name="execute_tool"),
        span(4, trace=3, end=3),
    ]
    assert series(collect(records, "duration"), "duration") == [(0, 2), (1, 1), (3, 3)]


def test_the_order_of_long_chains_stays_and_the_memory_is_bounded():
    """More spans than wait; what came long ago is forgotten."""
    records = [each for n in range(17000) for each in decision(n, n % 7)]
    collector = collect(records, "rag_source_count", "duration", window="all")
    sources, duration = collector.finish()
    assert [kept.point.seq for kept in sources.kept] == list(range(0, 51000, 3))
    assert [kept.point.seq for kept in duration.kept] == list(range(0, 51000, 3))
    assert sources.values == [n % 7 for n in range(17000)]
    known = vars(collector._calls) | vars(collector._provenances)
    memories = [each for each in known.values() if isinstance(each, Recent)]
    assert len(memories) == len(known) - 1
    assert {len(each._old) for each in memories} == {8192}
    assert all(len(each._new) <= 8192 for each in memories)


def test_only_one_model():
    """Spans of others are neither data points nor skipped, but what they wrap is known."""
    records = [
        chat(7, number=2, parent=1, model="inner"),
        chat(7, number=1, end=2, model="outer"),
        chat(9, number=3, model="outer"),
    ]
    assert series(collect(records, "input_tokens", model="outer"), "input_tokens") == [(2, 9)]
    (found,) = collect(records, "duration", model="outer").finish()
    assert (found.count, found.entries) == (1, 2)
    asked = [chat(1, model="answered", gen_ai__request__model="asked")]
    assert series(collect(asked, "input_tokens", model="asked"), "input_tokens") == [(0, 1)]


@pytest.mark.parametrize("group_by", ["model", "retriever", "service"])
def test_groups(group_by):
    """One series for each, in the order of appearance; spans that name none are a group."""
    records = [
        chat(number=n, model=name, service=name, bijotel__rag__retriever_id=name)
        for n, name in enumerate(["b", "a", "b"])
    ]
    found = collect([*records, span(9, trace=2)], "duration", group_by=group_by).finish()
    assert [(each.group, each.count, each.entries) for each in found] == [
        ("b", 2, 2),
        ("a", 1, 1),
        ("(none)", 1, 1),
    ]


def test_groups_do_not_fill_the_memory():
    """From some number on they are one."""
    records = [chat(number=n, model=f"m{n}") for n in range(1010)]
    found = collect(records, "duration", group_by="model").finish()
    assert len(found) == 1001
    assert (found[-1].group, found[-1].count) == ("(others)", 10)


def test_since_an_entry_or_a_time():
    """What is new is judged, each by what came before; else the newest alone."""
    records = [span(n, start=n, end=n + (9 if n == 28 else 1)) for n in range(30)]
    for since in ({"since_seq": 25}, {"since_unix_nano": START + 25 * SECOND}):
        (found,) = collect(records, "duration", **since).finish()
        result = found.judge(Selection(**since))
        assert [judged.seq for judged in result.judged] == [25, 26, 27, 28, 29]
        assert [outlier.seq for outlier in result.outliers] == [28]
    (found,) = collect(records, "duration").finish()
    assert [judged.seq for judged in found.judge(Selection()).judged] == [29]
    (found,) = collect(records, "duration", since_seq=99).finish()
    assert found.judge(Selection(since_seq=99)).judged == ()


def test_seasons_are_hours_and_weekdays_in_utc():
    """The start decides; 2025-06-01 was a Sunday."""
    records = [span(start=hour * 3600, end=hour * 3600) for hour in (0, 13, 14, 24, 38)]
    (found,) = collect(records, "duration", season="day").finish()
    assert [kept.point.slot for kept in found.kept] == [
        "hour 10", "hour 23", "hour 0", "hour 10", "hour 0",
    ]  # fmt: skip
    (found,) = collect(records, "duration", season="week").finish()
    assert [kept.point.slot for kept in found.kept] == [
        "weekday 6", "weekday 6", "weekday 0", "weekday 0", "weekday 1",
    ]  # fmt: skip


def test_a_span_without_a_start_has_no_slot():
    """It cannot be held against others of its hour."""
    timeless = type(span())(name="chat", attributes={"bijotel.rag.source_count": 1})
    (found,) = collect([timeless], "rag_source_count", season="day").finish()
    assert (found.count, found.entries) == (0, 1)
    (found,) = collect([timeless], "rag_source_count").finish()
    assert found.count == 1


def test_failures_are_judged_as_a_rate():
    """One failure is no anomaly, a higher rate is."""
    failing = [span(n, status="ERROR" if n > 100 else "OK") for n in range(110)]
    (found,) = collect(failing, "error_rate").finish()
    result = found.judge(Selection())
    assert result.judged == ()
    assert (result.shifts[0].first_seq, result.shifts[0].after) == (101, 1.0)


def test_faults_are_counted_by_their_words():
    """Twenty different ones are kept, all spans that have any are counted."""
    collector = collect([chat(-(n % 30) - 1, 1) for n in range(60)], "input_tokens")
    assert collector.faulty == 60
    assert len(collector.faults) == 20
    assert collector.faults["gen_ai.usage.input_tokens is -1, expected a count"] == 2
