"""All hits of a trace -> its distinct passages.

Two hits are one passage when their texts have the same tokens or, where a text is missing, when
their ids are equal. What a reranker gives out is the passage that it was given, also when it
shortened the text.
A stamp names a chunk (``document_id#chunk_index``) and a search often the document alone: where
the stamps of a trace name one chunk of a document that a search lists whole, it is that one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from bijotel.context_matching.tokens import words
from bijotel.dialects.model import Passage, Retrieval
from bijotel.dialects.trace import TraceReading


@dataclass(slots=True)
class Row:
    """One distinct passage while its hits are gathered."""

    id: str = ""
    text: str | None = None
    score: float | None = None
    score_kind: str = ""
    reason: str = ""
    """Why there is no text, or why it may not be whole."""
    words: Sequence[str] = ()
    """The tokens of the text."""
    sources: list[tuple[Retrieval, int]] = field(default_factory=list)
    """What found it, and at which rank; in the order of retrieval."""
    stamps: list[tuple[Retrieval, str]] = field(default_factory=list)
    """What bijotel's own attributes say about it, and where."""

    def add(self, hit: Passage, found: Retrieval) -> None:
        """Take in what one more hit knows about the passage."""
        self.id = self.id or hit.id
        if self.text is None:
            self.text, self.reason = hit.text, hit.reason
        if self.score is None:
            self.score, self.score_kind = hit.score, hit.score_kind
        self.sources.append((found, hit.rank))
        if hit.status:
            self.stamps.append((found, hit.status))


def _under_listed_ids(retrievals: Sequence[Retrieval]) -> list[tuple[Passage, ...]]:
    """Give each retrieval's hits; a stamp under the id that a search of the trace uses for it."""
    listed: set[str] = set()
    chunks: dict[str, set[str]] = {}
    for found in retrievals:
        for hit in found.passages:
            if found.stage == "provenance":
                chunks.setdefault(_document(hit.id), set()).add(hit.id)
            else:
                listed.add(hit.id)
    documents = {
        chunk: document
        for document, (chunk, *others) in chunks.items()
        if document and document in listed and chunk not in listed and not others
    }
    return [
        tuple(replace(hit, id=documents.get(hit.id, hit.id)) for hit in found.passages)
        if found.stage == "provenance"
        else found.passages
        for found in retrievals
    ]


def _document(chunk: str) -> str:
    return chunk.rpartition("#")[0]


class Rows:
    """The distinct passages of a trace, and which hit is which of them."""

    def __init__(self, reading: TraceReading, text_of: Callable[[str], str | None]) -> None:
        """Gather the passages of a trace.

        Args:
            reading: The trace.
            text_of: Gives the text of an id where the trace does not hold it, or None.
        """
        self.rows: list[Row] = []
        self._text_of = text_of
        self._by_words: dict[tuple[str, ...], int] = {}
        self._by_id: dict[str, int] = {}
        self._words: dict[str, tuple[str, ...]] = {}
        lists = [
            tuple(map(self._completed, hits)) for hits in _under_listed_ids(reading.retrievals)
        ]
        # A hit without text may come before the one that holds the text of its id.
        self._texts: dict[str, str] = {}
        given = (map(self._completed, found.inputs) for found in reading.rerankers)
        for hit in chain(chain.from_iterable(lists), chain.from_iterable(given)):
            if hit.id and hit.text is not None:
                self._texts.setdefault(hit.id, hit.text)
        self.retrievals = [
            tuple(self._row(hit, found) for hit in hits)
            for hits, found in zip(lists, reading.retrievals, strict=True)
        ]
        self.rerankers = [self._reranked(found) for found in reading.rerankers]

    def _completed(self, hit: Passage) -> Passage:
        """Give a hit the text that is known under its id, where its own is missing or cut."""
        text = self._text_of(hit.id) if hit.id and (hit.text is None or hit.reason) else None
        return hit if text is None else replace(hit, text=text, reason="")

    def _row(self, hit: Passage, found: Retrieval) -> int:
        """Give the number of the passage that a hit is."""
        text = self._texts.get(hit.id) if hit.text is None else hit.text
        if text is None:
            number = self._by_id.get(hit.id) if hit.id else None
        else:
            number = self._by_words.get(self._read(text))
        if number is None:
            number = len(self.rows)
            self.rows.append(Row(words=() if text is None else self._read(text)))
        if text is not None:
            self._by_words.setdefault(self._read(text), number)
        if hit.id:
            self._by_id.setdefault(hit.id, number)
        if hit.text is None and text is not None:
            hit = replace(hit, text=text, reason="")
        self.rows[number].add(hit, found)
        return number

    def _read(self, text: str) -> tuple[str, ...]:
        """Give the tokens of a text; of one without any, the text as if it were one."""
        found = self._words.get(text)
        if found is None:
            found = self._words[text] = tuple(words(text)) or (text,)
        return found

    def _reranked(self, found: Retrieval) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Give the passages of a reranker's output and of its input."""
        inputs = tuple(self._seen(hit, found) for hit in map(self._completed, found.inputs))
        outputs = tuple(self._seen(hit, found) for hit in map(self._completed, found.passages))
        return outputs, inputs

    def _seen(self, hit: Passage, found: Retrieval) -> int:
        """Give the number of the passage that a reranker was given or gave out."""
        if hit.text is not None and self._read(hit.text) in self._by_words:
            return self._by_words[self._read(hit.text)]
        if hit.id in self._by_id:
            return self._by_id[hit.id]
        if hit.text is not None:
            shortened = f" {' '.join(self._read(hit.text))} "
            for longer, number in self._by_words.items():
                if shortened in f" {' '.join(longer)} ":
                    return number
        return self._row(hit, found)
