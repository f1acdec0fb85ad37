"""The phases (``ph``) of the Trace Event Format and what is made of each."""

from __future__ import annotations

import numpy as np

UNKNOWN, EVENT, ASYNC, FLOW, COUNTER, META, SKIPPED = range(7)
"""Not a phase; an event of a thread, of an asynchronous operation, an arrow's end, a counter's
values, a name, and what Peakline has no table for (objects, memory dumps, contexts, clocks)."""

CLASS_OF = np.zeros(256, np.uint8)
IS_END = np.zeros(256, np.bool_)

for _class, _phases in (
    (EVENT, "XBEiIRP"),
    (ASYNC, "bneSTpF"),
    (FLOW, "stf"),
    (COUNTER, "C"),
    (META, "M"),
    (SKIPPED, "NODVvc()=am"),
):
    CLASS_OF[[ord(phase) for phase in _phases]] = _class
IS_END[[ord(phase) for phase in "EeF"]] = True
