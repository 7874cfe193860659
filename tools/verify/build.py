"""Build ``tools/verify.html``: ``python tools/verify/build.py``.

One page that verifies evidence offline. Its scripts and its form stand in ``bijotel/report``,
because the HTML report carries them too; here is only what is around them.
"""

from __future__ import annotations

from pathlib import Path

from bijotel.report.assets import THEME, VERIFIER, VERIFIER_FORM, content_policy, read_assets

TEMPLATE = Path(__file__).with_name("template.html")
PAGE = Path(__file__).parent.parent / "verify.html"


def build() -> str:
    """Put the page together."""
    script, style = (f"\n{read_assets(*names)}" for names in (VERIFIER, (THEME,)))
    parts = {
        "@POLICY@": content_policy([script], [style]),
        "@STYLE@": style,
        "@FORM@": read_assets(VERIFIER_FORM),
        "@SCRIPT@": script,
    }
    page = TEMPLATE.read_text(encoding="utf-8")
    for mark, part in parts.items():
        page = page.replace(mark, part)
    return page


if __name__ == "__main__":
    PAGE.write_text(build(), encoding="utf-8")
