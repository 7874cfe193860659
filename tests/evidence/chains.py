"""Small chains to prove and export, and the stand-alone verifier beside ours."""

from __future__ import annotations

import importlib.util
import io
import zlib
from typing import NamedTuple

from bijotel.checkpoint import sign_checkpoint
from bijotel.errors import BijotelError
from bijotel.export_check import verify_export
from bijotel.keys import HmacKey, KeyRing
from bijotel.model import ChainHead, Entry, SpanRecord
from bijotel.proof import verify_proof
from bijotel.seal import entry_header, entry_leaf, open_chain, seal_entries
from bijotel.spans.encode import encode_record
from tests.conftest import MASTER_KEY, ROOT
from tests.evidence import reference

TIME = 1_700_000_000_000_000_000
CHAIN_ID = bytes.fromhex("00112233445566778899aabbccddeeff")
RING = KeyRing(MASTER_KEY)


class Chain(NamedTuple):
    """Entries, the head behind each of them, and the tree."""

    entries: list[Entry]
    heads: list[ChainHead]

    @property
    def leaves(self):
        return [entry_leaf(entry_header(entry), entry.tag) for entry in self.entries]

    def node(self, level, position):
        return reference.node_of(self.leaves)(level, position)

    def note(self, size, *signers):
        return sign_checkpoint(self.heads[size - 1], RING, signers)


def span(number, name="", **changes):
    """A span's draft that differs for every number; ``changes`` replace columns only."""
    record = SpanRecord(
        name or f"chat {number}",
        "CLIENT",
        f"{number:032x}",
        f"{number:016x}",
        start_time_unix_nano=TIME + number,
        end_time_unix_nano=TIME + number + 1,
        attributes={"n": number, "prompt": "ü" * (number % 5)},
    )
    return encode_record(record)._replace(**changes)


def chain_of(size, key=MASTER_KEY, chain_id=CHAIN_ID, drafts=None):
    """A genesis and spans, ``size`` entries together."""
    hmac_key = HmacKey(key)
    batch = open_chain("default", chain_id, hmac_key, [], TIME)
    entries, heads = list(batch.entries), [batch.head]
    for number, draft in enumerate(drafts or [span(n) for n in range(1, size)], 1):
        batch = seal_entries(heads[-1], [draft], hmac_key, TIME + number)
        entries += batch.entries
        heads.append(batch.head)
    return Chain(entries, heads)


def _load_tool():
    path = ROOT / "tools" / "verify_evidence.py"
    spec = importlib.util.spec_from_file_location("verify_evidence", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = _load_tool()


def check_export(octets, keys, **options):
    """Our verifier's report on an export."""
    return verify_export(io.BufferedReader(io.BytesIO(octets)), keys, **options)


def codes(report):
    """Code, seq and column of each finding."""
    return [(finding.code, finding.seq, finding.column) for finding in report.findings]


def our_verdict(octets, keys, **options):
    """Exit code and first finding's code of our verifier, for either kind of file."""
    if octets.startswith(b"c2sp.org/"):
        try:
            verify_proof(octets, keys)
        except BijotelError as error:
            return error.exit_code, error.code
        return 0, ""
    report = check_export(octets, keys, **options)
    return report.exit_code, report.findings[0].code if report.findings else ""


def tool_verdict(octets, keys, *, partial=False):
    """The same of the stand-alone verifier, through the functions that its main calls."""
    tool_keys = [TOOL.read_key(str(key)) for key in keys]
    try:
        if octets.startswith(b"c2sp.org/"):
            status, _ = TOOL.verify_proof(octets, tool_keys)
        else:
            file = io.BytesIO(octets)
            lines = TOOL.unpacked(file, io.BytesIO()) if octets.startswith(b"\x1f\x8b") else file
            status, _ = TOOL.verify_export(lines, tool_keys, partial)
    except zlib.error:
        return 1, "malformed-export"
    except TOOL.EvidenceError as error:
        return 1, str(error).partition(":")[0]
    return status, "format-unknown" if status == 3 else ""
