"""How long every device was busy: the table ``device_time``."""

from __future__ import annotations

from dataclasses import dataclass

from peakline.tables import Columns, Profile
from peakline.tables.tables import columns_of_rows
from peakline.trace.activity_names import Activity
from peakline.trace.activity_sets import NEVER, DeviceSets, device_sets_of, either
from peakline.trace.intervals import Intervals, total

_COPIES = (Activity.DEVICE_TO_DEVICE, Activity.DEVICE_TO_HOST, Activity.HOST_TO_DEVICE)


@dataclass(frozen=True)
class DeviceTime:
    """From the first to the last work of a device, in ps: what it did, each moment once.

    ``communication_ps`` is that during which it did not compute, ``copy_ps`` what neither hides;
    with ``compute_ps`` and ``idle_ps`` they are all of the time.
    """

    device: str
    compute_ps: int
    communication_ps: int
    copy_ps: int
    idle_ps: int


def device_times(profile: Profile) -> tuple[DeviceTime, ...]:
    """Every device that worked, in the order of the file."""
    result = []
    for own in device_sets_of(profile):
        computes = own.sets.get(Activity.COMPUTE, NEVER)
        talks = either(computes, own.communication)
        busy = _busy(own)
        if not busy[0].size:
            continue
        span = int(busy[1][-1] - busy[0][0])
        result.append(
            DeviceTime(
                own.device.name,
                total(computes),
                total(talks) - total(computes),
                total(busy) - total(talks),
                span - total(busy),
            )
        )
    return tuple(result)


def columns_of(profile: Profile) -> Columns:
    """The table ``device_time``: unions over all streams of a device, so that nothing counts twice.

    A device that waits for its infeed is not busy. Raises InputError when the profile cannot be
    read.
    """
    rows: list[tuple[object, ...]] = []
    for result in device_sets_of(profile):
        sets = result.sets
        busy = _busy(result)
        if not busy[0].size:
            continue
        start, end = int(busy[0][0]), int(busy[1][-1])
        rows.append((
            result.device.plane_id,
            result.device.name,
            start,
            end,
            total(busy),
            end - start - total(busy),
            total(sets.get(Activity.COMPUTE, NEVER)),
            total(result.communication),
            total(either(*(sets.get(kind, NEVER) for kind in _COPIES))),
            int((busy[0][1:] - busy[1][:-1]).max(initial=0)),
        ))  # fmt: skip
    return columns_of_rows("device_time", rows)


def _busy(result: DeviceSets) -> Intervals:
    """When the device worked: also on a transfer beside its ops."""
    own = [own for kind, own in result.sets.items() if kind != Activity.INPUT_WAIT]
    return either(result.communication, *own)
