"""The report in a real browser: opened, searched, filtered, printed, attacked, and large."""

from __future__ import annotations

import json
import time

import pytest

from bijotel.model import Status
from bijotel.proof import verify_proof
from bijotel.report.reading import Outside
from tests.browser.pages import fill_in, open_page, verdict
from tests.cli.conftest import gap
from tests.report.chains import PASSAGES, append, checkpoint, decision, question, write

LOAD_SECONDS = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def report(folder):
    """Eight decisions of every sort, with a checkpoint, and the key that signed it."""
    partly = (*PASSAGES[:2], PASSAGES[2][:58])
    items = [
        *decision(1),
        *decision(2, used=partly),
        *decision(3, status=Status("ERROR", "too slow")),
        *decision(4, **{"bijotel.blocked": True}),
        gap(7),
        *decision(5, passages=(), used=(), asked="Is there anything at all?"),
        *decision(6, answer="Seventy-seven zebras."),
        *decision(7),
        *decision(8),
    ]
    db = append(folder / "chain.db", items)
    note, key = checkpoint(db)
    page = folder / "report.html"
    write(db, page, outside=Outside(note, (key.verifier,)))
    return page, key


@pytest.fixture
def page(browser, report):
    open_page(browser, report[0])
    return browser


def _shown(browser):
    """The entries that are listed and not hidden."""
    return browser.execute_script(
        "return [...document.querySelectorAll('.decision:not([hidden])')].map((row) => Number(row.dataset.seq))"
    )


def _open(browser, seq):
    """Open a decision by a click and give its inside."""
    row = browser.find_element("id", f"entry-{seq}")
    browser.execute_script("arguments[0].scrollIntoView()", row)
    row.find_element("tag name", "summary").click()
    return _wait(browser, lambda: row.find_element("css selector", ".inside"))


def _wait(browser, look):
    from selenium.common.exceptions import NoSuchElementException
    from selenium.webdriver.support.wait import WebDriverWait

    wait = WebDriverWait(browser, 30, 0.05, ignored_exceptions=(NoSuchElementException,))
    return wait.until(lambda _: look())


def _set(browser, name, value):
    """Type or choose, as the page sees it."""
    browser.execute_script(
        """const field = document.getElementById(arguments[0]);
        field.value = arguments[1];
        field.dispatchEvent(new Event('input', { bubbles: true }));""",
        name,
        value,
    )


# --- one decision ----------------------------------------------------------------------------------


def test_a_decision_opens_and_shows_everything(page):
    """Question, sources by word, passages marked in the prompt, answer, facts and proof."""
    inside = _open(page, 4)
    titles = [each.text for each in inside.find_elements("tag name", "h3")]
    assert titles == [
        "Question",
        "Sources",
        "Prompt",
        "Answer",
        "Facts",
        "Trace",
        "Proof",
    ]
    assert question(2) in inside.text
    rows = inside.find_elements("css selector", "table:first-of-type tbody tr")
    words = [row.find_element("css selector", ".badge").text for row in rows[:4]]
    assert words == ["included", "included", "partial", "dropped"]
    marks = [
        (mark.get_attribute("class"), mark.text)
        for mark in inside.find_elements("tag name", "mark")
    ]
    assert marks == [
        ("good", f"1 included{PASSAGES[0]}"),
        ("good", f"2 included{PASSAGES[1]}"),
        ("doubtful", "3 partialSpare parts are delivered for eight years after a kettle"),
    ]
    assert "Three years from the date of purchase." in inside.text
    assert "manual.md#3" in inside.text
    assert "s3://manuals/3" in inside.text


def test_a_decision_is_closed_and_opened_by_the_keyboard(page):
    """A summary takes the focus, and Enter opens it."""
    from selenium.webdriver.common.keys import Keys

    summary = page.find_element("css selector", "#entry-2 summary")
    page.execute_script("arguments[0].focus()", summary)
    assert page.switch_to.active_element == summary
    page.switch_to.active_element.send_keys(Keys.ENTER)
    row = page.find_element("id", "entry-2")
    _wait(page, lambda: row.find_element("css selector", ".inside"))
    page.switch_to.active_element.send_keys(Keys.ENTER)
    _wait(page, lambda: row.get_attribute("open") is None)


def test_an_anchor_opens_its_decision(page, report):
    """What a table of repeats links to is opened, though a filter hides it."""
    _set(page, "search", "zebras")
    _wait(page, lambda: len(_shown(page)) == 1)
    page.execute_script("location.hash = '#entry-2'")
    row = page.find_element("id", "entry-2")
    _wait(page, lambda: row.find_element("css selector", ".inside"))
    assert row.is_displayed()


# --- filter and search -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "seqs"),
    [
        ("search", "ZEBRAS", [13]),
        ("search", "citric acid", [2, 4, 6, 8, 13, 15, 17]),
        ("search", f"{6:032x}", [13]),
        ("search", "s3://manuals/3", [2, 4, 6, 8, 13, 15, 17]),
        ("search", "nothing like this", []),
        ("filter-passages", "partial", [4]),
        ("filter-passages", "none", [11]),
        ("filter-proof", "false", []),
        ("filter-outcome", "error", [6]),
        ("filter-outcome", "blocked", [8]),
    ],
)
def test_filter_and_search(page, field, value, seqs):
    """Over all that is in a decision; the count is said, and clearing shows all again."""
    _set(page, field, value)
    _wait(
        page,
        lambda: page.find_element("id", "shown").text == f"{len(seqs)} of 8 decisions shown.",
    )
    assert _shown(page) == seqs
    _set(page, field, "")
    _wait(page, lambda: page.find_element("id", "shown").text == "8 of 8 decisions shown.")
    assert len(_shown(page)) == 8


def test_open_what_is_shown(page):
    """One button opens all that the filter leaves, for printing."""
    _set(page, "filter-outcome", "error")
    _wait(page, lambda: _shown(page) == [6])
    page.find_element("id", "open-shown").click()
    _wait(page, lambda: page.find_elements("css selector", "#entry-6 .inside"))
    assert len(page.find_elements("css selector", ".inside")) == 1


# --- proofs and the verifier -------------------------------------------------------------------------


def test_a_proof_of_the_report_holds_in_the_report(page, report):
    """One click hands it to the verifier; the key is the reader's."""
    inside = _open(page, 13)
    inside.find_element("css selector", "button").click()
    assert page.find_element("id", "verifier-keys").get_attribute("value") == ""
    page.switch_to.active_element.send_keys(str(report[1].verifier))
    page.find_element("css selector", "#verifier-form button").click()
    shown = verdict(page)
    assert shown.text.startswith("HOLDS proof of one entry: entry 13 of example.com/audit/")
    assert "Seventy-seven zebras." in page.find_element("id", "verifier-result").text


def test_the_proof_can_be_saved(page, report, folder):
    """The file that the link gives verifies with the public key alone."""
    behaviour = {"behavior": "allow", "downloadPath": str(folder)}
    page.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    link = _open(page, 13).find_element("css selector", "a[download]")
    assert link.text == "Save entry-13.tlog-proof"
    link.click()
    saved = folder / "entry-13.tlog-proof"
    _wait(page, saved.exists)
    proven = verify_proof(saved.read_bytes(), [report[1].verifier])
    assert proven.entry.seq == 13


def test_the_verifier_of_a_report_takes_any_evidence(page, folder, known):
    """It is the same as ``tools/verify.html``."""
    path = folder / "e.jsonl"
    path.write_text(known["export_all"])
    assert fill_in(page, path, known["vkey"]).text.startswith("HOLDS export: entries 0 to 8")


# --- looks -------------------------------------------------------------------------------------------


def _emulate(browser, **values):
    features = [{"name": "prefers-color-scheme", "value": values.get("scheme", "light")}]
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": values.get("media", ""), "features": features}
    )


@pytest.fixture
def emulate(browser):
    yield lambda **values: _emulate(browser, **values)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def _colours(browser, selector):
    return browser.execute_script(
        """const style = getComputedStyle(document.querySelector(arguments[0]));
        return [style.color, style.backgroundColor];""",
        selector,
    )


def test_dark_mode_follows_the_reader(page, emulate):
    """Other colours in the dark; the words stay."""
    emulate(scheme="light")
    light = _colours(page, "body"), _colours(page, ".verdict")
    emulate(scheme="dark")
    assert _colours(page, "body") == ["rgb(230, 232, 234)", "rgb(20, 23, 26)"]
    assert (_colours(page, "body"), _colours(page, ".verdict")) != light


def test_it_prints_what_is_shown(page, emulate):
    """Neither forms nor navigation; every row and what is open."""
    _open(page, 4)
    emulate(media="print")
    hidden = page.execute_script(
        "return [...document.querySelectorAll('nav, #filter, #verifier, .skip')].map((each) => getComputedStyle(each).display)"
    )
    assert set(hidden) == {"none"}
    assert page.find_element("css selector", "#entry-4 mark").is_displayed()
    assert _shown(page) == [2, 4, 6, 8, 11, 13, 15, 17]
    pdf = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(pdf["data"]) > 20_000


def test_what_assistive_software_is_told(page):
    """Every field has a name, every table a caption, drawings a label, and headings go in steps."""
    _open(page, 4)
    told = page.execute_script(
        """const all = (selector) => [...document.querySelectorAll(selector)];
        return {
          fields: all('input, select, textarea').filter((each) => !each.labels.length).map((each) => each.id),
          tables: all('table').filter((each) => !each.caption).length,
          headers: all('th').filter((each) => each.scope !== 'col').length,
          drawings: all('svg').filter((each) => each.getAttribute('role') !== 'img' || !each.getAttribute('aria-label')).length,
          levels: all('h1, h2, h3').map((each) => Number(each.tagName[1])),
          live: all('[role=status]').map((each) => each.id),
        };"""
    )
    assert told["fields"] == []
    assert (told["tables"], told["headers"], told["drawings"]) == (0, 0, 0)
    assert told["levels"][0] == 1
    steps = zip(told["levels"], told["levels"][1:], strict=False)
    assert all(later - earlier <= 1 for earlier, later in steps)
    assert told["live"] == ["shown", "verifier-result"]


def test_narrow_windows_do_not_scroll_sideways(page):
    """A page on a telephone is as wide as the telephone."""
    metrics = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        width = page.execute_script("return document.documentElement.scrollWidth")
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width <= 400


# --- hostile -----------------------------------------------------------------------------------------

HOSTILE = [
    "</script><script>globalThis.hit = 1</script>",
    "<img src=x onerror='globalThis.hit = 2'>",
    "\"><svg onload='globalThis.hit = 3'>",
    "<style>body { display: none }</style>",
    "<meta http-equiv='refresh' content='0;url=about:blank'>",
    "<base href='//example.invalid/'>",
    "\u202egnp.exe\u2066\u0007\x1b[31m",
    "\ud800",
    "javascript:globalThis.hit=4",
    "[2m__proto__",
]


def test_hostile_spans_are_shown_and_do_nothing(browser, folder):
    """In a real browser: no script runs, no element is made, nothing is fetched."""
    items = []
    for number, text in enumerate(HOSTILE, 1):
        passage = f"{text} is a passage of a certain length"
        items += decision(
            number, passages=(passage,), used=(passage,), asked=text, answer=text, name=text,
            **{
                "llm.model_name": text, "bijotel.policy.warning": text, text: text,
                "bijotel.rag.sources": json.dumps([{"document_id": text, "chunk_index": text,
                    "source_uri": text, "retriever": text, "metadata": {text: text}}]),
            },
        )  # fmt: skip
        items.append(gap(1, text.replace("\ud800", "x")))
    page = folder / "hostile.html"
    write(append(folder / "hostile.db", items, chain=HOSTILE[0] + HOSTILE[1]), page)
    open_page(browser, page)
    counts = "return ['script', 'style', 'img', 'base', 'meta', 'iframe'].map((tag) => document.querySelectorAll(tag).length)"
    before = browser.execute_script(counts)
    assert before == [len(HOSTILE) + 2, 1, 0, 0, 5, 0]
    browser.execute_script(
        "for (const row of document.querySelectorAll('.decision')) row.open = true"
    )
    _wait(browser, lambda: len(browser.find_elements("css selector", ".inside")) == len(HOSTILE))
    _set(browser, "search", "<img src=x")
    _wait(browser, lambda: "shown" in browser.find_element("id", "shown").text)
    assert browser.execute_script(counts) == before
    assert browser.execute_script("return globalThis.hit") is None
    assert (
        browser.execute_script(
            "return [...document.querySelectorAll('*')].flatMap((each) => each.getAttributeNames()).filter((name) => name.startsWith('on') || name === 'style')"
        )
        == []
    )
    text = browser.execute_script("return document.body.textContent")
    assert "<img src=x onerror='globalThis.hit = 2'> is a passage" in text
    assert "U+202Egnp.exeU+2066U+0007U+001B[31m is a passage" in text
    assert "\u202e" not in browser.execute_script("return document.querySelector('main').innerText")
    assert browser.find_element("tag name", "body").is_displayed()


def test_huge_texts_are_shown_in_part(browser, folder):
    """A prompt and an answer of megabytes: cut, said, and the page answers."""
    passage = "word " * 20_000
    items = decision(1, passages=(passage,), used=(passage * 10,), answer="x" * 2_000_000)
    page = folder / "huge.html"
    write(append(folder / "huge.db", items), page)
    assert page.stat().st_size < 1_000_000
    open_page(browser, page)
    inside = _open(browser, 2)
    assert "100,000 are shown" in inside.text
    assert "(2000000 characters)" in inside.text


# --- large -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(folder):
    """Ten thousand decisions."""
    db = append(folder / "large.db", [each for n in range(1, 10_001) for each in decision(n)])
    page = folder / "large.html"
    write(db, page)
    db.unlink()
    return page


@pytest.mark.slow
def test_ten_thousand_decisions_do_not_freeze_the_browser(browser, large):
    """Loaded within five seconds; a decision opens at once, a search answers while it runs."""
    began = time.monotonic()
    open_page(browser, large)
    assert time.monotonic() - began < LOAD_SECONDS
    assert len(_shown(browser)) == 10_000
    began = time.monotonic()
    _open(browser, 20_000)
    assert time.monotonic() - began < 2
    browser.execute_script(
        """globalThis.longest = 0; let last = performance.now();
        setInterval(() => { longest = Math.max(longest, performance.now() - last); last = performance.now(); }, 10);"""
    )
    _set(browser, "search", "kettle number 9876?")
    _wait(
        browser,
        lambda: browser.find_element("id", "shown").text == "1 of 10,000 decisions shown.",
    )
    assert _shown(browser) == [2 * 9876]
    _set(browser, "search", "")
    _wait(
        browser,
        lambda: browser.find_element("id", "shown").text == "10,000 of 10,000 decisions shown.",
    )
    assert browser.execute_script("return longest") < 2000
