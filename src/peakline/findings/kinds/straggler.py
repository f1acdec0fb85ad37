"""One device works longer, and the others wait for it."""

from peakline.findings.context import Findings, TimeContext
from peakline.findings.kind import Kind, columns
from peakline.findings.steps import COLUMNS
from peakline.timing.stragglers import BEHIND

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
    behind, devices = context.behind, context.facts.devices
    if behind is None:
        return
    found, works = behind.straggler, behind.work_ps
    yield KIND.finding(
        f"{found.name} works longer than the other {len(devices) - 1} in {found.often:.0%} of the "
        f"steps, and they wait for it: {found.share:.0%} of the step time",
        {
            "device": found.name,
            "devices": len(devices),
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
                "device": devices[lane],
                "work_ps": works[lane],
                "communication_ps": behind.communication_ps[lane],
            }
            for lane in sorted(range(len(devices)), key=lambda lane: -works[lane])
        ),
    )
