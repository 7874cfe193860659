"""Several processes give what one gives, in the same order, and leave nothing behind."""

from __future__ import annotations

from contextlib import closing

import pytest

from bijotel.audit import audit_trace
from bijotel.audit import workers as room
from bijotel.audit.workers import audits_of, usable_workers
from bijotel.errors import UnavailableError
from bijotel.traces.grouping import Part
from bijotel.traces.reader import gather_parts, read_traces
from tests.audit.conftest import call, otlp_line, search, text

A, B, C = (text(name * number) for number, name in enumerate("abc", start=1))


@pytest.fixture
def many(tmp_path, monkeypatch):
    """A file of 30 traces, some of which are not applicable, that makes many batches."""
    monkeypatch.setattr(room, "_BATCH_BYTES", 4_000)
    path = tmp_path / "many.jsonl"
    lines = [
        otlp_line(search(1, A, B, C, trace_id=f"{n:032x}"), call(2, *used, trace_id=f"{n:032x}"))
        for n in range(1, 31)
        for used in ([[A], [A, B], [], [A, B, C]][n % 4],)
    ]
    path.write_text("\n".join(lines))
    return path


def parts_of(path):
    return gather_parts([path], skipped=lambda _: None, counted=lambda _: None)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_the_audits_are_those_of_one_process(many, workers):
    """Equal in every value, whoever made them."""
    assert list(audits_of(parts_of(many), workers)) == list(map(audit_trace, read_traces([many])))


def test_an_error_at_the_end_comes_after_the_audits(many):
    """As a file that could not be read does."""

    def parts():
        yield from parts_of(many)
        raise UnavailableError("the second file")

    found = []
    with pytest.raises(UnavailableError, match="the second file"):
        for each in audits_of(parts(), 2):
            found.append(each)  # noqa: PERF402 - what came before the error is looked at
    assert len(found) == 30


def test_a_worker_that_fails_says_so(many):
    """An error in another process is an error of this one."""
    broken = [[Part(b"\1" * 16, 0, b"{")]]
    with pytest.raises(UnavailableError, match=r"a trace could not be audited: \w+Error"):
        list(audits_of(broken, 1))


def test_a_worker_that_ends_is_noticed(many, monkeypatch):
    """Whether it ends before it is given anything or before it has answered."""
    monkeypatch.setattr(room, "_COMMAND", "raise SystemExit(7)")
    with pytest.raises(UnavailableError, match="an auditing process ended with code 7"):
        list(audits_of(parts_of(many), 2))


def test_no_process_is_left_behind(many, monkeypatch):
    """Also when nobody wants the rest."""
    started = []
    start = room._start
    monkeypatch.setattr(room, "_start", lambda stack: started.append(start(stack)) or started[-1])
    with closing(audits_of(parts_of(many), 2)) as audits:
        next(audits)
        assert [child.poll() for child in started] == [None, None]
    assert all(child.returncode is not None for child in started)
    assert all(child.stdin.closed and child.stdout.closed for child in started)


def test_one_processor_is_no_reason_for_workers(monkeypatch):
    """Then all is done in this process."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    assert usable_workers() == 0
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert usable_workers() == 2
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)))
    assert usable_workers() == 3
