"""What is made once of a provider's resource and of its scopes."""

from __future__ import annotations

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from bijotel import canonical
from bijotel.model import Dropped
from bijotel.spans.encode import dedup_octets, encode_record
from bijotel.spans.per_object import MOST, PerObject
from bijotel.spans.read import read_span


class Thing:
    """Anything."""


def test_it_is_made_once_for_each_object():
    """The very object counts, not its value, and not more than a few are held on to."""
    asked: list[Thing] = []
    made = PerObject(lambda thing: asked.append(thing) or len(asked))
    first, second = Thing(), Thing()
    assert [made(first), made(second), made(first), made(second)] == [1, 2, 1, 2]
    others = [Thing() for _ in range(MOST)]
    assert [made(other) for other in others] == list(range(3, 3 + MOST))
    assert made(first) == 3 + MOST
    assert asked == [first, second, *others, first]


def body_of(span: ReadableSpan) -> dict:
    record = read_span(span, dict(span.attributes or {}), Dropped())
    return canonical.loads(encode_record(record).body)


def test_spans_of_one_provider_share_their_resource_and_scope():
    """Each body has both, and each span is still its own."""
    provider = TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
    bodies = []
    for library in ("first", "second", "first"):
        span = provider.get_tracer(library, "1.2").start_span(f"chat {library}")
        span.end()
        bodies.append(body_of(span))
    assert [body["name"] for body in bodies] == ["chat first", "chat second", "chat first"]
    assert [body["scope"]["name"] for body in bodies] == ["first", "second", "first"]
    assert {body["scope"]["version"] for body in bodies} == {"1.2"}
    assert {body["resource"]["attributes"]["service.name"] for body in bodies} == {"shop"}


def test_what_may_change_is_read_again():
    """A hand-made span may have attributes of its own kind on its resource."""

    class Changing(Resource):
        @property
        def attributes(self):
            return changing

    changing = {"release": 1}
    resource = Changing({})
    first = body_of(ReadableSpan("chat", resource=resource))
    changing["release"] = 2
    second = body_of(ReadableSpan("chat", resource=resource))
    assert [b["resource"]["attributes"] for b in (first, second)] == [
        {"release": 1},
        {"release": 2},
    ]


def test_a_dedup_key_does_not_depend_on_how_the_body_was_prepared():
    """Keys beyond U+FFFF sort by UTF-16 code units in both ways to it."""
    attributes = {"gen_ai.operation.name": "chat", "\uff5e": 0.5, "\U0001f600": 1e21, "b": ("x",)}
    span = ReadableSpan("chat", attributes=attributes)
    body = body_of(span)
    octets = dedup_octets(body)
    assert dedup_octets(body, canonical.prepare(body)) == octets
    assert octets.index("\U0001f600".encode()) < octets.index("\uff5e".encode())
    plain = {**body, "attributes": {"b": ["x"], "a": 0.5}}
    assert dedup_octets(plain, canonical.prepare(plain)) == dedup_octets(plain)
