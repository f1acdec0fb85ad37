"""Collectives run while the device computes nothing."""

from peakline.findings.context import Findings
from peakline.findings.kind import Kind, columns
from peakline.findings.steps import COLUMNS, evidence_of, rows_by_step
from peakline.findings.time_context import TimeContext

# Collectives that no computation hides: XProf's bounds are 3 % and 15 %.
KIND = Kind(
    "communication_not_overlapped",
    __doc__,
    about="time",
    phrase="no computation hides the collectives",
    severity="warning",
    least=0.05,
    much=0.15,
    section="steps",
    columns=COLUMNS | columns("communication_ps", "communication_total_ps", "hidden_share"),
    saves="gain_share",
)


def find(context: TimeContext) -> Findings:
    """At most one, of steps with a device; what a straggler is waited for is said there."""
    facts = context.facts
    if not facts.has_device or not facts.wall_ps:
        return
    behind = context.behind.waited_in("communication") if context.behind else 0
    exposed = max(facts.total("communication_ps") - behind, 0)
    share = exposed / facts.wall_ps
    if share < KIND.least:
        return
    whole = facts.total("communication_total_ps") - behind
    hidden = 1 - exposed / whole if whole else 0.0
    parts = ("communication_ps", "communication_total_ps")
    yield KIND.finding(
        f"{share:.0%} of the step time goes to collectives that no computation hides "
        f"({hidden:.0%} of their time is hidden)",
        evidence_of(facts, share, exposed, *parts) | {"hidden_share": hidden},
        "Start the reduction of each gradient as soon as it is there (bucketed all-reduce, XLA's "
        "latency-hiding scheduler), reduce less often (gradient accumulation) or in a smaller "
        "type, or make the work of each device larger.",
        rows_by_step(facts, facts.part("communication_ps"), *parts),
    )
