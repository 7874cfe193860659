"""Attacks by size and depth, and bodies that only a holder of the key can make."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bijotel import canonical, seal
from bijotel.model import Draft
from bijotel.seal import MAX_BODY_BYTES
from bijotel.spans.encode import columns_of_body
from tests.attacks.evidence import Evidence, Writer, first_finding, gap, no_finding, reseal, span

MEBIBYTE = 1024 * 1024
COPIES_BEFORE_3_11 = 3


def test_row_29_one_byte_over_the_limit(evidence: Evidence):
    """A body one byte over the limit."""
    evidence.set(50, body=bytes(MAX_BODY_BYTES + 1))
    finding = first_finding(evidence.verify(), "limit-exceeded", 50, "body")
    assert (finding.expected, finding.found) == ("at most 16777216 bytes", "16777217 bytes")


def test_row_29_at_the_limit(evidence: Evidence):
    """A body at the limit is read, and is wrong for another reason."""
    evidence.set(50, body=bytes(MAX_BODY_BYTES))
    first_finding(evidence.verify(), "body-hash-mismatch", 50, "body")


# Not ru_maxrss, in which a child starts with the size of the parent that it was forked from.
MEASURE = """
import json, re, sys
sys.path[:0] = json.loads(sys.argv[1])
from bijotel.verify import verify_chain
def peak(): return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
before = peak()
report = verify_chain(sys.argv[2], bytes(range(32)), deep=sys.argv[3] == "deep")
first = report.findings[0].as_dict() if report.findings else None
print(json.dumps({"finding": first, "exit_code": report.exit_code, "kibibytes": peak() - before}))
"""


def verify_apart(path: Path, *, deep: bool = False) -> dict[str, Any]:
    """Verify in a process of its own, which says how much memory that took beyond its start."""
    arguments = [json.dumps([str(Path.cwd())]), str(path), "deep" if deep else "plain"]
    result = subprocess.run(
        [sys.executable, "-c", MEASURE, *arguments], capture_output=True, check=True, timeout=120
    )
    return json.loads(result.stdout)


def limited_to_64_mebibytes(outcome: dict[str, Any]) -> None:
    assert outcome["kibibytes"] < 64 * 1024, outcome


def huge(evidence: Evidence, column: str, size: int, cast: str = "") -> None:
    value = f"CAST(zeroblob({size}) AS {cast})" if cast else f"zeroblob({size})"
    evidence.sql(f"UPDATE entries SET {column} = {value} WHERE seq = 50")
    evidence.settle()


@pytest.mark.slow
def test_row_29_half_a_gibibyte(evidence: Evidence):
    """A body of 512 MiB is not read into memory to be refused."""
    huge(evidence, "body", 512 * MEBIBYTE)
    outcome = verify_apart(evidence.path)
    assert outcome["finding"]["code"] == "limit-exceeded"
    assert (outcome["finding"]["seq"], outcome["finding"]["column"]) == (50, "body")
    assert outcome["finding"]["found"] == "536870912 bytes"
    assert outcome["exit_code"] == 1
    limited_to_64_mebibytes(outcome)


@pytest.mark.slow
def test_row_29_half_a_gibibyte_of_text(evidence: Evidence):
    """A body of 512 MiB of text is not read either."""
    huge(evidence, "body", 512 * MEBIBYTE, "TEXT")
    outcome = verify_apart(evidence.path)
    assert (outcome["finding"]["code"], outcome["finding"]["seq"]) == ("type-mismatch", 50)
    assert outcome["finding"]["column"] == "body"
    limited_to_64_mebibytes(outcome)


def limited_in_sqlite(outcome: dict[str, Any], size: int) -> None:
    """What SQLite's own limit on a value's length keeps out; Python sets it from 3.11 on."""
    if sys.version_info >= (3, 11):
        limited_to_64_mebibytes(outcome)
    else:
        assert outcome["kibibytes"] * 1024 < 64 * MEBIBYTE + COPIES_BEFORE_3_11 * size, outcome


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "cast"),
    [
        ("name", "TEXT"),
        ("name", ""),
        ("kind", "TEXT"),
        ("tag", ""),
        ("prev_tag", "TEXT"),
        ("seq", ""),
        ("seq", "TEXT"),
        ("chain_id", ""),
        ("chain_id", "TEXT"),
    ],
)
def test_row_29_other_columns(evidence: Evidence, column: str, cast: str):
    """A long value in any other column is of a wrong type, and costs no memory.

    Where it is read after all, a name of the right type is held against the body's.
    """
    evidence.drop_guards()
    huge(evidence, column, 40 * MEBIBYTE, cast)
    outcome = verify_apart(evidence.path)
    seq = None if column == "seq" else 50
    is_read = sys.version_info < (3, 11) and (column, cast) == ("name", "TEXT")
    code = "column-mismatch" if is_read else "type-mismatch"
    assert (outcome["finding"]["code"], outcome["finding"]["seq"]) == (code, seq)
    assert outcome["finding"]["column"] == column
    assert outcome["exit_code"] == 1
    limited_in_sqlite(outcome, 40 * MEBIBYTE)


@pytest.mark.slow
@pytest.mark.parametrize("column", ["tree", "mac"])
def test_row_29_head_columns(evidence: Evidence, column: str):
    """A head of 128 MiB is no head."""
    evidence.sql(f"UPDATE heads SET {column} = zeroblob({128 * MEBIBYTE})")
    evidence.settle()
    outcome = verify_apart(evidence.path)
    assert (outcome["finding"]["code"], outcome["finding"]["column"]) == ("head-mismatch", "head")
    limited_in_sqlite(outcome, 128 * MEBIBYTE)


def sealed_with(tmp_path: Path, draft: Draft) -> Evidence:
    """A chain whose entry 50 is this one, sealed by a holder of the key."""
    writer = Writer()
    writer.append(*map(span, range(1, 50)), draft, *map(span, range(51, 101)))
    return Evidence(writer.store(tmp_path / "sealed.db"))


def test_row_29_nested_a_million_deep(tmp_path: Path):
    """A body nested without end, sealed by a holder of the key: only --deep parses it."""
    body = b'{"attributes":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"
    evidence = sealed_with(tmp_path, span(50)._replace(body=body, body_hash=seal.body_hash(body)))
    no_finding(evidence.verify())
    first_finding(evidence.verify(deep=True), "limit-exceeded", 50, "body")
    evidence.close()


def test_row_29_a_prompt_of_16_mebibytes_of_brackets(evidence: Evidence):
    """Depth within a string is no depth, however long the string is."""
    body = b'"' + b"[" * (MAX_BODY_BYTES - 3) + b'"'
    evidence.put(50, reseal(evidence.entry(50), body=body))
    first_finding(evidence.verify(deep=True), "body-not-canonical", 50, "body")


def with_body(seq: int, change: Any) -> Draft:
    """A span's draft whose body was changed as octets; its columns are those of the honest one."""
    draft = span(seq)
    body = change(draft.body)
    assert body != draft.body
    return draft._replace(body=body, body_hash=seal.body_hash(body))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.replace(b'"name":"chat m"', b'"name":"chat m","name":"chat m"'),
        lambda body: body.replace(b'"name":"chat m"', b'"name":"chat x","name":"chat m"'),
        lambda body: body.replace(b'"code":"UNSET"', b'"code":"OK","code":"UNSET"'),
        lambda body: body + b" ",
        lambda body: b" " + body,
        lambda body: body.replace(b'":', b'": ', 1),
        lambda body: body.replace(b"chat m", b"chat\\u0020m"),
        lambda body: json.dumps(dict(reversed(json.loads(body).items()))).encode(),
        lambda body: body[:-1],
        lambda _body: b"",
        lambda _body: b"null",
        lambda _body: b"\xff",
        lambda body: body.replace(b'"trace_flags":0', b'"trace_flags":0.0'),
        lambda body: body.replace(b'"trace_flags":0', b'"trace_flags":"0"'),
        lambda body: body.replace(b'"via"', b"").replace(b'"links":[]', b'"links":[],"lonks":1'),
        lambda body: body.replace(b'"events":[]', b'"events":{}'),
        lambda body: body.replace(b'"gen_ai', b'"$gen_ai', 1),
    ],
    ids=range(17),
)
def test_row_30_not_canonical(tmp_path: Path, change: Any):
    """A body that two readers could read differently, sealed by a holder of the key."""
    evidence = sealed_with(tmp_path, with_body(50, change))
    no_finding(evidence.verify())
    report = evidence.verify(deep=True)
    first_finding(report, "body-not-canonical", 50, "body")
    assert len(report.findings) == 1
    evidence.close()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("trace_id", bytes(16)),
        ("trace_id", b""),
        ("span_id", bytes(8)),
        ("name", "chat n"),
        ("start_unix_nano", 1),
        ("end_unix_nano", 1),
        ("dedup_key", bytes(32)),
    ],
)
def test_row_30_column_against_body(tmp_path: Path, column: str, value: Any):
    """A column that contradicts the body, sealed by a holder of the key."""
    evidence = sealed_with(tmp_path, span(50)._replace(**{column: value}))
    no_finding(evidence.verify())
    report = evidence.verify(deep=True)
    first_finding(report, "column-mismatch", 50, column)
    assert len(report.findings) == 1
    evidence.close()


def test_row_30_other_kinds(tmp_path: Path):
    """A gap with another member than its own, sealed by a holder of the key."""
    body = canonical.dumps({**canonical.loads(gap().body), "why": "x"})
    evidence = sealed_with(tmp_path, seal.draft("gap", body))
    no_finding(evidence.verify())
    first_finding(evidence.verify(deep=True), "body-not-canonical", 50, "body")
    evidence.close()


def test_row_30_ids_of_any_text(tmp_path: Path):
    """An id that is no hex leaves its column empty; filled, it contradicts the body."""
    body = span(50).body.replace(f"{50:032x}".encode(), b"no hex at all")
    columns = columns_of_body(canonical.loads(body))
    honest = Draft("span", "span/1", *columns, body, seal.body_hash(body))
    assert honest.trace_id == b""
    evidence = sealed_with(tmp_path, honest)
    no_finding(evidence.verify(deep=True))
    evidence.close()


@pytest.mark.parametrize("what", ["deleted", "edited"])
def test_row_37_gap(tmp_path: Path, what: str):
    """A gap entry deleted, and one whose count was changed."""
    evidence = sealed_with(tmp_path, gap(3))
    if what == "deleted":
        evidence.delete(50)
        first_finding(evidence.verify(), "seq-gap", 50, None)
    else:
        body = evidence.entry(50).body
        evidence.set(50, body=body.replace(b'"count":3', b'"count":1'))
        first_finding(evidence.verify(), "body-hash-mismatch", 50, "body")
    evidence.close()


def test_memory_stays_flat(tmp_path: Path):
    """A chain five times as long takes no more memory to verify."""
    peaks = []
    for count in (600, 3000):  # both more than are read at once
        writer = Writer()
        writer.append(*(span_of_8_kilobytes(number) for number in range(1, count)))
        evidence = Evidence(writer.store(tmp_path / f"{count}.db"))
        outcome = verify_apart(evidence.path)
        evidence.close()
        assert outcome["finding"] is None
        limited_to_64_mebibytes(outcome)
        peaks.append(outcome["kibibytes"])
    assert peaks[1] < peaks[0] + 8 * 1024, peaks


def test_memory_stays_flat_with_a_fault_in_every_entry(tmp_path: Path):
    """The same fault in thousands of entries is one finding, not thousands."""
    peaks = []
    for count in (2000, 8000):  # both fill SQLite's own page cache
        writer = Writer()
        writer.append(*map(span, range(1, count)))
        evidence = Evidence(writer.store(tmp_path / f"{count}.db"))
        evidence.sql("UPDATE entries SET name = 'other'")
        evidence.settle()
        outcome = verify_apart(evidence.path)
        assert outcome["finding"]["code"] == "column-mismatch"
        assert outcome["finding"]["last_seq"] == count - 1
        peaks.append(outcome["kibibytes"])
        evidence.close()
    assert peaks[1] < peaks[0] + 2 * 1024, peaks


def span_of_8_kilobytes(number: int) -> Draft:
    draft = span(number)
    body = canonical.loads(draft.body)
    body["attributes"]["gen_ai.input.messages"] = f"{number} " * 1500
    octets = canonical.dumps(body)
    return Draft("span", "span/1", *columns_of_body(body), octets, seal.body_hash(octets))
