"""Trace files -> span and log records, grouped by trace.

The room reads; it judges nothing. Which span is a retrieval or a model call is for
:mod:`bijotel.dialects`, which passages reached a prompt for :mod:`bijotel.audit`.

:mod:`~bijotel.traces.reader` is the way in. :mod:`~bijotel.traces.files` opens what is there
(plain, gzip, zstd, length-prefixed), :mod:`~bijotel.traces.objects` finds the JSON objects in it,
one module a form (:mod:`~bijotel.traces.otlp`, :mod:`~bijotel.traces.console`,
:mod:`~bijotel.traces.jaeger`, :mod:`~bijotel.traces.protobuf`) reads them, and
:mod:`~bijotel.traces.grouping` gathers a trace that is spread over a file of any size.
"""
