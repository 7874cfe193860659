"""``bijotel seal``: spans that somebody else wrote to files, each exactly once."""

from __future__ import annotations

import gzip
import json
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bijotel import growing, verify_chain
from bijotel.errors import UnavailableError
from bijotel.model import Entry
from bijotel.spans.decode import decode_record
from bijotel.stores.sqlite import SqliteStore
from tests.cli.conftest import COMMAND, MASTER_KEY, OTHER_SECRET, clean_environment

pytestmark = pytest.mark.usefixtures("secret")


def otlp(*numbers: int, prompt: str = "why?", genai: bool = True) -> str:
    """One line of OTLP/JSON with a span for each number."""
    name = "gen_ai.operation.name" if genai else "http.method"
    spans = [
        {
            "traceId": f"{number + 1:032x}",
            "spanId": f"{number + 1:016x}",
            "name": f"chat {number}",
            "kind": 3,
            "startTimeUnixNano": "1700000000000000001",
            "endTimeUnixNano": "1700000000000000009",
            "attributes": [
                {"key": name, "value": {"stringValue": "chat"}},
                {"key": "gen_ai.prompt" if genai else "x", "value": {"stringValue": prompt}},
            ],
        }
        for number in numbers
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "java"}}]}
    document = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}
    return json.dumps(document) + "\n"


def entries(db: Path, chain: str = "default") -> list[Entry]:
    """The entries of a chain that verifies."""
    assert verify_chain(db, MASTER_KEY, deep=True).findings == ()
    with SqliteStore(db).snapshot() as snapshot:
        ids = [row[0] for row in snapshot.head_rows() if row[1] == chain]
        return [Entry._make(row.columns) for row in snapshot.select(ids[0])] if ids else []


def names(db: Path) -> list[str]:
    return [entry.name for entry in entries(db) if entry.kind == "span"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "sealed.db"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "traces.jsonl"


def test_spans_of_a_file_are_sealed(bijotel, file: Path, store: Path):
    """Every generative AI span of it, as the file has it, and marked as coming from one."""
    file.write_text(otlp(0, 1) + otlp(2, genai=False) + otlp(3))
    result = bijotel("seal", file, "--db", store)
    assert result.code == 0
    assert result.out == (
        "chain default: 3 spans sealed, 0 sealed before, 1 belong to no generative AI call, "
        "0 lines skipped\n"
    )
    assert names(store) == ["chat 0", "chat 1", "chat 3"]
    record = decode_record(entries(store)[1].body)
    assert record.via == "file"
    assert record.attributes == {"gen_ai.operation.name": "chat", "gen_ai.prompt": "why?"}
    assert record.resource.attributes == {"service.name": "java"}
    assert (record.kind, record.end_time_unix_nano) == ("CLIENT", 1700000000000000009)
    assert b'"via":"file"' in entries(store)[1].body


def test_the_same_file_again_seals_nothing(bijotel, file: Path, store: Path):
    """Also a copy of it, packed, and with new spans behind the old ones."""
    file.write_text(otlp(0, 1))
    bijotel("seal", file, "--db", store)
    packed = file.with_suffix(".gz")
    packed.write_bytes(gzip.compress((otlp(0, 1) + otlp(2)).encode()))
    result = bijotel("seal", file, packed, "--db", store, "--json")
    assert result.document == {
        "sealed": 1,
        "known": 4,
        "left_out": 0,
        "skipped_lines": 0,
        "chain": "default",
        "store": str(store),
    }
    assert names(store) == ["chat 0", "chat 1", "chat 2"]


def test_a_folder_and_a_chain_of_its_own(bijotel, tmp_path: Path, store: Path):
    """The files of a folder by name; ``--chain`` names the chain."""
    folder = tmp_path / "traces"
    (folder / "below").mkdir(parents=True)
    for name, number in (("b.jsonl", 1), ("a.jsonl", 0), ("below/c.jsonl", 2)):
        (folder / name).write_text(otlp(number))
    assert bijotel("seal", folder, "--db", store, "--chain", "java").code == 0
    assert [entry.name for entry in entries(store, "java")] == ["", "chat 0", "chat 1"]


def test_protobuf_is_the_same_span(bijotel, file: Path, store: Path):
    """A span that was written in both forms of OTLP is one span."""
    from google.protobuf.json_format import Parse
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    document = json.loads(otlp(0, 1))
    for spans in document["resourceSpans"][0]["scopeSpans"]:
        for span in spans["spans"]:  # protobuf's own JSON has ids in base64
            for key in ("traceId", "spanId"):
                import base64

                span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    octets = Parse(json.dumps(document), TracesData()).SerializeToString()
    messages = file.with_suffix(".pb")
    messages.write_bytes(len(octets).to_bytes(4, "big") + octets)
    file.write_text(otlp(0, 1))
    assert bijotel("seal", file, messages, "--db", store, "--json").document["known"] == 2
    assert names(store) == ["chat 0", "chat 1"]


def test_digests_in_place_of_words(bijotel, file: Path, store: Path):
    """``--content digest``: what people wrote is in no file of the store."""
    file.write_text(otlp(0, prompt="a very private question"))
    assert bijotel("seal", file, "--db", store, "--content", "digest").code == 0
    assert names(store) == ["chat 0"]
    octets = b"".join(path.read_bytes() for path in store.parent.glob("sealed.db*"))
    assert b"private" not in octets
    assert (
        bijotel("seal", file, "--db", store, "--content", "digest", "--json").document["known"] == 1
    )


def test_lines_that_cannot_be_read(bijotel, file: Path, store: Path):
    """They are said with their numbers, ten of them, cost no other line, and exit 3."""
    file.write_text(otlp(0) + "garbage\n" * 12 + otlp(1))
    result = bijotel("seal", file, "--db", store)
    assert result.code == 3
    assert "12 lines skipped" in result.out
    skipped = [line for line in result.err.splitlines() if line.startswith("skipped: ")]
    assert skipped[0].startswith(f"skipped: {file}: line 2: ")
    assert len(skipped) == 11
    assert skipped[-1] == "skipped: further lines are counted only"
    assert names(store) == ["chat 0", "chat 1"]


def test_a_file_that_cannot_be_read_costs_no_other(bijotel, file: Path, store: Path):
    """Exit 3 with its name; what can be sealed is."""
    file.write_text(otlp(0))
    result = bijotel("seal", file.parent / "missing.jsonl", file, "--db", store)
    assert result.code == 3
    assert "missing.jsonl: cannot be read: No such file or directory" in result.err
    assert names(store) == ["chat 0"]


def test_a_folder_that_cannot_be_read_costs_no_file(bijotel, file: Path, store: Path, monkeypatch: pytest.MonkeyPatch):  # fmt: skip
    """Exit 3 with its name, as for a file."""
    file.write_text(otlp(0))
    folder = file.parent / "closed"
    folder.mkdir()
    iterdir = Path.iterdir

    def refuse(path: Path) -> Iterator[Path]:
        if path == folder:  # root, which tests may run as, may read any
            raise PermissionError(13, "Permission denied")
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    result = bijotel("seal", folder, file, "--db", store)
    assert result.code == 3
    assert f"error: {folder}: cannot be read: Permission denied\n" in result.err
    assert names(store) == ["chat 0"]
    files = growing.GrowingFiles((folder, file))
    assert len(parts(files)) == 1
    assert files.unread == {folder: f"{folder}: cannot be read: Permission denied"}


def test_an_empty_file_has_no_spans(bijotel, tmp_path: Path, store: Path):
    """A Collector leaves one whenever it begins a new file; it is no error."""
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "empty.jsonl").touch()
    (folder / "full.jsonl").write_text(otlp(0))
    result = bijotel("seal", folder, "--db", store, "--json")
    assert (result.code, result.document["sealed"]) == (0, 1)
    assert "empty" not in result.err


def test_what_is_asked_wrongly(bijotel, file: Path, store: Path, monkeypatch: pytest.MonkeyPatch):
    """No file, no key, or the chain of another key: exit 2 and nothing is sealed."""
    file.write_text(otlp(0))
    assert bijotel("seal", "--db", store).code == 2
    bijotel("seal", file, "--db", store)
    monkeypatch.setenv("BIJOTEL_HMAC_SECRET", OTHER_SECRET)
    file.write_text(otlp(0, 1))
    result = bijotel("seal", file, "--db", store)
    assert result.code == 2
    assert "which is not among the given keys" in result.err
    monkeypatch.delenv("BIJOTEL_HMAC_SECRET")
    assert bijotel("seal", file, "--db", store).code == 2
    assert names(store) == ["chat 0"]


def test_a_store_that_stays_locked(bijotel, file: Path, store: Path, monkeypatch: pytest.MonkeyPatch):  # fmt: skip
    """Exit 3 after some patience; asked again it seals what is missing."""
    monkeypatch.setattr("bijotel.stores.retry.patiently.__defaults__", (0.3,))
    file.write_text(otlp(0))
    bijotel("seal", file, "--db", store)
    file.write_text(otlp(0, 1))
    blocker = sqlite3.connect(store, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    result = bijotel("seal", file, "--db", store)
    assert result.code == 3
    assert "still, after 0.3 seconds" in result.err
    blocker.close()
    assert bijotel("seal", file, "--db", store).code == 0
    assert names(store) == ["chat 0", "chat 1"]


# --- what grows ------------------------------------------------------------------------------


@contextmanager
def following(store: Path, *paths: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the installed command with ``--follow``, and stop it in the end."""
    child = subprocess.Popen(
        [*COMMAND, "seal", *map(str, paths), "--db", str(store), "--follow", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        text=True,
    )
    killer = threading.Timer(60, child.kill)
    killer.start()
    try:
        yield child
    finally:
        killer.cancel()
        child.kill()
        with child:
            pass


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def sealed(store: Path, count: int) -> Callable[[], bool]:
    def look() -> bool:
        try:
            with SqliteStore(store).snapshot() as snapshot:
                rows = [row for row in snapshot.scan(0, 1000) if row.columns[4] == "span"]
        except UnavailableError:  # not there yet
            return False
        return len(rows) == count

    return look


def add(path: Path, text: str) -> None:
    with path.open("a") as stream:
        stream.write(text)


def test_a_folder_that_grows(tmp_path: Path, store: Path):
    """New lines, half lines, new files and a rotation: each span once, until SIGTERM."""
    folder = tmp_path / "traces"
    folder.mkdir()
    first = folder / "traces.jsonl"
    first.write_text(otlp(0))
    with following(store, folder) as child:
        wait_for(sealed(store, 1))
        line = otlp(1)
        add(first, line[:50])
        (folder / "another.jsonl").write_text(otlp(2))
        wait_for(sealed(store, 2))
        add(first, line[50:] + "garbage {\n" + otlp(3))
        wait_for(sealed(store, 4))
        first.rename(folder / "traces-2026.jsonl")
        first.write_text(otlp(4))
        add(folder / "traces-2026.jsonl", otlp(5))
        wait_for(sealed(store, 6))
        child.send_signal(signal.SIGTERM)
        output, errors = child.communicate(timeout=30)
    assert child.returncode == 3  # a line was skipped
    document = json.loads(output)
    assert (document["sealed"], document["known"], document["skipped_lines"]) == (6, 0, 1)
    assert f"skipped: {first}: line 3: " in errors
    assert sorted(names(store)) == [f"chat {number}" for number in range(6)]


def test_a_start_that_follows_again(file: Path, store: Path):
    """It reads from the beginning, and seals only what the chain does not hold."""
    file.write_text(otlp(0, 1))
    for expected in ((2, 0), (1, 2)):
        with following(store, file) as child:
            wait_for(sealed(store, sum(expected)))
            child.send_signal(signal.SIGINT)
            output, _ = child.communicate(timeout=30)
        assert child.returncode == 0
        document = json.loads(output)
        assert (document["sealed"], document["known"]) == expected
        add(file, otlp(2))
    assert names(store) == ["chat 0", "chat 1", "chat 2"]


def test_what_cannot_be_followed_costs_no_other_file(tmp_path: Path, store: Path):
    """It is said once, whatever sorts first; the files behind it are sealed, and it ends in 3."""
    folder = tmp_path / "traces"
    folder.mkdir()
    packed, torn = folder / "a.jsonl.gz", folder / "b.jsonl"
    packed.write_bytes(gzip.compress(otlp(0).encode()))
    torn.write_text(otlp(1))
    with following(store, folder, tmp_path / "later.jsonl") as child:
        wait_for(sealed(store, 1))
        with torn.open("ab") as stream:  # a line that is taken for a packed file
            stream.write(b"\x1f\x8b\n")
        time.sleep(1.5)  # at least one more round
        add(folder / "c.jsonl", otlp(2))
        wait_for(sealed(store, 2))
        add(tmp_path / "later.jsonl", otlp(3))
        wait_for(sealed(store, 3))
        child.send_signal(signal.SIGTERM)
        _, errors = child.communicate(timeout=30)
    assert child.returncode == 3
    lines = [line for line in errors.splitlines() if line.startswith(("error", "waiting"))]
    assert lines[:2] == [
        f"error: {packed}: is packed, so it does not grow; seal it by itself",
        f"waiting for {tmp_path / 'later.jsonl'}",
    ]
    assert len(lines) == 3
    assert lines[2].startswith(f"error: {torn}: cannot be read: ")
    assert sorted(names(store)) == ["chat 1", "chat 2", "chat 3"]


def test_a_file_that_is_readable_again_is_no_fault(tmp_path: Path, store: Path):
    """What counts in the end is what cannot be read then."""
    folder = tmp_path / "traces"
    folder.mkdir()
    packed = folder / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(otlp(0).encode()))
    (folder / "b.jsonl").write_text(otlp(1))
    with following(store, folder) as child:
        wait_for(sealed(store, 1))
        packed.unlink()
        add(folder / "b.jsonl", otlp(2))
        wait_for(sealed(store, 2))
        time.sleep(0.5)  # the round's end
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=30)
    assert child.returncode == 0


def parts(files: growing.GrowingFiles) -> list[tuple[str, bytes, int]]:
    return [(part.path.name, part.octets, part.lines_before) for part in files.new_parts()]


def test_a_part_is_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """However long a line is, and wherever reading stops."""
    monkeypatch.setattr(growing, "PART_BYTES", 10)
    path = tmp_path / "f"
    path.write_bytes(b"a\nb\n" + b"c" * 25 + b"\nd\ne")
    files = growing.GrowingFiles((path,))
    assert parts(files) == [("f", b"a\nb\n", 0), ("f", b"c" * 25 + b"\nd\n", 2)]
    assert parts(files) == []
    add(path, "\n")
    assert parts(files) == [("f", b"e\n", 4)]
    path.write_bytes(b"new\n")  # emptied and begun anew
    assert parts(files) == [("f", b"new\n", 0)]


def test_a_part_is_whole_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Length-prefixed files are cut between messages."""
    monkeypatch.setattr(growing, "PART_BYTES", 10)
    one, two = (len(text).to_bytes(4, "big") + text for text in (b"12345678", b"x" * 30))
    path = tmp_path / "f"
    path.write_bytes(one + two + one[:7])
    files = growing.GrowingFiles((path,))
    assert parts(files) == [("f", one, 0), ("f", two, 1)]
    with path.open("ab") as stream:
        stream.write(one[7:])
    assert parts(files) == [("f", one, 2)]


def test_a_part_that_was_not_dealt_with_comes_again(tmp_path: Path):
    """Reading goes on only behind what was taken."""
    path = tmp_path / "f"
    path.write_bytes(b"a\n")
    files = growing.GrowingFiles((path,))
    assert next(files.new_parts()).octets == b"a\n"
    assert parts(files) == [("f", b"a\n", 0)]
    assert parts(files) == []


def test_a_packed_file_does_not_grow(tmp_path: Path):
    """It is said for as long as it is there, not taken for text, and costs no other file."""
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a\n"))
    (tmp_path / "b").write_bytes(b"b\n")
    files = growing.GrowingFiles((tmp_path,))
    assert parts(files) == [("b", b"b\n", 0)]
    assert files.unread == {
        path: f"{path}: is packed, so it does not grow; seal it by itself",
    }
    path.unlink()
    assert parts(files) == []
    assert files.unread == {}


def test_a_path_that_is_not_there(tmp_path: Path):
    """It is told apart from one that cannot be read, until it comes."""
    path = tmp_path / "f"
    files = growing.GrowingFiles((path,))
    assert parts(files) == []
    assert files.unread == {path: None}
    path.write_bytes(b"a\n")
    assert parts(files) == [("f", b"a\n", 0)]
    assert files.unread == {}


def test_a_part_that_its_reader_gives_back(tmp_path: Path):
    """It comes again in the next round, with what is behind it; other files go on."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"1\n")
    files = growing.GrowingFiles((tmp_path,))
    for part in files.new_parts():
        if part.path.name == "a":
            files.unread[part.path] = "refused"
    add(tmp_path / "a", "2\n")
    assert parts(files) == [("a", b"1\n2\n", 0)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"old 1\nold 2\n", b"new 1\nnew 2\nnew 3\n"),
        (b"x" * 2000 + b"\nold\n", b"x" * 2000 + b"\nnew\nnew\n"),
        (b"old\n" + b"x" * 2000 + b"\n", b"new\n" + b"x" * 2000 + b"\nnew\n"),
        (b"old 1\nold 2\n", b"new\n"),
    ],
)
def test_an_inode_that_is_used_again(tmp_path: Path, old: bytes, new: bytes):
    """Another file of a removed one's inode is read from its beginning, longer or not."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(old)
    files = growing.GrowingFiles((tmp_path,))
    assert parts(files) == [("a", old, 0)]
    inode = first.stat().st_ino
    first.rename(second)
    second.write_bytes(new)  # in place
    assert second.stat().st_ino == inode
    assert parts(files) == [("b", new, 0)]
    assert parts(files) == []


def test_a_place_is_forgotten_with_its_file(tmp_path: Path):
    """Of a file that was away for a round nothing is remembered; a renamed one was never away."""
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "a").write_bytes(b"1\n")
    files = growing.GrowingFiles((folder,))
    assert parts(files) == [("a", b"1\n", 0)]
    (folder / "a").rename(folder / "b")
    assert parts(files) == []
    (folder / "b").rename(tmp_path / "b")
    assert parts(files) == []
    (tmp_path / "b").rename(folder / "b")
    assert parts(files) == [("b", b"1\n", 0)]
