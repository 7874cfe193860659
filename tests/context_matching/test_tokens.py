"""What a token is, and where it stands."""

from __future__ import annotations

import unicodedata

import pytest

from bijotel.context_matching import tokenize
from bijotel.context_matching.normalize import Plain, has_escapes, unescaped
from bijotel.context_matching.normalize import _joins as joins
from bijotel.context_matching.tokens import is_blank


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The load is 3.5 t, not 3. Or 1,200?", "the load is 3.5 t not 3 or 1,200"),
        ("below -18, x-5 and --7", "below -18 x 5 and -7"),
        ("v2.5b.7 a.5 1.", "v2.5b 7 a 5 1"),
        ("snake_case `code` **bold**", "snake case code bold"),
        ("costs \u22125 \u20135 5\u20137", "costs -5 -5 5 7"),
        ("AT&amp;T R&amp;D; &lt;b&gt; caf&eacute; &amp;#39; &amp;amp;lt;", "at t r d b café"),
        ("com\u00admit\u200btee \ufeffte\u202exts", "committee texts"),
        ("\ufb01ne \uff21\uff22 \u00bd x\u00b2 Stra\u00dfe", "fine ab 1 2 x2 strasse"),
        ("the\u0301 TH\u00c9", "thé thé"),
        ("it\u2019s it\u00b4s it\u02bcs", "it s it s it s"),
        ("会議-5、5月", "会 議 5 5 月"),
        ("วันนี้ ๕๐", "วั น นี้ ๕๐"),
        ("한국어 हिन्दी", "한국어 हिन्दी"),
        ("a\x00b\x1d3.5\x1e", "a b 3.5"),
        ("\ud83d b \udc00", "b"),
        ("☀️ 1️⃣", "1⃣"),
    ],
)
def test_words(text: str, words: str):
    """Presentation is undone, numbers keep their signs, letters of some scripts stand alone."""
    assert " ".join(tokenize(text).words) == words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Caf&eacute; &amp;lt; 3.5", ["Caf&eacute;", "3.5"]),
        ("com\u00admittee, the\u0301!", ["com\u00admittee", "the\u0301"]),
        ("\ufb01ne \u00bd", ["\ufb01ne", "\u00bd", "\u00bd"]),
        ("STRA\u00dfE -5", ["STRA\u00dfE", "-5"]),
        (" \u0e33\u0e19", ["\u0e33", "\u0e19"]),
    ],
)
def test_offsets(text: str, shown: list[str]):
    """Offsets point at the characters that a token was made of, however it is written."""
    tokens = tokenize(text)
    spans = zip(tokens.starts, tokens.ends, strict=True)
    assert [text[start:end] for start, end in spans] == shown


def test_escapes_are_undone_with_the_way_back():
    r"""``\n``, quotes and code units are characters again; offsets stay those of the source."""
    text = r"one\ntwo caf\u00e9 \ud83d\ude00 C:\\new"
    assert has_escapes(text)
    assert not has_escapes(r"C:\dir \"quoted\"")
    source = unescaped(Plain(text))
    assert source.text == "one\ntwo café 😀 C:\\new"
    assert source.starts([source.text.index("two")]) == [text.index("two")]
    assert source.ends([source.text.index("é") + 1]) == [text.index(r"\u00e9") + 6]


def test_every_character_that_composes_is_known():
    """Stretches that NFKC works on are cut where nothing joins, in every script."""
    for code in range(0x110000):
        char = chr(code)
        parts = unicodedata.decomposition(char).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (chr(int(part, 16)) for part in parts)
            if unicodedata.normalize("NFC", first + second) == char:
                assert joins(second), f"U+{ord(second):04X} in U+{code:04X}"


@pytest.mark.parametrize("text", ["", " \n\t\u00a0\u3000", "\u200b\ufeff \u00ad"])
def test_blank(text: str):
    """White space and invisible characters are no content; a sign is."""
    assert is_blank(text)
    assert not is_blank(f"{text}.")
