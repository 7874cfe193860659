"""What calls cost: exact amounts, prices found under every name, and reasons where there is none."""

from __future__ import annotations

import decimal
import subprocess
import sys
from datetime import datetime, timezone
from decimal import Decimal

import genai_prices
import genai_prices.data_snapshot
import pytest

from bijotel.cost import Cost, CostTotal, Prices, Rates, money, read_price_file
from bijotel.cost.listed import NOT_INSTALLED, Listed
from bijotel.dialects.leafmost import Leafmost
from bijotel.dialects.model import Usage
from bijotel.dialects.usage import usage_of
from bijotel.errors import ConfigurationError
from tests.ops.calls import chat, span

OWN = {"acme-1": Rates(Decimal(3), Decimal(15), Decimal("0.30"))}
CACHED = "gen_ai__usage__cache_read__input_tokens"


def cost(call, own=None) -> Cost:
    return Prices(own).cost(call, usage_of(call))


@pytest.mark.parametrize(
    ("model", "own"), [("claude-3-5-sonnet-20241022", None), ("acme-1", OWN)], ids=["listed", "own"]
)
def test_cached_tokens_are_priced_once(model, own):
    """Of 20,000 input tokens 16,000 were cached: 4,000 at full price, not 20,000."""
    call = chat(20_000, 1000, model, gen_ai__system="anthropic", **{CACHED: 16_000})
    if own:
        call = chat(20_000, 1000, model, **{CACHED: 16_000})
    assert cost(call, own) == Cost(Decimal("0.0318"))


def test_cached_tokens_without_a_price_of_their_own_cost_as_much_as_others():
    """They are input all the same."""
    own = {"acme-1": Rates(Decimal(3), Decimal(15))}
    assert cost(chat(20_000, 1000, "acme-1", **{CACHED: 16_000}), own).usd == Decimal("0.075")


@pytest.mark.parametrize(
    ("provider", "model", "usd"),
    [
        ("openai", "gpt-4o", "0.0125"),
        ("openai", "gpt-4o-2024-08-06", "0.0125"),
        ("OpenAI", "GPT-4o", "0.0125"),
        ("azure.ai.openai", "gpt-4o", "0.0125"),
        ("", "gpt-4o", "0.0125"),
        ("langchain", "gpt-4o", "0.0125"),
        ("", "openai/gpt-4o", "0.0125"),
        ("litellm_proxy", "openai/gpt-4o", "0.0125"),
        ("openai", "openai/gpt-4o", "0.0125"),
        ("openai", "anthropic/claude-3-5-sonnet-20241022", "0.018"),
        ("anthropic", "claude-3-5-sonnet-20241022", "0.018"),
        ("aws.bedrock", "us.anthropic.claude-sonnet-4-20250514-v1:0", "0.018"),
        ("gcp.gemini", "gemini-2.0-flash", "0.0005"),
        ("gcp.vertex_ai", "models/gemini-2.0-flash", "0.0005"),
        ("gcp.gen_ai", "gemini-2.0-flash", "0.0005"),
        ("mistral_ai", "mistral-large-latest", "0.008"),
        ("x_ai", "grok-3", "0.018"),
        ("deepseek", "deepseek-chat", None),
    ],
)
def test_prices_are_found_under_every_name(provider, model, usd):
    """Dated names, aliases, prefixes, and the providers as the conventions call them."""
    call = chat(1000, 1000, model, **({"gen_ai__system": provider} if provider else {}))
    found = cost(call)
    assert found.reason == ""
    assert found.usd == (found.usd if usd is None else Decimal(usd))


def test_a_model_that_its_provider_does_not_offer_is_unpriced():
    """A known provider's name is believed: another one may sell a model of the same name."""
    call = chat(1000, 1000, "deepseek-chat", gen_ai__provider__name="openai")
    assert cost(call) == Cost(None, "no price is known for deepseek-chat of openai")


def test_the_model_asked_for_helps_out():
    """Where the answer names a model that no list knows, the request's alias may be known."""
    call = chat(
        1000, 1000, "my-deployment", gen_ai__system="openai", gen_ai__request__model="gpt-4o"
    )
    assert cost(call).usd == Decimal("0.0125")


def test_the_price_is_that_of_the_start():
    """This model is cheaper at night; when the call is looked at does not matter."""
    call = {"model": "deepseek-chat", "gen_ai__system": "deepseek"}
    by_day = cost(chat(1_000_000, 0, start=0, **call)).usd
    at_night = cost(chat(1_000_000, 0, start=8 * 3600, **call)).usd
    assert (by_day, at_night) == (Decimal("0.27"), Decimal("0.135"))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (chat(5000, 10, "acme-unknown-1"), "no price is known for acme-unknown-1"),
        (chat(None, None), "the span reports no input and no output tokens"),
        (chat(100, None), "the span reports no output tokens"),
        (chat(None, 100), "the span reports no input tokens"),
        (chat(-5, 10), "gen_ai.usage.input_tokens is -5, expected a count"),
        (chat("5", 10), "gen_ai.usage.input_tokens is '5', expected a count"),
        (
            span(gen_ai__usage__input_tokens=1, gen_ai__usage__output_tokens=1),
            "the span names no model",
        ),
        (chat(10, 1, **{CACHED: 20}), "20 cached tokens exceed 10 input tokens"),
    ],
)
def test_what_has_no_price_says_why(call, reason):
    """Unpriced is not zero."""
    assert cost(call) == Cost(None, reason)


def test_a_dialect_that_counts_cached_tokens_apart_is_priced():
    """Its input is completed first."""
    call = chat(10, 0, "acme-1", scope="strands.telemetry.tracer", **{CACHED: 90})
    assert cost(call, OWN).usd == (10 * Decimal(3) + 90 * Decimal("0.3")) / 1_000_000


def test_an_embedding_has_no_output():
    """Nothing is missing where there is nothing to count."""
    call = chat(
        1_000_000,
        None,
        "text-embedding-3-small",
        gen_ai__operation__name="embeddings",
        gen_ai__system="openai",
    )
    assert cost(call).usd == Decimal("0.02")


def test_no_start_time_is_said():
    """The price of which day?"""
    call = chat()
    timeless = type(call)(name="chat", attributes=call.attributes)
    assert cost(timeless, {"gpt-4o": Rates(Decimal(0), Decimal(0))}).usd == 0
    assert cost(timeless) == Cost(None, "the span has no start time")
    future = type(call)(name="chat", attributes=call.attributes, start_time_unix_nano=10**30)
    assert cost(future) == Cost(None, "the span has no start time")


def test_unpriced_calls_make_a_lower_bound():
    """The total says how many calls it leaves out; a model that is free is not one of them."""
    total = CostTotal()
    for usd in ("0.01", "0.02"):
        total.add(Cost(Decimal(usd)))
    assert str(total) == "$0.03"
    total.add(cost(chat(5000, 10, "acme-unknown-1")))
    assert str(total) == "at least $0.03, 1 of 3 calls unpriced"
    assert total.as_dict() == {
        "cost_known": 0.03,
        "calls": 3,
        "unpriced_calls": 1,
        "unpriced_reasons": {"no price is known for acme-unknown-1": 1},
    }
    free = {"acme-unknown-1": Rates(Decimal(0), Decimal(0))}
    assert cost(chat(5000, 10, "acme-unknown-1"), free) == Cost(Decimal(0))


def test_reasons_do_not_fill_the_memory():
    """Hostile model names are counted together from some number on."""
    total = CostTotal()
    for number in range(300):
        total.add(Cost(None, f"no price is known for m{number}"))
    assert len(total.reasons) == 101
    assert total.reasons["other reasons"] == 200


def test_sums_are_exact_whatever_the_precision_of_the_caller():
    """A thousand small amounts and ten tenths; no rounding, no drift."""
    own = {
        "tiny": Rates(Decimal("0.5"), Decimal(1)),
        "tenth": Rates(Decimal(100_000), Decimal(0)),
    }
    small, tenths = CostTotal(), CostTotal()
    with decimal.localcontext(decimal.Context(prec=3)):
        for _ in range(1000):
            small.add(cost(chat(1, 1, "tiny"), own))
        for _ in range(10):
            tenths.add(cost(chat(1, 0, "tenth"), own))
        exact = cost(chat(1_234_567, 7_654_321, "gpt-4o", gen_ai__system="openai")).usd
    assert (small.known, str(small)) == (Decimal("0.0015"), "$0.0015")
    assert tenths.known == 1
    assert exact == (1_234_567 * Decimal("2.5") + 7_654_321 * 10) / 1_000_000


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        ("0", "$0.00"),
        ("0.0000015", "$0.0000015"),
        ("1E-7", "$0.0000001"),
        ("0.0318", "$0.0318"),
        ("1.50", "$1.50"),
        ("1E+3", "$1000.00"),
        ("12345.678", "$12345.678"),
    ],
)
def test_small_amounts_keep_their_digits(usd, shown):
    """Never $0.00 for something."""
    assert money(Decimal(usd)) == shown


def test_tokens_and_cost_name_the_same_spans():
    """An agent of 7,000 tokens over calls of 3,000 and 4,000 costs 0.07, not 0.14."""
    own = {"gpt-4o": Rates(Decimal(10), Decimal(10))}
    leafmost: Leafmost[tuple] = Leafmost()
    for each in (
        chat(2990, 10, number=2, parent=1),
        chat(3990, 10, number=3, parent=1),
        chat(6980, 20, number=1, end=5, gen_ai__operation__name="invoke_agent"),
    ):
        counted = usage_of(each)
        item = (counted.usage, Prices(own).cost(each, counted))
        assert leafmost.add(each, counted.usage, item) is None
    total, tokens = CostTotal(), 0
    for (usage, priced), counts in leafmost.rest():
        if counts:
            total.add(priced)
            tokens += usage.input_tokens + usage.output_tokens
    assert (tokens, str(total), total.calls) == (7000, "$0.07", 2)


def test_a_price_file(tmp_path):
    """Exact prices by model, by provider and model, and after a prefix; they outweigh the list."""
    path = tmp_path / "prices.toml"
    path.write_text(
        '[models."Acme-1"]\ninput = 3\noutput = 0.1\ncache_read = 0.30\ncache_write = 3.75\n'
        '[models."ollama/llama3"]\ninput = 0\noutput = 0\n'
        "[models.gpt-4o]\ninput = 1\noutput = 1\n"
    )
    own = read_price_file(path)
    assert own["acme-1"] == Rates(Decimal(3), Decimal("0.1"), Decimal("0.30"), Decimal("3.75"))
    assert cost(chat(10, 10, "llama3", gen_ai__system="Ollama"), own).usd == 0
    assert cost(chat(10, 10, "llama3", gen_ai__system="vllm"), own).usd is None
    assert cost(chat(10, 10, "vendor/acme-1"), own).usd is not None
    assert cost(chat(1000, 1000, gen_ai__system="openai"), own).usd == Decimal("0.002")
    assert own["acme-1"].cost(Usage(100, 0, 20, 30)) == Decimal("268.50") / 1_000_000
    path.write_text("")
    assert read_price_file(str(path)) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "cannot be read: Expected"),
        ("models = 3", 'expected nothing but tables [models."NAME"], got int'),
        ("[prices]", 'expected nothing but tables [models."NAME"], got prices'),
        ("[models]\nm = 3", "m: expected a table of prices, got 3"),
        ("[models.m]\ninput = 3", "m: output is missing"),
        (
            "[models.m]\ninput=1\noutput=1\ncached=1",
            "m: cached is not known; expected input, output",
        ),
    ],
)
def test_a_wrong_price_file_is_refused(tmp_path, text, message):
    """With its name, the place and what was expected."""
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_price_file(path)
    assert str(caught.value).startswith(f"price file {path}: {message}")


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("-1", "-1"),
        ("nan", "NaN"),
        ("inf", "Infinity"),
        ("'3'", "'3'"),
        ("true", "True"),
        ("[3]", "list"),
        ("1e400", "1e+400"),
        ("1e999999999", "1e+999999999"),
        ("1e-999999999", "1e-999999999"),
        ("0.1234567890123456789", "0.1234567890123456789"),
        ("1000000001", "1000000001"),
        ("0x" + "f" * 5000, "3.9802768403379665924e+6020"),
    ],
)
def test_what_is_no_price_is_refused(tmp_path, amount, shown):
    """A text that looks like a number is told from one; no amount is too large to be shown."""
    path = tmp_path / "prices.toml"
    path.write_text(f"[models.m]\ninput = {amount}\noutput = 1")
    with pytest.raises(ConfigurationError) as caught:
        read_price_file(path)
    assert str(caught.value) == (
        f"price file {path}: m: input: expected dollars for a million tokens, at most 1000000000 "
        f"and with at most 18 decimals, got {shown}"
    )


def test_a_price_file_nested_too_deep_is_refused(tmp_path):
    """It is not the parser's stack that says so."""
    path = tmp_path / "prices.toml"
    path.write_text("models = " + "[" * 100_000)
    with pytest.raises(ConfigurationError, match=r"toml: cannot be read: nested too deep$"):
        read_price_file(path)


def test_a_missing_price_file_is_said(tmp_path):
    """Nothing is priced by a list that is not there."""
    with pytest.raises(ConfigurationError, match=r"none\.toml: cannot be read: .*No such file"):
        read_price_file(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(ConfigurationError, match=r"latin\.toml: cannot be read: .*utf-8"):
        read_price_file(tmp_path / "latin.toml")


def test_without_the_extra_own_prices_still_work(monkeypatch):
    """A missing package is a reason, not an error."""
    for name in [name for name in sys.modules if name.startswith("genai_prices")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert cost(chat()) == Cost(None, NOT_INSTALLED)
    assert cost(chat(1000, 0, "acme-1"), OWN) == Cost(Decimal("0.003"))


def test_prices_are_loaded_at_the_first_question():
    """Importing the room loads no price list: it has more than a megabyte."""
    code = "import bijotel.cost, sys; sys.exit('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_model_costs_what_its_price_list_says():
    """Tiers, requests, periods: the short way to an amount gives the package's own."""
    snapshot = genai_prices.data_snapshot.get_snapshot()
    moment = datetime(2026, 6, 1, 10, tzinfo=timezone.utc)
    priced = 0
    for provider in snapshot.providers:
        for model in provider.models:
            for usage in (Usage(300_001, 17, 123, 45), Usage(9, 4), Usage(0, 0)):
                found = Listed(model, provider).cost(usage, moment)
                if found.usd is None:
                    assert found.reason == f"the price list has no price for {model.id}"
                    continue
                tokens = genai_prices.Usage(
                    input_tokens=usage.input_tokens,
                    output_tokens=usage.output_tokens,
                    cache_read_tokens=usage.cache_read_tokens,
                    cache_write_tokens=usage.cache_write_tokens,
                )
                asked = model.calc_price(tokens, provider, genai_request_timestamp=moment)
                assert found.usd == asked.total_price, model.id
                priced += 1
    assert priced > 1000
