"""Which model call answers, and which others feed it.

The answering call is the one whose output is the recorded output of the root, of an agent or of
a workflow; else, and then not for certain, the one that ended last. A call feeds another when its
output stands in the other's prompt: a map call feeds the reduce call, a grader's "yes" nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bijotel.context_matching import match_context
from bijotel.context_matching.tokens import words
from bijotel.dialects.model import ModelCall
from bijotel.dialects.trace import CallReading, TraceReading
from bijotel.dialects.values import leaves
from bijotel.model import SpanRecord

_BESIDE_THE_ANSWER = frozenset({"reranker", "embedding", "evaluator", "guardrail"})
_WRAPPERS = frozenset({"agent", "workflow"})
_ENOUGH = 0.5
"""Containment from which an output counts as standing in a prompt."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The calls by what they do for the answer."""

    answer: CallReading | None
    certain: bool
    contributing: frozenset[CallReading]
    """The answering call included."""


def roles(reading: TraceReading) -> Roles:
    """Find the answering call of a trace and those that contribute to it."""
    candidates = [call for call in reading.calls if not _is_beside(call)]
    if not candidates:
        return Roles(None, certain=False, contributing=frozenset())
    named = candidates
    certain = len(candidates) == 1
    if not certain:
        recorded = set(_recorded_outputs(reading))
        named = [call for call in candidates if not recorded.isdisjoint(_outputs(call))]
        certain = bool(named)
    answer = max(named or candidates, key=lambda one: one.call.span.end_time_unix_nano or 0)
    return Roles(answer, certain=certain, contributing=_feeding(answer, reading.calls))


def comes_after(
    later: SpanRecord, began: float | None, earlier: SpanRecord, ended: float | None
) -> bool:
    """Tell whether something may have come after something else.

    Clocks of different resources differ, so between them anything may.
    """
    if began is None or ended is None or began >= ended:
        return True
    return later.resource is not earlier.resource and later.resource != earlier.resource


def _is_beside(call: CallReading) -> bool:
    return any(not _BESIDE_THE_ANSWER.isdisjoint(one.kinds) for one in call.lineage)


def _recorded_outputs(reading: TraceReading) -> Iterator[str]:
    for one in reading.spans:
        if one.output is not None and (
            not _WRAPPERS.isdisjoint(one.kinds) or reading.tree.is_root(one)
        ):
            yield from filter(None, map(_normal, leaves(one.output)))
            if isinstance(one.output, str):
                yield _normal(one.output)


def _outputs(call: CallReading) -> set[str]:
    return {normal for text in call.call.outputs if (normal := _normal(text))}


def _normal(text: str) -> str:
    return " ".join(words(text))


def _feeding(answer: CallReading, calls: tuple[CallReading, ...]) -> frozenset[CallReading]:
    """Give the answering call and all whose output stands, over any steps, in its prompt."""
    feeding = {answer}
    waiting = [answer]
    while waiting:
        fed = waiting.pop()
        began = fed.call.span.start_time_unix_nano
        earlier = [
            one
            for one in calls
            if one not in feeding
            and comes_after(fed.call.span, began, one.call.span, one.call.span.end_time_unix_nano)
        ]
        found = _standing(earlier, fed)
        feeding |= found
        waiting += found
    return frozenset(feeding)


def _standing(calls: list[CallReading], fed: CallReading) -> set[CallReading]:
    """Give those calls whose output stands in the prompt of another call.

    Each output is judged as if alone: only those that stand there whole could take evidence from
    another, so the rest is matched again without them.
    """
    pieces = [(call, piece) for call in calls for piece in _pieces(call.call)]
    if not pieces or not fed.call.messages:
        return set()
    prompt = _whole_prompt(fed.call)
    found: set[CallReading] = set()
    whole = True
    while pieces and whole:
        matches = match_context([piece for _, piece in pieces], prompt)
        pairs = list(zip(pieces, matches, strict=True))
        found |= {
            call
            for (call, _), match in pairs
            if match.status == "included" or (match.containment or 0) >= _ENOUGH
        }
        whole = any(match.status == "included" for match in matches)
        pieces = [pair for pair in pieces if pair[0] not in found]
    return found


def _pieces(call: ModelCall) -> tuple[str, ...]:
    return (*call.outputs, *call.tool_calls)


def _whole_prompt(call: ModelCall) -> list[dict[str, Any]]:
    """Give a prompt as one text: what the model said in earlier turns is not left out."""
    return [
        {
            "role": "user" if message.role == "assistant" else message.role,
            "content": [message.content, *message.tool_calls],
        }
        for message in call.messages
    ]
