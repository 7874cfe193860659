"""Record -> canonical body (format ``span/1``), its columns and its dedup key. Pure.

The body holds everything that the span holds. The columns repeat what searches need; where a
value does not fit a column, the column holds a stand-in and the body the exact value.

Source: docs/spec (body).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from operator import index
from typing import Any, Final, NamedTuple

from bijotel import canonical
from bijotel.errors import CanonicalizationError
from bijotel.model import EMPTY, Draft, Event, Link, Resource, Scope, SpanRecord, Status
from bijotel.seal import KNOWN_FORMATS, MAX_BODY_BYTES, body_hash
from bijotel.spans.per_object import PerObject

MAX_TIME: Final = 2**63 - 1

# What differs between two calls that are the same call: answers, counts, ids of the conversation
# and of the passages' exact scores. Frozen with span/1.
_NOT_IN_DEDUP: Final = frozenset(
    {
        "gen_ai.tool.call.result",
        "gen_ai.task.output",
        "gen_ai.retrieval.documents",
        "llm.finish_reason",
        "traceloop.entity.output",
        "langfuse.observation.output",
        "mlflow.spanOutputs",
        "haystack.component.output",
        "gcp.vertex.agent.tool_response",
        "gcp.vertex.agent.llm_response",
        "tool_response",
        "pydantic_ai.all_messages",
        "gen_ai.server.time_to_first_token",
        "gen_ai.conversation.id",
        "session.id",
        "user.id",
        "bijotel.rag.sources",
        "bijotel.rag.sources_sha256",
    }
)
_PREFIX_NOT_IN_DEDUP: Final = (
    "gen_ai.output.messages",
    "gen_ai.response.",
    "gen_ai.usage.",
    "gen_ai.completion",
    "llm.output_messages.",
    "llm.choices.",
    "llm.token_count.",
    "llm.usage.",
    "llm.response.",
    "output.",
    "retrieval.documents.",
    "reranker.output_documents.",
    "bijotel.rag.in_context",
)


def encode_record(record: SpanRecord) -> Draft:
    """Encode a record as a draft of kind ``span``.

    A body over ``MAX_BODY_BYTES``, or nested deeper than ``canonical.MAX_DEPTH``, is sealed
    without its content and says so (``withheld``: ``size``).
    """
    try:
        body = _body(record)
        prepared = canonical.prepare(body)
        octets = canonical.write(prepared)
    except CanonicalizationError:
        return encode_record(withhold(record, "size"))
    if len(octets) > MAX_BODY_BYTES:
        return encode_record(withhold(record, "size"))
    columns = _columns(body, dedup_octets(body, prepared))
    return Draft("span", KNOWN_FORMATS["span"], *columns, octets, body_hash(octets))


def withhold(record: SpanRecord, reason: str) -> SpanRecord:
    """Take the content out of a record and leave the reason in its place."""
    return replace(
        record,
        name="",
        attributes=EMPTY,
        events=(),
        links=(),
        resource=Resource(),
        scope=Scope(),
        status=Status(record.status.code),
        inherited=EMPTY,
        withheld=reason,
    )


class SpanColumns(NamedTuple):
    """What a span's row repeats of its body."""

    trace_id: bytes
    span_id: bytes
    name: str
    start_unix_nano: int
    end_unix_nano: int
    dedup_key: bytes


NO_SPAN: Final = SpanColumns(b"", b"", "", 0, 0, b"")
"""The columns of an entry that is no span."""


def columns_of_body(body: Mapping[str, Any]) -> SpanColumns:
    """Derive a row's columns from its body, the same way for writing and for verifying."""
    return _columns(body, dedup_octets(body))


def _columns(body: Mapping[str, Any], octets: bytes) -> SpanColumns:
    name = body["name"]
    return SpanColumns(
        _id_column(body["trace_id"], 16),
        _id_column(body["span_id"], 8),
        _name_column(name if isinstance(name, str) else canonical.decode(name)),
        _time_column(body["start_time_unix_nano"]),
        _time_column(body["end_time_unix_nano"]),
        sha256(octets).digest(),
    )


def _id_column(text: str, length: int) -> bytes:
    """Make an id fit its column: empty when it is none of this length."""
    try:
        octets = bytes.fromhex(text)
    except ValueError:
        return b""
    return octets if len(octets) == length else b""


def _name_column(name: str) -> str:
    """Make a span's name fit its column: no lone surrogate, no NUL."""
    if name.isascii():
        return name.replace("\0", "\ufffd") if "\0" in name else name
    octets = name.encode("utf-16-be", "surrogatepass")
    return octets.decode("utf-16-be", "replace").replace("\0", "\ufffd")


def _time_column(text: str | None) -> int:
    """Make a time fit its column: 0 when absent, no integer or outside 0..2**63-1."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 19:
        return 0
    time_unix_nano = int(text)
    return time_unix_nano if time_unix_nano <= MAX_TIME else 0


def dedup_octets(body: Mapping[str, Any], prepared: Mapping[str, Any] | None = None) -> bytes:
    """Write what the dedup key of a body is the SHA-256 of.

    Args:
        body: Plain JSON data.
        prepared: The same as ``canonical.prepare`` gives it, where that is at hand.
    """
    if prepared is not None:
        parts = prepared.get("inherited", EMPTY), prepared["attributes"]
        if all(isinstance(part, Mapping) for part in parts):
            return canonical.write(_repeated(body, *parts))
        # One is octets already: the order of its keys is not that of their code points.
    return canonical.dumps(_repeated(body, body.get("inherited", EMPTY), body["attributes"]))


def _repeated(
    body: Mapping[str, Any], inherited: Mapping[str, Any], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """Keep what is the same in two calls that are the same."""
    kept = {key: value for key, value in {**inherited, **attributes}.items() if _is_in_dedup(key)}
    return {"attributes": kept, "kind": body["kind"], "name": body["name"]}


@lru_cache(maxsize=1024)
def _is_in_dedup(key: str) -> bool:
    return key not in _NOT_IN_DEDUP and not key.startswith(_PREFIX_NOT_IN_DEDUP)


def _body(record: SpanRecord) -> dict[str, Any]:
    encode, dropped = canonical.encode, record.dropped
    body = {
        "name": _text(record.name),
        "kind": record.kind,
        "trace_id": record.trace_id,
        "span_id": record.span_id,
        "parent_span_id": record.parent_span_id,
        "trace_state": encode(record.trace_state),
        "trace_flags": record.trace_flags,
        "start_time_unix_nano": _time(record.start_time_unix_nano),
        "end_time_unix_nano": _time(record.end_time_unix_nano),
        "status": {"code": record.status.code, "description": encode(record.status.description)},
        "attributes": encode(record.attributes),
        "events": [_event(event) for event in record.events],
        "links": [_link(link) for link in record.links],
        "resource": _resource(record.resource),
        "scope": _scope(record.scope),
        "dropped": {
            "attributes": dropped.attributes,
            "events": dropped.events,
            "links": dropped.links,
        },
    }
    if record.inherited:
        body["inherited"] = encode(record.inherited)
    if record.via:
        body["via"] = record.via
    if record.withheld:
        body["withheld"] = record.withheld
    return body


def _written_resource(resource: Resource) -> Any:
    encode = canonical.encode
    plain = {
        "attributes": encode(resource.attributes),
        "schema_url": encode(resource.schema_url),
    }
    return canonical.ready_made(plain, depth=1)


def _written_scope(scope: Scope) -> Any:
    encode = canonical.encode
    plain = {
        "name": encode(scope.name),
        "version": encode(scope.version),
        "schema_url": encode(scope.schema_url),
        "attributes": encode(scope.attributes),
    }
    return canonical.ready_made(plain, depth=1)


_resource: Final = PerObject(_written_resource)
_scope: Final = PerObject(_written_scope)


def _event(event: Event) -> dict[str, Any]:
    return {
        "name": _text(event.name),
        "time_unix_nano": _time(event.time_unix_nano),
        "attributes": canonical.encode(event.attributes),
        "dropped_attributes": event.dropped_attributes,
    }


def _link(link: Link) -> dict[str, Any]:
    return {
        "trace_id": link.trace_id,
        "span_id": link.span_id,
        "trace_state": canonical.encode(link.trace_state),
        "trace_flags": link.trace_flags,
        "attributes": canonical.encode(link.attributes),
        "dropped_attributes": link.dropped_attributes,
    }


def _text(value: Any) -> Any:
    """Encode what should be text; the tracer lets anything be a name."""
    return canonical.encode(value if isinstance(value, str) else str(canonical.encode(value)))


def _time(time_unix_nano: Any) -> str | None:
    if time_unix_nano is None:
        return None
    if isinstance(time_unix_nano, float):
        return repr(float(time_unix_nano))
    try:
        return str(index(time_unix_nano))
    except (TypeError, ValueError):
        return None
