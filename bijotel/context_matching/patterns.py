"""The rule for tokens beyond ASCII, as regular expressions over classes of code points.

A run of letters, digits and combining marks; a full stop or comma between two digits and a minus
sign right before one belong to it; a letter of a script written without spaces stands alone, with
its marks.

Source: ``cases/README.md``, "Words"; ``unicodedata`` says what is a letter, digit or mark.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

# Blocks that hold letters of Han, kana, Thai, Lao, Khmer and Burmese; other letters there are none.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00016fe0-\U00016fff"
    "\U0001aff0-\U0001b16f\U00020000-\U000323af]"
)
_NOT_FIRST_PLANE = re.compile("[\U00010000-\U0010ffff]")
# Letters beyond the first plane; the usual emoji are none. Classes with them are slow.
_BEYOND = re.compile("[\U00010000-\U0001cfff\U0001d165-\U0001efff\U00020000-\U000323af]")
_LAST_LETTER = 0x323AF


def token_pattern(text: str) -> re.Pattern[str]:
    """Choose a pattern that finds the tokens of a text whose presentation is undone.

    With one group, that is a token. With two, the first is a row of letters each of which is a
    token, the second any other token.
    """
    last = _LAST_LETTER if _NOT_FIRST_PLANE.search(text) and has_letters_beyond(text) else 0xFFFF
    unspaced = _UNSPACED.search(text) is not None
    # Rows are short where many letters have marks, as in Thai: then they cost more than they save.
    return _pattern(last, unspaced=unspaced, rows=unspaced and _marks().search(text) is None)


def has_letters_beyond(text: str) -> bool:
    """Tell whether a text has letters beyond the first plane."""
    return _BEYOND.search(text) is not None


def stands_alone(text: str) -> int:
    """Count the letters that are tokens of their own."""
    return sum(map(_stands_alone, _UNSPACED.findall(text)))


def _stands_alone(char: str) -> bool:
    """Tell letters from the marks and digits of the same blocks."""
    return char.isalnum() and not char.isdecimal()


@cache
def _marks() -> re.Pattern[str]:
    return re.compile(f"[{_classes(0xFFFF)[0]}]")


@cache
def _pattern(last: int, *, unspaced: bool, rows: bool) -> re.Pattern[str]:
    mark, single, letter = _classes(last)
    run = f"[{letter}][{letter}{mark}]*"
    minus = rf"(?:-(?=\d)(?<![{letter}{mark}{single}]-))?"
    word = rf"{minus}{run}(?:(?<=\d)[.,](?=\d){run})*"
    if rows:
        return re.compile(f"([{single}]+(?![{mark}]))|([{single}][{mark}]+|{word})")
    if unspaced:
        return re.compile(f"([{single}][{mark}]*|{word})")
    return re.compile(f"({word})")


@cache
def _classes(last: int) -> tuple[str, str, str]:
    """Sort code points into marks, letters that stand alone, and other letters and digits."""
    marks: list[str] = []
    alone: list[str] = []
    letters: list[str] = []
    for char in map(chr, range(last + 1)):
        if char.isalnum():
            is_alone = _UNSPACED.match(char) and _stands_alone(char)
            (alone if is_alone else letters).append(char)
        elif unicodedata.category(char).startswith("M"):
            marks.append(char)
    return _ranges(marks), _ranges(alone), _ranges(letters)


def _ranges(chars: list[str]) -> str:
    """Write sorted characters as the body of a regular-expression class."""
    ranges: list[list[str]] = []
    for char in chars:
        if ranges and ord(char) == ord(ranges[-1][1]) + 1:
            ranges[-1][1] = char
        else:
            ranges.append([char, char])
    return "".join(f"{first}-{last}" for first, last in ranges)
