"""Which of several devices keeps the others waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.timing.launches.gaps import sum_of
from peakline.timing.ops.host_devices import host_devices_of
from peakline.timing.step_breakdown import step_times
from peakline.timing.steps.variation import (
    MemberSteps,
    Straggler,
    device_straggler,
    straggler_among,
    works_longer,
)
from peakline.trace.intervals import covered, without

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.steps.facts import StepFacts

_WORK = ("compute_ps", "device_to_device_ps", "device_to_host_ps", "host_to_device_ps")


@dataclass(frozen=True, eq=False)
class Behind:
    """One of ``devices`` that works longer than the others, and per device its work and its
    communication.

    All in ps; ``waited_ps`` is how long the others wait, all together.
    """

    devices: tuple[str, ...]
    straggler: Straggler
    work_ps: tuple[int, ...]
    communication_ps: tuple[int, ...]
    waited_ps: int

    def waited_in(self, evidence: str) -> int:
        """``waited_ps`` where the others wait in collectives (``communication``) or idle
        (``finish``), else 0.
        """
        return self.waited_ps if self.straggler.evidence == evidence else 0


def behind_of(profile: Profile, facts: StepFacts) -> Behind | None:
    """The device that the others wait for because it works longer, in most steps."""
    if not facts.devices:
        return _behind_on_host(profile)
    result = device_straggler(step_times(profile)) if len(facts.devices) > 1 else None
    if result is None:
        return None
    work, communicates = sum_of(facts, *_WORK), facts.part("communication_total_ps")
    lanes = [facts.device == lane for lane in range(len(facts.devices))]
    works = [int(work[lane].sum()) for lane in lanes]
    waits = tuple(int(communicates[lane].sum()) for lane in lanes)
    return _behind(facts.devices, result, works, waits)


def _behind_on_host(profile: Profile) -> Behind | None:
    """The same of the devices of XLA on CPUs, whose steps are those of the host."""
    devices, times = host_devices_of(profile), step_times(profile)
    if not devices:
        return None
    rows = times.rows_of(-1)
    step, begin, end = times.step_id[rows].tolist(), times.start[rows], times.end[rows]
    waits = [covered(without(one.communication, one.computes), begin, end) for one in devices]
    result = straggler_among(
        [
            MemberSteps(one.name, step, begin, end, end, own)
            for one, own in zip(devices, waits, strict=True)
        ]
    )
    if result is None or result.evidence != "communication":
        return None
    works = [int(covered(one.computes, begin, end).sum()) for one in devices]
    names = tuple(one.name for one in devices)
    if not works_longer(result, names, works):
        return None
    return _behind(names, result, works, tuple(int(own.sum()) for own in waits))


def _behind(
    devices: Sequence[str], result: Straggler, works: Sequence[int], waits: tuple[int, ...]
) -> Behind:
    others = (len(works) - 1) * result.waited_ps
    return Behind(tuple(devices), result, tuple(works), waits, others)
