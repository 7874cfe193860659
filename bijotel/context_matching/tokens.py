"""Text -> comparable tokens.

Presentation is undone first (``normalize``); two tokens are the same when their words are equal.
What a token is beyond ASCII stands in ``patterns``; here it is said again for ASCII, in a form
that leaves the work to single calls of the string type.

Source: ``cases/README.md``, "Words".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate, compress, count
from operator import add, sub

from bijotel.context_matching.normalize import INVISIBLE, Plain, plain, traced
from bijotel.context_matching.patterns import token_pattern

_BLANK = re.compile(rf"[\s{INVISIBLE}]*\Z")

# A table turns every separator into a space and every capital into a small letter. The few
# signs that belong to numbers are first exchanged for control characters that it turns back.
_SIGN = re.compile(r"[.,-](?=[0-9])")
_KEPT = {".": "\x1d", ",": "\x1e", "-": "\x1f"}
_RESERVED = re.compile("[\x1d-\x1f]")
_SEPARATE = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
_SEPARATE_BUT_KEPT = _SEPARATE | {ord(kept): sign for sign, kept in _KEPT.items()}


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one text, in order: three parallel lists."""

    words: list[str]
    """What is compared: presentation undone, case folded."""
    starts: list[int]
    """Where each token begins in the text as it was given, in characters."""
    ends: list[int]
    """Where each token ends there, exclusive."""


def tokenize(text: str) -> Tokens:
    """Cut a text into comparable tokens and say where they stand.

    Args:
        text: Any text; lone surrogates and control characters only separate tokens.

    Returns:
        Tokens with offsets into ``text``. A token that came out of an entity or a compatibility
        character spans all of it, so neighbours may share an offset.
    """
    return tokenize_plain(Plain(text))


def tokenize_plain(source: Plain) -> Tokens:
    """Cut a text into tokens with offsets into the text that ``source`` was made from."""
    if not source.passes and (separated := _separated(source.text)) is not None:
        return _between_spaces(separated)
    return tokenize_bare(traced(source))


def tokenize_bare(bare: Plain) -> Tokens:
    """Cut a text into tokens whose presentation is undone already."""
    pattern = token_pattern(bare.text)
    found = _alternating if pattern.groups == 1 else _lettered
    tokens = found(pattern, bare.text)
    return Tokens(tokens.words, bare.starts(tokens.starts), bare.ends(tokens.ends))


def words(text: str) -> list[str]:
    """Cut a text into comparable tokens; the same as ``tokenize(text).words``, but faster."""
    separated = _separated(text)
    if separated is not None:
        return separated.split()
    bare = plain(text)
    pattern = token_pattern(bare)
    if pattern.groups == 1:
        return pattern.findall(bare)
    found: list[str] = []
    for letters, word in pattern.findall(bare):
        found += letters or (word,)
    return found


def is_blank(text: str) -> bool:
    """Tell whether a text is nothing but white space and invisible characters."""
    return _BLANK.match(text) is not None


def _separated(text: str) -> str | None:
    """Blank out everything between tokens, character by character; None when that is too simple."""
    if not text.isascii() or "&" in text:
        return None
    # Ten looks for a digit cost less than one walk over a text that has none.
    if not (any(map(text.__contains__, "0123456789")) and _SIGN.search(text)):
        return text.translate(_SEPARATE)
    if _RESERVED.search(text):
        return None
    return _SIGN.sub(_sign, text).translate(_SEPARATE_BUT_KEPT)


def _sign(match: re.Match[str]) -> str:
    sign, at = match[0], match.start()
    before = match.string[at - 1 : at]
    belongs = not before.isalnum() if sign == "-" else before.isdigit()
    return _KEPT[sign] if belongs else " "


def _between_spaces(separated: str) -> Tokens:
    """Find what stands between single spaces; between two of them is a token or nothing."""
    pieces = separated.split(" ")
    sizes = list(map(len, pieces))
    # Before the end of each piece lie all pieces so far and one space fewer.
    ends = list(compress(map(add, accumulate(sizes), count()), sizes))
    return Tokens(list(filter(None, pieces)), list(map(sub, ends, filter(None, sizes))), ends)


def _alternating(pattern: re.Pattern[str], text: str) -> Tokens:
    """Find tokens where what lies before, between and after them takes turns with them."""
    parts = pattern.split(text)
    edges = list(accumulate(map(len, parts)))
    return Tokens(parts[1::2], edges[0:-1:2], edges[1::2])


def _lettered(pattern: re.Pattern[str], text: str) -> Tokens:
    """Find tokens where rows of letters are tokens one by one."""
    tokens = Tokens([], [], [])
    for match in pattern.finditer(text):
        start, end = match.span()
        if match.lastindex == 1:
            tokens.words.extend(match[0])
            tokens.starts.extend(range(start, end))
            tokens.ends.extend(range(start + 1, end + 1))
        else:
            tokens.words.append(match[0])
            tokens.starts.append(start)
            tokens.ends.append(end)
    return tokens
