"""What the time of every step went to: the table ``step_breakdown``, exact to the picosecond."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.tables import Columns, Names, Profile
from peakline.tables.once import once
from peakline.timing.steps.facts import PARTS as PART_COLUMNS
from peakline.trace.activity_names import Activity
from peakline.trace.activity_sets import (
    NEVER,
    DeviceSets,
    Sets,
    device_sets_of,
    either,
    host_sets_of,
)
from peakline.trace.events import read_with_steps
from peakline.trace.intervals import Intervals, covered
from peakline.trace.steps import steps_of
from peakline.trace.windows import Windows, windows_of

PARTS = tuple(column.removesuffix("_ps") for column in PART_COLUMNS)
"""The parts of a step's time; ``NAME_ps`` is the column of ``step_breakdown``."""
_PART = {name: number for number, name in enumerate(PARTS)}
_DEVICE_LAYERS = (
    ("compute", Activity.COMPUTE),
    ("communication", Activity.COMMUNICATION),
    ("device_to_device", Activity.DEVICE_TO_DEVICE),
    ("device_to_host", Activity.DEVICE_TO_HOST),
    ("host_to_device", Activity.HOST_TO_DEVICE),
    ("input_wait", Activity.INPUT_WAIT),
)
_HOST_LAYERS = (
    ("communication", Activity.COMMUNICATION),
    ("input_wait", Activity.INPUT_WAIT),
    ("compile", Activity.COMPILE),
    ("launch", Activity.LAUNCH),
    ("host_compute", Activity.HOST_OP),
    ("host_compute", Activity.HOST),
)


@dataclass(frozen=True, eq=False)
class StepTimes:
    """A row per device and step, device by device in order of time; times in picoseconds.

    ``device`` is the place in ``devices``, -1 where there is none and the row is of the host.
    ``parts`` has a column for each of `PARTS`; its rows add up to ``wall``. ``last_compute`` is
    when the device computed last in the step's window (its begin, where it did not).
    """

    devices: tuple[str, ...]
    device: Int32Array
    step_id: Int64Array
    name: Names
    is_cut_off: BoolArray
    found_by: Names
    start: Int64Array
    end: Int64Array
    gap_before: Int64Array
    parts: Int64Array
    communication_total: Int64Array
    last_compute: Int64Array

    @property
    def rows(self) -> int:
        """Steps times devices."""
        return self.start.size

    @property
    def wall(self) -> Int64Array:
        """How long each step's window is."""
        return self.end - self.start

    def part(self, name: str) -> Int64Array:
        """The column of one of `PARTS`."""
        return self.parts[:, _PART[name]]

    def total(self, name: str) -> int:
        """One part over all rows."""
        return int(self.part(name).sum())

    def rows_of(self, device: int) -> Int64Array:
        """The rows of one device (-1: the host), in order of time."""
        return np.flatnonzero(self.device == device)

    def columns(self) -> Columns:
        """The rows as the table ``step_breakdown``."""
        data: dict[str, AnyArray | Names] = {
            "step_id": self.step_id,
            "name": self.name,
            "is_cut_off": self.is_cut_off,
            "found_by": self.found_by,
            "device": Names(self.device, list(self.devices)),
            "start_ps": self.start,
            "end_ps": self.end,
            "wall_ps": self.wall,
            "gap_before_ps": self.gap_before,
        }
        data |= {f"{name}_ps": np.ascontiguousarray(self.part(name)) for name in PARTS}
        data["communication_total_ps"] = self.communication_total
        return Columns(data)


@once
def step_times(profile: Profile) -> StepTimes:
    """What the time of every step of ``profile`` went to, made once; no rows without steps.

    The rules are in docs/steps.md. Raises InputError when the profile cannot be read.
    """
    read_with_steps(profile)
    windows = windows_of(profile)
    host = host_sets_of(profile)
    by_plane = {sets.device.plane_id: sets for sets in device_sets_of(profile)}
    result = []
    for own in windows:
        device = by_plane[own.device.plane_id] if own.device is not None else None
        layers = [(part, intervals) for part, _, intervals, _ in layers_of(device, host)]
        parts = _parts(layers, own, "unknown" if device is None else "idle")
        communication = host.get(Activity.COMMUNICATION, NEVER)
        computes = either(host.get(Activity.HOST_OP, NEVER), host.get(Activity.HOST, NEVER))
        if device is not None:
            communication = device.communication
            computes = device.sets.get(Activity.COMPUTE, NEVER)
        result.append(
            (parts, covered(communication, own.begin, own.end), _last(computes, own), own)
        )
    steps = steps_of(profile).take(_joined([own.step for own in windows]))
    counts = [own.step.size for own in windows]
    has_device = [own.device is not None for own in windows]
    numbers = np.where(has_device, np.arange(len(windows)), -1).astype(np.int32)
    return StepTimes(
        devices=tuple(own.device.name for own in windows if own.device is not None),
        device=np.repeat(numbers, counts),
        step_id=steps.step_id,
        name=steps.name,
        is_cut_off=steps.is_cut_off,
        found_by=steps.found_by,
        start=_joined([own.begin for own in windows]),
        end=_joined([own.end for own in windows]),
        gap_before=_joined([_gaps(own) for own in windows]),
        parts=np.concatenate([np.zeros((0, len(PARTS)), np.int64), *(one[0] for one in result)]),
        communication_total=_joined([one[1] for one in result]),
        last_compute=_joined([one[2] for one in result]),
    )


def columns_of(profile: Profile) -> Columns:
    """The table ``step_breakdown``."""
    return step_times(profile).columns()


def _joined(arrays: list[Int64Array]) -> Int64Array:
    return np.concatenate([np.zeros(0, np.int64), *arrays])


def layers_of(device: DeviceSets | None, host: Sets) -> list[tuple[str, Activity, Intervals, bool]]:
    """What explains a moment of a step, the first that holds it: the part, the activity, when, and
    whether the device says so.

    Without a device the ops that the host runs take its place.
    """
    layers = [(part, kind, host.get(kind, NEVER), False) for part, kind in _HOST_LAYERS]
    if device is None:
        kind = Activity.HOST_OP
        return [("host_compute", kind, host.get(kind, NEVER), False), *layers]
    own = [(part, kind, device.sets.get(kind, NEVER), True) for part, kind in _DEVICE_LAYERS]
    return [*own, *layers]


def _parts(layers: list[tuple[str, Intervals]], windows: Windows, rest: str) -> Int64Array:
    """How much of each window each layer explains that those before it do not."""
    result = np.zeros((windows.step.size, len(PARTS)), np.int64)
    seen, before = NEVER, np.zeros(windows.step.size, np.int64)
    for part, intervals in layers:
        if not intervals[0].size:
            continue
        seen = either(seen, intervals)
        until = covered(seen, windows.begin, windows.end)
        result[:, _PART[part]] += until - before
        before = until
    result[:, _PART[rest]] += windows.end - windows.begin - before
    return result


def _gaps(windows: Windows) -> Int64Array:
    """How long before each window the last one before it ended, 0 for the first."""
    gaps = np.zeros(windows.step.size, np.int64)
    reach = np.maximum.accumulate(windows.end)[:-1]
    gaps[1:] = np.maximum(windows.begin[1:] - reach, 0)
    return gaps


def _last(computes: Intervals, windows: Windows) -> Int64Array:
    """When a device computed last in each window; its begin, where it did not."""
    begins, ends = computes
    if not begins.size:
        return windows.begin.copy()
    at = np.maximum(np.searchsorted(begins, windows.end) - 1, 0)
    last = np.minimum(ends[at], windows.end)
    return np.where((begins[at] < windows.end) & (last > windows.begin), last, windows.begin)
