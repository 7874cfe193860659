"""pydantic-ai and spans made by hand with Logfire.

pydantic-ai writes the GenAI conventions; older versions name a tool's result
``tool_response``. A span made with Logfire lists its own attributes in ``logfire.json_schema``:
one of them that is a list of documents makes it a retrieval.
"""

from __future__ import annotations

from bijotel.dialects.documents import holds_documents
from bijotel.dialects.model import Dialect, Reading
from bijotel.dialects.retrievals import retrieval, tool_retrieval
from bijotel.dialects.values import decoded
from bijotel.model import SpanRecord
from bijotel.semconv import OPERATION_NAME
from bijotel.traces.model import LogRecord

_SCHEMA = "logfire.json_schema"


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read what the GenAI conventions do not name."""
    attributes = span.attributes
    if "tool_response" in attributes:
        found = tool_retrieval(span, attributes["tool_response"], attributes.get("tool_arguments"))
        return Reading("tool", found)
    if "final_result" in attributes:
        return Reading("agent", output=attributes["final_result"])
    if _SCHEMA not in attributes or OPERATION_NAME in attributes:
        return None
    schema = decoded(attributes[_SCHEMA])
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for key, kind in properties.items() if isinstance(properties, dict) else ():
        is_list = isinstance(kind, dict) and kind.get("type") == "array"
        if is_list and holds_documents(attributes.get(key)):
            return Reading("retriever", retrieval(span, attributes[key]))
    return None


DIALECT = Dialect("pydantic-ai", (_SCHEMA, "tool_response", "final_result"), read)
