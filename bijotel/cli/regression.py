"""``bijotel regression``: is the newest call unlike the earlier ones, has a level moved?"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import click

from bijotel.cli.analysis import (
    Analysed,
    analysed,
    counted,
    prices,
    prices_option,
    unverified_option,
)
from bijotel.cli.options import chain_option, db_option, json_option, key_option
from bijotel.cli.output import Output
from bijotel.cli.plot import Panel, check_plot, draw
from bijotel.cli.session import FINDINGS, FINE, Session
from bijotel.cli.sparkline import bars_for, sparkline
from bijotel.cli.text import escape
from bijotel.cost import Prices
from bijotel.cost.model import MOST_REASONS
from bijotel.dialects.groups import GroupBy
from bijotel.dialects.span import Span
from bijotel.dialects.usage import Counted
from bijotel.dimensions import DIMENSIONS, Collector, Selection, Series, find_dimensions
from bijotel.dimensions.series import Season
from bijotel.errors import ConfigurationError
from bijotel.regression import Detection, Judgement, Shift, Shortage
from bijotel.regression.detect import DEFAULT_WINDOW, Window, check_window
from bijotel.search import parse_time
from bijotel.verified import skim

_STYLES: Final = {"ANOMALY": "bad", "NO_ANOMALY": "good", "INSUFFICIENT_DATA": "doubtful"}
_FAULTS_SHOWN: Final = 3
_SEQ: Final = re.compile(r"[0-9]{1,18}")


@click.command(short_help="Find outliers and shifts of level in what calls do.")
@db_option
@chain_option
@key_option
@click.option(
    "--dimension",
    "names",
    multiple=True,
    metavar="D",
    help=f"Only this one; repeatable. One of {', '.join(DIMENSIONS)}.",
)
@click.option("--model", metavar="M", help="Only calls of this model.")
@click.option(
    "--window",
    "window_text",
    default=str(DEFAULT_WINDOW),
    show_default=True,
    metavar="N",
    help="Judge the last N data points, at least 20, or all.",
)
@click.option(
    "--since",
    metavar="SEQ|TIME",
    help=(
        "Judge each entry from this one or time on for outliers, not the newest alone. Those "
        "that the window does not hold are counted as not judged."
    ),
)
@click.option(
    "--season",
    type=click.Choice(("day", "week")),
    help="Take out what is usual at the hour of the day, or on the day of the week (UTC).",
)
@click.option(
    "--group-by",
    type=click.Choice(("model", "retriever", "service")),
    help="Judge the calls of each one apart.",
)
@click.option("--plot", metavar="FILE", help="Draw the series into a .png or .svg file.")
@prices_option
@unverified_option
@json_option
@click.pass_obj
def regression(
    session: Session,
    *,
    location: str,
    chain: str | None,
    keys: tuple[str, ...],
    names: tuple[str, ...],
    model: str | None,
    window_text: str,
    since: str | None,
    season: Season | None,
    group_by: GroupBy | None,
    plot: str | None,
    price_file: str | None,
    unverified: bool,
) -> None:
    """Find outliers and shifts of level in what calls do: sources, tokens, cost, time, errors.

    Outliers: the newest data point against the earlier ones. Shifts: every border between five
    values and five more, by rank sums; of stationary series less than one in a hundred alarms.
    An entry that lacks a dimension is no data point of it. Without --dimension every one is
    judged. With --json the document is one object for one --dimension, else an array.

    Exit codes: 0 no alarm, or too few data; 1 an alarm, or the chain is false; 2 asked wrongly;
    3 could not check (for example no key, without --unverified).
    """
    dimensions = find_dimensions(names)
    selection = _selection(_window(window_text), since, season, group_by, model)
    if plot is not None:
        check_plot(plot, location)
    pricing = _Pricing(prices(price_file))
    collector = Collector(dimensions, selection, pricing)
    with analysed(session, location, chain, keys, unverified=unverified) as opened:
        for entry, record in opened.chain.spans(skim):
            collector.add(entry.seq, record)
        panels = [Panel(series, series.judge(selection)) for series in collector.finish()]
    alarm = any(panel.found.verdict == "ANOMALY" for panel in panels)
    session.verdict = FINDINGS if alarm else FINE
    if plot is not None:
        draw(plot, panels)
    if session.json:
        rest = {**opened.as_dict(), **_doubts(collector, pricing)}
        documents = [_document(panel) | rest for panel in panels]
        single = len(names) == 1 and group_by is None
        session.output.document(documents[0] if single else documents)
    else:
        for panel in panels:
            _print(session.output, panel)
        for line in _doubt_lines(opened, collector, pricing):
            session.output.line(line)


class _Pricing:
    """Prices calls, and remembers why some have no price."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self.reasons: Counter[str] = Counter()

    def __call__(self, record: Span, counted: Counted) -> Decimal | None:
        usage = counted.usage
        if usage.input_tokens is None and usage.output_tokens is None:
            return None  # no call, or one that says nothing about its tokens
        cost = self._prices.cost(record, counted)
        known = cost.reason in self.reasons or len(self.reasons) < MOST_REASONS
        if cost.usd is None and known:
            self.reasons[cost.reason] += 1
        return cost.usd


def _window(text: str) -> Window:
    if text == "all":
        return "all"
    try:
        window = int(text)
    except ValueError:
        raise ConfigurationError(
            f"--window {text!r}: expected a number of data points, or all"
        ) from None
    check_window(window)
    return window


def _selection(
    window: Window,
    since: str | None,
    season: Season | None,
    group_by: GroupBy | None,
    model: str | None,
) -> Selection:
    is_seq = since is not None and _SEQ.fullmatch(since)
    return Selection(
        window=window,
        season=season,
        group_by=group_by,
        model=model,
        since_seq=int(since) if since and is_seq else None,
        since_unix_nano=parse_time(since) if since is not None and not is_seq else None,
    )


def _document(panel: Panel) -> dict[str, Any]:
    return {
        "dimension": panel.series.dimension.name,
        **panel.found.as_dict(),
        "group": panel.series.group or None,
    }


def _doubts(collector: Collector, pricing: _Pricing) -> dict[str, Any]:
    return {
        "faulty": collector.faulty,
        "faults": dict(collector.faults),
        "unpriced_reasons": dict(pricing.reasons),
    }


def _print(output: Output, panel: Panel) -> None:
    series, found = panel
    name = series.dimension.name + (f" ({escape(series.group)})" if series.group else "")
    line = sparkline(series.values, bars=bars_for(sys.stdout.encoding))
    verdict = output.styled(found.verdict, _STYLES[found.verdict])
    output.line(f"{name}: {verdict}  {found.used} used, {found.skipped} skipped  {line}".rstrip())
    for text in _outlier_lines(series, found):
        output.line(f"  outliers: {text}")
    for text in _shift_lines(found):
        output.line(f"  shifts:   {text}")


def _outlier_lines(series: Series, found: Detection) -> Iterator[str]:
    if series.dimension.is_rate:
        yield "not judged, each value is 0 or 1"
        return
    if found.unjudged:
        points = counted(found.unjudged, "data point")
        yield f"{points} since then not judged: the window is too small, see --window"
    if found.outlier_shortage:
        yield _shortage(found.outlier_shortage, "earlier values")
    elif not found.judged:
        yield "no data point since then"
    elif found.outliers:
        yield from map(_judged, found.outliers)
    else:
        yield f"none; {_judged(found.judged[-1])}"


def _judged(judged: Judgement) -> str:
    low, high = judged.fences
    place = "within" if low <= judged.value <= high else "beyond"
    return (
        f"entry {judged.seq} is {judged.value:.6g} (z {_score(judged.z)}, "
        f"robust z {_score(judged.robust_z)}, {place} Tukey's fences {low:.6g} to {high:.6g})"
    )


def _score(score: float | None) -> str:
    return "null: zero spread" if score is None else f"{score:.2f}"


def _shift_lines(found: Detection) -> Iterator[str]:
    if found.shift_shortage:
        yield _shortage(found.shift_shortage, "data points")
    elif not found.shifts:
        yield "none"
    for shift in found.shifts:
        yield (
            f"from entry {shift.first_seq} on: {shift.before:.6g} -> {shift.after:.6g} "
            f"({_change(shift)}, p = {shift.p_value:g})"
        )


def _change(shift: Shift) -> str:
    """Give the change in percent; from zero on there is none, so the difference."""
    if shift.before == 0:
        return f"{shift.after:+.6g}, new"
    return f"{(shift.after - shift.before) / abs(shift.before):+.0%}"


def _shortage(shortage: Shortage, what: str) -> str:
    return f"INSUFFICIENT_DATA (n = {shortage.found} {what}, {shortage.needed} needed)"


def _doubt_lines(opened: Analysed, collector: Collector, pricing: _Pricing) -> Iterator[str]:
    if opened.chain.unreadable:
        yield f"{counted(opened.chain.unreadable, 'row')} could not be read"
    if collector.faulty:
        spans = counted(collector.faulty, "span")
        yield f"what is no number, in {spans}: {_examples(collector.faults)}"
    if pricing.reasons:
        spans = counted(pricing.reasons.total(), "span")
        yield f"unpriced: {spans}: {_examples(pricing.reasons)}"


def _examples(counts: Counter[str]) -> str:
    shown = counts.most_common(_FAULTS_SHOWN)
    listed = ", ".join(f"{escape(words)} ({counted(count, 'time')})" for words, count in shown)
    return f"{listed}, and others" if len(counts) > len(shown) else listed
