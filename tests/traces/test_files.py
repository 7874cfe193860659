"""Files as they are: packed, length-prefixed, empty, missing, damaged."""

from __future__ import annotations

import gzip
import os
import re
import sys
import threading
import time

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Metric,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData

from bijotel.errors import ConfigurationError, UnavailableError
from bijotel.traces import files, protobuf
from bijotel.traces.reader import read_traces

TRACE = bytes.fromhex("0af7651916cd43dd8448eb211c80319c")


def prefixed(*messages: bytes) -> bytes:
    return b"".join(len(message).to_bytes(4, "big") + message for message in messages)


def spans_message(*names: str) -> bytes:
    spans = [
        Span(trace_id=TRACE, span_id=bytes([n + 1] * 8), name=name, kind=3)
        for n, name in enumerate(names)
    ]
    return TracesData(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])]
    ).SerializeToString()


def logs_message() -> bytes:
    record = LogRecord(
        trace_id=TRACE, span_id=b"\1" * 8, observed_time_unix_nano=5, event_name="gen_ai.choice"
    )
    record.body.string_value = "hello"
    return LogsData(
        resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=[record])])]
    ).SerializeToString()


def metrics_message() -> bytes:
    scope = ScopeMetrics(metrics=[Metric(name="calls")])
    return MetricsData(
        resource_metrics=[ResourceMetrics(scope_metrics=[scope])]
    ).SerializeToString()


def test_a_pipe_that_is_slow_to_begin(tmp_path, make):
    """What a file is shows in its first bytes, also where they come one by one."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    packed = gzip.compress(make.line(make.span()).encode())

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            for place in range(4):
                pipe.write(packed[place : place + 1])
                time.sleep(0.02)
            pipe.write(packed[4:])

    writer = threading.Thread(target=write)
    writer.start()
    (trace,) = read_traces([path])
    writer.join()
    assert [span.span_id for span in trace.spans] == ["b7ad6b7169203331"]


def test_gzip(make, read):
    """A packed file is unpacked, also when it was written in several runs."""
    line = make.line(make.span()).encode()
    more = make.line(make.span(span_id="2" * 16)).encode()
    found = read(gzip.compress(line) + gzip.compress(more))
    assert found.spans == {make.trace_id: ["b7ad6b7169203331", "2" * 16]}


def test_damaged_gzip_keeps_what_came_before(make, tmp_path):
    """What could be unpacked is read, and then the file is said not to be whole."""
    lines = "".join(make.line(make.span(span_id=f"{n:016x}")) for n in range(1, 20_000))
    path = tmp_path / "half.gz"
    packed = gzip.compress(lines.encode())
    path.write_bytes(packed[: len(packed) // 2])
    traces = read_traces([path])
    assert len(next(traces).spans) > 1000
    with pytest.raises(UnavailableError, match=r"half\.gz: cannot be read: .*end"):
        next(traces)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python reads zstd itself from 3.14 on")
def test_zstd_says_what_to_do(tmp_path):
    """Where Python cannot unpack it, the message says how to."""
    path = tmp_path / "packed.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x00")
    with pytest.raises(UnavailableError, match=r"packed\.zst: packed with zstd.*`zstd -d`"):
        list(read_traces([path]))


def test_zstd_where_python_has_it(make, read, monkeypatch):
    """With a decoder the file is read; this stands in for the one of Python 3.14."""

    class Zstd:
        ZstdFile = staticmethod(lambda raw: gzip.GzipFile(fileobj=raw))
        decompress = staticmethod(gzip.decompress)

    monkeypatch.setattr(files, "_ZSTD", b"\x1f\x8b")
    monkeypatch.setattr(files, "_GZIP", b"never")
    monkeypatch.setattr(files, "import_module", lambda _: Zstd)
    packed = gzip.compress(make.line(make.span()).encode())
    assert list(read(packed).spans) == [make.trace_id]
    assert list(read(prefixed(packed)).spans) == [make.trace_id]


def test_protobuf_messages_of_all_signals(read):
    """Spans and log records of one trace come together, metrics are passed over."""
    found = read(prefixed(spans_message("a", "b"), metrics_message(), logs_message()))
    (trace,) = found.traces
    assert [(span.name, span.kind, span.span_id) for span in trace.spans] == [
        ("a", "CLIENT", "01" * 8),
        ("b", "CLIENT", "02" * 8),
    ]
    assert [(log.event_name, log.span_id, log.body) for log in trace.logs] == [
        ("gen_ai.choice", "01" * 8, "hello")
    ]
    assert found.reasons == []


def test_length_prefixed_json(make, read):
    """The Collector prefixes JSON too when it packs."""
    found = read(prefixed(make.line(make.span()).strip().encode(), b"{broken"))
    assert list(found.spans) == [make.trace_id]
    assert [line for line, _ in found.reasons] == [2]


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        (b"\0\0", "a message that is not whole"),
        (b"\0\0\0\x09abc", "a message that is not whole"),
        (b"\7\0\0\0", "a message of 117440512 bytes, more than 1000"),
        (prefixed(b"\xff\xff\xff"), "no OTLP message of spans, log records or metrics"),
        (prefixed(b""), "no OTLP message of spans, log records or metrics"),
    ],
)
def test_messages_that_cannot_be_read(read, monkeypatch, rest, reason):
    """The message is named by its number, those before it are kept."""
    monkeypatch.setattr(files, "MAX_OBJECT_BYTES", 1000)
    found = read(prefixed(spans_message("a")) + rest)
    assert len(found.traces) == 1
    assert found.reasons == [(2, reason)]


def test_protobuf_without_the_extra(tmp_path, monkeypatch):
    """The message names the extra to install."""

    def missing(name: str):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(protobuf, "import_module", missing)
    path = tmp_path / "spans.pb"
    path.write_bytes(prefixed(spans_message("a")))
    with pytest.raises(ConfigurationError, match=re.escape("pip install '.[otlp]' in the folder")):
        list(read_traces([path]))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (gzip.compress(b""), "the file is empty"),
        (b" \n\t\r\n", "the file is empty but for white space"),
        (b"\n" * 100_000, "the file is empty but for white space"),
        (gzip.compress(b"\n \n"), "the file is empty but for white space"),
        (b"SQLite format 3\0" + bytes(4080), "is a database; use --db$"),
    ],
)
def test_an_empty_file(tmp_path, content, reason):
    """A file without a trace to read is an error with its name: it was meant to hold one."""
    path = tmp_path / "none.jsonl"
    path.write_bytes(content)
    with pytest.raises(UnavailableError, match=rf"none\.jsonl: {reason}"):
        list(read_traces([path]))


def test_a_missing_file_and_a_folder(tmp_path):
    """Both are named with what the system says."""
    with pytest.raises(UnavailableError, match=r"gone\.jsonl: cannot be read: No such file"):
        list(read_traces([tmp_path / "gone.jsonl"]))
    with pytest.raises(UnavailableError, match="cannot be read: Is a directory"):
        list(read_traces([tmp_path]))
