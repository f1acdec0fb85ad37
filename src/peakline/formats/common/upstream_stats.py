"""Stats by which profilers of XLA and TensorFlow link events, in XSpaces and traces made of them.

- A GPU's work and its launch have the same ``correlation_id``; one launch of a command buffer may
  have many pieces of work.
- On a TPU the host event that enqueues a program produces a context (``_pt``, ``_p``) that the run
  of the program consumes (``_ct``, ``_c``); without one, both have the same ``run_id``,
  ``queue_id`` and ``core_type`` for the device. The same contexts tie host threads to one another:
  work handed to a thread pool.

Sources: ``xplane_schema.cc`` and ``context_types.h`` of tsl.
"""

from __future__ import annotations

from peakline.tables.event_rules import LinkStats

CORRELATION = LinkStats("correlation", ("correlation_id",), ("correlation_id",))
_RUN = ("run_id", "queue_id", "core_type")
OF_TPUS = (
    LinkStats("context", ("_pt", "_p"), ("_ct", "_c"), is_handed_on=True),
    LinkStats("run", _RUN, _RUN, device="device_ordinal", has_zero=True),
)
