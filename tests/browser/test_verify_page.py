"""``tools/verify.html`` as a person uses it: files in, verdicts out, nothing sent anywhere."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import io
import json
import re
import time

import pytest

from bijotel.checkpoint import parse_checkpoint
from bijotel.export import write_export
from bijotel.proof import make_proof
from bijotel.report.assets import content_policy
from bijotel.seal import body_hash
from tests.browser.pages import VERIFY_PAGE, fill_in, judge, open_page, verdict
from tests.conftest import ROOT
from tests.evidence.chains import chain_of, span


@pytest.fixture
def page(browser):
    open_page(browser, VERIFY_PAGE)
    return browser


def _write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _table(browser, caption):
    """The rows of the result's table of this caption, as lists of texts."""
    rows = browser.find_elements(
        "xpath", f"//*[@id='verifier-result']//table[caption='{caption}']/tbody/tr"
    )
    return [[cell.text for cell in row.find_elements("tag name", "td")] for row in rows]


# --- the file itself -------------------------------------------------------------------------------


def test_the_page_is_current():
    """``python tools/verify/build.py`` brings it up to date."""
    spec = importlib.util.spec_from_file_location("build", ROOT / "tools/verify/build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    assert VERIFY_PAGE.read_text(encoding="utf-8") == build.build()


def test_the_page_stands_alone():
    """One file whose policy names its own script and style and nothing else."""
    text = VERIFY_PAGE.read_text(encoding="utf-8")
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (script,) = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy == content_policy([script], [style])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(
        r"https?://|//[a-z]|src=|url\(|@import|\bimport\s*\(|innerHTML|\beval\b", text
    )


def test_the_page_can_reach_nothing(page):
    """The browser itself refuses every request and every foreign script."""
    outcome = page.execute_async_script(
        """const done = arguments[0];
        const script = document.createElement('script');
        try { script.textContent = 'globalThis.foreign = true'; } catch (error) { globalThis.refused = error.name; }
        document.body.append(script);
        fetch('http://127.0.0.1:9/').then(() => done('sent'), (error) => done(error.name));"""
    )
    assert outcome == "TypeError"
    assert page.execute_script("return [globalThis.foreign, globalThis.refused]") == [
        None,
        "TypeError",
    ]
    messages = " ".join(entry["message"] for entry in page.get_log("browser"))
    assert "Content Security Policy" in messages
    assert "ERR_CONNECTION" not in messages


# --- verdicts --------------------------------------------------------------------------------------


def test_a_sound_export_holds(page, tmp_path, known):
    """The verdict, what it covers, whose signature, and what it does not say."""
    shown = fill_in(page, _write(tmp_path, "e.jsonl", known["export_all"]), known["vkey"])
    assert shown.get_attribute("data-exit-code") == "0"
    root = parse_checkpoint(known["checkpoint_9"].encode()).root_hash.hex()
    assert shown.text == (
        f"HOLDS export: entries 0 to 8 of {known['origin']}: size 9, root {root} "
        "(1 genesis, 3 span, 1 gap, 1 checkpoint, 1 key, 1 fleet, 1 import)."
    )
    assert _table(page, "Signatures") == [["example.com/audit+8536d1c3", "holds", "Ed25519"]]
    result = page.find_element("id", "verifier-result").text
    assert "entries sealed after the checkpoint of size 9" in result
    assert "tags (they need the HMAC secret)" in result


def test_a_compressed_export_holds(page, tmp_path, known):
    """A file of gzip is read as what is in it."""
    path = _write(tmp_path, "e.jsonl.gz", gzip.compress(known["export_all"].encode()))
    assert fill_in(page, path, known["vkey"]).text.startswith("HOLDS export: entries 0 to 8")


def test_damaged_compression_is_the_whole_verdict(page, tmp_path, known):
    """Neither a signature nor an entry that was read before the damage is shown as checked."""
    packed = gzip.compress(known["export_all"].encode())
    path = _write(tmp_path, "e.jsonl.gz", packed[:-8] + bytes(8))
    assert fill_in(page, path, known["vkey"]).text == "FALSE The export does not hold."
    assert [row[:3] for row in _table(page, "Findings")] == [["malformed-export", "", "file"]]
    assert "Signatures" not in page.find_element("id", "verifier-result").text


def test_a_changed_export_is_false_and_says_where(page, tmp_path, known):
    """Code, entry and column, as the command prints them."""
    changed = known["export_all"].replace('"prev_tag":"e5dc', '"prev_tag":"e5dd', 1)
    shown = fill_in(page, _write(tmp_path, "e.jsonl", changed), known["vkey"])
    assert shown.text == "FALSE The export does not hold."
    assert [row[:3] for row in _table(page, "Findings")] == [
        ["link-mismatch", "3", "prev_tag"],
        ["checkpoint-mismatch", "", "ranges"],
    ]


def test_part_of_a_log_has_to_be_asked_for(page, tmp_path, known):
    """Without the box it is a finding; with it a pass that names the ranges."""
    path = _write(tmp_path, "e.jsonl", known["export_part"])
    assert fill_in(page, path, known["vkey"]).text.startswith("FALSE")
    assert _table(page, "Findings")[0][0] == "export-partial"
    open_page(page, VERIFY_PAGE)
    shown = fill_in(page, path, known["vkey"], partial=True)
    assert shown.text.startswith("HOLDS export: entries 3 to 4, 6 to 6 of example.com/audit/")


def test_the_readers_own_checkpoint_is_compared(page, tmp_path, known):
    """The same one passes; an earlier one is another size."""
    path = _write(tmp_path, "e.jsonl", known["export_all"])
    for size, start in ((9, "HOLDS"), (5, "FALSE")):
        open_page(page, VERIFY_PAGE)
        own = _write(tmp_path, "own", known[f"checkpoint_{size}"])
        page.find_element("id", "verifier-checkpoint").send_keys(str(own))
        assert fill_in(page, path, known["vkey"]).text.startswith(start)
    assert _table(page, "Findings")[0][::2] == ["checkpoint-mismatch", "size"]


def test_a_proof_shows_the_entry_it_proves(page, tmp_path, known):
    """Its columns and its body, which is what the reader came for."""
    shown = fill_in(page, _write(tmp_path, "x.tlog-proof", known["tlog_proof"]), known["vkey"])
    assert shown.text.startswith("HOLDS proof of one entry: entry 4 of example.com/audit/")
    columns = dict(_table(page, "The entry that was proven"))
    entry = next(entry for entry in known["entries"] if entry["seq"] == 4)
    assert (columns["seq"], columns["tag"], columns["name"]) == ("4", entry["tag"], "chat m")
    assert columns["end_unix_nano"] == "4 (1970-01-01T00:00:00.000Z)"
    assert page.find_element("css selector", "#verifier-result pre").text == entry["body"]
    assert "every other entry of the log" in page.find_element("id", "verifier-result").text


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("nonsense", "verifier key: expected NAME+HASH+KEY on one line, got “nonsense”"),
        ("a+8536d1c3+AAAA", "verifier key a: expected an Ed25519 or ML-DSA-44 key"),
        ("a+00000000+AQ" + "AAA" * 14, "verifier key a: expected hash"),
    ],
)
def test_a_key_that_is_none_is_asked_wrongly(page, tmp_path, known, keys, message):
    """Neither a pass nor a failure, and the key's line is named."""
    shown = fill_in(page, _write(tmp_path, "e.jsonl", known["export_all"]), keys)
    assert shown.get_attribute("data-exit-code") == "2"
    assert message in shown.text


def test_published_keys_are_read_alike(page, shared):
    """The bad verifier keys of the published vectors are refused."""
    vectors = json.loads((shared / "vectors/notes/signed-note-vectors.json").read_text())
    for line in vectors["bad_vkeys"]:
        case = {"kind": "export", "octets": "", "keys": [line], "checkpoint": None}
        assert judge(page, [case])[0]["exit_code"] == 2


# --- ML-DSA, and browsers that cannot check ----------------------------------------------------------


@pytest.fixture
def both(known, signer, pq_signer):
    """A proof whose checkpoint has both signatures."""
    chain = chain_of(9)
    return make_proof(chain.entries[4], chain.note(9, signer, pq_signer), chain.node)


def test_an_ml_dsa_signature_is_shown_as_not_checked(page, tmp_path, both, vkey, pq_vkey):
    """With both keys the Ed25519 one decides, and the page says what it left out."""
    shown = fill_in(page, _write(tmp_path, "x.tlog-proof", both), f"{vkey}\n{pq_vkey}\n")
    assert shown.text.startswith("HOLDS proof of one entry")
    states = {row[0]: row[1:] for row in _table(page, "Signatures")}
    assert states[f"{vkey.name}+{vkey.key_hash.hex()}"] == ["holds", "Ed25519"]
    label = f"{pq_vkey.name}+{pq_vkey.key_hash.hex()}"
    assert states[label] == ["not checked", "ML-DSA-44: no browser can check it"]
    assert f"the signature of {label}" in page.find_element("id", "verifier-result").text


def test_an_ml_dsa_key_that_has_not_signed_is_noticed(page, tmp_path, known, vkey, pq_vkey):
    """A stripped second signature needs no mathematics to be seen."""
    path = _write(tmp_path, "x.tlog-proof", known["tlog_proof"])
    assert fill_in(page, path, f"{vkey}\n{pq_vkey}").text.startswith("FALSE")
    assert _table(page, "Findings")[0][0] == "checkpoint-signature"


def test_an_ml_dsa_key_alone_checks_nothing(page, tmp_path, both, pq_vkey):
    """That is neither a pass nor a failure."""
    shown = fill_in(page, _write(tmp_path, "x.tlog-proof", both), str(pq_vkey))
    assert shown.get_attribute("data-exit-code") == "3"
    assert shown.text.startswith("NOT CHECKED No browser can check ML-DSA-44 signatures")


@pytest.mark.parametrize(
    ("without", "message"),
    [
        (
            "SubtleCrypto.prototype.importKey = () => Promise.reject(new DOMException('', 'NotSupportedError'))",
            "This browser cannot check Ed25519 signatures.",
        ),
        (
            "Object.defineProperty(globalThis, 'crypto', { value: {} })",
            "WebCrypto is only there for local files and https",
        ),
        (
            "delete globalThis.DecompressionStream",
            "This browser cannot decompress gzip: decompress the file first.",
        ),
    ],
)
def test_a_browser_that_cannot_check_says_so(page, tmp_path, known, without, message):
    """An older browser never makes sound evidence look false, or the other way round."""
    page.execute_script(without)
    path = _write(tmp_path, "e.jsonl.gz", gzip.compress(known["export_all"].encode()))
    shown = fill_in(page, path, known["vkey"])
    assert shown.get_attribute("data-exit-code") == "3"
    assert shown.text.startswith(f"NOT CHECKED {message}")


# --- hostile and large -------------------------------------------------------------------------------


HOSTILE = "<img src=x onerror='globalThis.hit=1'></pre><script>hit=1</script>\u202egnihton\u0007"


def test_hostile_evidence_is_text(page, tmp_path, vkey, signer):
    """Markup in an entry stays text, and characters that steer the eye are shown by number."""
    chain = chain_of(3, drafts=[span(1, name=HOSTILE), span(2)])
    proof = make_proof(chain.entries[1], chain.note(3, signer), chain.node)
    shown = fill_in(page, _write(tmp_path, "x.tlog-proof", proof), str(vkey))
    assert shown.text.startswith("HOLDS")
    name = dict(_table(page, "The entry that was proven"))["name"]
    assert name == HOSTILE.replace("\u202e", "U+202E").replace("\u0007", "U+0007")
    assert page.find_elements("css selector", "#verifier-result img, #verifier-result script") == []
    assert page.execute_script("return globalThis.hit") is None


def test_a_dropped_file_is_chosen(page, known):
    """Dropping on the field is the same as choosing."""
    page.execute_script(
        """const transfer = new DataTransfer();
        transfer.items.add(new File([arguments[0]], 'x.tlog-proof'));
        document.getElementById('verifier-drop').dispatchEvent(
          new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
        document.getElementById('verifier-keys').value = arguments[1];
        document.querySelector('#verifier-form button').click();""",
        known["tlog_proof"],
        known["vkey"],
    )
    assert verdict(page).text.startswith("HOLDS proof of one entry")


@pytest.mark.slow
def test_fifty_megabytes_do_not_freeze_the_page(page, tmp_path, vkey, signer):
    """The page answers all the while, and is done within a minute."""
    body = b'{"attributes":{"x":"' + "ü\\n".encode() * 10_000 + b'"}}'
    chain = chain_of(
        1000, drafts=[span(n, body=body, body_hash=body_hash(body)) for n in range(1, 1000)]
    )
    output = io.BytesIO()
    write_export(output, chain.note(1000, signer), chain.entries, chain.node)
    path = _write(tmp_path, "e.jsonl", output.getvalue())
    assert path.stat().st_size > 50_000_000
    page.execute_script(
        """globalThis.longest = 0; let last = performance.now();
        setInterval(() => { longest = Math.max(longest, performance.now() - last); last = performance.now(); }, 10);"""
    )
    began = time.monotonic()
    assert fill_in(page, path, str(vkey)).text.startswith("HOLDS export: entries 0 to 999")
    assert time.monotonic() - began < 60
    assert page.execute_script("return longest") < 1000


def test_many_ranges_are_quick(page, signer, vkey):
    """Two hundred ranges of one entry each, out of six hundred entries."""
    chain = chain_of(600)
    ranges = tuple((seq, seq) for seq in range(0, 600, 3))
    output = io.BytesIO()
    entries = [chain.entries[first] for first, _ in ranges]
    write_export(output, chain.note(600, signer), entries, chain.node, ranges)
    octets = base64.b64encode(output.getvalue()).decode()
    case = {"kind": "export", "octets": octets, "keys": [str(vkey)], "partial": True}
    began = time.monotonic()
    assert judge(page, [case | {"checkpoint": None}])[0]["findings"] == []
    assert time.monotonic() - began < 5
