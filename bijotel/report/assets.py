"""Style and scripts of the pages, and the policy that lets a page run these and nothing else.

Both pages that bijotel gives out, the report and ``tools/verify.html``, are one file each: no
network, no second file, nothing that stands in evidence can become code.

Source: W3C Content Security Policy Level 3, sections 2.3.1 and 6.7 (hashes).
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Final

VERIFIER: Final = tuple(
    f"verifier/{name}.js"
    for name in (
        "octets",
        "note",
        "tree",
        "entry",
        "lines",
        "proof",
        "export",
        "evidence",
        "visible",
        "form",
    )
)
"""The scripts of the verifier in the order in which they build on each other."""
VERIFIER_FORM: Final = "verifier/form.html"
THEME: Final = "theme.css"


def read_assets(*names: str) -> str:
    """Read assets of this room as one text."""
    folder = files("bijotel.report")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def content_policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Write the Content-Security-Policy of a page with these inline scripts and styles alone.

    Trusted types are refused altogether, so that not even the page's own script can make markup
    out of text.
    """
    sources = {
        "default-src": "'none'",
        "script-src": _hashes(scripts),
        "style-src": _hashes(styles),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{directive} {source}" for directive, source in sources.items())


def _hashes(texts: Sequence[str]) -> str:
    digests = (sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
