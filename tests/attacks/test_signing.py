"""Rows 50 and 57 as the signer's command meets them: what contradicts itself is not signed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bijotel import seal
from bijotel.cli.app import run
from bijotel.note import parse_note
from bijotel.signing import generate_signing_key, save_signing_keys
from tests.attacks.evidence import KEY, MASTER, SEALED_AT, Evidence, Writer, no_finding, span

SIGNER = generate_signing_key("example.com/audit")


def checkpoint(evidence: Evidence, out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run ``bijotel checkpoint``; give the code of its error, or nothing."""
    private = out.with_name("signing.pem")
    if not private.exists():
        save_signing_keys((SIGNER, private))
    evidence.settle()
    capsys.readouterr()
    arguments = ["--db", str(evidence.path), "--signing-key", f"file:{private}", "--out", str(out)]
    exit_code = run(["checkpoint", *arguments, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert exit_code == (1 if "error" in document else 0), document
    return document["error"]["code"] if exit_code else ""


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", MASTER.hex())


@pytest.mark.parametrize("column", ["seq", "tag", "tree", "mac"])
def test_row_50_nothing_is_signed(
    evidence: Evidence, tmp_path: Path, capsys: pytest.CaptureFixture[str], column: str
):
    """The head edited without the key: exit 1, no note and no entry."""
    value = 99 if column == "seq" else bytes(len(getattr(evidence.head(), column)))
    evidence.set_head(**{column: value})
    before = evidence.entries()
    out = tmp_path / "newest.checkpoint"
    assert checkpoint(evidence, out, capsys) == "head-mismatch"
    assert not out.exists()
    assert evidence.entries() == before


def test_row_57_signer_rollback(
    evidence: Evidence, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """A store rolled back, and gone on with: exit 1, the newer note stays, nothing is recorded."""
    out = tmp_path / "newest.checkpoint"
    assert checkpoint(evidence, out, capsys) == ""
    newest = out.read_bytes()
    assert parse_note(newest).text.split("\n")[1] == "101"
    older = Writer()
    older.append(*map(span, range(1, 91)))
    evidence.delete(91, 101)
    evidence.set_head(**older.head._asdict())
    no_finding(evidence.verify())
    assert checkpoint(evidence, out, capsys) == "truncated"
    assert evidence.entries() == older.entries
    batch = seal.seal_entries(older.head, [*map(span, range(301, 321))], KEY, 2 * SEALED_AT)
    evidence.insert(*batch.entries)
    evidence.set_head(**batch.head._asdict())
    no_finding(evidence.verify())
    assert checkpoint(evidence, out, capsys) == "checkpoint-mismatch"
    assert evidence.entries() == [*older.entries, *batch.entries]
    assert out.read_bytes() == newest
