"""What a dialect reads out of a span: frozen values, no behaviour beyond small views."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from bijotel.model import SpanRecord
from bijotel.traces.model import LogRecord

Kind: TypeAlias = Literal[
    "model",
    "retriever",
    "reranker",
    "embedding",
    "tool",
    "agent",
    "workflow",
    "evaluator",
    "guardrail",
    "other",
]
"""What a span's own kind attribute says it is."""

Stage: TypeAlias = Literal["retriever", "reranker", "tool", "memory", "echo", "provenance"]
"""Where passages were seen: in a search, in a reranker's output, in a tool's or a memory's
result, in the input of a step that repeats them (an echo, which counts only where nothing else
holds passages), or in a stamp that bijotel left on a call."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved text, as one span lists it."""

    id: str = ""
    """The application's own id, empty when none is recorded."""
    text: str | None = None
    """None when the span does not hold it."""
    score: float | None = None
    score_kind: Literal["score", "distance", ""] = ""
    """A distance is better when smaller; empty without a score. Never comparable over dialects."""
    rank: int = 1
    """Place in its list, from 1."""
    reason: str = ""
    """Why there is no text, or why it may not be whole."""
    status: str = ""
    """What a stamp says about it: ``included``, ``partial``, ``absent`` or ``unknown``."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One search, or one stage after it."""

    span: SpanRecord
    stage: Stage = "retriever"
    query: str | None = None
    passages: tuple[Passage, ...] = ()
    """In the recorded order; of a reranker: what it gave out."""
    inputs: tuple[Passage, ...] = ()
    """Of a reranker: what it was given."""
    incomplete: str = ""
    """Why passages may be missing from the list, empty when none are."""
    ended_unix_nano: int | float | None = None
    """From when on a model call may hold the passages; None when that is not known."""
    sealed: bool = False
    """Of a stamp with statuses: bijotel matched the texts with the recorded prompt when it sealed
    the call; else the application stated them."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt or an answer."""

    role: str
    """``system``, ``user``, ``assistant``, ``tool`` or any other word; may be empty."""
    content: Any = None
    """Text, or parts in the form of an SDK, as :mod:`bijotel.context_matching` reads them."""
    tool_calls: tuple[str, ...] = ()
    """The arguments of each tool call that the message makes, as JSON."""


@dataclass(frozen=True, slots=True)
class Capture:
    """How much of a prompt the trace holds."""

    state: Literal["whole", "incomplete", "none"] = "whole"
    """With ``incomplete``, what stands there can be decided, and nothing is absent."""
    reason: str = ""
    """Why it is not whole."""


class Usage(NamedTuple):
    """Tokens of one call; None where the span does not say.

    Cached tokens are part of the input, reasoning tokens part of the output.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


NO_TOKENS: Final = Usage()


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One inference by a model."""

    span: SpanRecord
    messages: tuple[Message, ...] = ()
    """The prompt, in order; empty when it is not recorded."""
    outputs: tuple[str, ...] = ()
    """The texts of the answer, one a choice, without tool calls."""
    tool_calls: tuple[str, ...] = ()
    """The arguments of each tool call that the answer makes, as JSON."""
    model: str = ""
    """The one that answered, else the one that was asked for."""
    provider: str = ""
    usage: Usage = NO_TOKENS
    capture: Capture = Capture()

    @property
    def prompt(self) -> str | list[dict[str, Any]]:
        """The prompt in the form in which it is decoded: plain text where it is no more."""
        first = self.messages[0] if self.messages else Message("")
        plain = len(self.messages) == 1 and first.role in {"", "user"}
        if plain and isinstance(first.content, str):
            return first.content
        return [{"role": message.role, "content": message.content} for message in self.messages]


@dataclass(frozen=True, slots=True)
class Reading:
    """What one dialect makes of one span."""

    kind: Kind
    retrieval: Retrieval | None = None
    call: ModelCall | None = None
    output: Any = None
    """The recorded output of a span that is no call, in any form."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One instrumentation's vocabulary."""

    name: str
    marks: tuple[str, ...]
    """Names of attributes; every span of the dialect has one of them, or one of ``events``."""
    read: Callable[[SpanRecord, tuple[LogRecord, ...]], Reading | None]
    """Reads one span that has a mark, with its own log records; None when it is of no use."""
    events: tuple[str, ...] = ()
    """Names of span events that mark a span of the dialect."""
    states_kind: bool = False
    """Its mark says what a span is, whatever ``gen_ai.operation.name`` beside it says."""
    alone: bool = False
    """Its spans carry names of other dialects in another sense, so that no other is asked."""
