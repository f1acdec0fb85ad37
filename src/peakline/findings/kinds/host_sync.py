"""The loop reads a value in every step, and the device waits for what the host does then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.steps import COLUMNS, about_frame, gain_of
from peakline.timing.frame_work import function_around
from peakline.timing.launches.host_reads import READS, reads_of, value_reads_of
from peakline.timing.ops.elementwise import in_optimizer
from peakline.timing.ops.in_steps import step_ops_of, time_of_function
from peakline.timing.steps.anomaly_checks import anomaly_checks_of

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

KIND = Kind(
    "host_sync",
    __doc__,
    about="time",
    phrase="a value is read in every step",
    severity="warning",
    least=0.10,
    much=0.25,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns(
        "callee", "times_a_step", reads_per_step="Reads a step", idle_ps="Idle after",
        read_ps="Time from read to read", most_gain_share="Would save at most",
    ),
    saves="gain_share",
)  # fmt: skip

ALWAYS = 0.8
"""It is read in every step when it is in this share of the steps."""
_ROWS = 10
_LEAST_OF, _MOST = 0.75, 0.9
"""Of what checks and stacks take of a recording at least so much went where it was off, and in no
pair more than that of a step."""
_BESIDE = 1.6
"""Of pairs with and without such a loop the fastest was faster by so many times what the recording
of it shows: what a profiler writes for each function of Python slows the rest of a step down more.
"""


def find(context: TimeContext) -> Findings:
    """At most one: of anomaly detection, which reads a value after each node of a backward pass,
    else of values read one by one, else of steps whose host thread shows the reads and whose work
    runs elsewhere.
    """
    result = list(_anomaly(context)) or list(_one_by_one(context)) or list(_waiting(context))
    yield from result


def _anomaly(context: TimeContext) -> Findings:
    """A switch for debugging: that it is on is enough, whatever its checks take. The stacks that it
    saves take more, and are on record only where the functions of Python are.
    """
    ops = step_ops_of(context.profile, of_host=True)
    checks = None if ops is None or not ops.wall_ps else anomaly_checks_of(context.profile, ops)
    if ops is None or checks is None:
        return
    share, most = checks.check_ps / ops.wall_ps, checks.whole_ps / ops.wall_ps
    if checks.whole_ps > checks.check_ps:
        takes = f"{most:.0%} of the {{whole}} with the stacks that the forward pass saves"
        share = _LEAST_OF * most
    else:
        takes = (
            f"{share:.0%} of the {{whole}}, and the stacks that the forward pass saves, which are "
            f"not on record, take more: up to {_MOST:.0%} in all of small models"
        )
    most = max(most, _MOST)
    names = ", ".join(name for name, _ in checks.ops[:4])
    each, whole = (" in each step", "step time") if ops.has_steps else ("", "profile's time")
    yield KIND.finding(
        f"anomaly detection of torch.autograd is on: after {checks.per_step:,.0f} of "
        f"{checks.nodes:,.0f} nodes of the backward pass{each} the gradients are searched for NaN "
        f"and the answer is read ({names}), which takes {takes.format(whole=whole)}",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "reads_per_step": round(checks.per_step, 1),
            "read_ps": checks.check_ps,
            "callee": checks.ops[0][0],
            **gain_of(context.facts, share, checks.check_ps * context.facts.lanes),
            "most_gain_share": most,
        },
        "Turn it off but to find where a NaN comes from: torch.autograd.set_detect_anomaly(False), "
        "detect_anomaly=False of a Trainer; or check the loss alone, every hundredth step.",
        tuple({"callee": op, "times_a_step": round(times, 1)} for op, times in checks.ops[:_ROWS]),
        severity="warning",
    )


def _one_by_one(context: TimeContext) -> Findings:
    ops = step_ops_of(context.profile, of_host=True)
    if ops is None or not any(name in READS for name, _ in ops.keys):
        return
    reads = value_reads_of(context.profile, ops, in_optimizer(context.profile, ops))
    share = 0.0 if reads is None else reads.loop_ps / ops.wall_ps
    if reads is None or share < KIND.least:
        return
    frame = function_around(context.profile, reads.events)
    where = f", in {frame.title}" if frame is not None else ""
    names = ", ".join(name for name, _ in reads.ops[:4])
    whole = time_of_function(context.profile, ops, reads.events, frame) / ops.wall_ps
    most = min(_BESIDE * max(whole, share), 1.0)
    yield KIND.finding(
        f"{reads.per_step:.0f} values are read one by one in each step, which takes {share:.0%} of "
        f"it{where}: {names}"
        + (f"; up to {most:.0%} where nothing is recorded" if most < 1 else ""),
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "reads_per_step": round(reads.per_step, 1),
            "read_ps": reads.loop_ps,
            "callee": reads.ops[0][0],
            **of_frame(frame),
            **gain_of(context.facts, share, reads.loop_ps * context.facts.lanes),
            "most_gain_share": most,
        },
        "Put the values into one tensor (torch.stack, torch._foreach_norm) and read that once, "
        "every hundredth step; or let them add up on the device.",
        tuple({"callee": op, "times_a_step": round(times, 1)} for op, times in reads.ops[:_ROWS]),
    )


def _waiting(context: TimeContext) -> Findings:
    idle = context.idle
    if idle is None or not idle.threads.has_steps:
        return
    reads = reads_of(idle)
    if reads is None or reads.in_steps < ALWAYS:
        return
    lost = reads.idle_ps
    share = lost / idle.threads.wall_ps
    if share < KIND.least:
        return
    where = f", in {reads.frame.title}" if reads.frame is not None else ""
    yield KIND.finding(
        f"{share:.0%} of the step time the device has nothing to do after {reads.callee} waited "
        f"for it{where}: no other work was in flight",
        {
            "steps": idle.threads.steps,
            "wall_ps": idle.threads.wall_ps,
            "reads_per_step": round(reads.per_step, 1),
            "idle_ps": lost,
            "callee": reads.callee,
            **({} if reads.work is None else about_frame(reads.work)),
            **gain_of(context.facts, share, lost * context.facts.lanes),
        },
        "Start the next step before the value of this one is read: read losses every hundredth "
        "step, or those of the step before, and let metrics add up on the device.",
        # A program that waits without reading anything measures its steps.
        severity="info" if "block_until_ready" in reads.callee else "",
    )
