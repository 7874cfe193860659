"""What a report shows -> one HTML file. Needs Jinja2 (extra ``report``).

Everything that comes out of a store is hostile here: it is escaped where it meets markup, JSON
for the script cannot end its own block, and the page's policy runs no other script.

Rules kept: no outside address, no attribute ``style``, no ``|safe`` in the templates.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from typing import BinaryIO, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from bijotel.report.assets import THEME, VERIFIER, VERIFIER_FORM, content_policy, read_assets
from bijotel.report.model import PROOF_STYLES, Page
from bijotel.report.text import counted, moment

_SCRIPTS: Final = (*VERIFIER, "report.js")
_STYLES: Final = (THEME, "report.css")
_BUFFERED: Final = 64
_NOT_ASCII_PRINTABLE: Final = re.compile("[^ -~\n\t]")
# Spelling in Persian and the Indic scripts, and in emoji; they move nothing.
_JOINERS: Final = "\u200c\u200d"
_PASSAGE_STYLES: Final = {
    "included": "good",
    "partial": "doubtful",
    "dropped": "bad",
    "unknown": "plain",
}
_OUTCOME_STYLES: Final = {"error": "bad", "blocked": "bad", "warning": "doubtful"}


def write_page(output: BinaryIO, page: Page, details: Iterable[str]) -> None:
    """Write a report.

    Args:
        output: Takes the file's octets.
        page: All but the details.
        details: For each decision one line of JSON, whose member ``seq`` names it.
    """
    script, style = (f"\n{read_assets(*names)}" for names in (_SCRIPTS, _STYLES))
    stream = (
        _environment()
        .get_template("report.html.j2")
        .stream(
            page=page,
            details=map(data_block, details),
            checkpoint=data_block(json.dumps(page.checkpoint)),
            policy=content_policy([script], [style]),
            # Our own files, as they stand in the package.
            script=Markup(script),  # noqa: S704
            style=Markup(style),  # noqa: S704
            form=Markup(read_assets(VERIFIER_FORM)),  # noqa: S704
        )
    )
    stream.enable_buffering(_BUFFERED)
    stream.dump(output, encoding="utf-8", errors="backslashreplace")


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("bijotel.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (visible, numbered, moment, counted)
    environment.filters |= {each.__name__: each for each in filters}
    environment.globals |= {
        "proof_styles": PROOF_STYLES,
        "passage_styles": _PASSAGE_STYLES,
        "outcome_styles": _OUTCOME_STYLES,
    }
    return environment


def visible(text: str) -> Markup:
    """Escape a text, and show characters that steer or hide by their number, set apart."""
    if text.isprintable():
        return escape(text)
    shown = _NOT_ASCII_PRINTABLE.sub(
        lambda match: _number(match[0], '<span class="character">', "</span>"), str(escape(text))
    )
    return Markup(shown)  # noqa: S704 - escaped


def numbered(text: str) -> str:
    """Show such characters where no markup can stand, as in a title."""
    return _NOT_ASCII_PRINTABLE.sub(lambda match: _number(match[0]), text)


def data_block(text: str) -> Markup:
    """Make JSON stand in a script element: nothing in it can end the element."""
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - no character of markup is left


def _number(character: str, before: str = "", after: str = "") -> str:
    category = unicodedata.category(character)
    if character in _JOINERS or not (category.startswith("C") or category in {"Zl", "Zp"}):
        return character
    return f"{before}U+{ord(character):04X}{after}"
