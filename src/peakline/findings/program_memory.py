"""What compiled programs say about the memory of the devices that ran them.

A device must hold all that a program needs while the program runs, so the most that one of them
needs is a lower bound of its peak: what else lives beside it, the program does not know.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.memory.allocator_names import shown_names
from peakline.memory.peak.explained import AllocatorPeak
from peakline.shown import Brief
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.text import whole_number
from peakline.timing.programs.answer import ProgramAnswer
from peakline.timing.programs.runs import program_runs

_MINE = 0.05
"""A program explains what a device holds from this share of it on."""


@dataclass(frozen=True, eq=False, repr=False)
class DeviceNeed(Brief):
    """The program that needs most of those that ran on a device, which so holds ``bytes`` at least.

    ``device`` is empty and ``runs`` 0 where the profile does not say what ran: then it is the one
    that needs most of all. ``first_ps`` is when its first run begins.
    """

    device: str
    program: ProgramAnswer
    bytes: int
    runs: int
    first_ps: int

    @property
    def is_run(self) -> bool:
        """Whether it is known that it ran."""
        return self.runs > 0

    def as_json(self) -> dict[str, object]:
        """The device, what it needs, the program (its graph, module and number) and its runs."""
        return {
            "device": self.device or None,
            "peak_bytes": self.bytes,
            "program": self.program.graph,
            "module": self.program.name,
            "program_id": self.program.program_id,
            "runs": self.runs,
            "first_run_ps": self.first_ps if self.is_run else None,
        }


@once
def every_need(profile: Profile) -> tuple[list[ProgramAnswer], list[int]]:
    """All programs, in the order of their numbers, and the bytes that each needs, 0 where it does
    not say.

    Raises InputError when the profile cannot be read.
    """
    every, needs = list[ProgramAnswer](), list[int]()
    for number in range(len(profile.programs() or ())):
        # One after the other: what is decoded of a program stays at hand until the next.
        every.append(ProgramAnswer(profile, number))
        needs.append(every[-1].peak_bytes or 0)
    return every, needs


@once
def device_needs(profile: Profile) -> tuple[DeviceNeed, ...]:
    """Per device the program that needs most, in order of their names; empty for a profile whose
    programs do not say what they need.

    Raises InputError when the profile cannot be read.
    """
    every, needs = every_need(profile)
    if not any(needs):
        return ()
    runs = program_runs(profile)
    program, start = runs.array("program"), runs.array("start_ps")
    devices = runs.names("device")
    result = []
    for code, device in sorted(enumerate(devices.values), key=lambda pair: _natural(pair[1])):
        mine = np.flatnonzero(devices.codes == code)
        if not mine.size:
            continue
        most = max(np.unique(program[mine]).tolist(), key=lambda number: needs[number])
        own = mine[program[mine] == most]
        if needs[most]:
            first = int(start[own].min())
            result.append(DeviceNeed(device, every[most], needs[most], int(own.size), first))
    if not result and not runs.rows:
        most = max(range(len(every)), key=lambda number: needs[number])
        result.append(DeviceNeed("", every[most], needs[most], 0, 0))
    return tuple(result)


def _natural(device: str) -> tuple[str, int]:
    name, _, text = device.rpartition(":")
    number = whole_number(text)
    return (device, -1) if number is None else (name, number)


def program_at_peak(profile: Profile, peak: AllocatorPeak) -> ProgramAnswer | None:
    """The program that ran on an allocator's device at its peak, and explains a part of it; None
    where none is known to. Of runs that overlap the last that began counts.

    Raises InputError when the profile cannot be read.
    """
    if not profile.programs():
        return None
    allocator, time_ps = peak.allocator, peak.peak_time_ps
    runs = program_runs(profile)
    if not runs.rows:
        return None
    name = shown_names(profile).get(allocator, allocator).removeprefix("/device:")
    devices = runs.names("device")
    start = runs.array("start_ps")
    fits = (devices.codes == devices.code_of(name)) & (start <= time_ps)
    fits &= runs.array("end_ps") >= time_ps
    rows = np.flatnonzero(fits)
    if not rows.size:
        return None
    result = ProgramAnswer(profile, int(runs.array("program")[rows[np.argmax(start[rows])]]))
    return result if (result.peak_bytes or 0) > _MINE * peak.peak_bytes else None
