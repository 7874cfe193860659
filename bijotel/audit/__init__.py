"""Which retrieved passages reached the answer, and how well that went.

:mod:`~bijotel.audit.join` finds out the first for one trace, :mod:`~bijotel.audit.score` makes
scores of its result and of nothing else, :mod:`~bijotel.audit.result` says what they mean and
:mod:`~bijotel.audit.report` writes them for machines. All of that is pure;
:mod:`~bijotel.audit.workers` shares it between processes where the input is long.
"""

from bijotel.audit.result import AuditedCall, AuditFinding, TraceAudit, audit_trace
from bijotel.audit.score import Scores

__all__ = ["AuditFinding", "AuditedCall", "Scores", "TraceAudit", "audit_trace"]
