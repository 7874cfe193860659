"""``bijotel match``: is this text what the chain holds a digest of?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bijotel.keys import HmacKey
from bijotel.model import Event, SpanRecord, Status
from bijotel.privacy import digested
from tests.cli.conftest import CHAIN_ID, KEY, OTHER_SECRET, append, gap, rag, source, span, tamper

pytestmark = pytest.mark.usefixtures("secret")

PROMPT = json.dumps([{"role": "user", "content": "may I see the contract?"}])


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A chain in digest mode: entry 1 is a call with words in every place, entry 2 a gap."""
    record = span(
        1,
        attributes={
            "gen_ai.input.messages": PROMPT,
            "gen_ai.output.messages": "no, you may not",
            "structured": [{"role": "user"}, {"text": "ü"}],
            **rag([source(content="the passage itself", document_id="sha256:00ff")]),
        },
        events=(Event("e", 1, {"gen_ai.event.content": "in an event"}),),
        status=Status("ERROR", "what went wrong"),
        inherited={"bijotel.rag.note": "from the context"},
    )
    return append(tmp_path / "chain.db", [sealed(record), gap(3)])


def sealed(record: SpanRecord, key: HmacKey = KEY) -> SpanRecord:
    return digested(record, key.digest_key(CHAIN_ID))


def presented(db: Path, text: str) -> Path:
    path = db.with_name("text")
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (PROMPT, "attributes gen_ai.input.messages"),
        ("no, you may not", "attributes gen_ai.output.messages"),
        ("no, you may not\n", "attributes gen_ai.output.messages"),
        ('[{"role": "user"},\n {"text": "\\u00fc"}]\n', "attributes structured"),
        ("in an event", "events[0] gen_ai.event.content"),
        ("what went wrong", "status description"),
        ("from the context", "inherited bijotel.rag.note"),
        ("the passage itself", "attributes bijotel.rag.sources[0].content"),
        ("sha256:00ff", "attributes bijotel.rag.sources[0].document_id"),
        ("gpt-test", "attributes gen_ai.request.model"),
    ],
)
def test_a_text_that_was_sealed(bijotel, private: Path, text: str, place: str):
    """Exit 0, and where it stands; the file's last newline does not matter."""
    result = bijotel("match", "--db", private, 1, presented(private, text))
    assert (result.code, result.out) == (0, f"MATCH: entry 1: {place}\n")
    document = bijotel("match", "--db", private, 1, presented(private, text), "--json").document
    assert document == {"chain": CHAIN_ID.hex(), "seq": 1, "matches": [place]}


@pytest.mark.parametrize(
    "text", ["", "no, you may not.", "No, you may not", "may I see the contract?", "{", "[" * 5000]
)
def test_a_text_that_was_not(bijotel, private: Path, text: str):
    """Exit 1: a part of a value, or one that differs in a letter, is another text."""
    result = bijotel("match", "--db", private, 1, presented(private, text))
    assert (result.code, result.out) == (1, "NO MATCH: entry 1: no value is this text\n")


def test_a_chain_with_full_content(bijotel, db: Path):
    """Values that stand in the chain are compared as they are."""
    result = bijotel("match", "--db", db, 3, presented(db, "question 3"))
    assert (result.code, result.out) == (0, "MATCH: entry 3: attributes gen_ai.input.messages\n")


def test_any_key_of_the_ring(bijotel, tmp_path: Path):
    """A span may have been encoded just before its chain was handed over to another key."""
    other = HmacKey(bytes.fromhex(OTHER_SECRET))
    record = span(1, attributes={"gen_ai.output.messages": "yes"})
    db = append(tmp_path / "chain.db", [sealed(record, other)])
    text = presented(db, "yes")
    assert bijotel("match", "--db", db, 1, text).code == 1
    path = tmp_path / "other"
    path.write_text(OTHER_SECRET)
    path.chmod(0o600)
    keys = ("--key", "env:BIJOTEL_HMAC_SECRET", "--key", f"file:{path}")
    assert bijotel("match", "--db", db, *keys, 1, text).code == 0


def test_an_entry_that_does_not_verify(bijotel, private: Path):
    """It is said before anything is compared."""
    tamper(private, "UPDATE entries SET name = 'x' WHERE seq = 1")
    result = bijotel("match", "--db", private, 1, presented(private, "no, you may not"))
    assert result.code == 1
    assert "error: column-mismatch: entry 1, column name" in result.err


def test_without_the_right_key(bijotel, private: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever knows the text and not the key learns nothing."""
    text = presented(private, "no, you may not")
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", OTHER_SECRET)
    assert bijotel("match", "--db", private, 1, text).code in {1, 3}
    monkeypatch.delenv("BIJOTEL_HMAC_SECRET")
    assert bijotel("match", "--db", private, 1, text).code == 2


def test_what_is_asked_wrongly(bijotel, private: Path, tmp_path: Path):
    """An entry that is no span or not there, a file that is none, no text."""
    text = presented(private, "x")
    result = bijotel("match", "--db", private, 2, text)
    assert (result.code, "is of kind gap, expected a span" in result.err) == (2, True)
    assert bijotel("match", "--db", private, 9, text).code == 2
    assert bijotel("match", "--db", private, 1, tmp_path / "missing").code == 3
    text.write_bytes(b"\xff\xfe")
    result = bijotel("match", "--db", private, 1, text)
    assert (result.code, "expected UTF-8 text" in result.err) == (2, True)
