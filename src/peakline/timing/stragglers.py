"""Which of several hosts, or devices, keeps the others waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.step_breakdown import StepTimes
    from peakline.timing.step_facts import StepFacts
    from peakline.timing.variation import Straggler
    from peakline.trace.clocks import HostClock

BEHIND = 0.05
"""The others wait for a straggler for this share of the step time or more."""

OFTEN_BEHIND = 0.75
"""It is the last in so many of the steps; who is last by chance changes."""

WORKS_LONGER = 0.5
"""It computes and copies longer than the median of the others, by so much of what they wait or
more; a stage of a pipeline may just communicate less."""

_WORK = ("compute_ps", "device_to_device_ps", "device_to_host_ps", "host_to_device_ps")


@dataclass(frozen=True, eq=False)
class Behind:
    """A device that works longer than the others, and per device its work and its communication.

    All in ps; ``waited_ps`` is how long the others wait, all together.
    """

    straggler: Straggler
    work_ps: tuple[int, ...]
    communication_ps: tuple[int, ...]
    waited_ps: int

    def waited_in(self, evidence: str) -> int:
        """``waited_ps`` where the others wait in collectives (``communication``) or idle
        (``finish``), else 0.
        """
        return self.waited_ps if self.straggler.evidence == evidence else 0


@dataclass(frozen=True, eq=False)
class HostSteps:
    """The steps of one host and what its profile says about its clock; can be pickled."""

    times: StepTimes
    clock: HostClock


def host_steps_of(profile: Profile) -> HostSteps | None:
    """The steps of a host, None without steps.

    Raises InputError when the profile cannot be read.
    """
    from peakline.timing.step_breakdown import step_times
    from peakline.trace.clocks import clock_of

    times = step_times(profile)
    return HostSteps(times, clock_of(profile)) if times.rows else None


def host_straggler(hosts: Sequence[tuple[str, HostSteps]]) -> Straggler | None:
    """The host that the others wait for, if there is one; ``hosts`` by name."""
    from peakline.timing.variation import host_steps, straggler_among
    from peakline.trace.clocks import align

    if len(hosts) < 2:
        return None
    alignment = align([replace(steps.clock, host=host) for host, steps in hosts])
    return straggler_among(
        [
            host_steps(steps.times, host, alignment.of(host).matched_offset_ps)
            for host, steps in hosts
        ]
    )


def behind_of(profile: Profile, facts: StepFacts) -> Behind | None:
    """The device that the others wait for because it works longer, in most steps."""
    import numpy as np

    from peakline.timing.gaps import sum_of
    from peakline.timing.step_breakdown import step_times
    from peakline.timing.variation import device_straggler

    found = device_straggler(step_times(profile)) if len(facts.devices) > 1 else None
    if found is None or found.share < BEHIND or found.often < OFTEN_BEHIND:
        return None
    work, communicates = sum_of(facts, *_WORK), facts.part("communication_total_ps")
    lanes = [facts.device == lane for lane in range(len(facts.devices))]
    works = [int(work[lane].sum()) for lane in lanes]
    others = np.delete(works, facts.devices.index(found.name))
    longer = works[facts.devices.index(found.name)] - np.median(others)
    if longer < WORKS_LONGER * found.waited_ps:
        return None
    waits = tuple(int(communicates[lane].sum()) for lane in lanes)
    return Behind(found, tuple(works), waits, len(others) * found.waited_ps)
