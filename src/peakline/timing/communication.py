"""Communication: how long, by kind of collective, and how much of it computation hides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from peakline.trace.activity import Activity, activity_of
from peakline.trace.activity_names import UNKNOWN, kind_of_collective, recorded_kind
from peakline.trace.activity_sets import NEVER, device_sets_of, host_sets_of
from peakline.trace.collectives import recorded_collectives
from peakline.trace.events import HOST, Trace, trace_of
from peakline.trace.intervals import Intervals, covered, total, union

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["Communication", "communication_of"]

_Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Communication:
    """One kind of collective on one device (None: on the threads of a host); times in ps.

    ``kind`` is ``unknown`` where neither the name nor a record says which collective it is.

    ``total_ps`` is the time with one of the kind, ``overlapped_ps`` the part in which the device
    computed as well, ``exposed_ps`` the rest. ``events`` are counted as traced.
    """

    device: str | None
    kind: str
    events: int
    total_ps: int
    overlapped_ps: int
    exposed_ps: int


def communication_of(profile: Profile) -> tuple[Communication, ...]:
    """All kinds of collective of the whole profile, device by device, the longest first.

    Different kinds may run side by side, so that their sums may exceed the communication of
    ``device_time``. Of a profile without devices they are those of the host's threads. Raises
    InputError when the profile cannot be read.
    """
    trace, activity = trace_of(profile), activity_of(profile)
    found: list[Communication] = []
    for own in device_sets_of(profile):
        lines = [trace.lines[number].events for number, _ in own.device.lines]
        events = _communicating(activity, lines)
        computes = own.sets.get(Activity.COMPUTE, NEVER)
        found += _by_kind(profile, trace, events, own.device.name, computes)
    if not device_sets_of(profile):
        events = _communicating(activity, [line.events for line in trace.lines_on(HOST)])
        computes = host_sets_of(profile).get(Activity.HOST_OP, NEVER)
        found += _by_kind(profile, trace, events, None, computes)
    return tuple(found)


def _communicating(activity: npt.NDArray[np.uint8], lines: list[slice]) -> _Array:
    places = [
        np.flatnonzero(activity[part] == Activity.COMMUNICATION) + part.start for part in lines
    ]
    return np.concatenate([np.zeros(0, np.int64), *places])


def _by_kind(
    profile: Profile, trace: Trace, events: _Array, device: str | None, computes: Intervals
) -> list[Communication]:
    kinds: dict[str, list[_Array]] = {}
    recorded = recorded_collectives(profile)
    codes, label = trace.name.codes[events], np.full(events.size, -1, np.int32)
    if recorded.event.size:
        at = np.minimum(np.searchsorted(recorded.event, events), recorded.event.size - 1)
        label = np.where(recorded.event[at] == events, recorded.label[at], label)
    pairs, which = np.unique(np.stack([codes, label]), axis=1, return_inverse=True)
    for number, (code, labelled) in enumerate(pairs.T.tolist()):
        kind = kind_of_collective(trace.name.values[code])
        if kind in (None, UNKNOWN) and labelled >= 0:
            kind = recorded_kind(recorded.labels[labelled])
        if kind is None and device is not None:
            kind = UNKNOWN
        if kind is not None:
            kinds.setdefault(kind, []).append(events[which.reshape(-1) == number])
    found = []
    for kind, parts in kinds.items():
        own = np.concatenate(parts)
        when = union(trace.start[own], trace.end[own])
        hidden = int(covered(computes, *when).sum())
        found.append(
            Communication(device, kind, own.size, total(when), hidden, total(when) - hidden)
        )
    return sorted(found, key=lambda one: (-one.total_ps, one.kind))
