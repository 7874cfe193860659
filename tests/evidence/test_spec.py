"""The examples in the specifications are the known answers, and what is said about them is true."""

from __future__ import annotations

import base64
import json
import re

import pytest

from bijotel.range_proof import Step, walk
from bijotel.seal import Batch
from bijotel.spans.encode import _NOT_IN_DEDUP, _PREFIX_NOT_IN_DEDUP
from bijotel.stores.base import HEAD_COLUMNS
from bijotel.stores.memory import MemoryStore
from bijotel.verify import verify_chain
from tests.conftest import DATA, MASTER_KEY, ROOT
from tests.evidence.chains import chain_of

SPEC = ROOT / "docs" / "spec"
PAGES = (
    "body.md", "checkpoint.md", "entry.md", "export.md", "head.md", "proof.md", "rotation.md",
    "spool.md", "verifying.md",
)  # fmt: skip
EXAMPLE = re.compile(r"<!-- example: (\w+) -->\n```\w+\n(.*?)\n```\n", re.DOTALL)
FENCE = re.compile(r"^```", re.MULTILINE)

CHAIN = json.loads((DATA / "known-answers.json").read_text())
MORE = json.loads((DATA / "known-answers-more.json").read_text())
BODY = json.loads((DATA / "span-body.json").read_text())
ENTRY = CHAIN["entries"][1]


def _columns():
    values = {**ENTRY, "chain_id": CHAIN["chain_id"], "epoch": 0, "key_id": CHAIN["key_id"]}
    names = (
        "chain_id", "seq", "epoch", "key_id", "kind", "sealed_at_unix_nano", "fmt", "body_hash",
        "prev_tag", "trace_id", "span_id", "name", "start_unix_nano", "end_unix_nano", "dedup_key",
        "tag", "body",
    )  # fmt: skip
    return "\n".join(f"{name:20} {values[name]}" for name in names)


def _table(values, *names):
    width = max(map(len, names))
    return "\n".join(f"{name:{width}} {values[name]}" for name in names)


def _key_entry():
    (entry,) = [entry for entry in MORE["entries"] if entry["kind"] == "key"]
    names = ("chain_id", "seq", "key_id", "kind", "fmt", "prev_tag", "tag", "body")
    return _table({**entry, "chain_id": CHAIN["chain_id"]}, *names)


def _report():
    """What is said about a chain of four entries, of which one was edited."""
    chain = chain_of(4)
    store = MemoryStore()
    edited = chain.entries[2]._replace(name="chat 9")
    entries = (*chain.entries[:2], edited, chain.entries[3])
    store.append("default", lambda _head: Batch(entries, chain.heads[-1]))
    report = verify_chain(store, MASTER_KEY).as_dict()
    return json.dumps(report, indent=1)


ANSWERS = {
    "span_body": BODY["body"],
    "entry_columns": _columns(),
    "entry_header": ENTRY["header"],
    "entry_roots": "\n".join(f"{size} {root}" for size, root in CHAIN["roots"].items()),
    "checkpoint_9": MORE["checkpoint_9"],
    "vkey": MORE["vkey"],
    "cosigned_message": MORE["ml_dsa_44"]["cosigned_message_9"],
    "consistency_file": MORE["consistency_file_5_to_9"],
    "tlog_proof": MORE["tlog_proof"],
    "tlog_proof_entry": base64.b64decode(MORE["tlog_proof"].split("\n")[1][6:]).decode(),
    "export_part": MORE["export_part"],
    "export_all": MORE["export_all"],
    "head": _table(MORE["head_seq_2"], *HEAD_COLUMNS),
    "key_entry": _key_entry(),
    "spool": f"{MORE['spool']['header']}\n{MORE['spool']['record_0']}",
    "report": _report(),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_begins_with_a_complete_example(page):
    """In the manner of C2SP: the first block of a page is an example of the whole format."""
    text = (SPEC / page).read_text()
    first = EXAMPLE.search(text)
    assert first is not None
    assert FENCE.search(text).start() == first.start() + first.group().index("```")


def test_every_example_is_the_known_answer():
    """Octet for octet; each answer is shown once, and nothing else claims to be an example."""
    shown = {}
    for page in PAGES:
        text = (SPEC / page).read_text()
        examples = EXAMPLE.findall(text)
        assert len(examples) == text.count("<!-- example:")
        for name, example in examples:
            assert name not in shown
            shown[name] = example
    assert shown == {name: answer.removesuffix("\n") for name, answer in ANSWERS.items()}


def test_hashes_named_in_the_text_are_the_known_ones():
    """Dedup key, body hash, leaf, key id and spool key of the examples."""
    body, entry = (SPEC / "body.md").read_text(), (SPEC / "entry.md").read_text()
    assert BODY["dedup_key"] in body
    assert BODY["body_hash"] in body
    assert ENTRY["leaf"] in entry
    assert MORE["new_key_id"] in (SPEC / "rotation.md").read_text()
    assert MORE["spool"]["key"] in (SPEC / "spool.md").read_text()


def test_the_walk_that_the_export_page_describes():
    """Which subtrees the proof of the example holds, as the page lists them."""
    text = (SPEC / "export.md").read_text()
    header = json.loads(MORE["export_part"].splitlines()[0])
    ranges = tuple((first, last) for first, last in header["ranges"])
    skipped = [(v.start, v.end - 1) for v in walk(9, ranges) if v.step is Step.SKIPPED]
    assert skipped == [(0, 1), (2, 2), (5, 5), (7, 7), (8, 8)]
    for number, (first, last) in enumerate(skipped):
        name = f"leaf   {first}" if first == last else f"leaves {first} to {last}"
        assert re.search(rf"^{name} +proof\[{number}\]$", text, re.MULTILINE)


def test_links_between_the_pages_lead_somewhere():
    """Every relative link names a page that is there, every anchor a heading."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)]+)\)", (SPEC / page).read_text()):
            name, _, anchor = target.partition("#")
            text = (SPEC / name).read_text()
            headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            slugs = {
                re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings
            }
            assert not anchor or anchor in slugs, target


def test_the_attributes_outside_the_dedup_key_are_the_ones_in_force():
    """The frozen list in the page is the list that the code uses."""
    text = (SPEC / "body.md").read_text()
    block = text[text.index("frozen with `span/1`") :].split("```")[1].split()
    exact = {name for name in block if not name.endswith("*")}
    prefixes = {name.removesuffix("*") for name in block if name.endswith("*")}
    assert exact == _NOT_IN_DEDUP
    assert prefixes == set(_PREFIX_NOT_IN_DEDUP)
