"""Chains that the earlier bijotel 2.x wrote: read, judged by their own formulas, carried over.

That format covers less than ours: a body and its place, but neither the columns beside it nor
the end of the log. A pass says so in ``report.not_checked``.

``rows`` reads its database, ``check`` judges rows, ``export`` reads and judges its exports, and
``carry`` makes entries of the rows for a chain of ours.
"""
