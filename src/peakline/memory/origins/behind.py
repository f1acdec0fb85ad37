"""What a profile has besides its records of memory: call stacks, executions of ops, and what they
say of buffers: category, module, function, and the shape of the op's input.

A profiler of PyTorch says so by the call stack of a record and by the events around it. What a
backward pass allocates has the module and the function of the op whose gradient is computed
(`peakline.trace.autograd`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, IntpArray, UInt8Array
from peakline.memory.origins.categories import CATEGORIES, categories_of
from peakline.memory.origins.op_events import OpEvents, op_events_of
from peakline.memory.origins.stacks import UNNAMED, Origins, places_of
from peakline.memory.over_time.live import memory_records
from peakline.memory.peak.explained import Descriptions
from peakline.memory.signatures import History, read_history
from peakline.shown import Brief
from peakline.tables import Profile
from peakline.tables.columns import Columns
from peakline.tables.once import once
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
        """Per record the place in `peakline.memory.origins.categories.CATEGORIES`, 0 for none."""
        return categories_of(self.origins.history, self.origins.stacks, self.runs, self.steps)

    def of(self, rows: IntpArray) -> list[tuple[AnyArray, list[str]]]:
        """As `peakline.memory.peak.explained.Descriptions`."""
        places = self._places(rows)
        texts = [[module for module, _ in places], [function for _, function in places]]
        shapes = [""] * rows.size if self.runs is None else self.runs.input_shapes(rows)
        numbered = (_numbered(column) for column in (*texts, shapes))
        return [(self.categories[rows].astype(np.int64), list(CATEGORIES)), *numbered]

    def _places(self, rows: IntpArray) -> list[tuple[str, str]]:
        """Module and function of each."""
        events = self.origins.history.events
        ids = np.where(events.is_valid("stack_id"), events.array("stack_id"), -1)[rows]
        result = list(zip(*places_of(self.origins.stacks, ids), strict=True))
        if self.runs is None:
            return result
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
                result[place] = forward
        return result


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


@dataclass(frozen=True, eq=False)
class Behind:
    """What ``profile`` has besides its ``records`` of memory, each read once and where it is used.

    Nothing without a profile.
    """

    profile: Profile | None
    records: int

    @cached_property
    def stacks(self) -> Columns | None:
        """The table of that name, None where it is empty."""
        result = None if self.profile is None else self.profile.columns_or_empty("stacks")
        return result if result is not None and result.rows else None

    @cached_property
    def runs(self) -> OpEvents | None:
        """The executions of ops around the records."""
        # Without records that were left out, rows of the history are those of the table.
        if self.profile is None or self.records != self.profile.columns("allocator_events").rows:
            return None
        return op_events_of(self.profile)

    @cached_property
    def steps(self) -> Steps | None:
        """The steps that are marked."""
        return None if self.profile is None else Steps.of(self.profile.columns_or_empty("steps"))

    def origins(self, history: History) -> Origins | None:
        """The call stacks of the records."""
        if self.stacks is None:
            return None
        if isinstance(history.descriptions, Described):
            return history.descriptions.origins
        return Origins(self.stacks, history)

    def describe(self, history: History) -> Descriptions | None:
        """What stacks and ops say of the buffers of a job of PyTorch: a trace of its profiler, or a
        snapshot of its allocator.
        """
        origins = self.origins(history)
        is_torch = self.profile is not None and self.profile.event_rules.allocator_of is not None
        if origins is None or not is_torch:
            return None
        return Described(origins, self.runs, self.steps)


@once
def described_records(profile: Profile) -> Descriptions | None:
    """What is known of the buffers of `peakline.memory.over_time.live.memory_records` besides the
    columns of their records; None where no format says more.

    Raises InputError when the profile cannot be read.
    """
    records = memory_records(profile)
    if records is None or "stacks" not in profile.tables:
        return None
    history = read_history(records.events, records.lifetimes)
    return Behind(profile, records.events.rows).describe(history)
