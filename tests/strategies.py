"""Passages and prompts whose truth is known because they were made that way.

``context_example(random)`` writes passages out of words that occur nowhere else, decides what
becomes of each (whole, cut, torn, turned round, changed, left out, ...), writes the prompt that
results and wraps it as instrumentations do. It never looks at what a matcher would say.
"""

from __future__ import annotations

import html
import json
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

OPENINGS = (
    "Use the notes below and nothing else.\n\n",
    "You help members of a rowing club. Notes follow.\n----\n",
    "<context>\n",
    "",
)
SIZES = (3, 5, 9, 14, 16, 20, 30, 40)
GAPS = ("\n\n", "\n----\n", "\n</doc>\n<doc>\n", "\n* ", "\nSource (file, page): ", " … ")
CLOSINGS = ("\n\nAnswer in two short sentences.", "\n</context>\nReply:", "")
FOREIGN = ("[left out by the packer]", "Foot of this sheet", "(more)", "| see there |")


@dataclass(frozen=True)
class Truth:
    """What is known about one passage."""

    status: str
    containment: float | None
    level: str | None = None
    reason: str | None = None
    duplicate_of: int | None = None
    covered_by: int | None = None


@dataclass
class Example:
    """Passages, a prompt and the truth, one for each passage."""

    passages: list[str] = field(default_factory=list)
    truths: list[Truth] = field(default_factory=list)
    prompt: object = ""
    query: str | None = None
    truncated: bool = False


@dataclass(frozen=True)
class Piece:
    """A passage as tokens and what stands between them."""

    tokens: tuple[str, ...]
    gaps: tuple[str, ...]

    def text(self, start: int = 0, end: int | None = None) -> str:
        end = len(self.tokens) if end is None else end
        parts = [self.tokens[start]] if end > start else []
        for at in range(start + 1, end):
            parts += (self.gaps[at - 1], self.tokens[at])
        return "".join(parts)


class Writer:
    """Writes passages in one of several scripts; no word is used twice in an example."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._used: set[str] = set()

    def piece(self, size: int) -> Piece:
        script = self._random.choice(SCRIPTS)
        tokens = tuple(self._fresh(script) for _ in range(size))
        gaps = tuple(self._random.choice(script.gaps) for _ in range(size - 1))
        return Piece(tokens, gaps)

    def _fresh(self, script: Script) -> str:
        while True:
            word = script.word(self._random)
            # What is the same once presentation is undone is the same word.
            key = unicodedata.normalize("NFKC", word).casefold()
            if key not in self._used:
                self._used.add(key)
                return word


@dataclass(frozen=True)
class Script:
    word: Callable[[Random], str]
    gaps: tuple[str, ...]


def _spelled(letters: str, shortest: int, longest: int) -> Callable[[Random], str]:
    def word(random: Random) -> str:
        return "".join(random.choices(letters, k=random.randint(shortest, longest)))

    return word


def _number(random: Random) -> str:
    whole = random.randint(2, 99_999)
    shape = random.choice(("{}", "{}.5", "-{}", "{},204", "{}.25"))
    return shape.format(whole)


def _latin(random: Random) -> str:
    if random.random() < 0.1:
        return _number(random)
    letters = "zqxwvkjzqabcdefgilmnoprstu"
    word = _spelled(letters, 5, 10)(random)
    return word.capitalize() if random.random() < 0.1 else word


def _accented(random: Random) -> str:
    return _spelled("abcdeéèüñçößåk", 5, 9)(random)


def _letters(first: int, last: int) -> str:
    chars = map(chr, range(first, last + 1))
    return "".join(char for char in chars if char.isalnum())


WESTERN = (" ",) * 12 + (", ", ". ", "; ", ": ", "\n", " – ", " (", ") ", " “", "” ", "… ", " & ")
EASTERN = ("",) * 12 + ("，", "。", "、", "\n")
SCRIPTS = (
    Script(_latin, WESTERN),
    Script(_latin, WESTERN),
    Script(_accented, WESTERN),
    Script(_spelled(_letters(0x430, 0x44F), 5, 9), WESTERN),
    Script(_spelled(_letters(0x5D0, 0x5EA), 5, 8), WESTERN),
    Script(_spelled(_letters(0xAC00, 0xD7A3), 2, 3), WESTERN),
    Script(_spelled("कखगघचछजझटठडढतथदधनपफबभमयरलवशषसह", 4, 7), WESTERN),
    Script(_spelled(_letters(0x4E00, 0x9F00), 1, 1), EASTERN),
)


def _same(text: str, _: Random) -> str:
    return text


def _one_space(text: str, _: Random) -> str:
    return " ".join(text.split())


def _wrapped(text: str, random: Random) -> str:
    return "".join(random.choice(("\n", "\r\n", "\t", "  ")) if c == " " else c for c in text)


def _quoted(text: str, _: Random) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n"))


def _ascii_signs(text: str, _: Random) -> str:
    signs = {"–": "-", "“": '"', "”": '"', "…": "..."}
    return "".join(signs.get(char, char) for char in text)


def _emphasised(text: str, random: Random) -> str:
    mark = random.choice(("*", "**", "_", "`"))
    return " ".join(
        f"{mark}{word}{mark}" if random.random() < 0.2 else word for word in text.split(" ")
    )


def _soft(text: str, random: Random) -> str:
    hidden = ("\u00ad", "\u200b", "\ufeff", "\u200e")
    return "".join(c + (random.choice(hidden) if random.random() < 0.05 else "") for c in text)


PRESENTATIONS = (
    _same, _same, _same, _one_space, _wrapped, _quoted, _ascii_signs, _emphasised, _soft,
    lambda text, _: text.upper(),
    lambda text, _: html.escape(text),
    lambda text, _: html.escape(html.escape(text)),
    lambda text, _: unicodedata.normalize("NFD", text),
    lambda text, _: unicodedata.normalize("NFC", text),
    lambda text, _: text.replace("{", "{{").replace("}", "}}"),
    lambda text, _: "".join(f"&#{ord(char)};" if ord(char) > 127 else char for char in text),
)  # fmt: skip


def _running_escapes(text: str, random: Random) -> str:
    """Escape as JSON, the way a dumped value looks inside another text."""
    return json.dumps(text, ensure_ascii=random.random() < 0.5)[1:-1]


def context_example(random: Random) -> Example:
    """Make one example."""
    example = Example()
    writer = Writer(random)
    pieces = [writer.piece(random.choice(SIZES)) for _ in range(random.randint(1, 4))]
    shown = [_add_passage(example, piece, random) for piece in pieces]
    order = [index for index, text in enumerate(shown) if text]
    random.shuffle(order)
    gap = random.choice(GAPS)
    text = random.choice(OPENINGS) + gap.join(shown[index] for index in order)
    if random.random() < 0.2:
        lost = order[len(order) and random.randrange(len(order)) :]
        text = text.removesuffix(gap.join(shown[index] for index in lost))
        text += " And what is said here? " + _undecide(example, pieces, lost, random)
        _cut(example, text, random)
    else:
        text += _ask(example, random) + random.choice(CLOSINGS)
        example.prompt = _wrap(text if text.strip() else "Nothing was found.", random)
    _repeat_one(example, random)
    _take_inner_one(example, pieces, shown, random)
    return example


def _add_passage(example: Example, piece: Piece, random: Random) -> str:
    """Add a passage and say what of it goes into the prompt."""
    text = piece.text()
    shown, truth = random.choice(FATES)(piece, random)
    whole = shown == text
    if shown:
        shown = random.choice(PRESENTATIONS)(shown, random)
        if random.random() < 0.1:
            shown = _running_escapes(shown, random)
    if whole:
        truth = replace(truth, level="verbatim" if text in shown else "normalized")
    example.passages.append(text)
    example.truths.append(truth)
    return shown


def _least(size: int) -> int:
    return min(8, (size + 1) // 2)


def _share(kept: int, size: int) -> Truth:
    if kept < _least(size):
        return Truth("absent", 0.0)
    return Truth("partial", kept / size)


def _whole(piece: Piece, _: Random) -> tuple[str, Truth]:
    return piece.text(), Truth("included", 1.0)


def _left_out(_: Piece, __: Random) -> tuple[str, Truth]:
    return "", Truth("absent", 0.0)


def _head(piece: Piece, random: Random) -> tuple[str, Truth]:
    size = len(piece.tokens)
    kept = random.randint(1, size - 1)
    return piece.text(0, kept), _share(kept, size)


def _tail(piece: Piece, random: Random) -> tuple[str, Truth]:
    size = len(piece.tokens)
    kept = random.randint(1, size - 1)
    return piece.text(size - kept), _share(kept, size)


def _split(piece: Piece, random: Random) -> tuple[int, int, str]:
    at = random.randint(1, len(piece.tokens) - 1)
    return at, len(piece.tokens) - at, f" {random.choice(FOREIGN)} "


def _torn(piece: Piece, random: Random) -> tuple[str, Truth]:
    """Foreign text stands in the middle."""
    size = len(piece.tokens)
    first, second, foreign = _split(piece, random)
    kept = sum(part for part in (first, second) if part >= _least(size))
    return piece.text(0, first) + foreign + piece.text(first), _share(kept, size)


def _turned(piece: Piece, random: Random) -> tuple[str, Truth]:
    """Both parts are there in the wrong order, so only one counts."""
    size = len(piece.tokens)
    first, second, foreign = _split(piece, random)
    return piece.text(first) + foreign + piece.text(0, first), _share(max(first, second), size)


def _changed(piece: Piece, random: Random) -> tuple[str, Truth]:
    """One word is another one."""
    size = len(piece.tokens)
    at = random.randrange(size)
    tokens = (*piece.tokens[:at], "otherwise", *piece.tokens[at + 1 :])
    kept = sum(part for part in (at, size - at - 1) if part >= _least(size))
    return Piece(tokens, piece.gaps).text(), _share(kept, size)


FATES = (_whole, _whole, _whole, _left_out, _head, _tail, _torn, _turned, _changed)


def _repeat_one(example: Example, random: Random) -> None:
    """Retrieve a passage twice."""
    if random.random() < 0.2:
        index = random.randrange(len(example.passages))
        example.passages.append(example.passages[index])
        example.truths.append(replace(example.truths[index], duplicate_of=index))


def _take_inner_one(
    example: Example, pieces: list[Piece], shown: list[str], random: Random
) -> None:
    """Retrieve also a passage that lies inside a longer one that is there."""
    index = random.randrange(len(pieces))
    size = len(pieces[index].tokens)
    # An escape right before an inner word would hide where that begins.
    if example.truths[index].status != "included" or size < 9 or "\\" in shown[index]:
        return
    start = random.randrange(size - 3)
    inner = pieces[index].text(start, random.randint(start + 3, size - 1))
    example.passages.append(inner)
    level = "verbatim" if inner in shown[index] else "normalized"
    example.truths.append(Truth("included", 1.0, level, covered_by=index))


def _ask(example: Example, random: Random) -> str:
    """Let the user's question be a passage that was left out."""
    for passage, truth in zip(example.passages, example.truths, strict=True):
        if truth.status == "absent" and random.random() < 0.2:
            example.query = f"Is it true: {passage}"
            return f"\n\nQuestion: {example.query}"
    return ""


def _messages(text: str, random: Random) -> list[dict[str, object]]:
    """Say the same in messages, with the model's own words and a picture among them."""
    content: object = random.choice(
        (
            text,
            [
                {"type": "text", "text": text},
                {"type": "image_url", "image_url": {"url": "data:,x"}},
            ],
            [{"type": "input_text", "text": text}],
        )
    )
    speaker: dict[str, object] = random.choice(
        (
            {"role": "user", "content": content},
            {"role": "user", "parts": [{"type": "text", "content": text}]},
            {"role": "user", "parts": [{"text": text}]},
            {"type": "human", "content": content},
            {"role": "tool", "content": text},
            {"role": "user", "content": [{"type": "tool_result", "content": text}]},
        )
    )
    return [
        {"role": "system", "content": "Be brief and kind."},
        {"role": "assistant", "content": text + text},
        speaker,
    ]


def _wrap(text: str, random: Random) -> object:
    messages = _messages(text, random)
    dumped = json.dumps(messages, ensure_ascii=random.random() < 0.5)
    return random.choice(
        (
            text,
            messages,
            dumped,
            json.dumps(dumped),
            repr(messages),
            json.dumps([text], ensure_ascii=random.random() < 0.5),
            json.dumps([{"role": "user", "content": json.dumps(messages)}]),
        )
    )


def _undecide(example: Example, pieces: list[Piece], lost: list[int], random: Random) -> str:
    """Set right what a cut leaves undecided; sometimes let it go through the first lost passage."""
    for index, truth in enumerate(example.truths):
        if index in lost or truth.status != "included":
            example.truths[index] = Truth("unknown", None, reason="prompt-truncated")
    if not lost or random.random() < 0.5:
        return ""
    piece = pieces[lost[0]]
    size = len(piece.tokens)
    kept = random.randint(1, size - 1)
    if kept >= _least(size):
        example.truths[lost[0]] = Truth("partial", kept / size)
    # The next token is a fragment; of a single letter nothing is left.
    return f"{piece.text(0, kept)} {piece.tokens[kept][:-1]}"


def _cut(example: Example, text: str, random: Random) -> None:
    """Let the recorded prompt end here."""
    example.truncated = True
    raw = json.dumps([{"role": "user", "content": text}], ensure_ascii=random.random() < 0.5)
    raw = raw.removesuffix('"}]')
    example.prompt = random.choice((text, raw, f"{raw}\\u00", f"{raw}\\"))
