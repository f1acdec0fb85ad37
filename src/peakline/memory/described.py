"""What is known of buffers besides the columns of their records: category, module, function, and
the shape of the op's input.

A profiler of PyTorch says so by the call stack of a record and by the events around it. What a
backward pass allocates has the module and the function of the op whose gradient is computed
(`peakline.trace.autograd`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, IntpArray, UInt8Array
from peakline.memory.categories import CATEGORIES, categories_of
from peakline.memory.op_events import OpEvents
from peakline.memory.origins import UNNAMED, Origins
from peakline.memory.stack_marks import places_of
from peakline.shown import Brief
from peakline.trace.frames import frame_of, module_of
from peakline.trace.steps import Steps


@dataclass(frozen=True, eq=False, repr=False)
class Described(Brief):
    """What call stacks (``origins``), executions of ops (``runs``) and ``steps`` say of buffers."""

    origins: Origins
    runs: OpEvents | None
    steps: Steps | None

    @cached_property
    def categories(self) -> UInt8Array:
        """Per record the place in `peakline.memory.categories.CATEGORIES`, 0 for none."""
        return categories_of(self.origins.history, self.origins.stacks, self.runs, self.steps)

    def of(self, rows: IntpArray) -> list[tuple[AnyArray, list[str]]]:
        """As `peakline.memory.peak.Descriptions`."""
        places = self._places(rows)
        texts = [[module for module, _ in places], [function for _, function in places]]
        shapes = [""] * rows.size if self.runs is None else self.runs.input_shapes(rows)
        numbered = (_numbered(column) for column in (*texts, shapes))
        return [(self.categories[rows].astype(np.int64), list(CATEGORIES)), *numbered]

    def _places(self, rows: IntpArray) -> list[tuple[str, str]]:
        """Module and function of each."""
        events = self.origins.history.events
        ids = np.where(events.is_valid("stack_id"), events.array("stack_id"), -1)[rows]
        found = list(zip(*places_of(self.origins.stacks, ids), strict=True))
        if self.runs is None:
            return found
        known: dict[int, tuple[str, str]] = {}
        for place, event in enumerate(
            self.runs.autograd.forward_of(self.runs.event[rows]).tolist()
        ):
            if event < 0:
                continue
            if event not in known:
                known[event] = _place(self.runs.names_around(event))
            forward = known[event]
            if any(forward):
                found[place] = forward
        return found


def _place(names: list[str]) -> tuple[str, str]:
    """The innermost module and the innermost function of the program among names of events."""
    frames = (frame_of(name) for name in names)
    program = (one for one in frames if one and one.file and one.whose == "program")
    named = next((one for one in program if one.function not in UNNAMED), None)
    return next(filter(None, map(module_of, names)), ""), "" if named is None else named.title


def _numbered(texts: list[str]) -> tuple[AnyArray, list[str]]:
    number: dict[str, int] = {}
    codes = np.array([number.setdefault(text, len(number)) for text in texts], np.int64)
    return codes, list(number)
