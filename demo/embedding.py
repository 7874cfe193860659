"""A local embedding, the same on every machine: each word's first letters are hashed.

Crude but honest: texts that share words lie near each other. It stands where a pipeline calls an
embedding model, so that the demo needs no network and no weights.
"""

from __future__ import annotations

import math
import re
from hashlib import blake2b

MODEL = "hashed-words-1024"
SIZE = 1024

_WORD = re.compile(r"[a-z]{4,}")
_STEM = 6


def embed(text: str) -> list[float]:
    """Return a text's vector of ``SIZE`` numbers, of length 1 (a text without words: zeros)."""
    vector = [0.0] * SIZE
    for word in _WORD.findall(text.lower()):
        digest = blake2b(word[:_STEM].encode(), digest_size=4).digest()
        vector[int.from_bytes(digest, "big") % SIZE] += 1.0
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else vector
