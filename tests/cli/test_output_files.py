"""What a command writes never takes the place of what must not be lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from bijotel.quoting import quoted
from tests.cli.conftest import KEY
from tests.conftest import MASTER_KEY


@pytest.fixture
def evidence(bijotel: Any, secret: Any, db: Path, tmp_path: Path) -> dict[str, Path]:
    """A chain, keys and two checkpoints of it."""
    names = {name: tmp_path / name for name in ("signing.pem", "old.ckpt", "new.ckpt")}
    assert bijotel("keygen", "--signing", "-o", names["signing.pem"]).code == 0
    for name in ("old.ckpt", "new.ckpt"):
        signed = f"file:{names['signing.pem']}"
        out = ("--signing-key", signed, "--out", names[name])
        assert bijotel("checkpoint", "--db", db, *out).code == 0
    return {"db": db, "pub": tmp_path / "signing.pub", **names}


def commands(evidence: dict[str, Path], target: Path | str) -> list[tuple[Any, ...]]:
    db = ("--db", evidence["db"])
    new = ("--checkpoint", evidence["new.ckpt"])
    return [
        ("report", *db, "-o", target),
        ("prove", *db, 1, *new, "-o", target),
        ("export", *db, *new, "-o", target),
        ("export", *db, "--format", "otlp", "-o", target),
        ("consistency", evidence["old.ckpt"], evidence["new.ckpt"], *db, "-o", target),
        ("audit", *db, "--junit", target),
        ("regression", *db, "--plot", target),
    ]


def refusals(bijotel: Any, evidence: dict[str, Path], target: Path | str) -> set[str]:
    """Run every command that writes a file; none of them writes this one."""
    found = set()
    for command in commands(evidence, target):
        result = bijotel(*command)
        assert result.code == 2, command
        found.add(result.err)
    return found


def test_no_command_writes_over_a_store(bijotel, evidence, tmp_path):
    """Neither over the chain itself, nor over another database."""
    db = evidence["db"]
    before = db.read_bytes()
    wanted = {
        f"error: {db}: is read here; expected another name to write to\n",
        f"error: {db}: is a database; nothing is written over it\n",
        f"error: --plot {db}: expected a name that ends in .png or .svg\n",
    }
    assert refusals(bijotel, evidence, db) <= wanted
    other = tmp_path / "other.png"
    shutil.copy(db, other)
    said = f"error: {other}: is a database; nothing is written over it\n"
    assert refusals(bijotel, evidence, other) == {said}
    assert db.read_bytes() == other.read_bytes() == before


def test_no_command_writes_over_a_key(bijotel, evidence):
    """A private key cannot be had again."""
    path = evidence["signing.pem"].rename(evidence["signing.pem"].with_suffix(".svg"))
    before = path.read_bytes()
    assert refusals(bijotel, evidence, path) == {
        f"error: {path}: is a key; nothing is written over it\n"
    }
    assert path.read_bytes() == before


def test_inputs_stay(bijotel, evidence):
    """A checkpoint is not replaced by what is made with it."""
    note = evidence["new.ckpt"].read_bytes()
    for command in commands(evidence, evidence["new.ckpt"])[1:5]:
        if "otlp" not in command:
            result = bijotel(*command)
            assert (result.code, result.err) == (
                2,
                f"error: {evidence['new.ckpt']}: is read here; expected another name to write to\n",
            )
    assert evidence["new.ckpt"].read_bytes() == note


def test_what_is_no_file_stays_what_it_is(bijotel, evidence, tmp_path):
    """A folder, a pipe, and the dash that means standard output elsewhere."""
    pipe = tmp_path / "pipe.svg"
    os.mkfifo(pipe)
    said = f"error: {pipe}: expected the name of a file, found something else\n"
    assert refusals(bijotel, evidence, pipe) == {said}
    assert pipe.is_fifo()
    result = bijotel("report", "--db", evidence["db"], "-o", "-")
    said = "error: -: expected the name of a file; nothing is written to a pipe\n"
    assert (result.code, result.err) == (2, said)
    assert not Path("-").exists()


def test_a_link_stays_a_link(bijotel, evidence, tmp_path):
    """What is written takes the place of the file that it leads to."""
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    real.write_text("old")
    link.symlink_to(real)
    assert bijotel("report", "--db", evidence["db"], "-o", link).code == 0
    assert link.is_symlink()
    assert real.read_bytes().lower().startswith(b"<!doctype html>")


def test_a_junit_file_is_whole_or_not_there(bijotel, evidence, tmp_path):
    """An audit that cannot be done leaves the file of the last one."""
    path = tmp_path / "junit.xml"
    assert bijotel("audit", "--db", evidence["db"], "--junit", path).code == 0
    whole = path.read_text()
    assert whole.rstrip().endswith("</testsuite>")
    assert bijotel("audit", "--db", evidence["db"], "--trace", "f" * 32, "--junit", path).code == 2
    assert path.read_text() == whole


def test_a_secret_is_never_quoted(bijotel, evidence, tmp_path):
    """Whoever names the wrong file does not find its content in a log."""
    secret = tmp_path / "secret.hex"
    secret.write_text(f"{MASTER_KEY.hex()}\n")
    pem = evidence["signing.pem"]
    hidden = [MASTER_KEY.hex()[:16], pem.read_text().splitlines()[1][:16]]
    for wrong in (secret, pem):
        for command in (
            (
                "verify",
                "--db",
                evidence["db"],
                "--checkpoint",
                evidence["new.ckpt"],
                "--pubkey",
                wrong,
            ),
            ("verify-proof", wrong, "--pubkey", evidence["pub"]),
            ("verify-export", wrong, "--pubkey", evidence["pub"]),
            ("prove", "--db", evidence["db"], 1, "--checkpoint", wrong, "-o", tmp_path / "p"),
        ):
            for more in ((), ("--json",)):
                result = bijotel(*command, *more)
                assert result.code in {1, 2, 3}
                assert not any(part in result.out + result.err for part in hidden), command


def test_what_is_quoted():
    """The beginning of most things, and only the length of a secret."""
    assert quoted("x" * 70) == repr("x" * 60)
    assert quoted(b"\xff\x00") == r"b'\xff\x00'"
    assert quoted(KEY.key_id.hex()) == repr(KEY.key_id.hex())
    assert quoted(MASTER_KEY.hex()) == "what looks like a secret (64 characters)"
    assert quoted(b"-----BEGIN PRIVATE KEY-----\nMC4") == "what looks like a secret (31 characters)"


def test_what_is_no_checkpoint_is_asked_wrongly(bijotel, evidence, tmp_path):
    """The wrong file says nothing about the store."""
    wrong = tmp_path / "app.py"
    wrong.write_text("print()\n")
    for command in (("prove", "--db", evidence["db"], 1), ("export", "--db", evidence["db"])):
        result = bijotel(*command, "--checkpoint", wrong, "-o", tmp_path / "out")
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(f"error: --checkpoint {wrong}: ")
        assert not (tmp_path / "out").exists()
