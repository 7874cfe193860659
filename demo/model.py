"""What stands in for a language model: the same prompt always gets the same answer.

It reads the prompt alone. The answer is that sentence of the prompt which shares most words with
its question; who asks, and in which wire format, is the business of :mod:`demo.server`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

UNKNOWN = "The passages do not say."

_QUESTION = "Question:"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[a-z]{4,}|\d+")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and what it cost, in words: this model's tokens."""

    id: str
    """Another one for another prompt."""
    text: str
    input_tokens: int
    output_tokens: int

    @property
    def pieces(self) -> tuple[str, ...]:
        """The text in the pieces in which a stream sends it."""
        return tuple(re.findall(r"\S+\s*", self.text))


def answer(prompt: str) -> Answer:
    """Answer what stands behind the last ``Question:`` of a prompt."""
    passages, _, question = prompt.rpartition(_QUESTION)
    asked = set(_WORD.findall(question.lower()))
    sentences = [part for part in _SENTENCE_END.split(passages) if part.strip()]
    best = max(sentences, key=lambda sentence: _shared(sentence, asked), default="")
    text = best.strip(" -") if _shared(best, asked) else UNKNOWN
    identity = sha256(prompt.encode()).hexdigest()[:12]
    return Answer(identity, text, len(prompt.split()), len(text.split()))


def _shared(sentence: str, asked: set[str]) -> int:
    return len(asked.intersection(_WORD.findall(sentence.lower())))
