"""Devices of a profile without steps that have nothing to do, because the host launched nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.eager_ops import on_host
from peakline.timing.launches import launch_summary
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.activity_sets import device_sets_of, either
from peakline.trace.events import trace_of
from peakline.trace.intervals import Intervals, covered, union

WORKS = 0.01
"""A device that is busy for less than this share of the busiest one's time does none of the job's
work."""


@dataclass(frozen=True)
class IdleDevice:
    """The time of a device from its first to its last event, and what it waits for in it, in ps.

    The fields up to ``longest_idle_ps`` are columns of evidence. ``share`` is that of the time in
    which it waits for the host; ``work_share`` its busy time by that of the busiest device.
    """

    device: str
    span_ps: int
    busy_ps: int
    idle_ps: int
    not_launched_ps: int
    being_launched_ps: int
    waits_for_other_work_ps: int
    unexplained_ps: int
    compile_ps: int
    longest_idle_ps: int
    share: float
    work_share: float

    @property
    def works(self) -> bool:
        """Whether it does the job's work."""
        return self.work_share >= WORKS

    def as_row(self) -> dict[str, object]:
        """The columns of evidence."""
        return {name: value for name, value in vars(self).items() if "share" not in name}


def idle_devices_of(profile: Profile, least: float) -> list[IdleDevice]:
    """The devices with links from launches to work, those that do the job's work and wait first.

    Empty where none waits for ``least`` of its time; else the first one does, the idlest of those
    that do the job's work, or of all. Raises InputError when the profile cannot be read.
    """
    sets = {found.device.name: either(*found.sets.values()) for found in device_sets_of(profile)}
    found = []
    for launches in launch_summary(profile).devices:
        begin, end = sets.get(launches.device, (np.zeros(0), np.zeros(0)))
        span = int(end[-1] - begin[0]) if begin.size else 0
        if span:
            waits = (launches.starved_ps + launches.latency_ps) / span
            compiles = covered(_compilation(profile), end[:-1], begin[1:])
            found.append(
                (
                    launches.device,
                    span,
                    int((end - begin).sum()),
                    launches.idle_ps,
                    launches.starved_ps,
                    launches.latency_ps,
                    launches.blocked_ps,
                    launches.unexplained_ps,
                    int(compiles.sum()),
                    int((begin[1:] - end[:-1]).max(initial=0)),
                    min(waits, 1.0),
                )
            )
    most = max((one[2] for one in found), default=0)
    devices = [IdleDevice(*one, one[2] / most if most else 1.0) for one in found]
    devices.sort(key=lambda one: (not one.works, -one.share))
    # Of each sort the idlest stands first.
    first = next((one for one in devices if one.share >= least), None)
    return [] if first is None else [first, *(one for one in devices if one is not first)]


@once
def _compilation(profile: Profile) -> Intervals:
    """When a thread of the host compiled."""
    trace, does = trace_of(profile), activity_of(profile)
    events = on_host(trace, lambda events: does[events] == Activity.COMPILE)
    return union(trace.start[events], trace.end[events])
