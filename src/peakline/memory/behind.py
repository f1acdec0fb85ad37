"""What a profile has besides its records of memory: call stacks, and executions of ops."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peakline.memory.described import Described
from peakline.memory.live import memory_records
from peakline.memory.op_events import OpEvents, op_events_of
from peakline.memory.origins import Origins
from peakline.memory.peak import Descriptions
from peakline.memory.signatures import History, read_history
from peakline.tables import Profile
from peakline.tables.columns import Columns
from peakline.tables.once import once
from peakline.trace.steps import Steps


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
        found = None if self.profile is None else self.profile.columns_or_empty("stacks")
        return found if found is not None and found.rows else None

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
    """What is known of the buffers of `peakline.memory.live.memory_records` besides the columns of
    their records; None where no format says more.

    Raises InputError when the profile cannot be read.
    """
    records = memory_records(profile)
    if records is None or "stacks" not in profile.tables:
        return None
    history = read_history(records.events, records.lifetimes)
    return Behind(profile, records.events.rows).describe(history)
