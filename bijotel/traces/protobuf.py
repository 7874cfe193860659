"""OTLP protobuf messages -> the objects of OTLP/JSON. Needs the extra ``otlp``.

A message does not say whether it holds spans or log records: the wire types of the two differ,
so a message read as the wrong one keeps nothing and is read as the other.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bijotel.errors import ConfigurationError

_SIGNALS = (
    ("trace", "TracesData", ("resourceSpans", "scopeSpans", "spans")),
    ("logs", "LogsData", ("resourceLogs", "scopeLogs", "logRecords")),
    ("metrics", "MetricsData", ("resourceMetrics", "scopeMetrics", "metrics")),
)
"""Module, message and the keys down to a leaf."""
_LOG_FIELDS = frozenset({"timeUnixNano", "observedTimeUnixNano", "body"})


def message(octets: bytes) -> dict[str, Any]:
    """Read one message of traces, logs or metrics as an OTLP/JSON object.

    Raises:
        ConfigurationError: The extra ``otlp`` is not installed.
        ValueError: The octets are no such message.
    """
    try:
        to_dict = import_module("google.protobuf.json_format").MessageToDict
        malformed = import_module("google.protobuf.message").DecodeError
        kinds = [
            getattr(import_module(f"opentelemetry.proto.{room}.v1.{room}_pb2"), name)
            for room, name, *_ in _SIGNALS
        ]
    except ImportError as error:
        raise ConfigurationError(
            "an OTLP protobuf file: the extra 'otlp' is not installed; "
            f"pip install '.[otlp]' in the folder of the repository ({error})"
        ) from error
    for kind, (room, _, keys) in zip(kinds, _SIGNALS, strict=True):
        try:
            value: dict[str, Any] = to_dict(kind.FromString(octets))
        except (malformed, ValueError):
            continue
        if any(_is_leaf(room, leaf) for leaf in _leaves(value, keys)):
            return value
    raise ValueError("no OTLP message of spans, log records or metrics")


def _is_leaf(room: str, leaf: dict[str, Any]) -> bool:
    """Tell whether what was read is what it was read as."""
    if room == "trace":
        return len(leaf.get("traceId", "")) == 24 and len(leaf.get("spanId", "")) == 12
    return room == "metrics" or not _LOG_FIELDS.isdisjoint(leaf)


def _leaves(value: dict[str, Any], keys: tuple[str, ...]) -> list[dict[str, Any]]:
    level = [value]
    for key in keys:
        level = [item for parent in level for item in parent.get(key, ())]
    return level
