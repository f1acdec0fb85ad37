"""Which of several hosts keeps the others waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.step_breakdown import StepTimes
    from peakline.timing.variation import Straggler
    from peakline.trace.clocks import HostClock

__all__ = ["HostSteps", "host_steps_of", "host_straggler"]


@dataclass(frozen=True, eq=False)
class HostSteps:
    """The steps of one host and what its profile says about its clock; can be pickled."""

    times: StepTimes
    clock: HostClock


def host_steps_of(profile: Profile) -> HostSteps | None:
    """The steps of a host, None where nothing tells what a step is.

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
