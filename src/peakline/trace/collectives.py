"""Which kernels PyTorch's records call communication, whatever the kernels are called.

``record_param_comms`` is the op that PyTorch runs around every collective of a process group
(``torch/csrc/distributed/c10d/ParamCommsUtils.hpp``); it names the collective, and newer versions
write the same arguments to the kernel that Kineto finds launched inside of it.
"""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int64Array
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.trace.events import DEVICE, nesting_of, trace_of
from peakline.trace.links import links_of

_RECORD = "record_param_comms"
_LABEL = frozenset(("Collective name",))
_DEEPEST = 64
"""Levels of nesting above a launch that are looked at."""


@once
def recorded_collectives(profile: Profile) -> Int64Array:
    """The kernels of PyTorch's collectives by its records: places in the trace, ascending.

    They are found once. Empty for a profile without such records. Raises InputError when it cannot
    be read.
    """
    trace = trace_of(profile)
    none = np.zeros(0, np.int64)
    record = trace.name.code_of(_RECORD)
    by_library = any("ccl" in name.lower() for name in trace.name.values)
    if trace.source != "events" or not profile.has_categories:
        return none
    if record < 0 and not by_library:
        return none
    stats = profile.typed_stats(_LABEL)
    places, text = trace.places(stats.array("event_id")), stats.names("text")
    found = np.zeros(trace.size, np.bool_)
    found[places[(places >= 0) & (text.codes >= 0)]] = True
    found &= trace.within(trace.lines_on(DEVICE))
    if record >= 0:
        links, parent = links_of(profile), nesting_of(profile).parent
        above = links.cause.astype(np.int64)
        for _ in range(_DEEPEST):
            open_ = np.flatnonzero((above >= 0) & (trace.name.codes[above] != record))
            if not open_.size:
                break
            above[open_] = parent[above[open_]]
        inside = (above >= 0) & (trace.name.codes[above] == record)
        found[links.target[inside]] = True
    return np.flatnonzero(found)
