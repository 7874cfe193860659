"""Span records -> retrievals and model calls, whatever instrumentation wrote them.

Each dialect is one module with a ``DIALECT``; :mod:`~bijotel.dialects.registry` finds them, so
adding one is adding one file. A dialect reads one span at a time, together with its log records.
What only the whole trace can tell (which of two nested spans speaks, whether a step repeats what
a retriever found, whether values were cut) is decided in :mod:`~bijotel.dialects.trace`. Nothing
here compares texts: that is :mod:`bijotel.context_matching`, and :mod:`bijotel.audit` joins both.

Shared by the dialects: :mod:`~bijotel.dialects.values` (JSON within attributes, numbered keys),
:mod:`~bijotel.dialects.documents` (passages), :mod:`~bijotel.dialects.messages` (prompts and
answers), :mod:`~bijotel.dialects.calls` (model, usage and what is known of the capture).
"""
