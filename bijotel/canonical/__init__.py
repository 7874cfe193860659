"""Values to RFC 8785 octets and back. No I/O, no knowledge of spans.

Two steps, each with its inverse:

* :func:`encode` turns any attribute value into plain JSON data; :func:`decode` undoes it.
* :func:`dumps` writes plain JSON data as the one octet string that RFC 8785 allows;
  :func:`loads` accepts that octet string and nothing else.

Source: RFC 8785, docs/spec (body).
"""

from bijotel.canonical.encoding import MAX_DEPTH, MAX_SAFE_INTEGER, Digest, decode, encode
from bijotel.canonical.octets import dumps, loads, number, prepare, ready_made, write

__all__ = [
    "MAX_DEPTH",
    "MAX_SAFE_INTEGER",
    "Digest",
    "decode",
    "dumps",
    "encode",
    "loads",
    "number",
    "prepare",
    "ready_made",
    "write",
]
