"""Head + body + key -> entry. Pure: no I/O, no clock, no randomness.

The header covers every stored column, the previous tag and the body's hash; one HMAC over it
is the entry's tag. The head record carries the position, the last tag and the Merkle tree's
right edge under a MAC of its own. Drawing numbers and reading clocks is the writer's business.

Source: docs/spec (entry, head). HMAC: RFC 2104. SHA-256: FIPS 180-4.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from struct import Struct
from typing import Any, Final, NamedTuple

from bijotel import canonical, merkle
from bijotel._version import __version__
from bijotel.errors import ConfigurationError
from bijotel.keys import DOMAIN, HmacKey
from bijotel.model import ChainHead, Draft, Entry

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""The longest body of an entry, 16 MiB."""
MAX_NAME_CHARACTERS: Final = 200
"""The longest name of a chain."""
ZERO_TAG: Final = bytes(32)
"""``prev_tag`` of entry 0."""

KNOWN_FORMATS: Final = {
    "genesis": "genesis/1",
    "span": "span/1",
    "gap": "gap/1",
    "key": "key/1",
    "checkpoint": "checkpoint/1",
    "fleet": "fleet/1",
    "import": "import/1",
}
"""The one format of each kind of entry that this version knows."""

_BODY_DOMAIN: Final = DOMAIN + b"body\0"
_ENTRY_DOMAIN: Final = DOMAIN + b"entry\0"
_HEAD_DOMAIN: Final = DOMAIN + b"head\0"

_LENGTH = Struct(">I")
_END = Struct(">IQIQI")


class Batch(NamedTuple):
    """What one transaction appends: entries in order, and the head after them."""

    entries: tuple[Entry, ...]
    head: ChainHead


def length_prefixed(*items: bytes) -> bytes:
    """Join items, each behind its length as 4 bytes, so that none can move across a border."""
    return b"".join(part for item in items for part in (_LENGTH.pack(len(item)), item))


def body_hash(body: bytes) -> bytes:
    """Hash a canonical body."""
    return sha256(_BODY_DOMAIN + body).digest()


def entry_header(entry: Entry | tuple[Any, ...]) -> bytes:
    """Write the header that an entry's tag covers.

    Args:
        entry: An entry, or its columns in the same order; ``tag`` and ``body`` are not used.
            Ids, hashes and tags have the right lengths.

    Raises:
        struct.error, TypeError, AttributeError, UnicodeEncodeError: a column is of a type that
            the header cannot hold. Rows from a store are checked first, or this is caught.
    """
    (chain_id, seq, epoch, key_id, kind, sealed_at, fmt, hash_of_body, prev_tag, trace_id,
     span_id, name, start, end, dedup_key, _tag, _body) = entry  # fmt: skip
    kind, fmt, name = kind.encode(), fmt.encode(), name.encode()
    layout = _layout(len(kind), len(fmt), len(trace_id), len(span_id))
    # fmt: off
    upto_name = layout.pack(
        _ENTRY_DOMAIN, 16, chain_id, 8, seq, 4, epoch, 8, key_id, len(kind), kind, 8, sealed_at,
        len(fmt), fmt, 32, hash_of_body, 32, prev_tag, len(trace_id), trace_id, len(span_id),
        span_id, len(name),
    )
    # fmt: on
    return b"".join((upto_name, name, _END.pack(8, start, 8, end, len(dedup_key)), dedup_key))


@lru_cache(maxsize=256)
def _layout(kind: int, fmt: int, trace_id: int, span_id: int) -> Struct:
    """Lay out a header up to its name's length, for items of these lengths.

    Each item stands behind its length; packing them at once is what makes verifying fast.
    """
    return Struct(
        f">{len(_ENTRY_DOMAIN)}sI16sIQIII8sI{kind}sIQI{fmt}sI32sI32sI{trace_id}sI{span_id}sI"
    )


def entry_tag(header: bytes, chain_key: bytes) -> bytes:
    """Compute the tag of a header under a chain's key."""
    inner, outer = _keyed(chain_key)
    hashed, mac = inner.copy(), outer.copy()
    hashed.update(header)
    mac.update(hashed.digest())
    tag: bytes = mac.digest()
    return tag


@lru_cache(maxsize=1024)
def _keyed(chain_key: bytes) -> tuple[Any, Any]:
    """Hash both of HMAC's key blocks once for all messages (RFC 2104 section 4)."""
    block = chain_key.ljust(64, b"\0")
    inner, outer = (bytes(octet ^ pad for octet in block) for pad in (0x36, 0x5C))
    return sha256(inner), sha256(outer)


def entry_leaf(header: bytes, tag: bytes) -> bytes:
    """Hash an entry into its Merkle leaf; the leaf's index is its ``seq``."""
    return merkle.leaf_hash(header + tag)


def head_mac(head: ChainHead, chain_key: bytes) -> bytes:
    """Compute the MAC of a head record; its own ``mac`` is not used."""
    message = length_prefixed(
        head.chain_id,
        head.name.encode(),
        head.seq.to_bytes(8, "big"),
        head.epoch.to_bytes(4, "big"),
        head.key_id,
        head.tag,
        head.tree,
    )
    return hmac.digest(chain_key, _HEAD_DOMAIN + message, "sha256")


def head_holds(head: ChainHead, key: HmacKey) -> bool:
    """Tell whether a head's MAC is the one that ``key`` makes for it."""
    return hmac.compare_digest(head_mac(head, key.chain_key(head.chain_id)), head.mac)


def draft(kind: str, body: bytes) -> Draft:
    """Wrap the body of an entry that is no span."""
    return Draft(kind, KNOWN_FORMATS[kind], b"", b"", "", 0, 0, b"", body, body_hash(body))


def open_chain(
    name: str, chain_id: bytes, key: HmacKey, drafts: Iterable[Draft], sealed_at_unix_nano: int
) -> Batch:
    """Seal the genesis of a new chain and the first drafts behind it.

    Args:
        name: 1 to ``MAX_NAME_CHARACTERS`` characters that UTF-8 can carry.
        chain_id: 16 random bytes, never used before.
        key: Seals the chain.
        drafts: The entries behind the genesis, in order.
        sealed_at_unix_nano: The wall clock's time of sealing.

    Raises:
        ConfigurationError: the name is empty or too long, or a body is over 16 MiB.
    """
    check_name(name)
    genesis = canonical.dumps(
        {
            "chain": name,
            "created_unix_nano": str(sealed_at_unix_nano),
            "key_id": key.key_id.hex(),
            "library": f"bijotel/{__version__}",
        }
    )
    empty = ChainHead(chain_id, name, -1, 0, key.key_id, ZERO_TAG, b"", b"")
    return seal_entries(empty, (draft("genesis", genesis), *drafts), key, sealed_at_unix_nano)


def check_name(name: str) -> None:
    """Refuse a chain name that a head record cannot carry.

    Raises:
        ConfigurationError: empty, too long, or with a lone surrogate or NUL.
    """
    if not isinstance(name, str):
        raise ConfigurationError(f"chain name: expected text, got {name!r}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ConfigurationError("chain name: holds a lone surrogate") from None
    if not 1 <= len(name) <= MAX_NAME_CHARACTERS or "\0" in name:
        raise ConfigurationError(
            f"chain name: expected 1 to {MAX_NAME_CHARACTERS} characters without NUL, "
            f"got {len(name)}"
        )


def seal_entries(
    head: ChainHead, drafts: Iterable[Draft], key: HmacKey, sealed_at_unix_nano: int
) -> Batch:
    """Seal drafts as the next entries of a chain.

    The tag proves order and content to holders of ``key``; it does not prove time, and it does
    not prove that no later entry was cut off (a checkpoint does).

    Args:
        head: The chain before these entries; ``head.seq`` is -1 when it is empty. The caller
            has checked its MAC.
        drafts: What to seal, in order; at least one.
        key: Seals every entry of the batch.
        sealed_at_unix_nano: The wall clock's time of sealing, for all of them.

    Returns:
        The entries, not yet stored, with ``seq`` from ``head.seq + 1``, and the head after them.

    Raises:
        ConfigurationError: a body is longer than ``MAX_BODY_BYTES``.

    Source:
        docs/spec (entry, head).

    Added in 0.1.
    """
    chain_id, seq, tag = head.chain_id, head.seq, head.tag
    chain_key = key.chain_key(chain_id)
    edge = merkle.split_edge(head.tree)
    entries = []
    for item in drafts:
        if len(item.body) > MAX_BODY_BYTES:
            raise ConfigurationError(
                f"body of {len(item.body)} bytes: expected at most {MAX_BODY_BYTES}"
            )
        seq += 1
        columns = (
            chain_id,
            seq,
            0,
            key.key_id,
            item.kind,
            sealed_at_unix_nano,
            item.fmt,
            item.body_hash,
            tag,
            item.trace_id,
            item.span_id,
            item.name,
            item.start_unix_nano,
            item.end_unix_nano,
            item.dedup_key,
        )
        header = entry_header((*columns, b"", b""))
        tag = entry_tag(header, chain_key)
        merkle.extend(edge, seq, entry_leaf(header, tag))
        entries.append(Entry(*columns, tag, item.body))
    bare = ChainHead(chain_id, head.name, seq, 0, key.key_id, tag, b"".join(edge), b"")
    return Batch(tuple(entries), bare._replace(mac=head_mac(bare, chain_key)))
