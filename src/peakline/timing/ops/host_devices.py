"""The devices of XLA on CPUs: they have no plane of their own, and their ops, which run in threads
of the host, state the device (``device_ordinal``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.ops.stat_columns import OpStatColumns
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.activity_sets import device_sets_of
from peakline.trace.events import HOST, trace_of
from peakline.trace.intervals import Intervals, union, without

RENDEZVOUS = "Rendezvous"
"""The event in which the thread of a device waits for those of the others."""


def device_name(ordinal: int) -> str:
    """What a device of a CPU is called.

    >>> device_name(2)
    '/device:CPU:2'
    """
    return f"/device:CPU:{ordinal}"


@dataclass(frozen=True, eq=False)
class HostDevice:
    """A device: ``events`` are the places of its ops in the trace, ``communication`` when it is in
    collectives, ``computes`` when another of its ops runs.
    """

    name: str
    events: Int64Array
    communication: Intervals
    computes: Intervals


@once
def host_devices_of(profile: Profile) -> tuple[HostDevice, ...]:
    """The devices of CPUs that take part in collectives, by ordinal; empty with fewer than two.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    if trace.source != "events" or trace.name.code_of(RENDEZVOUS) < 0 or device_sets_of(profile):
        return ()
    communicates = activity_of(profile) == Activity.COMMUNICATION
    stats = OpStatColumns(profile.typed_stats(frozenset(("device_ordinal", "hlo_op"))))
    rows = np.intersect1d(stats["device_ordinal"].row, stats["hlo_op"].row, assume_unique=True)
    event = trace.places(rows)
    on_host = trace.within(trace.lines_on(HOST))
    is_op = event >= 0
    is_op[is_op] = on_host[event[is_op]]
    event, ordinal = event[is_op], stats["device_ordinal"].integers_at(rows[is_op])
    result = []
    for one in np.unique(ordinal[communicates[event]]).tolist():
        own = event[ordinal == one]
        begin, end = trace.start[own], trace.end[own]
        waits = communicates[own]
        communication = union(begin[waits], end[waits])
        # A loop lasts as long as the collectives in it.
        computes = without(union(begin[~waits], end[~waits]), communication)
        result.append(HostDevice(device_name(one), own, communication, computes))
    return tuple(result) if len(result) > 1 else ()
