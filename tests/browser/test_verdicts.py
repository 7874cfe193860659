"""The page's verifier gives the verdicts of the Python verifier, on everything that one is tested with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import islice

import pytest

from bijotel.verifier_key import ED25519, VerifierKey
from tests.browser.pages import VERIFY_PAGE, judge, open_page
from tests.conftest import ROOT

EVIDENCE = [f"tests/evidence/test_{name}.py" for name in ("export", "proof", "checkpoint")]
BATCH = 150


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Every vector and mutation of the tests of evidence, with the verdict that it was given."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.browser.recorder", *EVIDENCE],
        cwd=ROOT,
        env={**os.environ, "EVIDENCE_CORPUS": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    return path


def _findings_are_the_same(expected, found):
    """Findings one by one; of proofs the Python verifier gives the code alone."""
    pairs = zip(expected["findings"], found["findings"], strict=False)
    return len(expected["findings"]) == len(found["findings"]) and all(
        theirs[: len(ours)] == ours for ours, theirs in pairs
    )


def _is_the_tools(expected, found):
    """Where the two Python verifiers name a fault differently, the stand-alone one's word will do."""
    return bool(found["findings"]) and expected["tool"] == found["findings"][0][0]


def test_every_vector_and_every_mutation_is_judged_alike(browser, corpus):
    """Exit code, code, entry and column of each finding, over thousands of files."""
    open_page(browser, VERIFY_PAGE)
    kinds, different = Counter(), []
    with corpus.open() as lines:
        while batch := [json.loads(line) for line in islice(lines, BATCH)]:
            for case, found in zip(batch, judge(browser, batch), strict=True):
                expected = case["expected"]
                kinds[case["kind"], expected["exit_code"]] += 1
                same = _findings_are_the_same(expected, found)
                kinds["by the tool's word"] += not same
                if found["exit_code"] != expected["exit_code"] or not (
                    same or _is_the_tools(expected, found)
                ):
                    different.append((expected, found, case["octets"][:200]))
    assert different == []
    assert kinds["by the tool's word"] < 50
    assert kinds["export", 0] >= 40
    assert kinds["export", 1] >= 4000
    assert kinds["export", 3] >= 1
    assert kinds["proof", 0] >= 20
    assert kinds["proof", 1] >= 1500
    assert kinds["note", 0] >= 3
    assert kinds["note", 1] >= 800


_ED25519 = """
const [vectors, done] = arguments;
const octets = (digits) => Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
Promise.all(vectors.map(([key, message, signature]) =>
  bijotel.isSigned({ octets: octets(key) }, octets(signature), octets(message)))).then(done);
"""


def test_the_classic_list_of_signatures_is_judged_alike(browser, shared):
    """A hundred signatures hold; of a changed one, a shorter one and another message none does."""
    lines = (shared / "vectors/ed25519/sign-first100.input").read_text().splitlines()
    vectors = []
    for line in lines:
        _, key, message, signed = line.split(":")[:4]
        signature = signed[:128]
        flipped = f"{int(signature[:2], 16) ^ 1:02x}{signature[2:]}"
        vectors += [
            (key, message, signature),
            (key, message, flipped),
            (key, message, signature[:126]),
            (key, message + "78", signature),
        ]
    open_page(browser, VERIFY_PAGE)
    verdicts = browser.execute_async_script(_ED25519, vectors)
    for place, (key, message, signature) in enumerate(vectors):
        ours = VerifierKey("a", ED25519, bytes.fromhex(key))
        assert verdicts[place] is ours.signed(bytes.fromhex(message), bytes.fromhex(signature))
    assert sum(verdicts) == len(lines) == 100
