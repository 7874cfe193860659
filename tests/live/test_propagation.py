"""The sealed entry of each model call has the sources of the decorated function that made it.

For every published instrumentation the calls of ``app/calls.py`` run in a process of their own;
what is judged here is the chain that they left. A call's model is named like its only source, so
a crossed or missing record shows as a name that differs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from bijotel import verify_chain
from bijotel.model import Entry, SpanRecord
from bijotel.spans.decode import decode_record
from bijotel.spans.select import is_model_call
from bijotel.stores.sqlite import SqliteStore

pytestmark = pytest.mark.live

APP = Path(__file__).parent / "app"
ROOT = APP.parent.parent.parent
KEY = bytes(range(32))

SCOPES = {
    "openllmetry-openai": {"opentelemetry.instrumentation.openai.v1"},
    "openllmetry-anthropic": {"opentelemetry.instrumentation.anthropic"},
    "openinference-openai": {"openinference.instrumentation.openai"},
    "openinference-openai-cut": {"openinference.instrumentation.openai"},
    "openinference-anthropic": {"openinference.instrumentation.anthropic"},
    "official-openai": {"opentelemetry.instrumentation.genai.openai"},
    "official-anthropic": {"opentelemetry.instrumentation.genai.anthropic"},
    "openai-v2": {"opentelemetry.instrumentation.openai_v2"},
    "anthropic-native": {"com.anthropic.sdk.python"},
    "openinference-and-native": {
        "openinference.instrumentation.anthropic",
        "com.anthropic.sdk.python",
    },
}
"""The instrumentations of ``app/instrumentations.py``, and whose spans are the model calls."""

KINDS = ("plain", "streaming", "generator", "plain-async", "streaming-async", "generator-async")
CROWDS = tuple(f"{crowd}-{n}" for crowd in ("thread", "gather", "gather-stream") for n in range(4))
LABELS = (
    *KINDS,
    *(f"{kind}-outer" for kind in KINDS),
    *CROWDS,
    "stream-read-by-the-caller",
    "interleaved-0",
    "interleaved-1",
    "nested-outside",
    "nested-inside",
    "surrounded",
    "failing",
)
EXTRAS = {
    **dict.fromkeys(
        ("openllmetry-openai", "openinference-openai", "official-openai"),
        ("responses", "responses-stream", "responses-async", "responses-async-stream"),
    ),
    "openai-v2": (),  # knows chat alone
    **dict.fromkeys(
        (name for name in SCOPES if "anthropic" in name or "native" in name),
        ("helper-stream", "helper-async-stream"),
    ),
}
"""Other ways to the model, as far as each instrumentation records them."""

NEVER_ENDED = {"openllmetry-anthropic", "openai-v2"}
"""Who does not end the span of a stream that is left; what never ends cannot be sealed."""

CUT = "openinference-openai-cut"
"""The tracer keeps no more than 40 characters of a value, which is less than any list of sources."""

BY_HAND = "outer-stamped-by-hand"


@dataclass(frozen=True)
class Run:
    """What one process left behind."""

    name: str
    store: Path
    stderr: str
    spans: tuple[SpanRecord, ...]
    """Of the chain that seals everything."""
    selected: frozenset[bytes]
    """The ids of the spans in the chain that seals what the processor selects by itself."""

    def calls(self, label: str) -> list[SpanRecord]:
        """The model calls with a label."""
        return [span for span in self.spans if is_call(span) and asked_model(span) == label]

    def named(self, name: str) -> SpanRecord:
        """The only span of a name."""
        (span,) = [span for span in self.spans if span.name == name]
        return span


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Run one instrumentation's process, once, even if it fails."""

    @cache
    def run_app(name: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
        store = tmp_path_factory.mktemp(name) / "chain.db"
        done = subprocess.run(
            [sys.executable, str(APP), name, str(store)],
            env={
                **{key: value for key, value in os.environ.items() if "PROXY" not in key.upper()},
                "PYTHONPATH": str(ROOT),
                "BIJOTEL_HMAC_SECRET": KEY.hex(),
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return store, done

    @cache
    def run(name: str) -> Run:
        store, done = run_app(name)
        assert done.returncode == 0, done.stderr
        selected = frozenset(span.span_id for span in sealed_spans(store, "default"))
        return Run(name, store, done.stderr, tuple(sealed_spans(store, "all")), selected)

    return run


@pytest.fixture(params=[name for name in SCOPES if name != CUT])
def each(request: pytest.FixtureRequest, live: Callable[[str], Run]) -> Run:
    return live(request.param)


def sealed_spans(store: Path, chain: str) -> Iterator[SpanRecord]:
    """All spans of a chain, from its bodies as they are stored."""
    with SqliteStore(store).snapshot() as snapshot:
        chain_id = next(row[0] for row in snapshot.head_rows() if row[1] == chain)
        for row in snapshot.select(chain_id):
            entry = Entry._make(row.columns)
            if entry.kind == "span":
                yield decode_record(entry.body)


def asked_model(span: SpanRecord) -> Any:
    """The model that was asked for, where the instrumentation says it."""
    attributes = span.attributes
    for key in ("gen_ai.request.model", "llm.request.model_name", "llm.model_name"):
        if key in attributes:
            return attributes[key]
    # OpenInference names the model of a failed OpenAI call in the request alone.
    found = re.match(r'\{"model": "([^"]+)"', attributes.get("input.value", ""))
    return found and found[1]


def is_call(span: SpanRecord) -> bool:
    return is_model_call(span.attributes) and span.scope.name != "app"


def sources(attributes: Any) -> list[Any] | None:
    """The document ids of a record; None where there is none, or none that can be read."""
    try:
        return [source["document_id"] for source in json.loads(attributes["bijotel.rag.sources"])]
    except (KeyError, json.JSONDecodeError):
        return None


def sources_of_call(span: SpanRecord) -> list[Any] | None:
    """Attributes outweigh what was inherited."""
    own = sources(span.attributes)
    return sources(span.inherited) if own is None else own


def check(run: Run, labels: Iterable[str]) -> None:
    """The rule: every model call with a label has that very source, and there is at least one."""
    for label in labels:
        found = [(span.scope.name, sources_of_call(span)) for span in run.calls(label)]
        assert {scope for scope, _ in found} == SCOPES[run.name], label
        assert [ids for _, ids in found] == [[label]] * len(found), label


def test_every_kind_of_call_is_sealed_with_its_own_sources(each: Run) -> None:
    """Plain, async, streaming, generators, crowds, nested, failing: never missing or crossed."""
    check(each, LABELS)


def test_a_stream_that_its_consumer_leaves_is_sealed_with_its_sources(each: Run) -> None:
    """The decorated call is there; so is the model call, where its instrumentation ends it."""
    (stamped,) = [
        span
        for span in each.spans
        if sources(span.attributes) == ["stopped-early"] and span.scope.name == "bijotel"
    ]
    assert stamped.status.code == "UNSET"
    if each.name in NEVER_ENDED:
        assert each.calls("stopped-early") == []
    else:
        check(each, ["stopped-early"])


def test_a_call_after_a_stream_does_not_get_the_sources_of_the_stream(each: Run) -> None:
    """Not even where the instrumentation puts the context of the finished call back in place."""
    after = each.calls("undecorated-after-a-stream")
    assert [sources_of_call(span) for span in after] == [None] * len(SCOPES[each.name])


def test_other_ways_to_the_model_are_sealed_with_their_sources(each: Run) -> None:
    """OpenAI's responses and Anthropic's stream helper, where they are instrumented."""
    check(each, EXTRAS[each.name])


def test_an_outer_span_that_is_stamped_is_not_enough(each: Run) -> None:
    """The rule that all calls are held to fails where only the outer span has the record."""
    assert sources(each.named(BY_HAND).attributes) == [BY_HAND]
    assert [sources_of_call(span) for span in each.calls(BY_HAND)] == [None] * len(
        SCOPES[each.name]
    )
    with pytest.raises(AssertionError, match=BY_HAND):
        check(each, [BY_HAND])


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_call_is_another_entry_than_the_stamped_span(each: Run, kind: str) -> None:
    """Without an outer span the decorator opens one, with one it stamps it; the call is below."""
    for label, scope in ((kind, "bijotel"), (f"{kind}-outer", "app")):
        (stamped,) = [
            span
            for span in each.spans
            if sources(span.attributes) == [label] and span.scope.name == scope
        ]
        for call in each.calls(label):
            assert (call.trace_id, call.span_id != stamped.span_id) == (stamped.trace_id, True)
        above = {call.parent_span_id for call in each.calls(label)}
        assert stamped.span_id in above


def test_only_model_calls_inherit(each: Run) -> None:
    """HTTP, agent, tool, chain and retrieval spans in the scope get nothing at all."""
    for span in each.spans:
        if not is_model_call(span.attributes):
            assert not span.inherited, span.name
    for name in ("http", "agent", "tool", "chain", "retrieval"):
        assert sources(each.named(name).attributes) is None
    assert len(each.calls("surrounded")) == 5 * len(SCOPES[each.name])


def test_a_span_that_turns_out_to_be_a_model_call_inherits(each: Run) -> None:
    """Nothing said so when it started; the sealed body has the record beside its attributes."""
    late = each.named("late")
    assert sources(late.attributes) is None
    assert sources(late.inherited) == ["surrounded"]


def test_requests_that_are_no_inference_get_nothing(each: Run) -> None:
    """Embedding, and counting tokens, unless the instrumentation itself calls that an LLM span."""
    for span in each.spans:
        if asked_model(span) == "no-inference":
            stated = span.attributes.get("openinference.span.kind") == "LLM"
            assert sources_of_call(span) == (["surrounded"] if stated else None)


def test_a_failed_call_is_sealed_as_failed(each: Run) -> None:
    """The error is the host's; the record of what the model would have seen stays."""
    for span in each.calls("failing"):
        assert (span.status.code, sources_of_call(span)) == ("ERROR", ["failing"])


def test_two_calls_around_a_nested_one_keep_their_own_sources(each: Run) -> None:
    """The innermost scope wins, and ends with its function."""
    count = len(SCOPES[each.name])
    assert len(each.calls("nested-outside")) == 2 * count
    assert len(each.calls("nested-inside")) == count


def test_the_default_selection_seals_each_call_and_each_record(each: Run) -> None:
    """Model calls and stamped spans are in the default chain; plain HTTP spans are not."""
    for span in each.spans:
        if is_call(span) or sources(span.attributes) is not None:
            assert span.span_id in each.selected, span.name
    assert each.named("http").span_id not in each.selected


def test_the_prompt_is_sealed_with_the_sources_where_it_is_recorded(each: Run) -> None:
    """All but the oldest package put what the model was told on the span."""
    told = "The code word of plain is tulip."
    for span in each.calls("plain"):
        assert (told in json.dumps(dict(span.attributes))) == (each.name != "openai-v2")


def test_a_list_that_the_tracer_cut_is_sealed_whole(live: Callable[[str], Run]) -> None:
    """The span's own attribute is cut; beside it the sealed body has what the scope knew."""
    run = live(CUT)
    (plain,) = run.calls("plain")
    assert len(plain.attributes["bijotel.rag.sources"]) == 40
    assert (
        plain.inherited["bijotel.rag.sources_sha256"]
        == sha256(plain.inherited["bijotel.rag.sources"].encode()).hexdigest()
    )
    check(run, LABELS)


def test_the_chains_verify(each: Run) -> None:
    """Both chains, body by body."""
    report = verify_chain(each.store, KEY, deep=True)
    assert report.findings == ()
    assert {chain.name for chain in report.chains} == {"all", "default"}


def test_the_host_sees_no_trouble_of_ours(each: Run) -> None:
    """No traceback, and never a token that was created in a different context."""
    assert "Traceback" not in each.stderr
    assert "different Context" not in each.stderr
    assert "detach" not in each.stderr
