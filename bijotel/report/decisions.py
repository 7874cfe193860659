"""The entries of one trace -> its decisions: what was asked, given, answered, and how it stands.

A decision is one model call. A trace without any gives one for each of its spans, so that no
sealed span is missing from a report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from bijotel.audit.join import join_trace
from bijotel.audit.model import JudgedCall, TraceContext
from bijotel.context_matching.decode import decode_prompt
from bijotel.cost import Prices, money
from bijotel.dialects.model import ModelCall
from bijotel.dialects.usage import usage_of
from bijotel.model import Entry, SpanRecord
from bijotel.provenance import CallSummary, read_provenance, summarize
from bijotel.report.model import Row, Standing
from bijotel.report.passages import MOST_PASSAGES, MOST_PROMPT, count_words, pieces, sources
from bijotel.report.text import counted, cut, duration, moment, one_line, shown
from bijotel.traces.model import Trace

MOST_ANSWER: Final = 50_000
MOST_QUESTION: Final = 4_000
MOST_TITLE: Final = 160
MOST_SPANS: Final = 200


class SealedSpan(NamedTuple):
    """One entry of a span, what it says, and how it stands."""

    entry: Entry
    record: SpanRecord
    standing: Standing


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision: its line in the list, and everything else about it."""

    row: Row
    entry: Entry
    details: dict[str, Any]


def decisions_of(trace: Sequence[SealedSpan], prices: Prices) -> Iterator[Decision]:
    """Find the decisions of a trace, in the order in which they began.

    Args:
        trace: All entries of the trace; the spans may be anything.
        prices: Prices each call.
    """
    first = trace[0].record
    joined = join_trace(Trace(first.trace_id, tuple(each.record for each in trace)))
    spans = {id(each.record): each for each in trace}
    listed = _list_spans(trace)
    if not joined.calls:
        for span in trace:
            yield _decision(span, None, joined, listed, prices)
    for call in joined.calls:
        yield _decision(spans[id(call.call.span)], call, joined, listed, prices)


def _decision(
    span: SealedSpan,
    judged: JudgedCall | None,
    joined: TraceContext,
    listed: list[dict[str, Any]],
    prices: Prices,
) -> Decision:
    entry, record, standing = span
    call = judged.call if judged else ModelCall(record)
    summary = summarize(record)
    asked, question = _question(call, joined)
    row = Row(
        seq=entry.seq,
        start_unix_nano=entry.start_unix_nano,
        title=_title(question) or one_line(record.name, MOST_TITLE),
        model=one_line(call.model or shown(summary.model), 60),
        proof=standing.proof,
        outcome=_outcome(summary),
        passages=count_words(judged.verdicts) if judged else {},
    )
    details = {
        "facts": [
            *_facts(record, call, summary, prices),
            ("Role in its trace", _role(judged, joined)),
        ],
        "asked": asked,
        "question": cut(question, MOST_QUESTION),
        **_context(judged, joined, record),
        "answer": [cut(text, MOST_ANSWER) for text in call.outputs],
        "tools": [cut(text, MOST_ANSWER) for text in call.tool_calls],
        "spans": listed,
        "findings": [f"{each.code}: {each.message}" for each in standing.findings],
        "entry": _columns(entry),
    }
    return Decision(row, entry, details)


def _outcome(summary: CallSummary) -> str:
    if summary.status == "BLOCKED":
        return "blocked"
    if summary.span_status == "ERROR":
        return "error"
    return "warning" if summary.status == "WARN" else "ok"


def _question(call: ModelCall, joined: TraceContext) -> tuple[str, str]:
    """Give who was asked, and what: the retriever, else the model in the user's last message."""
    queries = dict.fromkeys(filter(None, (each.retrieval.query for each in joined.retrievals)))
    if queries:
        return "asked of the retriever", "\n".join(queries)
    messages = [message for message in call.messages if message.role in {"user", "human", ""}]
    texts = (decode_prompt([{"role": "user", "content": each.content}]) for each in messages[::-1])
    return "the last message of the user", next((text for text in texts if text.strip()), "")


def _title(question: str) -> str:
    """Cut a question to one line: its last one, because passages stand before what is asked."""
    lines = [line for line in question.splitlines() if line.strip()]
    return one_line(lines[-1], MOST_TITLE) if lines else ""


def _facts(
    record: SpanRecord, call: ModelCall, summary: CallSummary, prices: Prices
) -> list[tuple[str, str]]:
    """Give what is said in one line each; what the span does not say is left out."""
    usage, _ = counted = usage_of(record)
    cost = prices.cost(record, counted)
    start, end = record.start_time_unix_nano, record.end_time_unix_nano
    status = f"{record.status.code} {shown(record.status.description)}".strip()
    facts = {
        "Span": record.name,
        "Service": shown(record.resource.attributes.get("service.name")),
        "Began": moment(start),
        "Took": duration(start, end),
        "Model": call.model or shown(summary.model),
        "Provider": call.provider,
        "Input tokens": shown(usage.input_tokens),
        "of which cached": shown(usage.cache_read_tokens),
        "Output tokens": shown(usage.output_tokens),
        "of which reasoning": shown(usage.reasoning_tokens),
        "Cost": money(cost.usd) if cost.usd is not None else f"unknown: {cost.reason}",
        "Span status": status,
        "Policy": summary.status if summary.status != "ALLOWED" else "",
        "Warning": shown(summary.warning),
        "Dropped by the tracer": _dropped(record),
        "Withheld": record.withheld,
        "Sealed from": record.via,
    }
    return [(name, cut(text, MOST_QUESTION)) for name, text in facts.items() if text]


def _dropped(record: SpanRecord) -> str:
    counts = record.dropped._asdict().items()
    return ", ".join(counted(count, what.removesuffix("s")) for what, count in counts if count)


def _context(judged: JudgedCall | None, joined: TraceContext, record: SpanRecord) -> dict[str, Any]:
    """Show the prompt and the sources, each with its place in the other."""
    recorded = read_provenance(record)
    notes = list(recorded.notes) if recorded else []
    if recorded and recorded.unreadable is not None:
        notes.append(f"no list of sources, as recorded: {cut(shown(recorded.unreadable), 2000)}")
    if judged is None:
        return {"prompt": [], "sources": [], "notes": notes}
    if judged.call.capture.state != "whole" and judged.call.capture.reason:
        notes.append(f"the prompt is not whole: {judged.call.capture.reason}")
    if len(judged.text) > MOST_PROMPT:
        notes.append(f"the prompt has {len(judged.text):,} characters; {MOST_PROMPT:,} are shown")
    if len(joined.passages) > MOST_PASSAGES:
        notes.append(f"{len(joined.passages)} passages; {MOST_PASSAGES} are shown")
    return {
        "prompt": pieces(judged.text, judged.verdicts),
        "sources": sources(joined.passages, judged.verdicts, recorded),
        "notes": notes,
    }


def _role(judged: JudgedCall | None, joined: TraceContext) -> str:
    if judged is None:
        return ""
    doubt = "" if joined.answer_certain or judged.role != "answer" else ", as far as can be told"
    return f"{judged.role}{doubt}"


def _list_spans(trace: Sequence[SealedSpan]) -> list[dict[str, Any]]:
    return [
        {
            "seq": entry.seq,
            "name": cut(record.name, MOST_TITLE),
            "began": moment(record.start_time_unix_nano),
            "took": duration(record.start_time_unix_nano, record.end_time_unix_nano),
            "status": record.status.code,
            "proof": standing.proof,
        }
        for entry, record, standing in trace[:MOST_SPANS]
    ]


def _columns(entry: Entry) -> list[tuple[str, str]]:
    """Give the columns that name and prove an entry."""
    shown_columns = ("trace_id", "span_id", "key_id", "body_hash", "prev_tag", "tag")
    values = [(name, getattr(entry, name).hex()) for name in shown_columns]
    return [("seq", str(entry.seq)), ("sealed_at", moment(entry.sealed_at_unix_nano)), *values]
