"""One device, or host, works longer, and the others wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import Kind, columns
from peakline.findings.steps import COLUMNS
from peakline.timing.steps.variation import BEHIND

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.finding import Finding
    from peakline.findings.time_context import TimeContext
    from peakline.timing.steps.stragglers import HostStraggler

# How long the others wait for it, as a share of the step time.
KIND = Kind(
    "straggler",
    __doc__,
    about="time",
    phrase="one device keeps the others waiting",
    severity="warning",
    least=BEHIND,
    much=0.15,
    section="steps",
    columns=COLUMNS | columns("often", "evidence", "behind_ps", "work_ps", "communication_ps"),
    saves="gain_share",
)


def of_hosts(result: HostStraggler, hosts: int) -> Finding:
    """The finding about the host that the others wait for because it works longer."""
    one = result.straggler
    if one.evidence == "steps":
        title = (
            f"the steps of {one.name} take {result.work_ps / (result.work_ps - one.behind_ps):.1f} "
            f"times as long as those of the other {hosts - 1}"
        )
    else:
        title = (
            f"{one.name} works longer than the other {hosts - 1} in {one.often:.0%} of the steps, "
            f"and they wait for it: {one.share:.0%} of the step time"
        )
    return KIND.finding(
        title,
        {
            "device": one.name,
            "steps": one.steps,
            "often": one.often,
            "evidence": one.evidence,
            "behind_ps": one.behind_ps,
            "work_ps": result.work_ps,
            "share": one.share,
            "gain_ps": one.waited_ps,
            "gain_share": one.share,
        },
        "Give every host the same amount of work (equal shards, padded or sorted batches, files of "
        "the same size), and compare its input, its clock and its neighbours with the others'.",
    )


def find(context: TimeContext) -> Findings:
    """At most one, of steps with several devices."""
    behind, devices = context.behind, context.facts.devices
    if behind is None:
        return
    slow, works = behind.straggler, behind.work_ps
    yield KIND.finding(
        f"{slow.name} works longer than the other {len(devices) - 1} in {slow.often:.0%} of the "
        f"steps, and they wait for it: {slow.share:.0%} of the step time",
        {
            "device": slow.name,
            "devices": len(devices),
            "steps": slow.steps,
            "often": slow.often,
            "evidence": slow.evidence,
            "behind_ps": slow.behind_ps,
            "share": slow.share,
            "gain_ps": slow.waited_ps,
            "gain_share": slow.share,
        },
        "Give every device the same amount of work (equal shards, padded or sorted batches), and "
        "compare this one's clock, temperature and neighbours on the machine with the others'.",
        tuple(
            {
                "device": devices[lane],
                "work_ps": works[lane],
                "communication_ps": behind.communication_ps[lane],
            }
            for lane in sorted(range(len(devices)), key=lambda lane: -works[lane])
        ),
    )
