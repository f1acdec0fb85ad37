"""Findings that compare steps with steps, and devices with devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from peakline.findings.memory_peak import Finding
from peakline.text import time_text
from peakline.timing.slow_steps import Longer, longest_of
from peakline.timing.step_breakdown import step_times
from peakline.timing.step_facts import FEWEST_STEPS, PARTS, SLOW, WARM_UP, StepFacts
from peakline.timing.variation import device_straggler

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["Waited", "step_variation", "straggler"]

_Array = npt.NDArray[Any]

DEVIATIONS = 5.0
"""Slow steps are so many standard deviations above the median, as the median absolute deviation
estimates them: on a busy machine all steps differ."""
_NORMAL = 1.4826
"""Standard deviations per median absolute deviation of what is spread normally."""

TURN_PS = 10 * 10**9
"""... and 10 ms more, unless slow steps come at even distances: for so long the system may give a
core to somebody else."""

VARIES, VARIES_ONCE, MUCH_VARIES = 0.05, 0.10, 0.20
"""What slow steps take beyond the median, as a share of all steps' time; a single one may be an
accident."""

SLOW_COMPILE = 0.5
"""A slow step more than half of whose extra time is compilation is told of as recompilation."""

BEHIND, MUCH_BEHIND = 0.05, 0.15
"""How long the others wait for the straggler, as a share of the step time."""

OFTEN_BEHIND = 0.75
"""A straggler is the last in so many of the steps; who is last by chance changes."""

WORKS_LONGER = 0.5
"""A straggler computes and copies longer than the median of the others, by so much of what they
wait or more; a stage of a pipeline may just communicate less."""

_WORK = ("compute_ps", "device_to_device_ps", "device_to_host_ps", "host_to_device_ps")
_ROWS = 20


def step_variation(profile: Profile, facts: StepFacts) -> Finding | None:
    """Some steps take much longer than the median, for another reason than compilation.

    Of steps of several names those with most time are compared; inferred ones are not, as one
    function may do different things. Nothing is said of steps most of which took no time: damage,
    of which nothing is a multiple.
    """
    facts = facts.main
    rows, wall = facts.slowest_lane()
    rows, wall = rows[WARM_UP:], wall[WARM_UP:]
    if rows.size < FEWEST_STEPS or facts.is_inferred:
        return None
    median = float(np.median(wall))
    if median <= 0:
        return None
    spread = _NORMAL * float(np.median(np.abs(wall - median)))
    extra = wall - median
    usual = {name: float(np.median(facts.part(name)[rows])) for name in PARTS}
    compiled = facts.part("compile_ps")[rows] - usual["compile_ps"]
    slow = (wall >= SLOW * median) & (extra > DEVIATIONS * spread)
    slow &= compiled < SLOW_COMPILE * extra
    if _period(np.flatnonzero(slow)) is None:
        slow &= extra >= TURN_PS
    lost = float(extra[slow].sum())
    share = lost / float(wall.sum()) if slow.any() else 0.0
    if share < (VARIES if np.count_nonzero(slow) > 1 else VARIES_ONCE):
        return None
    at = np.flatnonzero(slow)
    beyond = {name: float((facts.part(name)[rows[at]] - usual[name]).sum()) for name in PARTS}
    most = max(beyond, key=lambda name: beyond[name])
    part, period = min(beyond[most] / lost, 1.0), _period(at)
    when = f", every {_ordinal(period)}" if period else ""
    begin, end = facts.part("start_ps")[rows], facts.part("end_ps")[rows]
    longer = longest_of(profile, begin, end, slow)
    takes = "takes" if at.size == 1 else "take"
    # Else the reader wonders why it is not the median above.
    differs = time_text(round(median)) != time_text(facts.median_ps)
    without = f" without the first {WARM_UP}" if differs else ""
    times = float(np.median(wall[at])) / median
    return Finding(
        "step_variation",
        "warning" if share >= MUCH_VARIES else "info",
        f"{at.size} of {rows.size} steps {takes} {times:.1f} times the median "
        f"({time_text(round(median))}{without}){when}: {share:.0%} of the time",
        {
            "steps": facts.count,
            "slow_steps": int(at.size),
            "median_ps": round(median),
            "slow_median_ps": round(float(np.median(wall[at]))),
            "period_steps": period,
            "most": most.removesuffix("_ps"),
            "most_share": part,
            "longest": None if longer is None else longer.name,
            "longest_extra_ps": None if longer is None else longer.extra_ps,
            "share": share,
            "gain_ps": round(lost),
            "gain_share": share,
        },
        _slow_advice(most, part, longer, has_device=facts.has_device),
        tuple(
            {
                "step": facts.label(row),
                "wall_ps": int(facts.part("wall_ps")[row]),
                **{name: int(facts.part(name)[row]) for name in PARTS if beyond[name]},
            }
            for row in rows[at][np.argsort(-wall[at], kind="stable")][:_ROWS].tolist()
        ),
    )


@dataclass(frozen=True)
class Waited:
    """How long devices wait for a straggler, in ps of all of them: in collectives, or idle."""

    communication_ps: int = 0
    idle_ps: int = 0


def straggler(profile: Profile, facts: StepFacts) -> tuple[Finding | None, Waited]:
    """The other devices wait for one that works longer, in most steps; and how long they do.

    Who it is says `variation.device_straggler`.
    """
    found = device_straggler(step_times(profile)) if len(facts.devices) > 1 else None
    if found is None or found.share < BEHIND or found.often < OFTEN_BEHIND:
        return None, Waited()
    work: _Array = np.sum([facts.part(name) for name in _WORK], axis=0)
    lanes = [facts.device == lane for lane in range(len(facts.devices))]
    works = np.array([int(work[lane].sum()) for lane in lanes])
    waits = [int(facts.part("communication_total_ps")[lane].sum()) for lane in lanes]
    own = facts.devices.index(found.name)
    if works[own] - np.median(np.delete(works, own)) < WORKS_LONGER * found.waited_ps:
        return None, Waited()
    others = len(facts.devices) - 1
    finding = Finding(
        "straggler",
        "warning" if found.share >= MUCH_BEHIND else "info",
        f"{found.name} works longer than the other {others} in {found.often:.0%} of the steps, and "
        f"they wait for it: {found.share:.0%} of the step time",
        {
            "device": found.name,
            "devices": others + 1,
            "steps": found.steps,
            "often": found.often,
            "evidence": found.evidence,
            "behind_ps": found.behind_ps,
            "share": found.share,
            "gain_ps": found.waited_ps,
            "gain_share": found.share,
        },
        "Give every device the same amount of work (equal shards, padded or sorted batches), and "
        "compare this one's clock, temperature and neighbours on the machine with the others'.",
        tuple(
            {
                "device": facts.devices[lane],
                "work_ps": int(works[lane]),
                "communication_ps": waits[lane],
            }
            for lane in np.argsort(-works, kind="stable").tolist()
        ),
    )
    waited = others * found.waited_ps
    in_collectives = found.evidence == "communication"
    return finding, Waited(communication_ps=waited) if in_collectives else Waited(idle_ps=waited)


def _period(at: _Array) -> int | None:
    """The distance between slow steps, where it is always the same (three of them or more)."""
    distances = np.unique(np.diff(at))
    return int(distances[0]) if at.size > 2 and distances.size == 1 and distances[0] > 1 else None


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 <= number % 100 <= 20 else ending}"


def _slow_advice(most: str, share: float, longer: Longer | None, *, has_device: bool) -> str:
    if most == "unknown_ps" or (most == "idle_ps" and has_device):
        what = "the device waits" if has_device else "no op runs"
        return (
            f"For {share:.0%} of what they take longer {what} and no event tells why: look for "
            "what happens every so many steps (a checkpoint, an evaluation, a log, garbage "
            "collection), and do it on another thread or less often."
        )
    where = f"{share:.0%} of what they take longer is {PARTS[most]}"
    if most == "input_wait_ps":
        return f"{where}: prefetch more batches, so that a slow read does not stop the training."
    if longer is None:
        return f"{where}: compare what a slow step runs with what another does."
    if longer.is_same_work:
        return (
            f"{where}, most of it {longer.name}, which runs as often as ever and takes longer: "
            "other programs on the machine, lower clocks or larger batches make it so."
        )
    return (
        f"{where}, most of it {longer.name}, which runs {longer.runs:,.1f} times in a slow step, "
        f"{longer.usual_runs:,.1f} in another: do it less often, or apart from the training."
    )
