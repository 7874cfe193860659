"""A real browser: headless Chromium, driven through its own driver.

Where no browser is installed these tests are skipped, and say so; with ``CI=true`` they fail.
"""

from __future__ import annotations

import os
import shutil

import pytest

from tests.evidence.conftest import known, pq_signer, pq_vkey, signer, vkey
from tests.requirements import missing

__all__ = ["known", "pq_signer", "pq_vkey", "signer", "vkey"]

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)
SCRIPT_SECONDS = 120


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """One browser with an empty profile for all tests."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver_program = shutil.which("chromedriver")
    if program is None or driver_program is None:
        missing("no Chromium with its chromedriver (Debian: chromium, chromium-driver)")
    try:
        from selenium import webdriver
    except ImportError:
        missing("no Selenium (make test-browser installs it)")
    # Selenium's own manager would look for browsers on the network; both paths are given.
    os.environ |= {"SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(driver_program))
    driver.set_script_timeout(SCRIPT_SECONDS)
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium):
    """The browser with nothing of an earlier test; no page may log an error."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    yield chromium
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
