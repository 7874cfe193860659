"""``bijotel export`` and ``verify-export``: ranges, verdicts, OTLP, and what is refused."""

from __future__ import annotations

import gzip
import json
import os
import stat
import subprocess
import sys

import pytest

from bijotel.traces.reader import read_traces
from tests.cli.conftest import CHAIN_HEX, OTHER_SECRET, append, body, gap, span, tamper
from tests.cli.evidence import key, note, save
from tests.conftest import ROOT


@pytest.fixture
def pair(tmp_path):
    return save(tmp_path)


@pytest.fixture
def checkpoint(db, tmp_path):
    """A checkpoint of entries 0 to 8: the genesis, five spans, two of one trace, a gap."""
    append(db, [span(3, span_id="aa" * 8, name="second"), span(6), gap(2)])
    path = tmp_path / "a.checkpoint"
    path.write_bytes(note(db))
    return path


@pytest.fixture
def whole(bijotel, db, checkpoint, tmp_path):
    """An export of everything."""
    path = tmp_path / "evidence.jsonl"
    assert bijotel("export", "--db", db, "--checkpoint", checkpoint, "-o", path).code == 0
    return path


def lines(path):
    octets = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return octets.splitlines(keepends=True)


# --- our own format --------------------------------------------------------------------------


def test_a_whole_export(bijotel, db, checkpoint, pair, tmp_path):
    """Everything below the checkpoint, for its owner alone; it passes with the public key."""
    append(db, [span(70)])
    out = tmp_path / "evidence.jsonl"
    result = bijotel("export", "--db", db, "--checkpoint", checkpoint, "-o", out)
    assert result == (0, f"exported: entries 0 to 8 of 9\nwritten:  {out} (10 lines)\n", "")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert "BIJOTEL_HMAC_SECRET" not in os.environ
    result = bijotel("verify-export", out, "--pubkey", pair.public)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        f"OK: chain {CHAIN_HEX}: no findings, 9 entries read (1 gap, 1 genesis, 7 span)",
        "not checked: entries sealed after the checkpoint of size 9",
        "not checked: tags (they need the HMAC secret)",
    ]


def test_the_secret_adds_the_tags(bijotel, secret, whole, pair, *, tmp_path, monkeypatch):
    """From the environment or a file; one that seals nothing here checks nothing."""
    document = bijotel("verify-export", whole, "--pubkey", pair.public, "--json").document
    assert (document["checked"]["tags"], document["checked"]["entries"]) == (9, 9)
    monkeypatch.delenv("BIJOTEL_HMAC_SECRET")
    path = tmp_path / "other.hex"
    path.touch(mode=0o600)
    path.write_text(OTHER_SECRET)
    result = bijotel("verify-export", whole, "--pubkey", pair.public, "--key", f"file:{path}")
    assert result.code == 0
    assert "notice: key-unknown: tags of 9 entries not checked" in result.out


def test_a_compressed_export(bijotel, db, checkpoint, whole, pair, *, tmp_path):
    """A name that ends in .gz: the same lines, compressed."""
    out = tmp_path / "evidence.jsonl.gz"
    document = bijotel(
        "export", "--db", db, "--checkpoint", checkpoint, "-o", out, "--json"
    ).document
    assert document == {
        "chain": CHAIN_HEX, "size": 9, "ranges": [[0, 8]], "lines": 10, "file": str(out),
    }  # fmt: skip
    assert lines(out) == lines(whole)
    assert bijotel("verify-export", out, "--pubkey", pair.public).code == 0


@pytest.mark.parametrize(
    ("arguments", "ranges"),
    [
        (("--from", 3, "--to", 5), "3 to 5"),
        (("--from", 7), "7 to 8"),
        (("--to", 0), "0 to 0"),
        (("--trace", f"{3:032x}"), "3 to 3, 6 to 6"),
    ],
)
def test_a_partial_export(bijotel, db, checkpoint, pair, tmp_path, *, arguments, ranges):
    """It passes only where part of a log was asked for, and names its ranges first."""
    out = tmp_path / "part.jsonl"
    assert (
        bijotel("export", "--db", db, "--checkpoint", checkpoint, *arguments, "-o", out).code == 0
    )
    result = bijotel("verify-export", out, "--pubkey", pair.public)
    assert result.code == 1
    assert result.out.startswith(f"PARTIAL: entries {ranges} of 9\nFAILED: chain {CHAIN_HEX}: ")
    assert (
        f"  export-partial: column ranges: the export holds entries {ranges} of 9 only"
        in result.out
    )
    result = bijotel("verify-export", out, "--pubkey", pair.public, "--partial")
    assert result.code == 0
    assert result.out.startswith(f"PARTIAL: entries {ranges} of 9\nOK: chain {CHAIN_HEX}: ")
    assert "not checked: entries outside the ranges\n" in result.out


def test_the_readers_own_checkpoint(bijotel, db, checkpoint, whole, pair, *, tmp_path):
    """Size and root must be those that the reader keeps."""
    compare = ("verify-export", whole, "--pubkey", pair.public, "--checkpoint")
    assert bijotel(*compare, checkpoint).code == 0
    append(db, [span(80)])
    (tmp_path / "later").write_bytes(note(db))
    result = bijotel(*compare, tmp_path / "later")
    assert result.code == 1
    assert f"FAILED: export {whole}: 1 finding\n  checkpoint-mismatch: column size: " in result.out
    fork = append(tmp_path / "fork.db", [span(number) for number in range(50, 58)])
    (tmp_path / "fork").write_bytes(note(fork))
    result = bijotel(*compare, tmp_path / "fork")
    assert "  checkpoint-inconsistent: column size: " in result.out


def test_every_key_must_have_signed(bijotel, whole, pair, tmp_path):
    """Row 55, for exports."""
    keys = ("--pubkey", pair.public, "--pubkey", save(tmp_path, 0, 6).public)
    result = bijotel("verify-export", whole, *keys, "--json")
    assert result.code == 1
    assert [each["code"] for each in result.document["findings"]] == ["checkpoint-signature"]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE entries SET body = x'7b7d' WHERE seq = 3", "body-hash-mismatch"),
        ("UPDATE entries SET name = 'x' WHERE seq = 1", "checkpoint-mismatch"),
        ("DELETE FROM entries WHERE seq = 3", "seq-gap"),
        ("DELETE FROM entries WHERE seq > 6", "seq-gap"),
    ],
)
def test_a_store_that_is_not_what_was_signed(bijotel, db, checkpoint, tmp_path, statement, *, code):
    """Exit 1; the file that was there stays."""
    out = tmp_path / "evidence.jsonl"
    out.write_text("precious")
    tamper(db, statement)
    result = bijotel("export", "--db", db, "--checkpoint", checkpoint, "-o", out, "--json")
    assert (result.code, result.document["error"]["code"]) == (1, code)
    assert out.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--checkpoint is required: without one an export proves nothing"),
        (("--checkpoint", "FILE", "--from", 3, "--trace", "0" * 32), "one of the two"),
        (("--checkpoint", "FILE", "--trace", "xyz"), "--trace 'xyz': expected 32 hex digits"),
        (("--checkpoint", "FILE", "--trace", f"{77:032x}"), "none of the first 9 entries is of"),
        (("--checkpoint", "FILE", "--to", 9), "expected 0 <= first <= last < 9"),
        (("--checkpoint", "FILE", "--from", 4, "--to", 2), "expected 0 <= first <= last < 9"),
        (("--checkpoint", "FILE", "--chain", "default"), "the checkpoint names the chain"),
    ],
)
def test_exporting_asked_wrongly(bijotel, db, checkpoint, tmp_path, *, arguments, message):
    """Exit 2, and nothing is written."""
    given = [checkpoint if each == "FILE" else each for each in arguments]
    result = bijotel("export", "--db", db, *given, "-o", tmp_path / "e")
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert not (tmp_path / "e").exists()


def test_verifying_asked_wrongly(bijotel, whole, tmp_path):
    """No key: exit 2. No file: exit 3."""
    message = "--pubkey is required: without it an export proves nothing"
    assert bijotel("verify-export", whole) == (2, "", f"error: {message}\n")
    result = bijotel("verify-export", tmp_path / "no", "--pubkey", str(key().verifier))
    assert result == (
        3,
        "",
        f"error: {tmp_path / 'no'}: cannot be read: No such file or directory\n",
    )


@pytest.mark.parametrize(
    ("arguments", "options", "code"),
    [((), (), 0), (("--from", 3), (), 1), (("--from", 3), ("--partial",), 0)],
)
def test_the_verifier_that_stands_alone_agrees(
    bijotel, db, checkpoint, pair, tmp_path, *, arguments, options, code
):
    """``tools/verify_evidence.py`` reads what the command wrote, and says the same."""
    out = tmp_path / "evidence.jsonl.gz"
    assert (
        bijotel("export", "--db", db, "--checkpoint", checkpoint, *arguments, "-o", out).code == 0
    )
    check = (out, "--pubkey", pair.public, *options)
    assert bijotel("verify-export", *check).code == code
    command = [sys.executable, "-I", ROOT / "tools" / "verify_evidence.py", *check]
    assert subprocess.run(command, capture_output=True, check=False).returncode == code
    proof = tmp_path / "p"
    assert bijotel("prove", "--db", db, 3, "--checkpoint", checkpoint, "-o", proof).code == 0
    command = [*command[:3], proof, "--pubkey", pair.public]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "entry 3 of bijotel/" in done.stdout


@pytest.mark.parametrize("name", ["evidence.jsonl", "evidence.jsonl.gz"])
def test_an_export_from_a_pipe(bijotel, db, checkpoint, pair, tmp_path, *, name):
    """Both verifiers read what cannot be read twice."""
    out = tmp_path / name
    assert bijotel("export", "--db", db, "--checkpoint", checkpoint, "-o", out).code == 0
    for verifier in (
        (sys.executable, "-m", "bijotel", "verify-export"),
        (sys.executable, "-I", ROOT / "tools" / "verify_evidence.py"),
    ):
        command = [*verifier, "/dev/stdin", "--pubkey", pair.public]
        done = subprocess.run(
            command, input=out.read_bytes(), capture_output=True, check=False, cwd=ROOT
        )
        assert (done.returncode, done.stderr) == (0, b"")


def test_an_export_that_cannot_be_read(bijotel, pair):
    """The file is named, and nothing is said of what it might hold."""
    result = bijotel("verify-export", "/proc/self/mem", "--pubkey", pair.public)
    assert result.code == 3
    assert result.err == "error: /proc/self/mem: cannot be read: Input/output error\n"


# --- OTLP ------------------------------------------------------------------------------------


def test_otlp_of_a_checkpoint(bijotel, db, checkpoint, tmp_path):
    """A line for each span, which every reader of OTLP/JSON reads; nothing else is in it."""
    out = tmp_path / "spans.jsonl"
    result = bijotel(
        "export", "--db", db, "--checkpoint", checkpoint, "--format", "otlp", "-o", out
    )
    assert result == (0, f"exported: entries 0 to 8 of 9\nwritten:  {out} (7 lines)\n", "")
    spans = [record for trace in read_traces([out]) for record in trace.spans]
    assert "aa" * 8 in {record.span_id for record in spans}
    assert {record.attributes["gen_ai.input.messages"] for record in spans} == {
        "question 1", "question 2", "question 3", "question 4", "question 5", "question 6",
    }  # fmt: skip
    first = json.loads(lines(out)[0])["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert first["traceId"] == f"{1:032x}"
    assert {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "120"}} in first["attributes"]


def test_otlp_of_a_verified_chain(bijotel, secret, db, checkpoint, tmp_path):
    """Without a checkpoint the secret vouches for the chain; ranges and traces work the same."""
    out = tmp_path / "spans.jsonl"
    arguments = ("export", "--db", db, "--format", "otlp", "-o", out)
    assert bijotel(*arguments).out.startswith("exported: entries 0 to 8 of 9\n")
    assert len(lines(out)) == 7
    assert bijotel(*arguments, "--from", 2, "--to", 4).code == 0
    assert len(lines(out)) == 3
    assert bijotel(*arguments, "--trace", f"{3:032x}").code == 0
    assert [b'"name":"second"' in line for line in lines(out)] == [False, True]
    assert bijotel(*arguments, "--to", 9).err == "error: the chain has entries 0 to 8\n"


def test_otlp_of_a_tampered_chain(bijotel, secret, db, checkpoint, tmp_path):
    """Exit 1: what was not checked is not given out, with a checkpoint or without."""
    tamper(db, "UPDATE entries SET name = 'x' WHERE seq = 3")
    out = tmp_path / "spans.jsonl"
    arguments = ("export", "--db", db, "--format", "otlp", "-o", out)
    assert bijotel(*arguments).code == 1
    assert bijotel(*arguments, "--checkpoint", checkpoint).code == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("draft", "code", "message"),
    [
        (
            body("gap", {})._replace(kind="span", fmt="span/9"),
            3,
            "entry 9: format span/9 is not known",
        ),
        (body("gap", {"a": 1})._replace(kind="span", fmt="span/1"), 1, "entry 9: no span body"),
    ],
)
def test_otlp_of_a_span_that_cannot_be_read(bijotel, db, checkpoint, draft, *, code, message):
    """Exit 3 for a newer format, 1 for no span at all: nothing is left out in silence."""
    append(db, [draft])
    checkpoint.write_bytes(note(db))
    out = checkpoint.with_name("spans.jsonl")
    result = bijotel(
        "export", "--db", db, "--checkpoint", checkpoint, "--format", "otlp", "-o", out
    )
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert not out.exists()


def test_otlp_without_key_and_checkpoint(bijotel, db, tmp_path):
    """Exit 3: nothing says that the entries are what was sealed."""
    result = bijotel("export", "--db", db, "--format", "otlp", "-o", tmp_path / "x")
    message = "neither --checkpoint nor a key: the entries cannot be verified"
    assert result == (3, "", f"error: {message}\n")
