"""``bijotel rotate-key``: the hand-over, and who may go on sealing."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider

from bijotel import ConfigurationError, HmacChainSpanProcessor, KeyRing, verify_chain
from bijotel.keys import HmacKey
from tests.cli.conftest import CHAIN_HEX, KEY, MASTER_KEY, OTHER_SECRET, append, span, tamper
from tests.cli.evidence import head

NEW = HmacKey(bytes.fromhex(OTHER_SECRET))
CHAT = {"gen_ai.operation.name": "chat"}


@pytest.fixture
def new(monkeypatch):
    monkeypatch.setenv("NEW", OTHER_SECRET)
    return "env:NEW"


def seal(db, key, count=1):
    """Seal spans as an application does."""
    provider = TracerProvider(shutdown_on_exit=False)
    processor = HmacChainSpanProcessor(db, key=key)
    provider.add_span_processor(processor)
    for _ in range(count):
        provider.get_tracer("t").start_span("chat", attributes=CHAT).end()
    provider.shutdown()
    return processor.stats()


def test_a_rotation(bijotel, secret, db, new):
    """An entry under the old key hands over; the whole chain verifies with both in one pass."""
    result = bijotel("rotate-key", "--db", db, "--new-key", new)
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        f"chain default ({CHAIN_HEX}): entry 6 hands over from key {KEY.key_id.hex()} to key "
        f"{NEW.key_id.hex()}\nverify with both keys: --key OLD --key NEW\n"
    )
    assert head(db).key_id == KEY.key_id
    seal(db, KeyRing(NEW, KEY), 2)
    assert head(db).key_id == NEW.key_id
    report = verify_chain(db, KeyRing(KEY, NEW), deep=True)
    assert (report.ok, report.notices) == (True, ())
    assert report.chains[0].kinds == {"genesis": 1, "span": 7, "key": 1}
    both = ("--key", "env:BIJOTEL_HMAC_SECRET", "--key", new)
    assert bijotel("verify", "--db", db, *both).code == 0
    result = bijotel("verify", "--db", db, "--json")
    assert result.code == 3
    (finding,) = result.document["findings"]
    assert (finding["code"], finding["seq"], finding["last_seq"]) == ("key-unknown", 7, 8)


def test_writers_switch_when_the_entry_is_there(bijotel, secret, db, new):
    """A ring with the new key first goes on with the old one until the chain is handed over."""
    ring = KeyRing(NEW, KEY)
    seal(db, ring)
    assert head(db).key_id == KEY.key_id
    assert bijotel("rotate-key", "--db", db, "--new-key", new).code == 0
    seal(db, ring)
    assert head(db).key_id == NEW.key_id
    assert verify_chain(db, ring).ok


def test_a_writer_without_the_new_key_stops(bijotel, secret, db, new):
    """Going on under the key that was left is what a forger would do."""
    provider = TracerProvider(shutdown_on_exit=False)
    processor = HmacChainSpanProcessor(db, key=KEY)
    provider.add_span_processor(processor)
    provider.get_tracer("t").start_span("chat", attributes=CHAT).end()
    assert processor.force_flush()
    assert bijotel("rotate-key", "--db", db, "--new-key", new).code == 0
    provider.get_tracer("t").start_span("chat", attributes=CHAT).end()
    assert not processor.force_flush(200)
    provider.shutdown()
    assert processor.stats().errors == {"ConfigurationError": processor.stats().errors.popitem()[1]}
    assert processor.stats().spooled == 1
    with pytest.raises(ConfigurationError, match=f"was handed over to key {NEW.key_id.hex()}"):
        HmacChainSpanProcessor(db, key=KEY)
    stats = seal(db, KeyRing(NEW, KEY))
    assert (stats.sealed, stats.recovered) == (1, 1)
    assert verify_chain(db, KeyRing(KEY, NEW)).chains[0].kinds["span"] == 8


def test_a_key_never_returns(bijotel, secret, db, new):
    """Exit 2 for a key that the chain has left, or that is in force; nothing is sealed."""
    both = ("--key", "env:BIJOTEL_HMAC_SECRET", "--key", new)
    assert bijotel("rotate-key", "--db", db, "--new-key", new).code == 0
    result = bijotel("rotate-key", "--db", db, *both, "--new-key", "env:BIJOTEL_HMAC_SECRET")
    message = f"chain 'default': key {KEY.key_id.hex()} was left, and never returns"
    assert result == (2, "", f"error: {message}\n")
    result = bijotel("rotate-key", "--db", db, *both, "--new-key", new)
    message = f"chain 'default': key {NEW.key_id.hex()} is in force already"
    assert result == (2, "", f"error: {message}\n")
    assert head(db).seq == 6


def test_twice(bijotel, secret, db, new, monkeypatch):
    """The second rotation needs the key in force and the next one; --json tells both."""
    third = HmacKey(bytes(range(7, 39)))
    monkeypatch.setenv("THIRD", bytes(range(7, 39)).hex())
    assert bijotel("rotate-key", "--db", db, "--new-key", new).code == 0
    result = bijotel(
        "rotate-key", "--db", db, "--key", "env:BIJOTEL_HMAC_SECRET", "--key", new,
        "--new-key", "env:THIRD", "--json",
    )  # fmt: skip
    assert result.document == {
        "chain": CHAIN_HEX, "seq": 7, "old_key_id": NEW.key_id.hex(),
        "new_key_id": third.key_id.hex(),
    }  # fmt: skip
    append(db, [span(50)], key=third)
    assert verify_chain(db, KeyRing(KEY, NEW, third)).ok


def test_what_is_refused(bijotel, db, new, monkeypatch, tmp_path):
    """A wrong old key or name: exit 2. A head that does not verify, no store: exit 3."""
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", bytes(range(7, 39)).hex())
    result = bijotel("rotate-key", "--db", db, "--new-key", new)
    assert result.code == 2
    assert (
        f"was sealed with key {KEY.key_id.hex()}, which is not among the given keys" in result.err
    )
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", MASTER_KEY.hex())
    assert bijotel("rotate-key", "--db", db, "--chain", "no", "--new-key", new).code == 2
    assert bijotel("rotate-key", "--db", db).code == 2
    assert bijotel("rotate-key", "--db", tmp_path / "no.db", "--new-key", new).code == 3
    assert not (tmp_path / "no.db").exists()
    tamper(db, "UPDATE heads SET tag = zeroblob(32)")
    result = bijotel("rotate-key", "--db", db, "--new-key", new)
    assert result.code == 3
    assert "the head record of chain 'default' does not verify" in result.err
