"""Google ADK, its first schema: request, answer and tool results in ``gcp.vertex.agent.*``.

``{}`` stands for content that was not to be recorded. The second schema is the GenAI
conventions.
"""

from __future__ import annotations

from bijotel.dialects.calls import model_call
from bijotel.dialects.messages import Spoken, said, spoken
from bijotel.dialects.model import Dialect, Reading
from bijotel.dialects.retrievals import tool_retrieval
from bijotel.dialects.values import decoded
from bijotel.model import SpanRecord
from bijotel.semconv import OPERATION_NAME
from bijotel.traces.model import LogRecord

_REQUEST = "gcp.vertex.agent.llm_request"
_ANSWER = "gcp.vertex.agent.llm_response"
_RESULT = "gcp.vertex.agent.tool_response"


def read(span: SpanRecord, _logs: tuple[LogRecord, ...]) -> Reading | None:
    """Read a span of the first schema."""
    attributes = span.attributes
    if _RESULT in attributes:
        query = attributes.get("gcp.vertex.agent.tool_call_args")
        return Reading("tool", tool_retrieval(span, attributes[_RESULT], query))
    if _REQUEST not in attributes or OPERATION_NAME in attributes:
        return None
    request = decoded(attributes[_REQUEST])
    prompt = spoken(request, "user") if request else Spoken(reason="the content was not recorded")
    return Reading("model", call=model_call(span, prompt, said(attributes.get(_ANSWER))))


DIALECT = Dialect("google-adk", (_REQUEST, _RESULT), read)
