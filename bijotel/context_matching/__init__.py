"""Which retrieved passages stand in a prompt: whole, in part, not at all, or undecidable.

Pure text: standard library only, no I/O, no clock. Finding passages and prompts in recorded spans
is left to ``dialects``, scoring to ``audit``.
"""

from bijotel.context_matching.chain import Stretch
from bijotel.context_matching.match import match_context
from bijotel.context_matching.model import ContextMatches, PassageMatch
from bijotel.context_matching.runs import counted_runs
from bijotel.context_matching.tokens import Tokens, tokenize

__all__ = [
    "ContextMatches",
    "PassageMatch",
    "Stretch",
    "Tokens",
    "counted_runs",
    "match_context",
    "tokenize",
]
