"""Which of several hosts, or devices, keeps the others waiting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from peakline import trace
from peakline.timing.launches.gaps import sum_of
from peakline.timing.ops.host_devices import host_devices_of
from peakline.timing.step_breakdown import step_times
from peakline.timing.steps.variation import (
    FEWEST,
    WORKS_LONGER,
    MemberSteps,
    Straggler,
    device_straggler,
    host_steps,
    straggler_among,
    works_longer,
)
from peakline.trace.intervals import covered, without

if TYPE_CHECKING:
    from peakline.arrays import Int64Array
    from peakline.tables import Profile
    from peakline.timing.step_breakdown import StepTimes
    from peakline.timing.steps.facts import StepFacts
    from peakline.trace.clocks import HostClock

SLOWER = 1.5
"""Of hosts that do not wait for each other one stands out when its steps take so many times as
long."""

_WORK = ("compute_ps", "device_to_device_ps", "device_to_host_ps", "host_to_device_ps")
_WITHIN = 25
"""The steps of a host that is slower take longer than the others', but for so many percent of
both."""


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


@dataclass(frozen=True, eq=False)
class HostSteps:
    """The steps of one host and what its profile says about its clock; can be pickled."""

    times: StepTimes
    clock: HostClock


@dataclass(frozen=True)
class HostStraggler:
    """The host that the others wait for because it works longer. ``work_ps`` is how long it works
    in the median step, without what it communicates.
    """

    straggler: Straggler
    work_ps: int


def host_steps_of(profile: Profile) -> HostSteps | None:
    """The steps of a host, None without steps.

    Raises InputError when the profile cannot be read.
    """
    times = step_times(profile)
    return HostSteps(times, trace.clock_of(profile)) if times.rows else None


def communicates(hosts: Sequence[HostSteps]) -> bool:
    """Whether collectives were seen in the steps of any of ``hosts``: without, nobody knows whether
    they wait for each other.
    """
    return any(bool(steps.times.communication_total.any()) for steps in hosts)


def longer_host(hosts: Sequence[tuple[str, HostSteps]]) -> HostStraggler | None:
    """The host that the others wait for because it works longer, or whose steps take much longer
    where nothing shows that they wait; None where there is none. ``hosts`` by name.
    """
    if len(hosts) < 2:
        return None
    alignment = trace.align([replace(steps.clock, host=host) for host, steps in hosts])
    members = [
        host_steps(steps.times, host, alignment.of(host).matched_offset_ps) for host, steps in hosts
    ]
    works = {one.name: one.end - one.begin - one.communication for one in members}
    result = straggler_among(members)
    if result is None:
        return _slower_host(works)
    usual = {host: float(np.median(work)) for host, work in works.items()}
    others = [work for host, work in usual.items() if host != result.name]
    longer = usual[result.name] - float(np.median(others))
    if longer < WORKS_LONGER * result.behind_ps:
        return None
    return HostStraggler(result, round(usual[result.name]))


def _slower_host(works: Mapping[str, Int64Array]) -> HostStraggler | None:
    """The host whose steps take much longer than the others', where nothing shows that they wait
    for each other: hosts that work for themselves. ``works`` is how long each works per step.
    """
    usual = {host: float(np.median(work)) for host, work in works.items()}
    name = max(usual, key=lambda host: usual[host])
    rest = [host for host in works if host != name]
    others = float(np.median([usual[host] for host in rest]))
    most = max(float(np.percentile(works[host], 100 - _WITHIN)) for host in rest)
    if usual[name] < SLOWER * others or others <= 0 or works[name].size < FEWEST:
        return None
    if float(np.percentile(works[name], _WITHIN)) <= most:
        return None
    steps, behind = works[name].size, usual[name] - others
    result = Straggler(
        name, "steps", steps, round(behind), round(behind * steps), behind / usual[name], 1.0
    )
    return HostStraggler(result, round(usual[name]))


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
