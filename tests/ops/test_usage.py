"""Tokens under every name, and which of several spans of one call counts."""

from __future__ import annotations

import json
import math

import pytest

from bijotel.dialects.leafmost import Leafmost
from bijotel.dialects.model import Usage
from bijotel.dialects.places import HORIZON
from bijotel.dialects.usage import is_embedding, models_of, provider_of, usage_of
from bijotel.traces.reader import read_traces
from tests.ops.calls import chat, span


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 4}, Usage(9, 4)),
        ({"gen_ai.usage.prompt_tokens": 9, "gen_ai.usage.completion_tokens": 4}, Usage(9, 4)),
        ({"llm.token_count.prompt": 9, "llm.token_count.completion": 4}, Usage(9, 4)),
        ({"gen_ai.usage.input_tokens": 9, "gen_ai.usage.prompt_tokens": 8}, Usage(9)),
        ({"gen_ai.usage.input_tokens": 9.0}, Usage(9)),
        ({"gen_ai.usage.input_tokens": 0}, Usage(0)),
        ({"gen_ai.usage.cache_read.input_tokens": 3}, Usage(cache_read_tokens=3)),
        ({"gen_ai.usage.cache_creation_input_tokens": 3}, Usage(cache_write_tokens=3)),
        ({"llm.token_count.prompt_details.cache_read": 3}, Usage(cache_read_tokens=3)),
        ({"gen_ai.usage.reasoning.output_tokens": 3}, Usage(reasoning_tokens=3)),
        ({"gen_ai.usage.reasoning_tokens": 3}, Usage(reasoning_tokens=3)),
        (
            {"mlflow.chat.tokenUsage": '{"input_tokens": 9, "output_tokens": 4}'},
            Usage(9, 4),
        ),
        (
            {
                "gcp.vertex.agent.llm_response": json.dumps(
                    {"usage_metadata": {"prompt_token_count": 9, "candidates_token_count": 4}}
                )
            },
            Usage(9, 4),
        ),
        (
            {
                "haystack.component.output": json.dumps(
                    {"replies": [{"meta": {"usage": {"prompt_tokens": 9, "completion_tokens": 4}}}]}
                )
            },
            Usage(9, 4),
        ),
        ({"haystack.component.output": '{"replies": []}'}, Usage()),
        ({"haystack.component.output": "not JSON"}, Usage()),
        ({"gen_ai.request.model": "m"}, Usage()),
    ],
)
def test_a_count_is_found_under_every_name(attributes, expected):
    """Old and new names, numbers that are whole, and the usage objects of the SDKs."""
    counted = usage_of(span(**{name.replace(".", "__"): n for name, n in attributes.items()}))
    assert counted.usage == expected
    assert counted.faults == ()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-5, "-5"),
        (math.nan, "nan"),
        (1.5, "1.5"),
        ("many", "'many'"),
        (True, "True"),
        ([7], "[7]"),
        (1e300, "1e+300"),
        (2.0**63, "9.223372036854776e+18"),
        (2**63, "9223372036854775808"),
        ([10**5000], "list of very many digits"),
        ("x" * 100, "'" + "x" * 39),
    ],
)
def test_what_is_no_count_is_said_and_left_out(value, shown):
    """Neither zero nor a number is made of it."""
    counted = usage_of(chat(value, 10))
    assert counted.usage == Usage(None, 10)
    assert counted.faults == (f"gen_ai.usage.input_tokens is {shown}, expected a count",)


def test_the_largest_count():
    """What an attribute of a span can hold."""
    assert usage_of(chat(2**63 - 1, 10.0)) == (Usage(2**63 - 1, 10), ())


def test_a_second_name_helps_out():
    """Where the first name holds no count the next one is asked."""
    counted = usage_of(chat("many", 10, llm__token_count__prompt=7))
    assert counted == (Usage(7, 10), ())


def test_counts_that_leave_the_cached_tokens_out_are_completed():
    """Langfuse keeps every part apart; older Strands hands on the counts of Bedrock."""
    details = {"input": 10, "input_cache_read": 90, "output": 5, "output_reasoning": 15}
    langfuse = span(langfuse__observation__usage_details=json.dumps(details))
    assert usage_of(langfuse).usage == Usage(100, 20, 90, None, 15)
    cached = {"gen_ai__usage__cache_read__input_tokens": 90}
    assert (
        usage_of(chat(10, 5, scope="strands.telemetry.tracer", **cached)).usage.input_tokens == 100
    )
    assert (
        usage_of(chat(95, 5, scope="strands.telemetry.tracer", **cached)).usage.input_tokens == 95
    )
    assert usage_of(chat(10, 5, **cached)).usage.input_tokens == 10


def test_models_and_providers():
    """The model that answered comes first; a model that answered as asked is named once."""
    call = chat(gen_ai__request__model="asked", gen_ai__system="openai")
    assert models_of(call) == ("gpt-4o", "asked")
    assert provider_of(call) == "openai"
    assert models_of(chat(gen_ai__request__model="gpt-4o")) == ("gpt-4o",)
    assert (models_of(span()), provider_of(span())) == ((), "")
    assert models_of(span(llm__model_name=["gpt"])) == ()


def test_embeddings_are_known_by_their_kind():
    """They have no output, so that none is missing."""
    assert is_embedding(span(gen_ai__operation__name="embeddings"))
    assert is_embedding(span(openinference__span__kind="EMBEDDING"))
    assert not is_embedding(chat())


def counted(*spans) -> list[int]:
    """Give the input tokens of the spans that count, in order."""
    leafmost: Leafmost[int] = Leafmost()
    seen = []
    for each in spans:
        usage = usage_of(each).usage
        seen.append(leafmost.add(each, usage, usage.input_tokens or 0))
    released = [*filter(None, seen), *leafmost.rest()]
    return [item for item, counts in released if counts]


AGENT = {"gen_ai__operation__name": "invoke_agent"}
TOOL = {"gen_ai__operation__name": "execute_tool"}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (0, 2, 1)])
def test_an_agent_repeats_the_sum_of_its_calls(order):
    """7,000 tokens are not 14,000, whichever span comes first."""
    spans = (
        chat(3000, number=2, parent=1),
        chat(4000, number=3, parent=1),
        chat(7000, number=1, end=5, **AGENT),
    )
    assert sum(counted(*(spans[place] for place in order))) == 7000


@pytest.mark.parametrize("inner_first", [True, False])
def test_a_wrapper_and_the_call_within_are_one(inner_first):
    """3,000 tokens that both report are 3,000, also with a silent model span in between."""
    spans = [
        chat(3000, number=3, parent=2),
        chat(None, None, number=2, parent=1),
        chat(3000, number=1, end=2),
    ]
    assert counted(*(spans if inner_first else spans[::-1])) == [3000]


def test_an_outer_span_counts_for_what_nothing_within_reports():
    """An agent whose calls report nothing, a wrapper whose client is silent."""
    assert counted(chat(None, None, number=2, parent=1), chat(7000, number=1, **AGENT)) == [7000]
    assert counted(chat(None, None, number=2, parent=1), chat(3000, number=1)) == [3000]


def test_a_silent_call_is_a_call():
    """Its tokens are not known, unless a span around it or within it reports them."""
    silent = chat(None, None, number=2, parent=1)
    assert counted(silent) == [0]
    assert counted(silent, chat(None, None, number=1, end=2)) == [0]
    assert counted(silent, span(number=1, **AGENT)) == [0]
    assert counted(silent, chat(9, number=1, **AGENT)) == [9]
    assert counted(silent, span(number=1, parent=5, **TOOL), chat(9, number=5, **AGENT)) == [9]
    assert counted(chat(9, number=3, parent=2), silent) == [9]
    assert counted(silent, chat(None, None, number=7, trace=2)) == [0, 0]


def test_a_call_below_a_tool_is_another_call():
    """A model calls a tool that calls a model: two calls."""
    spans = (
        chat(100, number=3, parent=2),
        span(number=2, parent=1, **TOOL),
        chat(500, number=1, end=9),
    )
    assert counted(*spans) == [100, 500]
    assert counted(*spans[::-1]) == [500, 100]


def test_an_agent_is_known_by_its_time_where_links_are_broken():
    """A span in between that was not sealed does not double the tokens."""
    call = chat(3000, number=9, parent=77, start=1, end=2)
    assert counted(call, chat(3000, number=1, start=0, end=3, **AGENT)) == [3000]
    assert counted(call, chat(500, number=1, start=2, end=3, **AGENT)) == [3000, 500]
    assert counted(call, chat(500, number=1, trace=2, start=0, end=3, **AGENT)) == [3000, 500]


def test_one_call_instrumented_twice_side_by_side():
    """An SDK's own span beside that of an instrumentation, in its time and with its counts."""
    own = chat(120, number=2, parent=1, start=2, end=3, scope="com.anthropic.sdk.python")
    around = chat(120, number=3, parent=1, start=1, end=4, scope="opentelemetry.anthropic")
    assert counted(own, around) == [120]
    assert counted(around, own) == [120]
    parallel = chat(120, number=3, parent=1, start=1, end=4, scope="com.anthropic.sdk.python")
    assert counted(own, parallel) == [120, 120]
    other = chat(121, number=3, parent=1, start=1, end=4, scope="opentelemetry.anthropic")
    assert counted(own, other) == [120, 121]


def test_spans_of_other_traces_have_the_same_ids():
    """Span ids are unique within a trace only."""
    assert counted(chat(5, number=2, parent=1), chat(7, number=1, trace=2)) == [5, 7]


def test_a_span_waits_for_as_many_as_the_horizon():
    """A child that comes so late that its parent was let through is taken for another call."""
    parent = chat(7000, number=1, end=9, **AGENT)
    others = [chat(1, number=number, trace=number) for number in range(2, HORIZON + 2)]
    child = chat(3000, number=HORIZON + 9, parent=1)
    assert sum(counted(parent, *others[:-1], child)) == 3000 + HORIZON - 1
    assert sum(counted(parent, *others, child)) == 10_000 + HORIZON


def test_parents_in_a_circle_end():
    """Hostile parents are no reason to loop."""
    spans = [span(number=n, parent=n % 3 + 1, **AGENT) for n in (1, 2, 3)]
    assert counted(*spans, chat(5, number=4, parent=1)) == [5]


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("anthropic-native", [120, 120]),
        ("openinference-sdks", [120] * 5),
        ("traceloop-vectordb", [120] * 3),
        ("google-adk-legacy", [0, 120]),
        ("pydantic-ai", [64, 160, 160]),
        ("strands-latest", [120, 120]),
        ("strands-legacy", [120, 120]),
        ("edge-dual", [120]),
        ("traceloop-legacy-openai", None),
        ("otel-genai-sdks", None),
    ],
)
def test_recorded_traces_count_each_call_once(data, name, calls):
    """What published instrumentations emit, agents, wrappers and SDK spans included."""
    traces = read_traces([data / "traces" / f"{name}.jsonl"])
    found = [n for trace in traces for n in counted(*trace.spans)]
    assert sorted(found) == (calls if calls is not None else [120] * len(found))
    assert found
