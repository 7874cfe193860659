"""What the tests of pages share: asking the verifier of a page, and using its form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

VERIFY_PAGE = ROOT / "tools" / "verify.html"

_ASK = """
const [cases, done] = arguments;
const octets = (encoded) => Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
const finding = ({ code, seq, column, lastSeq }) =>
  [code, seq === null ? null : Number(seq), column, lastSeq === null ? null : Number(lastSeq)];
async function judge(one) {
  if (one.kind === "note") {
    try {
      await bijotel.readCheckpoint(octets(one.octets), await Promise.all(one.keys.map(bijotel.readKey)));
      return { exit_code: 0, findings: [] };
    } catch (error) {
      return { exit_code: 1, findings: [[error.code, null, error.where, null]] };
    }
  }
  const result = await bijotel.verifyEvidence(new Blob([octets(one.octets)]), {
    lines: one.keys, partial: one.partial, checkpoint: one.checkpoint && octets(one.checkpoint),
  });
  return { exit_code: result.exitCode, findings: result.findings.map(finding), reason: result.reason };
}
Promise.all(cases.map(judge)).then(
  (verdicts) => done(JSON.stringify(verdicts)), (error) => done(JSON.stringify(`${error.stack}`)));
"""


def open_page(browser: Any, path: Path) -> None:
    """Open a page of a folder as a person would, by its file."""
    browser.get(path.as_uri())


def judge(browser: Any, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the verdicts of the page's verifier on cases as ``recorder`` writes them."""
    verdicts = json.loads(browser.execute_async_script(_ASK, cases))
    assert isinstance(verdicts, list), verdicts
    return verdicts


def fill_in(browser: Any, file: Path, keys: str, *, partial: bool = False) -> Any:
    """Use the form: choose the file, paste the key, press the button; give the result."""
    find = browser.find_element
    find("id", "verifier-file").send_keys(str(file))
    browser.execute_script("document.getElementById('verifier-keys').value = arguments[0]", keys)
    if partial:
        find("id", "verifier-partial").click()
    find("css selector", "#verifier-form button").click()
    return verdict(browser)


def verdict(browser: Any) -> Any:
    """Wait for the verdict of the form and give it."""
    from selenium.webdriver.support.wait import WebDriverWait

    wait = WebDriverWait(browser, 60)
    return wait.until(lambda b: b.find_element("css selector", "#verifier-result .verdict"))
