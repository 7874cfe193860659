"""``bijotel report``: what is asked, what is written, and what the exit code says."""

from __future__ import annotations

import gzip
import json
import re
import stat
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from bijotel.model import Dropped, SpanRecord, Status
from bijotel.signing import generate_signing_key
from bijotel.traces.reader import read_traces
from tests.cli.conftest import OTHER_SECRET, gap, span, tamper
from tests.conftest import ROOT
from tests.report.chains import BEGIN, CHAIN_ID, MINUTE, append, checkpoint, decision, question


@pytest.fixture
def db(tmp_path):
    """Six decisions, twelve spans: entries 1 to 12."""
    return append(tmp_path / "chain.db", [each for n in range(1, 7) for each in decision(n)])


@pytest.fixture
def page(tmp_path):
    return tmp_path / "report.html"


def _details(page):
    """The details of each decision by entry."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r'<script type="application/json" class="details">(.*?)</script>', text)
    return {block["seq"]: block for block in map(json.loads, blocks)}


def _rows(page):
    """The entries listed, in their order."""
    return [int(seq) for seq in re.findall(r'data-seq="(\d+)"', page.read_text())]


def test_a_sound_chain_is_reported_as_verified(db, page, secret, bijotel):
    """Exit code 0, one file for its owner alone, and one line that says the verdict."""
    result = bijotel("report", "--db", db, "-o", page)
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "VERIFIED: Every one of 13 entries holds. Nothing was found.\n"
        f"written: {page}: 6 decisions\n"
    )
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert list(page.parent.glob(".report*")) == []
    assert _rows(page) == [2, 4, 6, 8, 10, 12]
    text = page.read_text()
    assert "<strong>VERIFIED</strong> Every one of 13 entries holds." in text
    assert "6 decisions out of 13 entries (1 genesis, 12 span)" in text


def test_the_details_of_a_decision(db, page, secret, bijotel):
    """Question, sources, the prompt in pieces, answer, facts, trace and proof."""
    bijotel("report", "--db", db, "-o", page)
    details = _details(page)[4]
    assert (details["asked"], details["question"]) == ("asked of the retriever", question(2))
    assert [(one["id"], one["word"], one["uri"]) for one in details["sources"]] == [
        ("manual.md#0", "included", "s3://manuals/0"),
        ("manual.md#1", "included", "s3://manuals/1"),
        ("manual.md#2", "dropped", "s3://manuals/2"),
        ("manual.md#3", "dropped", "s3://manuals/3"),
    ]
    assert [numbers for _, numbers in details["prompt"]] == [[], [1], [], [2], []]
    assert "".join(text for text, _ in details["prompt"]).endswith(f"Question: {question(2)}")
    assert details["answer"] == ["Three years from the date of purchase."]
    facts = dict(details["facts"])
    assert facts["Model"] == "gpt-4o-mini"
    assert (facts["Input tokens"], facts["Output tokens"]) == ("122", "17")
    assert facts["Took"] == "0.800 s"
    assert facts["Cost"].startswith(("$0.00", "unknown: "))
    assert [(one["seq"], one["name"]) for one in details["spans"]] == [
        (3, "retrieve"),
        (4, "ChatOpenAI"),
    ]
    assert dict(details["entry"])["trace_id"] == f"{2:032x}"
    assert details["proof"]["why"].startswith("no checkpoint was given")


def test_a_chain_that_does_not_verify_is_reported_too(db, page, secret, bijotel):
    """Exit code 1; the page says so first, and of the entry; the others hold."""
    changed = "CAST(replace(CAST(body AS TEXT), 'Three years', 'Seven years') AS BLOB)"
    tamper(db, f"UPDATE entries SET body = {changed} WHERE seq = 6")
    result = bijotel("report", "--db", db, "-o", page)
    assert result.code == 1
    assert result.out.startswith("DOES NOT VERIFY: 1 finding in 13 entries.")
    text = page.read_text()
    assert "<code>body-hash-mismatch</code>" in text
    assert re.findall(r'data-seq="(\d+)" data-proof="([a-z ]+)"', text) == [
        (str(seq), "false" if seq == 6 else "verified") for seq in range(2, 13, 2)
    ]
    assert _details(page)[6]["findings"] == [
        "body-hash-mismatch: entry 6: the body does not have the sealed hash"
    ]
    assert _details(page)[4]["findings"] == []


@pytest.mark.parametrize(
    ("variables", "code", "word"),
    [
        ({}, 3, "NOT VERIFIED: No key was given, so no entry could be verified."),
        ({"BIJOTEL_HMAC_SECRET": OTHER_SECRET}, 1, "DOES NOT VERIFY: 1 finding"),
    ],
)
def test_without_the_key_nothing_is_verified(
    db, page, monkeypatch, bijotel, *, variables, code, word
):
    """The page is written and says of every entry that it is shown as stored."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = bijotel("report", "--db", db, "-o", page)
    assert result.code == code
    assert result.out.startswith(word)
    assert set(re.findall(r'data-proof="([a-z ]+)"', page.read_text())) == {"not verified"}


# --- which entries -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "rows", "scope"),
    [
        (("--trace", f"{3:032x}"), [6], f"Trace {3:032x}"),
        (("--from", "5"), [6, 8, 10, 12], "Entries from 5"),
        (("--to", "6"), [2, 4, 6], "Entries to 6"),
        (("--from", "5", "--to", "8"), [6, 8], "Entries from 5 to 8"),
        (("--from", "2026-01-01T00:05:00Z"), [10, 12], "Entries from 2026-01-01T00:05:00Z"),
        (("--to", "2026-01-01T00:03:00Z"), [2, 4], "Entries to 2026-01-01T00:03:00Z"),
    ],
)
def test_only_what_is_asked_for_is_shown(db, page, secret, bijotel, *, options, rows, scope):
    """By trace, entries or times; the whole chain is verified all the same."""
    result = bijotel("report", "--db", db, "-o", page, *options)
    assert result.code == 0
    assert "Every one of 13 entries holds" in result.out
    assert _rows(page) == rows
    assert scope in page.read_text()


def test_a_passage_found_beyond_the_ends_is_known(db, page, secret, bijotel):
    """The retriever's span lies before the first entry that is shown."""
    bijotel("report", "--db", db, "-o", page, "--from", "6", "--to", "6")
    details = _details(page)[6]
    assert [one["word"] for one in details["sources"]] == [
        "included",
        "included",
        "dropped",
        "dropped",
    ]
    assert [one["seq"] for one in details["spans"]] == [5, 6]


def test_one_trace_has_no_history(db, page, secret, bijotel):
    """Series and repeats are of chains, not of traces."""
    bijotel("report", "--db", db, "-o", page, "--trace", f"{3:032x}")
    text = page.read_text()
    assert "No series of numbers: a single trace" in text
    assert "No repeated call" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--trace", "xyz"), "--trace 'xyz': expected 32 hex digits"),
        (("--trace", "0" * 32, "--from", "1"), "expected --trace or --from and --to"),
        (("--trace", "f" * 32), f"Trace {'f' * 32}: there is no such entry to report on"),
        (("--from", "99"), "Entries from 99: there is no such entry to report on"),
        (("--from", "2030-01-01"), "Entries from 2030-01-01: there is no such entry"),
        (("--from", "yesterday"), "time 'yesterday': expected a date"),
        (("--checkpoint", "cp"), "expected --checkpoint and --pubkey, both or none"),
        (("--pubkey", "x"), "expected --checkpoint and --pubkey, both or none"),
        (("--chain", "other"), "chain 'other': not in this store"),
    ],
)
def test_asked_wrongly(db, page, secret, bijotel, *, options, message):
    """Exit code 2, one line of words, and no file."""
    result = bijotel("report", "--db", db, "-o", page, *options)
    assert result.code == 2
    assert message in result.err
    assert result.out == ""
    assert not page.exists()


def test_what_cannot_be_read_or_written(db, tmp_path, secret, bijotel):
    """Exit code 3: no store, no folder, no checkpoint file."""
    key = str(generate_signing_key("a").verifier)
    for options, message in (
        (("--db", tmp_path / "none.db", "-o", tmp_path / "r.html"), "none.db"),
        (("--db", db, "-o", tmp_path / "no" / "r.html"), "cannot be written: No such file"),
        (
            ("--db", db, "-o", tmp_path / "r.html", "--checkpoint", "nowhere", "--pubkey", key),
            "nowhere: cannot be read",
        ),
    ):
        result = bijotel("report", *options)
        assert result.code == 3
        assert message in result.err


def test_a_name_that_ends_in_gz_compresses(db, tmp_path, secret, bijotel):
    """The same page, packed."""
    target = tmp_path / "r.html.gz"
    assert bijotel("report", "--db", db, "-o", target).code == 0
    assert gzip.decompress(target.read_bytes()).startswith(b"<!DOCTYPE html>")


def test_json_tells_the_verification(db, page, secret, bijotel):
    """One document for machines."""
    document = bijotel("report", "--db", db, "-o", page, "--json").document
    assert document["file"] == str(page)
    assert (document["chain"], document["decisions"]) == (CHAIN_ID.hex(), 6)
    assert document["verification"]["ok"] is True


def test_without_the_extra_it_says_what_to_install(db, page):
    """Jinja2 is loaded by this command alone, and named where it is missing."""
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from bijotel.cli.app import run\n"
        f"sys.exit(run(['report', '--db', {str(db)!r}, '-o', {str(page)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "the extra 'report' is not installed; pip install '.[report]' in the" in done.stderr


def test_the_command_line_does_not_load_the_engine():
    """Other commands start as fast as before."""
    code = "import bijotel.cli.app, sys; print('jinja2' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


# --- checkpoints ---------------------------------------------------------------------------------


def _signed(db, tmp_path):
    note, key = checkpoint(db)
    path = tmp_path / "checkpoint"
    path.write_bytes(note)
    return path, key


def test_a_checkpoint_gives_each_decision_its_proof(db, page, tmp_path, secret, bijotel):
    """The parts of a tlog-proof, which verify with the public key alone."""
    path, key = _signed(db, tmp_path)
    append(db, decision(7))
    options = ("--checkpoint", path, "--pubkey", str(key.verifier))
    result = bijotel("report", "--db", db, "-o", page, *options)
    assert result.code == 0
    text = page.read_text()
    assert "The first 13 entries are those of the checkpoint of size 13, root " in text
    assert "signed by example.com/audit." in text
    assert "Completeness of the tail behind entry 12." in text
    details = _details(page)
    assert details[4]["proof"]["size"] == 13
    assert json.loads(details[4]["proof"]["line"])["seq"] == 4
    assert details[14]["proof"] == {"why": "the checkpoint of size 13 is older than this entry"}


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda note: note.replace(b"\n13\n", b"\n12\n"), "checkpoint-signature"),
        (lambda note: b"nonsense", "malformed-note"),
    ],
)
def test_a_checkpoint_that_is_no_good_is_a_finding(
    db, page, tmp_path, secret, bijotel, *, spoil, code
):
    """It proves nothing, and the page says why."""
    path, key = _signed(db, tmp_path)
    path.write_bytes(spoil(path.read_bytes()))
    options = ("--checkpoint", path, "--pubkey", str(key.verifier))
    assert bijotel("report", "--db", db, "-o", page, *options).code == 1
    assert f"<code>{code}</code>" in page.read_text()
    assert "line" not in _details(page)[4]["proof"]


def test_a_checkpoint_of_another_chain_proves_nothing_here(db, page, tmp_path, secret, bijotel):
    """It is signed and sound, and of another chain: a finding, and no proofs."""
    other = append(tmp_path / "other.db", decision(1), chain_id=bytes(16))
    path, key = _signed(other, tmp_path)
    options = ("--checkpoint", path, "--pubkey", str(key.verifier))
    assert bijotel("report", "--db", db, "-o", page, *options).code == 1
    assert "<code>checkpoint-origin</code>" in page.read_text()
    assert "line" not in _details(page)[4]["proof"]


def test_a_cut_tail_is_seen_with_a_checkpoint(db, page, tmp_path, secret, bijotel):
    """Entries that the checkpoint covers are gone; those that are left have no proof."""
    path, key = _signed(db, tmp_path)
    tamper(db, "DELETE FROM entries WHERE seq > 10")
    options = ("--checkpoint", path, "--pubkey", str(key.verifier))
    assert bijotel("report", "--db", db, "-o", page, *options).code == 1
    assert "<code>truncated</code>" in page.read_text()
    assert "The chain was compared with the checkpoint of size 13" in page.read_text()
    assert "why" in _details(page)[4]["proof"]


# --- what else a chain holds -----------------------------------------------------------------------


def test_gaps_and_repeats_are_listed(tmp_path, page, secret, bijotel):
    """A gap with its count and reason; the same question asked twice."""
    items = [*decision(1, asked="Same?"), gap(7), gap(None, "process-died")]
    db = append(tmp_path / "c.db", [*items, *decision(2, asked="Same?")])
    assert bijotel("report", "--db", db, "-o", page).code == 0
    text = page.read_text()
    assert re.search(r">3</td><td>7</td><td>queue-full</td>", text)
    assert re.search(r">4</td><td>nobody can tell how many</td><td>process-died</td>", text)
    assert "2 questions asked more than once" in text
    assert '<a href="#entry-6">6</a>' in text


def test_outcomes_are_told_apart(tmp_path, page, secret, bijotel):
    """Error, warning and blocked, each by its word."""
    items = [
        *decision(1, status=Status("ERROR", "too slow")),
        *decision(2, **{"bijotel.policy.warning": "personal data"}),
        *decision(3, **{"bijotel.blocked": True}),
    ]
    bijotel("report", "--db", append(tmp_path / "c.db", items), "-o", page)
    outcomes = dict(
        re.findall(r'data-seq="(\d+)" data-proof="\w+" data-outcome="(\w+)"', page.read_text())
    )
    assert outcomes == {"2": "error", "4": "warning", "6": "blocked"}
    facts = {seq: dict(each["facts"]) for seq, each in _details(page).items()}
    assert facts[2]["Span status"] == "ERROR too slow"
    assert facts[4]["Warning"] == "personal data"
    assert facts[6]["Policy"] == "BLOCKED"


def test_a_call_without_a_trace_of_retrieval(tmp_path, page, secret, bijotel):
    """No sources, and a prompt that is not recorded: said, not guessed."""
    db = append(tmp_path / "c.db", [span(1), SpanRecord("no call", trace_id=f"{9:032x}")])
    assert bijotel("report", "--db", db, "-o", page).code == 0
    details = _details(page)
    assert details[1]["sources"] == []
    assert (details[2]["prompt"], details[2]["question"]) == ([], "")
    assert 'data-passages="none"' in page.read_text()
    assert ">no call</span>" in page.read_text()


def test_what_is_not_whole_is_said(tmp_path, page, secret, bijotel, monkeypatch):
    """A list of sources that was cut, more passages than are shown, attributes that were dropped."""
    monkeypatch.setattr("bijotel.report.decisions.MOST_PASSAGES", 3)
    retriever, call = decision(1, **{"bijotel.rag.sources": '[{"document_id": "cut'})
    call = replace(call, dropped=Dropped(2, 0, 1))
    bijotel("report", "--db", append(tmp_path / "c.db", [retriever, call]), "-o", page)
    details = _details(page)[2]
    assert 'no list of sources, as recorded: [{"document_id": "cut' in details["notes"]
    assert "4 passages; 3 are shown" in details["notes"]
    assert any(note.startswith("the prompt is not whole: ") for note in details["notes"])
    assert dict(details["facts"])["Dropped by the tracer"] == "2 attributes, 1 link"


def test_every_instrumentation_is_reported(tmp_path, page, secret, bijotel, data):
    """Traces of all dialects in one chain: each prompt that one holds has its passages marked."""
    files = [path for path in sorted((data / "traces").glob("*.jsonl")) if "logs" not in path.name]
    assert len(files) >= 30
    spans = {}
    for trace in read_traces(files, skipped=lambda line: None):
        spans |= {(each.trace_id, each.span_id): each for each in trace.spans}
    db = append(tmp_path / "c.db", spans.values())
    assert bijotel("report", "--db", db, "-o", page).code == 0
    details = _details(page).values()
    shown = {name for each in details for span in each["spans"] for name in [span["name"]]}
    assert shown >= {span.name[:160] for span in spans.values() if span.name}
    marked = sum(any(numbers for _, numbers in each["prompt"]) for each in details)
    words = {source["word"] for each in details for source in each["sources"]}
    assert marked >= 30
    assert words == {"included", "partial", "dropped", "unknown"}


def test_a_body_that_cannot_be_read_is_counted(db, page, secret, bijotel):
    """It is no decision, and the page says that there is one."""
    tamper(db, "UPDATE entries SET body = x'7b7d' WHERE seq = 6")
    tamper(db, "UPDATE entries SET tag = 'text' WHERE seq = 9")
    assert bijotel("report", "--db", db, "-o", page).code == 1
    assert 6 not in _rows(page)
    assert re.search(r"\d rows? that cannot be read as an entry\.", page.read_text())


def test_a_long_trace_is_not_joined(tmp_path, page, secret, bijotel, monkeypatch):
    """Its spans are looked at one by one, in bounded memory."""
    monkeypatch.setattr("bijotel.report.collect.MOST_JOINED", 3)
    calls = [
        SpanRecord(
            f"call {n}", "CLIENT", f"{1:032x}", f"{n:016x}",
            start_time_unix_nano=BEGIN + n * MINUTE, end_time_unix_nano=BEGIN + n * MINUTE + 1,
            attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
        )
        for n in range(1, 6)
    ]  # fmt: skip
    assert bijotel("report", "--db", append(tmp_path / "c.db", calls), "-o", page).code == 0
    assert _rows(page) == [1, 2, 3, 4, 5]
    assert [len(each["spans"]) for each in _details(page).values()] == [1] * 5


def test_too_many_decisions_are_too_many(db, page, secret, bijotel, monkeypatch):
    """Who has more than a page can hold is told to choose."""
    monkeypatch.setattr("bijotel.report.collect.MOST_DECISIONS", 5)
    result = bijotel("report", "--db", db, "-o", page)
    assert result.code == 2
    assert "more than 5 decisions: too many for one page; choose with --from and --to" in result.err
    assert not page.exists()


# --- hostile -------------------------------------------------------------------------------------

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    '"><svg onload=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u2066",
    "<!--",
    "\x00\x1b[31m",
)


class _Structure(HTMLParser):
    """Elements with the names of their attributes; without those that show one character."""

    def __init__(self, markup):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.feed(markup)

    def handle_starttag(self, tag, attributes):
        if ("class", "character") not in attributes:
            self.found.append((tag, [name for name, _ in attributes]))

    def handle_comment(self, data):
        self.found.append(("comment", data))


def _structure_of(folder, bijotel, text):
    page = folder / f"{len(text)}.html"
    passage = f"{text} is a passage of some length"
    items = [
        each
        for number in (1, 2)
        for each in decision(
            number, passages=(passage,), used=(passage,), asked=text, answer=text, name=text,
            **{"llm.model_name": text, "bijotel.policy.warning": text, text: text},
        )
    ]  # fmt: skip
    name = text.replace("\x00", "")
    db = append(folder / f"{len(text)}.db", [*items, gap(1, text)], chain=name)
    assert bijotel("report", "--db", db, "-o", page).code == 0
    return page, _Structure(page.read_text(encoding="utf-8")).found


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(tmp_path, secret, bijotel, text):
    """No element, attribute, comment or script of the page comes out of a store."""
    page, found = _structure_of(tmp_path, bijotel, text)
    _, harmless = _structure_of(tmp_path, bijotel, "harmless")
    assert found == harmless
    assert _details(page)[2]["question"] == text
    assert _details(page)[2]["answer"] == [text]


def test_text_that_is_no_unicode(tmp_path, page, secret, bijotel):
    """Half a surrogate pair is written as its number, in markup and in data."""
    items = decision(1, asked="half \ud83d pair", name="\udcff")
    assert bijotel("report", "--db", append(tmp_path / "c.db", items), "-o", page).code == 0
    assert _details(page)[2]["question"] == "half \ud83d pair"
    assert "half U+D83D pair" in re.sub(r"<[^>]*>", "", page.read_text())


def test_the_page_stands_alone(db, page, secret, bijotel):
    """No outside address, no style attribute, no handler, and a policy with its own hashes."""
    bijotel("report", "--db", db, "-o", page)
    text = page.read_text(encoding="utf-8")
    markup = re.sub(r"<(script|style)[ >].*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"https?://|\ssrc=|\sstyle=|\son[a-z]+=|url\(", markup)
    assert not re.search(r"https?://", re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1])
    assert "default-src &#39;none&#39;; script-src &#39;sha256-" in text
    ids = re.findall(r'\sid="([^"]+)"', markup)
    assert len(ids) == len(set(ids))
    labelled = set(re.findall(r'(?:for|aria-labelledby|aria-describedby)="([^"]+)"', markup))
    assert labelled <= set(ids)
    assert [int(level) for level in re.findall(r"<h([1-6])", markup)][:2] == [1, 2]
    assert '<html lang="en">' in text
