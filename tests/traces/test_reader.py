"""Traces out of files: grouped by id, complete, in order, each span once."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bijotel.errors import UnavailableError
from bijotel.model import SpanRecord
from bijotel.traces import grouping
from bijotel.traces.model import LogRecord, SkippedLine
from bijotel.traces.reader import group_records, read_traces

A, B = "a" * 32, "b" * 32


def log_line(trace_id: str, *times: int) -> str:
    records = [
        {"traceId": trace_id, "spanId": "1" * 16, "timeUnixNano": str(time)} for time in times
    ]
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}) + "\n"


def test_a_trace_over_lines_and_files(make, read):
    """Spans of one trace come together wherever they stand; traces in order of first appearance."""
    found = read(
        make.line(make.span(B, "1" * 16), make.span(A, "2" * 16))
        + make.line(make.span(A, "3" * 16)),
        log_line(A, 9, 4) + make.line(make.span(B, "4" * 16)),
    )
    assert list(found.spans.items()) == [(B, ["1" * 16, "4" * 16]), (A, ["2" * 16, "3" * 16])]
    assert [[log.time_unix_nano for log in trace.logs] for trace in found.traces] == [[], [4, 9]]


def test_a_span_that_was_sent_twice_is_there_once(make, read):
    """A retry repeats a span; another span under the same id is kept."""
    line = make.line(make.span())
    found = read(line + line + make.line(make.span(name="another")))
    assert [span.name for span in found.traces[0].spans] == ["step", "another"]


def test_lines_that_do_not_parse_are_named(make, read):
    """Garbage, half a line and JSON of another kind are skipped; all spans are there."""
    good = [make.line(make.span(span_id=f"{n:016x}")) for n in (1, 2, 3)]
    found = read(
        good[0] + "garbage\n" + good[1][:40] + "\n" + good[1] + '{"other": 1}\n\n' + good[2][:-20]
    )
    assert found.spans == {make.trace_id: ["0" * 15 + "1", "0" * 15 + "2"]}
    assert sorted(found.reasons) == [
        (2, "not JSON"),
        (3, "a JSON object that is not whole"),
        (5, "no spans or log records in a form that is known"),
        (7, "a JSON object that is not whole"),
    ]
    assert str(found.skipped[0]).endswith("traces-0.jsonl: line 2: not JSON")


def test_text_before_any_object_is_named_in_order(make, read, monkeypatch):
    """However much text comes first, each line of it is reported once."""
    monkeypatch.setattr("bijotel.traces.reader._WAITING_LINES", 3)
    found = read("x\n" * 9 + make.line(make.span()) + "y\n")
    assert found.reasons == [(line, "not JSON") for line in (*range(1, 10), 11)]


def test_a_span_without_an_id_is_named_and_the_rest_kept(make, read):
    """One span of a line without a trace id takes no other with it."""
    found = read(make.line(make.span("zz"), make.span()))
    assert found.spans == {make.trace_id: ["b7ad6b7169203331"]}
    assert found.reasons == [(1, "a span without a valid trace id")]
    assert read(make.line(make.span(span_id="not hex"))).spans == {make.trace_id: [""]}


def at(*path: str | int, value: object, request: dict) -> str:
    """The line of a request in which the value at a path is another one."""
    inner = request
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return json.dumps(request) + "\n"


RESOURCE = ("resourceSpans", 0)
SCOPE = (*RESOURCE, "scopeSpans", 0)
SPAN = (*SCOPE, "spans", 0)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("resourceSpans",), 5, "resourceSpans: expected a list, got a number"),
        (RESOURCE, "x", "resourceSpans[0]: expected an object, got a string"),
        ((*RESOURCE, "resource"), [], "resource: expected an object, got a list"),
        ((*RESOURCE, "scopeSpans"), {}, "scopeSpans: expected a list, got an object"),
        ((*SCOPE, "scope"), True, "scope: expected an object, got a boolean"),
        ((*SCOPE, "spans"), "x", "spans: expected a list, got a string"),
        (SPAN, None, "spans[0]: expected an object, got null"),
        ((*SPAN, "name"), 5, "name: expected a string, got a number"),
        ((*SPAN, "startTimeUnixNano"), {}, "startTimeUnixNano: expected a number, got an object"),
        (
            (*SPAN, "start_time_unix_nano"),
            [],
            "start_time_unix_nano: expected a number, got a list",
        ),
        ((*SPAN, "status"), "OK", "status: expected an object, got a string"),
        ((*SPAN, "attributes"), "nope", "attributes: expected a list, got a string"),
        (
            (*SPAN, "attributes"),
            [{"key": "a"}, 5],
            "attributes[1]: expected an object, got a number",
        ),
        ((*SPAN, "attributes"), [{"key": 5}], "key: expected a string, got a number"),
        ((*SPAN, "events"), [{"attributes": 1.5}], "attributes: expected a list, got a number"),
        ((*SPAN, "links"), [["x"]], "links[0]: expected an object, got a list"),
    ],
)
def test_a_part_of_a_wrong_type_is_named_and_the_rest_kept(make, read, path, value, reason):
    """What is not of its type is told with its line, and once; the rest of the line is read."""
    request = make.request(make.span(A), make.span(B))
    line = at(*path, value=value, request=request)
    found = read(make.line(make.span(A, "1" * 16)) + line)
    assert found.reasons == [(2, reason)]
    assert (B in found.spans) == (len(path) > len(SCOPE) + 1 or path[-1] in {"resource", "scope"})


def test_a_line_is_reported_once_however_much_of_it_is_wrong(make, read):
    """The number of skipped lines is a number of lines."""
    wrong = make.span("zz", attributes=5, events="x")
    assert read("[1, 2]\n" + make.line(wrong, wrong)).reasons == [
        (1, "no spans or log records in a form that is known"),
        (2, "attributes: expected a list, got a number"),
    ]


def test_what_is_null_is_left_out(make, read):
    """In protobuf's JSON null stands for a default."""
    span = make.span(A, attributes=None, events=None, status=None, name=None)
    found = read(make.line(span) + json.dumps({"resourceSpans": None}))
    assert (list(found.spans), found.reasons) == ([A], [])


def test_log_records_of_wrong_types_are_named(read):
    """What holds for spans holds for log records."""
    assert read(log_line(A, 1).replace('"1"', "[]")).reasons == [
        (1, "timeUnixNano: expected a number, got a list")
    ]


def test_a_list_of_objects_on_one_line(make, read):
    """An array of requests is read like so many lines."""
    found = read(json.dumps([make.request(make.span(A)), make.request(make.span(B)), 5, 6]))
    assert list(found.spans) == [A, B]
    assert found.reasons == [(1, "no spans or log records in a form that is known")]


def test_a_pretty_printed_document(make, read):
    """One document over many lines is one object."""
    assert list(read(json.dumps(make.request(make.span(A), make.span(B)), indent=2)).spans) == [
        A,
        B,
    ]


def test_lone_surrogates_travel(make, read):
    """A text that is no Unicode goes through the temporary file unchanged."""
    attribute = {"key": "a", "value": {"stringValue": "\ud800"}}
    found = read(make.line(make.span(A, attributes=[attribute]), make.span(B)))
    assert found.traces[0].spans[0].attributes == {"a": "\ud800"}


def test_what_is_nested_too_deeply_is_named(make, read):
    """A span that cannot be written again is given or named, and takes no other line with it."""
    attribute = {"key": "a", "value": {"arrayValue": {"values": "DEEP"}}}
    deep = make.line(make.span(A, attributes=[attribute]), make.span(B)).replace(
        '"DEEP"', "[" * 1000 + "]" * 1000
    )
    found = read(deep + make.line(make.span(B)))
    assert B in found.spans
    assert (A in found.spans) == (found.reasons == [])


def test_files_that_cannot_be_read_come_last(make, tmp_path):
    """The traces of the other files are given first; then every bad file is named."""
    good, empty, missing = tmp_path / "good", tmp_path / "empty", tmp_path / "missing"
    good.write_text(make.line(make.span()))
    empty.write_text("")
    traces = read_traces([missing, good, empty])
    assert next(traces).trace_id == make.trace_id
    with pytest.raises(
        UnavailableError, match=r"missing: cannot be read.*; .*empty: the file is empty"
    ):
        next(traces)


def test_the_count_of_traces_is_told_first(make, read, tmp_path):
    """Who shows progress learns how much there is before the first trace."""
    path = tmp_path / "t"
    path.write_text(make.line(make.span(A), make.span(B)) + make.line(make.span(A)))
    told = []
    assert len(list(read_traces([path], counted=told.append))) == 2
    assert told == [2]


def test_a_full_disk_is_said(make, tmp_path, monkeypatch):
    """When the temporary file cannot grow, the error says so."""
    path = tmp_path / "t"
    path.write_text("".join(make.line(make.span(span_id=f"{n:016x}")) for n in range(2000)))
    opened = grouping.Gathering.__init__

    def small(self):
        opened(self)
        self._database.execute("PRAGMA max_page_count = 4")

    monkeypatch.setattr(grouping.Gathering, "__init__", small)
    with pytest.raises(UnavailableError, match=r"the temporary file of the traces failed: .*full"):
        list(read_traces([path]))


def test_a_temporary_file_that_is_lost_is_said(make, tmp_path):
    """When the temporary file fails while traces are read back, the error says so."""
    gathering = grouping.Gathering()
    gathering.add(grouping.Part(b"a" * 16, 0, b"{}"))
    assert gathering.finish() == 1
    gathering.close()
    with pytest.raises(UnavailableError, match="the temporary file of the traces failed"):
        list(gathering.traces())
    with pytest.raises(UnavailableError, match="the temporary file of the traces failed"):
        gathering.finish()


def test_records_at_hand_are_grouped():
    """Records of a chain, in any order, become traces by first appearance."""
    records = [
        SpanRecord("x", trace_id=B, span_id="1"),
        LogRecord(trace_id=A),
        SpanRecord("y", trace_id=B, span_id="2"),
    ]
    traces = list(group_records(records))
    assert [(trace.trace_id, len(trace.spans), len(trace.logs)) for trace in traces] == [
        (B, 2, 0),
        (A, 0, 1),
    ]


@settings(max_examples=30)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 99)), min_size=1, max_size=4),
        min_size=1,
        max_size=8,
    )
)
def test_nothing_is_lost_however_lines_are_cut(tmp_path_factory, batches):
    """Whatever spans stand on whatever lines, each trace has exactly its own, once."""
    path = tmp_path_factory.mktemp("traces") / "t"
    lines, wanted = [""], {}
    for batch in batches:
        spans = [{"traceId": letter * 32, "spanId": f"{n:016x}"} for letter, n in batch]
        lines.append(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
        for letter, n in batch:
            wanted.setdefault(letter * 32, {})[f"{n:016x}"] = None
    path.write_text("\n".join(lines) + "\n")
    skipped: list[SkippedLine] = []
    found = {
        t.trace_id: [s.span_id for s in t.spans]
        for t in read_traces([path], skipped=skipped.append)
    }
    assert found == {trace_id: list(ids) for trace_id, ids in wanted.items()}
    assert list(found) == list(wanted)
    assert skipped == []


@pytest.mark.slow
def test_memory_stays_bounded(tmp_path, make):
    """Five times the input needs no more memory: parts wait on disk, not in the process."""
    filler = {"key": "text", "value": {"stringValue": "word " * 800}}
    peaks = []
    for count in (5_000, 25_000):
        path = tmp_path / f"{count}.jsonl"
        with path.open("w") as file:
            for number in range(count):
                first, second = f"{number:032x}", f"{count - 1 - number:032x}"
                file.write(
                    make.line(
                        make.span(first, attributes=[filler]),
                        make.span(second, f"{number + 1:016x}"),
                    )
                )
        code = textwrap.dedent(f"""
            from pathlib import Path
            from bijotel.traces.reader import read_traces
            count = sum(1 for _ in read_traces([Path({str(path)!r})]))
            # Not ru_maxrss, in which a child starts with the size of its parent.
            status = Path("/proc/self/status").read_text()
            print(count, status.partition("VmHWM:")[2].split()[0])
        """)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        traces, peak = map(int, done.stdout.split())
        assert traces == count
        peaks.append(peak / 1024)
    assert peaks[1] < peaks[0] + 40
    assert peaks[1] < 200
