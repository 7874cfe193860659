#!/usr/bin/env python3
"""Verify a proof or an export of bijotel with a public key alone. One file: read it, keep it.

    verify_evidence.py FILE --pubkey KEY [--pubkey KEY] [--partial]

FILE is a proof of one entry (.tlog-proof) or an export (.jsonl, .jsonl.gz); KEY is a verifier
key's line or a file with one. Needs Python 3.10 and `cryptography`, and nothing of bijotel. Exit
code: 0 it holds, 1 it is false, 2 asked wrongly, 3 it holds, but entries are of a newer format.

A pass means: the key's owner vouched that the log held exactly these entries at these places. It
does not mean that what was logged is true, that nothing was logged later, or that nobody was
shown another log (compare the printed root with others' checkpoints). How it hangs together:

    signature -> note (origin, size, root) -> Merkle tree -> leaf -> entry's columns -> body
"""

import argparse
import base64
import bisect
import gzip
import hashlib
import json
import re
import struct
import sys
import tempfile
import zlib
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MAX_LINE = 64 * 1024 * 1024  # bytes; no honest line is longer, a hostile one must not fill memory
PROOF = "c2sp.org/tlog-proof@v1"
KINDS = {"genesis", "span", "gap", "key", "checkpoint", "fleet", "import"}  # each as "KIND/1"
TIMES = ("sealed_at_unix_nano", "start_unix_nano", "end_unix_nano")  # decimal strings
KEY_LINE = re.compile(r"([^+]+)\+([0-9a-fA-F]{8})\+([^+/]\S*)\n?")  # C2SP signed-note
LENGTHS = {"key_id": (8,), "prev_tag": (32,), "tag": (32,)}  # lowercase hex, for how many bytes
LENGTHS |= {"trace_id": (0, 16), "span_id": (0, 8), "dedup_key": (0, 32)}
UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)


class EvidenceError(Exception):
    """The evidence does not hold. Its first word is the code that bijotel itself reports."""


def need(condition, code, message):
    if not condition:
        raise EvidenceError(f"{code}: {message}")


def canonical(value):
    """RFC 8785, for what stands in exports: strings and integers under keys in ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def base64_exact(text):
    """Base64 has many spellings of the same octets; only the one we would write is accepted."""
    try:
        octets = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        return None
    return octets if base64.b64encode(octets).decode() == text else None


def read_key(source):
    """A verifier key's line, or a file with one -> name, 4-byte hash, signature type, key."""
    match = KEY_LINE.fullmatch(source)
    match = match or KEY_LINE.fullmatch(Path(source).read_text("ascii", "replace"))
    name, key_hash, encoded = match.groups() if match else ("", "", "")
    octets = base64_exact(encoded) or b""
    known = (octets[:1], len(octets)) in {(b"\x01", 33), (b"\x06", 1313)}  # Ed25519, ML-DSA-44
    # The hash is only a name for the key, but one that does not fit means a damaged line.
    fits = hashlib.sha256(name.encode() + b"\n" + octets).hexdigest()[:8] == key_hash
    if not (known and fits and re.fullmatch(r"[!-*,-~]{0,199}[!-*,-.0-~]", name)):
        raise ValueError(f"{source!r} is no verifier key: expected NAME+HASH+KEY of a known type")
    return name, bytes.fromhex(key_hash), octets[0], octets[1:]


def signature_holds(key, text, origin, size, root, signature):
    name, _, kind, public = key
    try:
        if kind == 1:  # Ed25519 over the text itself
            Ed25519PublicKey.from_public_bytes(public).verify(signature, text.encode())
            return True
        from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey  # >= 48

        # C2SP tlog-cosignature: 8 bytes of timestamp (here 0), then the signature over this.
        message = b"subtree/v1\n\0" + bytes([len(name)]) + name.encode() + bytes(8)
        message += bytes([len(origin)]) + origin.encode() + struct.pack(">QQ", 0, size) + root
        MLDSA44PublicKey.from_public_bytes(public).verify(signature[8:], message)
        return signature[:8] == bytes(8)
    except InvalidSignature:
        return False


def read_checkpoint(octets, keys):
    """A signed note of three lines (C2SP signed-note, tlog-checkpoint) -> origin, size, root.

    EVERY key given must have signed; signatures of other keys do not matter.
    """
    bad = "malformed-note"
    need(len(octets) <= 1_000_000, bad, "too long")
    note = octets.decode("utf-8", "surrogateescape")  # what is not UTF-8 becomes U+DC80..U+DCFF
    need(not re.search(r"[\x00-\x09\x0b-\x1f\udc80-\udcff]", note), bad, "octets of no text")
    text, separator, rest = note.rpartition("\n\n")
    need(separator and rest.endswith("\n"), bad, "expected text, an empty line, signature lines")
    lines, signatures = rest.removesuffix("\n").split("\n"), {}
    need(len(lines) <= 100, bad, "too many signatures")
    for line in lines:
        match = re.fullmatch(r"— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})", line)
        value = base64_exact(match[2]) if match else None
        need(value and len(value) > 4, bad, f"signature line {line[:60]!r}")
        signatures.setdefault((match[1], value[:4]), value[4:])  # the first one of a key counts

    match = re.fullmatch(r"(?!\ufeff)(.+)\n(0|[1-9][0-9]{0,18})\n(.*)", text)
    need(match, bad, "expected origin, size and root")
    origin, size, root = match[1], int(match[2]), base64_exact(match[3]) or b""
    need(len(origin.encode()) <= 255 and size < 2**63 and len(root) == 32, bad, "text")
    # The origin names the key and the chain: NAME/CHAIN-ID. A key vouches for its own logs only.
    foreign = [key for key in keys if not re.fullmatch(re.escape(key[0]) + "/[0-9a-f]{32}", origin)]
    its_own = not foreign or any(key[:2] in signatures for key in foreign)
    need(its_own, "checkpoint-origin", f"{origin!r} is another log")
    for key in keys:
        need(key[:2] in signatures, "checkpoint-signature", f"{key[0]} has not signed")
        holds = signature_holds(key, f"{text}\n", origin, size, root, signatures[key[:2]])
        need(holds, "checkpoint-signature", f"that of {key[0]} does not hold")
    need(not foreign, "checkpoint-origin", f"{origin!r} is another log")
    return origin, size, root


def read_entry(line, chain_id):
    """An entry's line -> seq, prev_tag, tag, leaf in the Merkle tree, is its format known?"""
    need(line.endswith(b"\n"), "malformed-export", "a line is too long, or without its newline")
    try:
        entry = json.loads(line)
        body = entry["body"].encode()
        times = {name: int(entry[name]) for name in TIMES}
        octets = {name: bytes.fromhex(entry[name]) for name in LENGTHS}
        # Written again from what was understood it must be the same line, to the last octet.
        again = {name: entry[name] for name in ("body", "epoch", "fmt", "kind", "name", "seq")}
        again |= {name: str(value) for name, value in times.items()}
        again |= {name: value.hex() for name, value in octets.items()}
        same = canonical(again) + b"\n" == line
    except UNREADABLE:
        raise EvidenceError(f"malformed-entry: {line[:60]!r}") from None
    need(len(body) <= 16 * 1024 * 1024, "limit-exceeded", "body over 16 MiB")
    seq, epoch, kind, fmt, name = (again[i] for i in ("seq", "epoch", "kind", "fmt", "name"))
    sound = all(len(octets[name]) in lengths for name, lengths in LENGTHS.items())
    sound = sound and [type(i) for i in (seq, epoch, kind, fmt, name)] == [int, int, str, str, str]
    sound = sound and all(0 <= number < 2**63 for number in (seq, *times.values()))
    sound = sound and 0 <= epoch < 2**32 and len(kind) <= 64 >= len(fmt) and (kind + fmt).isascii()
    need(sound, "type-mismatch", f"a column has a wrong type or length: {line[:60]!r}")
    need(same, "malformed-entry", "not in canonical form")
    # The header: every column in the order of the format, each behind its length.
    sealed_at, start, end = (struct.pack(">Q", times[name]) for name in TIMES)
    items = [chain_id, struct.pack(">Q", seq), struct.pack(">I", epoch), octets["key_id"]]
    items += [kind.encode(), sealed_at, fmt.encode()]
    items += [hashlib.sha256(b"bijotel/v1/body\0" + body).digest(), octets["prev_tag"]]
    items += [octets["trace_id"], octets["span_id"], name.encode(), start, end, octets["dedup_key"]]
    header = b"bijotel/v1/entry\0" + b"".join(struct.pack(">I", len(i)) + i for i in items)
    leaf = hashlib.sha256(b"\0" + header + octets["tag"]).digest()
    return seq, octets["prev_tag"], octets["tag"], leaf, kind in KINDS and fmt == f"{kind}/1"


def node(left, right):
    """RFC 6962: leaves are hashed behind a 0, inner nodes behind a 1."""
    return hashlib.sha256(b"\1" + left + right).digest()


def inclusion_root(leaf, index, start, end, hashes):
    """The root that one leaf and its siblings lead to; the last hash is the root's child."""
    need((end - start == 1) == (not hashes), "proof-rejected", "too many or too few hashes")
    if end - start == 1:
        return leaf
    *deeper, sibling = hashes
    split = start + (1 << (end - start - 1).bit_length() - 1)  # left: the largest power of two
    if index < split:
        return node(inclusion_root(leaf, index, start, split, deeper), sibling)
    return node(sibling, inclusion_root(leaf, index, split, end, deeper))


def ranges_root(start, end, ranges, leaves, proof):
    """Walk the tree from the root, left first; what holds no exported leaf is in the proof."""
    place = bisect.bisect_left(ranges, start, key=lambda pair: pair[1])
    if place == len(ranges) or ranges[place][0] >= end:
        value = next(proof, None)
        need(value is not None and len(value) == 32, "malformed-export", "proof: a hash is missing")
        return value
    if end - start == 1:
        return next(leaves)
    split = start + (1 << (end - start - 1).bit_length() - 1)  # left: the largest power of two
    left = ranges_root(start, split, ranges, leaves, proof)
    return node(left, ranges_root(split, end, ranges, leaves, proof))


def verify_proof(octets, keys):
    """C2SP tlog-proof: extra (the entry's line), index, hashes, empty line, checkpoint."""
    bad = "malformed-proof"
    head, separator, note = octets.partition(b"\n\n")
    pattern = re.escape(PROOF) + r"\nextra (.*)\nindex (0|[1-9][0-9]{0,18})((?:\n.*){0,63})"
    match = separator and re.fullmatch(pattern, head.decode("ascii", "replace"))
    need(match, bad, "not a tlog-proof: expected its first line, extra, index and hashes")
    line, hashes = base64_exact(match[1]), [base64_exact(text) for text in match[3].split("\n")[1:]]
    sound = line is not None and all(value and len(value) == 32 for value in hashes)
    need(sound, bad, "extra is not Base64, or a hash is not 32 bytes")
    origin, size, root = read_checkpoint(note, keys)
    seq, _, _, leaf, _ = read_entry(line + b"\n", bytes.fromhex(origin[-32:]))
    need(seq == int(match[2]), bad, "the index is not the entry's seq")
    need(seq < size, "proof-rejected", "index beyond the size")
    covered = inclusion_root(leaf, seq, 0, size, hashes) == root
    need(covered, "checkpoint-mismatch", "the checkpoint does not cover this entry")
    return 0, f"entry {seq} of {origin}: size {size}, root {root.hex()}"


def unpacked(file, copy):
    """One gzip member, sound as a whole: what a damaged one still gives is no evidence."""
    member = zlib.decompressobj(wbits=31)
    while not member.eof and (octets := file.read(4096)):
        member.decompress(octets)
        copy.write(octets)
    alone = member.eof and not member.unused_data and not file.read(1)
    need(alone, "malformed-export", "not one whole gzip member with nothing behind it")
    copy.seek(0)
    return gzip.GzipFile(fileobj=copy, mode="rb")


def verify_export(file, keys, partial):
    """A header with checkpoint, ranges and proof; then a line for each entry of the ranges."""
    lines = iter(lambda: file.readline(MAX_LINE + 1), b"")
    line = next(lines, b"\n")
    need(line != b"\n", "truncated", "the file is empty")
    try:
        header = json.loads(line)
        ranges = [tuple(pair) for pair in header["ranges"]]
        proof = [bytes.fromhex(text) for text in header["proof"]]
        again = {"checkpoint": header["checkpoint"], "format": "bijotel-export/1"}
        again |= {"proof": [value.hex() for value in proof], "ranges": ranges}
        sound = all(type(place) is int for first, last in ranges for place in (first, last))
        need(sound and canonical(again) + b"\n" == line, "malformed-export", "header")
        note = header["checkpoint"].encode()
    except UNREADABLE:
        raise EvidenceError("malformed-export: header") from None
    origin, size, root = read_checkpoint(note, keys)
    places = [-1, *(place for first, last in ranges for place in (first, last + 1)), size + 1]
    need(ranges and places == sorted(set(places)), "malformed-export", "ranges")  # none touch
    chain_id, newer = bytes.fromhex(origin[-32:]), []

    def leaves():
        for first, last in ranges:
            before = None if first else bytes(32)  # the tag before a range is not in the export
            for seq in range(first, last + 1):
                line = next(lines, None)
                need(line is not None, "truncated", f"entry {seq} and what follows is missing")
                found, prev_tag, tag, leaf, known = read_entry(line, chain_id)
                need(found <= seq, "seq-gap", f"entry {seq} is missing")
                need(found == seq, "seq-repeat", f"entry {found} again")
                need(before in (None, prev_tag), "link-mismatch", f"prev_tag of entry {seq}")
                before = tag
                newer.extend([] if known else [seq])
                yield leaf

    computed = ranges_root(0, size, ranges, leaves(), hashes := iter(proof))
    need(next(hashes, None) is None, "malformed-export", "proof: too many hashes")
    for line in lines:
        need(read_entry(line, chain_id)[0] > ranges[-1][1], "seq-repeat", "behind the last entry")
        need(False, "checkpoint-mismatch", "an entry stands behind the last one")
    need(computed == root, "checkpoint-mismatch", "the entries are not those of the checkpoint")
    shown = ", ".join(f"{first} to {last}" for first, last in ranges)
    partial = partial or ranges == [(0, size - 1)]
    need(partial, "export-partial", f"entries {shown} of {size} only (see --partial)")
    return 3 if newer else 0, f"entries {shown} of {origin}: size {size}, root {root.hex()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--pubkey", action="append", required=True, help="line or file; repeat")
    parser.add_argument("--partial", action="store_true", help="accept part of a log")
    options = parser.parse_args()
    try:
        keys = [read_key(source) for source in options.pubkey]
        with Path(options.file).open("rb") as file, tempfile.TemporaryFile() as copy:
            if file.peek(9).startswith(b"c2sp.org/"):
                status, shown = verify_proof(file.read(2 * MAX_LINE), keys)
            else:
                lines = unpacked(file, copy) if file.peek(2)[:2] == b"\x1f\x8b" else file
                status, shown = verify_export(lines, keys, options.partial)
    except (EvidenceError, zlib.error) as error:
        print(f"FALSE  {'malformed-export: ' * isinstance(error, zlib.error)}{error}")
        return 1
    except (OSError, ValueError) as error:  # no such file, no such key
        parser.error(str(error))  # exits with 2
    print(f"{'NEWER FORMAT' if status else 'HOLDS'}  {shown}")
    return status


if __name__ == "__main__":
    sys.exit(main())
