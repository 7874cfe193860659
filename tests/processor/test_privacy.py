"""Private text is taken out at one place, before anything is sealed or spooled."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Status, StatusCode

from bijotel import ConfigurationError, HmacChainSpanProcessor, RAGSource, rag_provenance
from bijotel.canonical import Digest
from bijotel.keys import HmacKey
from bijotel.model import SpanRecord
from bijotel.privacy import digest, digested
from tests.processor.conftest import CHAT, KEY, entries, spans

Make = Callable[..., HmacChainSpanProcessor]
PROMPT = "my account number is 4711"


def ask(provider: TracerProvider, prompt: str = PROMPT) -> None:
    with provider.get_tracer("t").start_as_current_span("chat m", attributes=CHAT) as span:
        span.set_attribute("gen_ai.input.messages", prompt)
        span.set_attribute("gen_ai.usage.input_tokens", 12)
        span.add_event("gen_ai.content", {"text": prompt, "exception.type": "E"})
        span.set_status(Status(StatusCode.ERROR, f"failed on {prompt}"))


def cancel() -> SpanRecord:
    raise asyncio.CancelledError


def redact_once() -> Callable[[SpanRecord], SpanRecord]:
    """Be cancelled the first time, and change nothing after that."""
    left = [cancel]
    return lambda record: left.pop()() if left else record


def octets_of(folder: Path) -> bytes:
    """Everything that the folder holds, store and spool and logs."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_digest_mode_matches_the_published_octets(data: Path):
    """Key and digest are those of the format's known answers."""
    known = json.loads((data / "known-answers-more.json").read_text())
    chain_id = bytes.fromhex("00112233445566778899aabbccddeeff")
    key = HmacKey(bytes(range(32))).digest_key(chain_id)
    assert key.hex() == known["digest_key"]
    one = known["digest"]
    assert digest(one["key"], one["value"], key) == Digest.of(
        len(bytes.fromhex(one["octets"])), bytes.fromhex(one["hmac"])
    )


def test_digest_mode_holds_no_text(provider: TracerProvider, make: Make, db: Path):
    """Neither the prompt nor a hash that a guess could confirm is in any file."""
    make(content="digest")
    for prompt in (PROMPT, "yes"):
        ask(provider, prompt)
    provider.force_flush()
    stored = octets_of(db.parent)
    assert PROMPT.encode() not in stored
    for guess in (PROMPT, "yes"):
        for text in (guess, json.dumps(guess)):
            for found in (
                hashlib.sha256(text.encode()).hexdigest().encode(),
                hashlib.sha256(text.encode()).digest(),
            ):
                assert found not in stored
    first, second = spans(db)
    assert isinstance(first.attributes["gen_ai.input.messages"], Digest)
    assert first.attributes["gen_ai.usage.input_tokens"] == 12
    assert first.attributes["gen_ai.request.model"] == "m"
    assert isinstance(first.events[0].attributes["text"], Digest)
    assert first.events[0].attributes["exception.type"] == "E"
    assert isinstance(first.status.description, Digest)
    assert first.attributes["gen_ai.input.messages"] != second.attributes["gen_ai.input.messages"]


def test_equal_values_have_equal_digests(provider: TracerProvider, make: Make, db: Path):
    """Repeated calls are still found: dedup needs it, and the docs say so."""
    make(content="digest")
    ask(provider), ask(provider), ask(provider, "other")
    provider.force_flush()
    keys = [entry.dedup_key for entry in entries(db)[1:]]
    assert keys[0] == keys[1] != keys[2]


def test_sources_keep_what_names_the_retrieval(provider: TracerProvider, make: Make, db: Path):
    """Ids that are hashes of a passage, addresses and metadata are digested, the rest stays."""
    make(content="digest")
    hashed = f"sha256:{hashlib.sha256(b'passage').hexdigest()}"
    sources = [
        RAGSource(hashed, 0, "s3://b/secret.pdf", "qdrant", similarity_score=0.5),
        RAGSource("doc-7", 1, metadata={"title": PROMPT}),
    ]
    with rag_provenance(sources):
        ask(provider)
    provider.force_flush()
    call = next(span for span in spans(db) if span.name == "chat m")
    found = {**call.inherited, **call.attributes}
    first, second = json.loads(found["bijotel.rag.sources"])
    assert set(first["document_id"]) == {"$digest"}
    assert set(first["source_uri"]) == {"$digest"}
    assert (first["retriever"], first["similarity_score"]) == ("qdrant", 0.5)
    assert second["document_id"] == "doc-7"
    assert isinstance(found["bijotel.rag.sources_sha256"], Digest)
    assert found["bijotel.rag.source_count"] == 2
    for text in (hashed, "secret.pdf", PROMPT):
        assert text.encode() not in octets_of(db.parent)


def test_redact_decides_what_is_sealed(provider: TracerProvider, make: Make, db: Path):
    """The application's function gets a copy and returns what is sealed in its place."""

    def redact(record: SpanRecord) -> SpanRecord:
        record.attributes["gen_ai.input.messages"] = "gone"  # type: ignore[index]
        return replace(record, events=(), status=replace(record.status, description=None))

    seen: list[object] = []

    class Later:
        def on_start(self, span: object, parent_context: object = None) -> None: ...
        def _on_ending(self, span: object) -> None: ...
        def on_end(self, span: SpanRecord) -> None:
            seen.append(span.attributes["gen_ai.input.messages"])

        def shutdown(self) -> None: ...
        def force_flush(self, timeout_millis: int = 0) -> bool:
            return True

    make(redact=redact)
    provider.add_span_processor(Later())  # type: ignore[arg-type]
    ask(provider)
    provider.force_flush()
    assert spans(db)[0].attributes["gen_ai.input.messages"] == "gone"
    assert PROMPT.encode() not in octets_of(db.parent)
    assert seen == [PROMPT]


@pytest.mark.parametrize(
    ("redact", "reason"),
    [
        (lambda record: 1 / 0, "redact:ZeroDivisionError"),
        (lambda record: None, "redact:NoneType"),
        (lambda record: "text", "redact:str"),
        (lambda record: sys.exit(1), "redact:SystemExit"),
        (lambda record: cancel(), "redact:CancelledError"),
        (lambda record: replace(record, attributes=None), "redact:TypeError"),
        (lambda record: replace(record, attributes="text"), "redact:TypeError"),
        (lambda record: replace(record, events=("text",)), "redact:AttributeError"),
    ],
)
def test_a_redaction_that_fails_withholds_the_content(
    provider: TracerProvider, make: Make, db: Path, redact: object, reason: str
):
    """The entry is there, without content, and says why."""
    make(redact=redact)
    ask(provider)
    provider.force_flush()
    (span,) = spans(db)
    assert span.withheld == reason
    assert (span.name, span.attributes, span.events, span.links) == ("", {}, (), ())
    assert span.status.code == "ERROR"
    assert span.status.description is None
    assert PROMPT.encode() not in octets_of(db.parent)


@pytest.mark.parametrize("content", ["full", "digest"])
def test_the_next_span_is_sealed_after_a_redaction_that_fails(
    provider: TracerProvider, make: Make, db: Path, content: str
):
    """Whatever the function raises, the thread goes on."""
    processor = make(redact=redact_once(), content=content)
    ask(provider)
    assert processor.force_flush()
    ask(provider)
    assert processor.force_flush()
    assert [span.withheld for span in spans(db)] == ["redact:CancelledError", ""]
    assert processor.stats().errors == {}


def test_what_cannot_be_digested_is_withheld_as_in_full_mode(
    provider: TracerProvider, make: Make, db: Path
):
    """A value that nests too deep costs the content, not the span."""
    deep: object = "bottom"
    for _ in range(250):
        deep = [deep]
    processor = make(content="digest")
    span = provider.get_tracer("t").start_span("chat", attributes=CHAT)
    span._attributes._dict["deep"] = deep
    span.end()
    assert processor.force_flush()
    assert [span.withheld for span in spans(db)] == ["size"]
    assert processor.stats().dropped == 0


def test_digest_mode_spools_while_a_store_with_its_chain_is_locked(
    provider: TracerProvider, make: Make, db: Path
):
    """The chain's id is known from its head, so that nothing has to be sealed to know it."""
    first = make()
    ask(provider)
    assert first.force_flush()
    first.shutdown()
    blocker = sqlite3.connect(db, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    again = make(content="digest", max_queue_size=20)
    for number in range(15):
        ask(provider, f"said while locked {number}")
    assert again.force_flush(timeout_millis=500) is False
    stats = again.stats()
    assert (stats.dropped, stats.queued + stats.spooled) == (0, 15)
    assert stats.spooled > 0
    blocker.close()
    assert again.force_flush()
    assert len(spans(db)) == 16


@pytest.mark.parametrize(
    ("name", "value", "in_clear"),
    [
        ("gen_ai.request.model", "gpt-test", True),
        ("gen_ai.operation.name", "chat", True),
        ("gen_ai.usage.input_tokens", 17, True),
        ("gen_ai.response.time_to_first_chunk", 0.2, True),
        ("gen_ai.response.finish_reasons", ("stop",), True),
        ("server.address", "api.example.com", True),
        ("error.type", "TimeoutError", True),
        ("gen_ai.evaluation.score.value", 0.5, True),
        ("retrieval.documents.3.document.score", 0.25, True),
        ("retrieval.documents.3.document.score", "a text", False),
        ("gen_ai.input.messages", "a text", False),
        ("user.id", "somebody", False),
    ],
)
def test_what_stays_in_clear(name: str, value: object, in_clear: bool):
    """Models, operations, counts, times, finish reasons, server, error type and scores."""
    record = SpanRecord("chat", attributes={name: value})
    kept = digested(record, bytes(32)).attributes[name]
    assert (kept == value) is in_clear
    assert isinstance(kept, Digest) is not in_clear


def test_a_redactions_own_words_are_nowhere(
    provider: TracerProvider, make: Make, db: Path, caplog: pytest.LogCaptureFixture
):
    """The exception's text may hold what it was to remove: it is in no store, spool or log."""

    def redact(record: SpanRecord) -> SpanRecord:
        raise ValueError(f"cannot redact {record.attributes['gen_ai.input.messages']}")

    processor = make(redact=redact)
    ask(provider)
    processor.force_flush()
    processor.shutdown()
    ask(provider)  # goes to the spool
    assert PROMPT.encode() not in octets_of(db.parent)
    assert PROMPT not in caplog.text


def test_digests_reach_the_spool_too(provider: TracerProvider, make: Make, db: Path):
    """What waits on the disk is what will be sealed."""
    processor = make(content="digest")
    ask(provider)
    processor.shutdown()
    ask(provider, "said after the shutdown")
    assert processor.stats().spooled == 1
    assert b"said after" not in octets_of(db.parent)


def test_an_unknown_content_mode_is_refused(make: Make):
    """A misspelt mode must not seal in clear."""
    with pytest.raises(ConfigurationError, match="content: expected 'full' or 'digest'"):
        make(content="digests")


def test_digest_mode_waits_for_its_chain(provider: TracerProvider, make: Make, db: Path):
    """While the chain's id is unknown nothing can be digested, and nothing is lost."""
    db.parent.chmod(0o755)
    os.mkdir(db)  # the store cannot be opened
    processor = make(content="digest", spool=db.parent / "spool")
    ask(provider)
    assert processor.force_flush(timeout_millis=300) is False
    assert processor.stats().queued == 1
    os.rmdir(db)
    assert processor.force_flush()
    assert len(spans(db)) == 1
    assert KEY.hex().encode() not in octets_of(db.parent)
