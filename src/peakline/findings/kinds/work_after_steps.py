"""The steps only launch their work: it runs after their marks have ended."""

from peakline.findings.context import Findings
from peakline.findings.kind import Kind, columns
from peakline.findings.steps import COLUMNS, evidence_of
from peakline.findings.time_context import TimeContext
from peakline.text import time_text
from peakline.timing.programs.runs import late_runs_of

# From half of the work on, the marks say less about a step than about what is beside it.
KIND = Kind(
    "work_after_steps",
    __doc__,
    about="time",
    phrase="the steps only launch their work",
    severity="warning",
    least=0.5,
    much=0.75,
    section="steps",
    columns=COLUMNS | columns("programs", "work_ps", late_ps="After the steps"),
    saves="gain_share",
)


def find(context: TimeContext) -> Findings:
    """At most one, of steps without a device."""
    facts = context.facts.main if context.facts.rows else context.facts
    late = late_runs_of(context.profile, facts)
    # Where a loop runs ahead for long, the next steps wait for the work: they are as long as it.
    if late is None or late.late_ps < max(KIND.least * late.work_ps, facts.wall_ps):
        return
    share = late.late_ps / late.work_ps
    each = time_text(late.late_ps // facts.count)
    more = f" and {len(late.programs) - 1} more" if len(late.programs) > 1 else ""
    yield KIND.finding(
        f"the steps only launch their work: {share:.0%} of the {time_text(late.work_ps)} in which "
        f"{late.programs[0]}{more} runs is outside of them, {each} a step; the marks last "
        f"{time_text(facts.median_ps)} (median)",
        evidence_of(facts, share, 0)
        | {
            "gain_share": 0.0,
            "programs": list(late.programs),
            "work_ps": late.work_ps,
            "late_ps": late.late_ps,
        },
        "Wait for the result before the mark of a step ends, at least while recording "
        "(jax.block_until_ready(loss) inside of StepTraceAnnotation): until then the times of "
        "steps, what they go to, and limits on them are those of launching.",
    )
