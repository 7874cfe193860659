"""Undo how a text is presented, and remember where its characters came from.

Undone are HTML entities, invisible characters, Unicode compatibility forms (NFKC), kinds of dash
and letter case (full case folding). White space, quotes, ellipses, braces and the marks of
Markdown need no undoing: ``tokens`` takes everything but letters, digits and marks for a mere
separator. JSON string escapes are undone on request only, since in most texts a backslash is one.

Source: The Unicode Standard, NFKC (UAX 15), Default_Ignorable_Code_Point, full case folding; the
HTML Standard's named character references.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html.entities import html5

from bijotel.context_matching.literal import join_surrogates

INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Body of a regular-expression class: zero-width characters, soft hyphen, direction marks, BOM,
variation selectors (Default_Ignorable_Code_Point)."""

# Escaping twice turns & into &amp;, so a chain of up to two "amp;" is undone with its entity.
_ENTITY = re.compile(
    r"&(?:(?:amp|#38|#[xX]26);){0,2}(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
)
_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
_JSON_ESCAPE = re.compile(
    r"(?P<pairs>(?:\\\\)+)"
    r"|\\(?:(?P<halves>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u(?P<unit>[0-9a-fA-F]{4})|(?P<one>[\"/bfnrt]))"
)
_TELLING_ESCAPE = re.compile(r"\\[bfnrtu]")
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# Characters of combining class 0 that compose with the one before them (NFC_Quick_Check=Maybe).
_COMPOSING = re.compile(
    "[\u09be\u09d7\u0b3e\u0b56\u0b57\u0bbe\u0bd7\u0cc2\u0cd5\u0cd6\u0d3e\u0d57\u0dcf\u0ddf"
    "\u102e\u1161-\u1175\u11a8-\u11c2\u1b35\U00011127\U0001133e\U00011357\U000114b0\U000114ba"
    "\U000114bd\U000115af\U00011930]"
)
# NFKC takes these apart. They are in nearly every Thai and Lao text, and without them it has a
# much quicker look.
_SOUTHEAST_VOWELS = {"\u0e33": "\u0e4d\u0e32", "\u0eb3": "\u0ecd\u0eb2"}
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
# A letter in Unicode's books, an apostrophe in people's texts.
_LETTER_APOSTROPHE = "\u02bc"


@dataclass(frozen=True, slots=True)
class Edits:
    """The pieces that one pass replaced by pieces of another length, in order."""

    new_starts: tuple[int, ...]
    new_ends: tuple[int, ...]
    old_starts: tuple[int, ...]
    old_ends: tuple[int, ...]

    def starts(self, places: list[int]) -> list[int]:
        """Say where the characters at these places (sorted) began before the pass."""
        return self._back(places, 0, self.old_starts)

    def ends(self, places: list[int]) -> list[int]:
        """Say where the characters before these places (sorted) ended before the pass."""
        return self._back(places, 1, self.old_ends)

    def _back(self, places: list[int], before: int, inside: tuple[int, ...]) -> list[int]:
        """Shift all places between two pieces at once; send those in a piece to its edge."""
        old: list[int] = []
        done = shift = 0
        for number, (begin, end) in enumerate(zip(self.new_starts, self.new_ends, strict=True)):
            first = bisect_left(places, begin + before, done)
            old += [place + shift for place in places[done:first]]
            done = bisect_left(places, end + before, first)
            old += [inside[number]] * (done - first)
            shift = self.old_ends[number] - end
        return old + [place + shift for place in places[done:]]


@dataclass(frozen=True, slots=True)
class Plain:
    """A text with its presentation undone, and the passes that led to it."""

    text: str
    passes: tuple[Edits, ...] = ()

    def starts(self, places: list[int]) -> list[int]:
        """Map places of first characters back to the text as it was given."""
        for edits in reversed(self.passes):
            places = edits.starts(places)
        return places

    def ends(self, places: list[int]) -> list[int]:
        """Map ends (exclusive) back to the text as it was given."""
        for edits in reversed(self.passes):
            places = edits.ends(places)
        return places


def plain(text: str) -> str:
    """Undo the presentation of a text; the same as ``traced(Plain(text)).text``, but fast."""
    if "&" in text:
        text = _ENTITY.sub(_character, text)
    if text.isascii():
        return text.lower()
    text = _INVISIBLE.sub("", text)
    for vowel, parts in _SOUTHEAST_VOWELS.items():
        text = text.replace(vowel, parts)
    text = unicodedata.normalize("NFKC", text)
    return _level(text).casefold()


def traced(source: Plain) -> Plain:
    """Undo the presentation of a text and keep the way back."""
    if "&" in source.text:
        source = _replace(source, _ENTITY, _character)
    if source.text.isascii():
        return Plain(source.text.lower(), source.passes)
    source = _replace(source, _INVISIBLE, lambda _: "")
    for pattern in (_changing, _joining):
        if not unicodedata.is_normalized("NFKC", source.text):
            source = _replace(source, pattern(source.text), _composed)
    source = Plain(_level(source.text), source.passes)
    folded = source.text.casefold()
    if len(folded) != len(source.text):
        longer = _class(char for char in set(source.text) if len(char.casefold()) > 1)
        source = _replace(source, re.compile(longer), lambda match: match[0].casefold())
    return Plain(folded, source.passes)


def has_escapes(text: str) -> bool:
    """Tell whether JSON string escapes stand in the text that could change its tokens."""
    return "\\" in text and _TELLING_ESCAPE.search(text) is not None


def unescaped(source: Plain) -> Plain:
    """Undo one level of JSON string escapes that stand in running text."""
    return _replace(source, _JSON_ESCAPE, _escaped_character)


def _replace(
    source: Plain, pattern: re.Pattern[str], change: Callable[[re.Match[str]], str]
) -> Plain:
    pieces: list[str] = []
    spans: list[tuple[int, int, int, int]] = []
    done, shift = 0, 0
    for match in pattern.finditer(source.text):
        start, end = match.span()
        new = change(match)
        pieces += (source.text[done:start], new)
        done = end
        if len(new) != end - start:
            # A first character that stays keeps its own place.
            same = int(new[:1] == source.text[start])
            spans.append((start + shift + same, start + shift + len(new), start + same, end))
            shift += len(new) - (end - start)
    if not pieces:
        return source
    text = "".join((*pieces, source.text[done:]))
    if not spans:
        return Plain(text, source.passes)
    return Plain(text, (*source.passes, Edits(*zip(*spans, strict=True))))


def _character(entity: re.Match[str]) -> str:
    name = entity[1]
    if name.startswith("#"):
        return html.unescape(f"&{name};")
    return html5.get(f"{name};", f"&{name};")


def _escaped_character(escape: re.Match[str]) -> str:
    if escape["pairs"]:
        return escape["pairs"][::2]
    if escape["halves"]:
        return join_surrogates(
            chr(int(escape["halves"][1:5], 16)) + chr(int(escape["halves"][7:], 16))
        )
    if escape["unit"]:
        return chr(int(escape["unit"], 16))
    return _CONTROLS.get(escape["one"], escape["one"])


def _level(text: str) -> str:
    for dash in _DASHES:
        text = text.replace(dash, "-")
    return text.replace(_LETTER_APOSTROPHE, "'")


def _changing(text: str) -> re.Pattern[str]:
    """Make a pattern for this text's characters that NFKC replaces whatever stands beside them."""
    return re.compile(
        _class(char for char in set(text) if unicodedata.normalize("NFKC", char) != char)
    )


def _joining(text: str) -> re.Pattern[str]:
    """Make a pattern for what is left: letters with marks to be composed or put in order."""
    return re.compile(f".?{_class(filter(_joins, set(text)))}+", re.DOTALL)


def _class(chars: Iterable[str]) -> str:
    body = "".join(sorted(chars))
    return f"[{body}]" if body else "(?!)"


def _joins(char: str) -> bool:
    """Tell whether a character may be composed with, or moved before, the one before it."""
    first = unicodedata.normalize("NFKD", char)[0]
    return unicodedata.combining(first) != 0 or _COMPOSING.match(first) is not None


def _composed(match: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", match[0])
