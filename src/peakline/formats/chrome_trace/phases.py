"""The phases (``ph``) of the Trace Event Format, and how exports mark what it has no record for."""

from __future__ import annotations

import numpy as np

EXPORTER_KEY, EXPORTER = "exporter", "peakline"
"""An entry of ``metadata``, at the file's begin: what follows holds for such files only."""

STEP_CATEGORY = "peakline.step"
"""The category of rows that are steps, and no events; see `step_category`."""

_CUT_OFF = "cut_off"


def step_category(found_by: str | None, *, is_cut_off: bool) -> str:
    """The category of a step: `STEP_CATEGORY` with how it was found, and whether it is whole."""
    parts = [STEP_CATEGORY, found_by or "", _CUT_OFF if is_cut_off else ""]
    return ".".join(part for part in parts if part)


def read_step_category(category: str) -> tuple[str | None, bool] | None:
    """What `step_category` was made of; None for the category of an event."""
    if category != STEP_CATEGORY and not category.startswith(f"{STEP_CATEGORY}."):
        return None
    found_by = category.removeprefix(STEP_CATEGORY).removeprefix(".")
    is_cut_off = found_by.endswith(_CUT_OFF)
    found_by = found_by.removesuffix(_CUT_OFF).removesuffix(".")
    return found_by or None, is_cut_off


STEP_ARGUMENT = "group_id"
"""The argument that is the id of an event's step, as in XProf's traces."""


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
