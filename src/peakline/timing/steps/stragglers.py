"""Which of several hosts, or devices, keeps the others waiting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peakline import trace
from peakline.timing.launches.gaps import sum_of
from peakline.timing.step_breakdown import step_times
from peakline.timing.steps.variation import Straggler, device_straggler, host_steps, straggler_among

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.step_breakdown import StepTimes
    from peakline.timing.steps.facts import StepFacts
    from peakline.trace.clocks import HostClock

BEHIND = 0.05
"""The others wait for a straggler for this share of the step time or more."""

OFTEN_BEHIND = 0.75
"""It is the last in so many of the steps; who is last by chance changes."""

WORKS_LONGER = 0.5
"""It computes and copies longer than the median of the others, by so much of what they wait or
more; a stage of a pipeline may just communicate less."""

SLOWER = 1.5
"""Of hosts that do not wait for each other one stands out when its steps take so many times as
long."""

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


@dataclass(frozen=True)
class HostStraggler:
    """The host that the others wait for. ``work_ps`` is how long it works in the median step,
    without what it communicates; ``works_longer`` says that this is what the others wait for.
    """

    straggler: Straggler
    work_ps: int
    works_longer: bool


def host_steps_of(profile: Profile) -> HostSteps | None:
    """The steps of a host, None without steps.

    Raises InputError when the profile cannot be read.
    """
    times = step_times(profile)
    return HostSteps(times, trace.clock_of(profile)) if times.rows else None


def host_straggler(hosts: Sequence[tuple[str, HostSteps]]) -> Straggler | None:
    """The host that the others wait for, if there is one; ``hosts`` by name."""
    if len(hosts) < 2:
        return None
    alignment = trace.align([replace(steps.clock, host=host) for host, steps in hosts])
    return straggler_among(
        [
            host_steps(steps.times, host, alignment.of(host).matched_offset_ps)
            for host, steps in hosts
        ]
    )


def longer_host(hosts: Sequence[tuple[str, HostSteps]]) -> HostStraggler | None:
    """The straggler of `host_straggler`, and whether it works longer than the others."""
    import numpy as np

    works = {}
    for host, steps in hosts:
        own = host_steps(steps.times, host)
        works[host] = float(np.median(own.end - own.begin - own.communication))
    result = host_straggler(hosts)
    if result is None:
        return _slower_host(works, hosts)
    others = [work for host, work in works.items() if host != result.name]
    longer = works[result.name] - float(np.median(others))
    own_work = round(works[result.name])
    return HostStraggler(result, own_work, longer >= WORKS_LONGER * result.behind_ps)


def _slower_host(
    works: Mapping[str, float], hosts: Sequence[tuple[str, HostSteps]]
) -> HostStraggler | None:
    """The host whose steps take much longer than the others', where nothing shows that they wait
    for each other: hosts that work for themselves.
    """
    import numpy as np

    if len(works) < 2:
        return None
    name = max(works, key=lambda host: works[host])
    usual = float(np.median([work for host, work in works.items() if host != name]))
    if works[name] < SLOWER * usual or usual <= 0:
        return None
    steps = next(one.times.rows for host, one in hosts if host == name)
    behind = works[name] - usual
    result = Straggler(
        name, "steps", steps, round(behind), round(behind * steps), behind / works[name], 1.0
    )
    return HostStraggler(result, round(works[name]), works_longer=True)


def behind_of(profile: Profile, facts: StepFacts) -> Behind | None:
    """The device that the others wait for because it works longer, in most steps."""
    import numpy as np

    result = device_straggler(step_times(profile)) if len(facts.devices) > 1 else None
    if result is None or result.share < BEHIND or result.often < OFTEN_BEHIND:
        return None
    work, communicates = sum_of(facts, *_WORK), facts.part("communication_total_ps")
    lanes = [facts.device == lane for lane in range(len(facts.devices))]
    works = [int(work[lane].sum()) for lane in lanes]
    others = np.delete(works, facts.devices.index(result.name))
    longer = works[facts.devices.index(result.name)] - np.median(others)
    if longer < WORKS_LONGER * result.waited_ps:
        return None
    waits = tuple(int(communicates[lane].sum()) for lane in lanes)
    return Behind(result, tuple(works), waits, len(others) * result.waited_ps)
