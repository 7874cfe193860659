"""A pytest plugin: writes down every file that the tests of evidence judge, with its verdict.

``python -m pytest -p tests.browser.recorder tests/evidence/...`` with ``EVIDENCE_CORPUS`` naming
the file. So the browser is held to all their vectors and mutations, and to those still to come.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from bijotel import checkpoint
from bijotel.errors import BijotelError, ConfigurationError
from bijotel.verifier_key import ED25519, parse_verifier_key
from tests.evidence import chains

_corpus = Path(os.environ["EVIDENCE_CORPUS"])
_seen = set()
_check_export, _our_verdict = chains.check_export, chains.our_verdict
_tool_verdict = chains.tool_verdict
_verify_checkpoint = checkpoint.verify_checkpoint


def _write(kind, octets, keys, findings, exit_code, *, partial=False, own=None, tool=""):
    lines = [str(key) for key in keys]
    if not lines or any(key.algorithm != ED25519 or not _is_genuine(key) for key in keys):
        return
    case = {
        "kind": kind,
        "octets": base64.b64encode(octets).decode(),
        "keys": lines,
        "partial": partial,
        "checkpoint": None if own is None else base64.b64encode(own).decode(),
    }
    line = json.dumps(case)
    if line not in _seen:
        _seen.add(line)
        expected = {"exit_code": exit_code, "findings": findings, "tool": tool}
        with _corpus.open("a", encoding="utf-8") as file:
            file.write(json.dumps(case | {"expected": expected}) + "\n")


def _is_genuine(key):
    """A key that a test made up cannot be written as a line."""
    try:
        return parse_verifier_key(str(key)).public_key == key.public_key
    except ConfigurationError:
        return False


def check_export(octets, keys, **options):
    report = _check_export(octets, keys, **options)
    if options.get("ring") is None:
        found = [[f.code, f.seq, f.column, f.last_seq] for f in report.findings]
        partial, own = options.get("partial", False), options.get("checkpoint")
        tool = _tool_verdict(octets, keys, partial=partial)[1]
        _write("export", octets, keys, found, report.exit_code, partial=partial, own=own, tool=tool)
    return report


def _of_proofs(verdict):
    """Record the verdicts on proofs; exports are recorded with all their findings."""

    def recorded(octets, keys, **options):
        exit_code, code = verdict(octets, keys, **options)
        if octets.startswith(b"c2sp.org/"):
            _write("proof", octets, keys, [[code]] if code else [], exit_code)
        return exit_code, code

    return recorded


def verify_checkpoint(octets, keys):
    try:
        found = _verify_checkpoint(octets, keys)
    except BijotelError as error:
        where = getattr(error, "where", None)
        _write("note", octets, keys, [[error.code, None, where, None]], error.exit_code)
        raise
    _write("note", octets, keys, [], 0)
    return found


chains.check_export = check_export
chains.our_verdict, chains.tool_verdict = map(_of_proofs, (_our_verdict, _tool_verdict))
checkpoint.verify_checkpoint = verify_checkpoint
