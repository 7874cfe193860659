"""Attacks on exports, run as an auditor runs them: rows 45, 53 and 54 through the command."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bijotel.checkpoint import sign_checkpoint
from bijotel.cli.app import run
from bijotel.export import write_export
from bijotel.keys import KeyRing
from bijotel.merkle import node_hash
from bijotel.seal import entry_header, entry_leaf
from bijotel.signing import SigningKey, generate_signing_key
from tests.attacks.evidence import KEY, MASTER, Writer, span

SIGNER = generate_signing_key("example.com/audit")
RING = KeyRing(KEY)
MIDDLE = 50


class Chain(NamedTuple):
    """A chain of 101 entries, and what it looks like as an export."""

    writer: Writer
    lines: list[bytes]
    """The header, then one line an entry."""


def node_of(writer: Writer) -> Callable[[int, int], bytes]:
    """Knows the perfect subtrees of a writer's chain, by the definition."""
    leaves = [entry_leaf(entry_header(entry), entry.tag) for entry in writer.entries]

    def node(level: int, position: int) -> bytes:
        if level == 0:
            return leaves[position]
        return node_hash(node(level - 1, 2 * position), node(level - 1, 2 * position + 1))

    return node


def export(writer: Writer, *ranges: tuple[int, int], signer: SigningKey = SIGNER) -> list[bytes]:
    """An export of ranges of a writer's chain under a checkpoint of all of it."""
    output = io.BytesIO()
    note = sign_checkpoint(writer.head, RING, [signer])
    wanted = ranges or ((0, writer.head.seq),)
    entries = [writer.entries[seq] for first, last in wanted for seq in range(first, last + 1)]
    write_export(output, note, entries, node_of(writer), wanted)
    return output.getvalue().splitlines(keepends=True)


@pytest.fixture(scope="module")
def chain() -> Chain:
    writer = Writer()
    writer.append(*map(span, range(1, 101)))
    return Chain(writer, export(writer))


@pytest.fixture
def verdict(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Verify lines with the public key only and with the secret; both say the same."""

    def verify(lines: list[bytes], *options: str) -> tuple[int, str | None, int | None, str | None]:
        path = tmp_path / "evidence.jsonl"
        path.write_bytes(b"".join(lines))
        ends = []
        for secret in ("", MASTER.hex()):
            monkeypatch.setenv("BIJOTEL_HMAC_SECRET", secret)
            capsys.readouterr()
            command = ["verify-export", str(path), "--pubkey", str(SIGNER.verifier), *options]
            code = run([*command, "--json"])
            document = json.loads(capsys.readouterr().out)
            finding = (document["findings"] or [{}])[0]
            ends.append((code, *(finding.get(name) for name in ("code", "seq", "column"))))
            assert run(command) == code
            out = capsys.readouterr().out
            assert code == 0 or not out.startswith("OK")
        assert {end[0] for end in ends} == {ends[0][0]}
        return ends[0]

    return verify


def edited(line: bytes, **members: Any) -> bytes:
    """An entry's line with members changed, spelled as ours are."""
    return (
        json.dumps(
            {**json.loads(line), **members}, separators=(",", ":"), ensure_ascii=False
        ).encode()
        + b"\n"
    )


def test_an_honest_export(chain: Chain, verdict):
    """Passes, also in part where that was asked for."""
    assert verdict(chain.lines) == (0, None, None, None)
    part = export(chain.writer, (3, 9), (40, 40))
    assert verdict(part, "--partial") == (0, None, None, None)


def test_row_45_an_entry_edited(chain: Chain, verdict):
    """The body, or any column of it."""
    line = chain.lines[1 + MIDDLE]
    body = json.loads(line)["body"].replace("empty", "full!")
    changes = {
        "body": body, "name": "x", "kind": "gap", "tag": "ee" * 32, "trace_id": "ee" * 16,
        "sealed_at_unix_nano": "1", "start_unix_nano": "1", "key_id": "ee" * 8, "epoch": 1,
    }  # fmt: skip
    for name, value in changes.items():
        lines = list(chain.lines)
        lines[1 + MIDDLE] = edited(line, **{name: value})
        code, found, *_ = verdict(lines)
        assert (code, found) in {(1, "checkpoint-mismatch"), (1, "link-mismatch")}, name


def test_row_45_a_line_of_another_spelling(chain: Chain, verdict):
    """A space, a capital in a hash, a member twice: there is one spelling."""
    line = chain.lines[1 + MIDDLE]
    tag = json.loads(line)["tag"].encode()
    for other in (
        line.replace(b'"epoch":0', b'"epoch": 0'),
        line.replace(tag, tag.upper()),
        line.replace(b'"epoch":0', b'"epoch":0,"epoch":0'),
        line.replace(b'"epoch":0', b'"epoch":0.0'),
        b"junk\n",
    ):
        lines = list(chain.lines)
        lines[1 + MIDDLE] = other
        code, found, seq, _ = verdict(lines)
        assert (code, seq) == (1, MIDDLE)
        assert found in {"malformed-entry", "type-mismatch"}


def test_row_45_an_entry_removed(chain: Chain, verdict):
    """The next one stands in its place."""
    lines = list(chain.lines)
    del lines[1 + MIDDLE]
    assert verdict(lines) == (1, "seq-gap", MIDDLE, "seq")


def test_row_45_reordered(chain: Chain, verdict):
    """Two neighbours exchanged."""
    lines = list(chain.lines)
    lines[1 + MIDDLE], lines[2 + MIDDLE] = lines[2 + MIDDLE], lines[1 + MIDDLE]
    assert verdict(lines) == (1, "seq-gap", MIDDLE, "seq")


def test_row_45_renumbered(chain: Chain, verdict):
    """An entry removed and all that follow renumbered."""
    lines = [
        *chain.lines[: 1 + MIDDLE],
        *(edited(line, seq=json.loads(line)["seq"] - 1) for line in chain.lines[2 + MIDDLE :]),
    ]
    assert verdict(lines) == (1, "link-mismatch", MIDDLE, "prev_tag")


def test_row_45_an_entry_added(chain: Chain, verdict):
    """Twice in its place, or one more at the end."""
    lines = list(chain.lines)
    lines.insert(1 + MIDDLE, lines[1 + MIDDLE])
    assert verdict(lines) == (1, "seq-repeat", MIDDLE, "seq")
    longer = Writer()
    longer.append(*map(span, range(1, 102)))
    lines = [*chain.lines, export(longer)[-1]]
    assert verdict(lines) == (1, "checkpoint-mismatch", 101, "seq")


def test_row_45_metadata_edited(chain: Chain, verdict):
    """Nothing stands in the header that is not checked."""
    header = json.loads(chain.lines[0])
    for name, value, code in (
        ("format", "bijotel-export/2", "malformed-export"),
        ("ranges", [[0, 99]], "proof"),
        ("proof", ["ee" * 32], "malformed-export"),
        ("checkpoint", header["checkpoint"].replace("\n101\n", "\n100\n"), "checkpoint-signature"),
        ("more", 1, "malformed-export"),
    ):
        lines = [edited(chain.lines[0], **{name: value}), *chain.lines[1:]]
        exit_code, found, *_ = verdict(lines)
        assert exit_code == 1
        assert found == ("malformed-export" if code == "proof" else code), name


def test_row_45_head_cut(chain: Chain, verdict):
    """The first entries, or the header, gone."""
    assert verdict([chain.lines[0], *chain.lines[11:]]) == (1, "seq-gap", 0, "seq")
    assert verdict(chain.lines[1:]) == (1, "malformed-export", None, "header")


def test_row_45_tail_cut(chain: Chain, verdict):
    """The last entries gone, or half a line."""
    assert verdict(chain.lines[:-10]) == (1, "truncated", 91, "seq")
    half = [*chain.lines[:-1], chain.lines[-1][:-40]]
    assert verdict(half) == (1, "malformed-export", 100, "line")


def test_row_45_emptied(verdict):
    """A file of no octets is never "0 entries verified"."""
    assert verdict([]) == (1, "truncated", 0, "header")


def test_row_45_wholly_replaced(chain: Chain, verdict):
    """Another log under another key, and under the same name."""
    for name in ("example.org/other", SIGNER.verifier.name):
        other = Writer()
        other.append(*map(span, range(301, 401)))
        lines = export(other, signer=generate_signing_key(name))
        code, found, *_ = verdict(lines)
        assert code == 1
        assert found == ("checkpoint-origin" if "other" in name else "checkpoint-signature")


def test_row_53_export_middle(chain: Chain, verdict):
    """A partial export, an inner entry edited, its tag kept; with the public key only."""
    lines = export(chain.writer, (40, 60))
    body = json.loads(lines[11])["body"].replace("empty", "full!")
    lines[11] = edited(lines[11], body=body)
    code, found, _, column = verdict(lines, "--partial")
    assert (code, found, column) == (1, "checkpoint-mismatch", "ranges")


def test_row_54_export_reproved(chain: Chain, verdict, tmp_path: Path):
    """A whole export cut and proved anew without any key: it says itself that it is a part."""
    reproved = export(chain.writer, (0, 90))
    assert verdict(reproved) == (1, "export-partial", None, "ranges")
    assert verdict(reproved, "--partial") == (0, None, None, None)
    own = tmp_path / "own.checkpoint"
    own.write_bytes(sign_checkpoint(chain.writer.head, RING, [SIGNER]))
    assert verdict(chain.lines, "--checkpoint", str(own)) == (0, None, None, None)
