"""However many processes share the work, the verdict is the same: row 46 and what workers are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.keys import KeyRing
from bijotel.model import ChainHead
from bijotel.stores.sqlite import SqliteStore
from bijotel.verify import verify_chain
from bijotel.verify import workers as shared_work
from bijotel.verify.clean import Reading
from tests.attacks.evidence import (
    CHAIN_ID,
    KEY,
    OTHER_CHAIN_ID,
    Evidence,
    Writer,
    first_finding,
    no_finding,
    span,
)

RING = KeyRing(KEY)
READING = Reading(RING, {}, deep=False)
HEAD = 100


def flipped(octets: bytes) -> bytes:
    return bytes([octets[0] ^ 1]) + octets[1:]


def row_01(evidence: Evidence, seq: int) -> None:
    evidence.set(seq, body=flipped(evidence.entry(seq).body))


def row_08(evidence: Evidence, seq: int) -> None:
    evidence.set(seq, tag=flipped(evidence.entry(seq).tag))


def row_09(evidence: Evidence, seq: int) -> None:
    evidence.set(seq, prev_tag=flipped(evidence.entry(seq).prev_tag))


def row_10(evidence: Evidence, seq: int) -> None:
    evidence.delete(seq)


def row_14(evidence: Evidence, seq: int) -> None:
    place = evidence.entry(seq)
    forged = place._replace(**span(999)._asdict(), seq=seq + 1, prev_tag=place.tag)
    later = evidence.entries(seq + 1)
    evidence.delete(seq + 1, HEAD)
    evidence.insert(forged, *(entry._replace(seq=entry.seq + 1) for entry in later))


def row_15(evidence: Evidence, seq: int) -> None:
    other = seq + 1 if seq < HEAD else seq - 1
    one, two = evidence.entry(seq), evidence.entry(other)
    evidence.put(seq, one._replace(seq=-7))
    evidence.put(other, two._replace(seq=seq))
    evidence.put(-7, one._replace(seq=other))


FAULTS: dict[str, tuple[Callable[[Evidence, int], None], Callable[[int], tuple[str, int]]]] = {
    "1": (row_01, lambda seq: ("body-hash-mismatch", seq)),
    "8": (row_08, lambda seq: ("tag-mismatch", seq)),
    "9": (row_09, lambda seq: ("link-mismatch", seq)),
    "10": (row_10, lambda seq: ("seq-gap" if seq < HEAD else "truncated", seq)),
    "14": (row_14, lambda seq: ("tag-mismatch", seq + 1)),
    "15": (row_15, lambda seq: ("link-mismatch", min(seq, HEAD - 1))),
}


def boundaries(count: int) -> list[int]:
    """Every place at which the rows are divided, and its neighbours, as ``seq``."""
    starts = [low - 1 for low, _ in shared_work._split(1, HEAD + 1, count)][1:]
    return [place + offset for place in starts for offset in (-1, 0, 1)]


PLACES = sorted({*boundaries(2), *boundaries(7), 0, 1, HEAD - 1, HEAD})


def test_the_rows_are_divided_evenly():
    """No row is read twice or left out, whatever the number of workers."""
    for count in (1, 2, 3, 7, 50, 101, 1000):
        ranges = list(shared_work._split(1, HEAD + 1, count))
        covered = [row for low, high in ranges for row in range(low, high + 1)]
        assert covered == list(range(1, HEAD + 2))
        sizes = {high - low + 1 for low, high in ranges}
        assert max(sizes) - min(sizes) <= 1
        assert min(sizes) >= 2 or count == 1
    assert len(PLACES) >= 20


def is_whole(path: Path, count: int) -> bool:
    """Do in this process what so many workers do, and tell whether the fast path passes."""
    with SqliteStore(path).snapshot() as snapshot:
        first, last = snapshot.places() or (0, 0)
        parts = [
            shared_work.read_stretches(snapshot.scan(low, high), READING)
            for low, high in shared_work._split(first, last, count)
        ]
        stretches, stray = shared_work._join(parts)
        head = ChainHead._make(snapshot.head_rows()[0])
        return not stray and stretches[CHAIN_ID].is_whole(head)


def test_the_honest_chain_is_whole_however_it_is_divided(evidence: Evidence):
    """Stretches join to the whole chain for every number of workers."""
    evidence.settle()
    for count in range(1, 60):
        assert is_whole(evidence.path, count)


@pytest.mark.parametrize("fault", FAULTS)
def test_row_46_boundary(honest: Evidence, tmp_path: Path, fault: str):
    """A fault on each boundary, beside it, and at both ends: found by any number of workers.

    One worker's report is asserted in full; for the other numbers it is enough that their fast
    path gives up, for then the same walk over the same rows makes the same report.
    """
    attack, expected = FAULTS[fault]
    for seq in PLACES:
        evidence = honest.copy(tmp_path / f"{seq}.db")
        evidence.drop_guards()
        attack(evidence, seq)
        evidence.settle()
        report = verify_chain(evidence.path, KEY)
        assert (report.findings[0].code, report.findings[0].seq) == expected(seq)
        for count in (2, 3, 7):
            assert not is_whole(evidence.path, count)
        evidence.close()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("seq", [0, boundaries(2)[1], boundaries(7)[1], HEAD])
def test_row_46_boundary_with_processes(evidence: Evidence, fault: str, seq: int):
    """The same with real processes: equal reports, not only equal verdicts."""
    attack, expected = FAULTS[fault]
    evidence.drop_guards()
    attack(evidence, seq)
    code, where = expected(seq)
    evidence.settle()
    report = verify_chain(evidence.path, KEY)
    assert (report.findings[0].code, report.findings[0].seq) == (code, where)
    for count in (2, 7):
        assert verify_chain(evidence.path, KEY, workers=count) == report


def test_row_46_a_row_of_another_chain_at_a_boundary(evidence: Evidence):
    """A range may begin with a row of another chain, or of none."""
    for seq, chain_id in ((boundaries(2)[1], OTHER_CHAIN_ID), (boundaries(7)[4], None)):
        evidence.set(seq, chain_id=chain_id)
    report = evidence.verify()
    assert [(finding.code, finding.seq) for finding in report.findings] == [
        ("type-mismatch", boundaries(7)[4]),
        ("wrong-chain", boundaries(2)[1]),
    ]


def test_two_chains_row_by_row(tmp_path: Path):
    """Chains whose rows alternate in the file divide into stretches of each."""
    one, two = Writer(), Writer(OTHER_CHAIN_ID, "other")
    for number in range(1, 51):
        one.append(span(number))
        two.append(span(number))
    path = tmp_path / "chain.db"
    one.store(path)
    two.store(path)
    evidence = Evidence(path)
    evidence.sql("DELETE FROM entries")
    for pair in zip(one.entries, two.entries, strict=True):
        evidence.insert(*pair)
    report = evidence.verify(deep=True)
    no_finding(report)
    assert [chain.entries for chain in report.chains] == [51, 51]
    evidence.sql("UPDATE entries SET name = 'x' WHERE seq = 25 AND chain_id = ?", OTHER_CHAIN_ID)
    finding = first_finding(evidence.verify(), "column-mismatch", 25, "name")
    assert finding.chain == OTHER_CHAIN_ID.hex()
    evidence.close()


@pytest.mark.parametrize("workers", [0, -1])
def test_fewer_than_one_worker(evidence: Evidence, workers: int):
    """Nobody would do the work."""
    with pytest.raises(ConfigurationError, match=f"workers: expected at least 1, got {workers}"):
        verify_chain(evidence.path, KEY, workers=workers)


def test_more_workers_than_rows(tmp_path: Path):
    """No process is started that would have nothing to read."""
    writer = Writer()
    evidence = Evidence(writer.store(tmp_path / "chain.db"))
    evidence.settle()
    no_finding(verify_chain(evidence.path, KEY, workers=50))
    evidence.close()


def test_a_worker_that_dies_is_said(evidence: Evidence, monkeypatch: pytest.MonkeyPatch):
    """A range that nobody read is no range without a fault; and no process stays behind."""
    monkeypatch.setattr(shared_work, "_COMMAND", "raise SystemExit(7)")
    evidence.settle()
    with pytest.raises(UnavailableError, match="a verifying process ended with code 7"):
        verify_chain(evidence.path, KEY, workers=2)


def test_a_worker_that_cannot_read_is_said(evidence: Evidence, monkeypatch: pytest.MonkeyPatch):
    """Its reason is the reason that is given."""
    evidence.settle()
    with SqliteStore(evidence.path).snapshot() as snapshot:
        with pytest.raises(UnavailableError, match="none: no such file"):
            shared_work.read_chains(snapshot, READING, "/nowhere/none", 2)


PARENT = """
import sys
from bijotel.verify import verify_chain
if __name__ == "__main__":
    report = verify_chain(sys.argv[1], bytes(range(32)), workers=3)
    print(report.exit_code, report.checked["entries"])
"""
PLANT = "open('planted', 'w').close()\nraise SystemExit(0)\n"


def test_workers_take_no_code_from_the_evidence(evidence: Evidence, tmp_path: Path):
    """Modules that lie beside the store, where the command may be run, are not imported."""
    evidence.settle()
    folder = tmp_path / "evidence"
    (folder / "bijotel").mkdir(parents=True)
    for name in ("bijotel/__init__.py", "pickle.py", "orjson.py", "sqlite3.py"):
        (folder / name).write_text(PLANT)
    script = tmp_path / "script" / "main.py"
    script.parent.mkdir()
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    result = subprocess.run(
        [sys.executable, str(script), str(evidence.path)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (result.stdout, result.stderr) == ("0 101\n", "")
    assert not (folder / "planted").exists()


def test_a_key_is_on_no_command_line(evidence: Evidence, monkeypatch: pytest.MonkeyPatch):
    """Key material goes to a worker through its standard input."""
    commands: list[list[str]] = []
    start = subprocess.Popen

    def spy(command: list[str], **options: object) -> object:
        commands.append(command)
        return start(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", spy)
    evidence.settle()
    no_finding(verify_chain(evidence.path, KEY, workers=2))
    assert len(commands) == 1
    assert not any(KEY._master.hex() in part for part in commands[0])
