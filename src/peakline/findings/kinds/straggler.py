"""One device works longer, and the others wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import Kind, columns
from peakline.findings.steps import COLUMNS
from peakline.timing.steps.variation import BEHIND

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

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


def find(context: TimeContext) -> Findings:
    """At most one, of steps with several devices."""
    behind = context.behind
    if behind is None:
        return
    devices, slow, works = behind.devices, behind.straggler, behind.work_ps
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
