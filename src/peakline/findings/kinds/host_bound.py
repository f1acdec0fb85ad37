"""The device waits for the host; without a device, ops are run one by one."""

import numpy as np

from peakline.findings.context import Findings
from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.steps import COLUMNS, evidence_of, gain_of, rows_by_step
from peakline.findings.time_context import TimeContext
from peakline.text import time_text
from peakline.timing.frame_work import function_around
from peakline.timing.launches.gaps import idle_devices_of, launching_ps, waiting_ps
from peakline.timing.ops.eager import eager_ops_of

# The device does nothing while the host computes, or no event says why. A few per cent of it are
# in every run: reading the loss, writing a log line.
KIND = Kind(
    "host_bound",
    __doc__,
    about="time",
    phrase="the device waits for the host",
    severity="warning",
    least=0.10,
    much=0.25,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns("host_compute_ps", "idle_ps", "ops_per_step", "work_ps", "op", "times_a_step")
    | columns("compile_ps", "span_ps", "busy_ps", "not_launched_ps", "being_launched_ps")
    | columns("waits_for_other_work_ps", "unexplained_ps", "longest_idle_ps"),
    saves="gain_share",
)

MOSTLY = 0.5
"""Of the idle time compilation is named as the reason where it runs in more than half of it."""


def find(context: TimeContext) -> Findings:
    """At most one: of steps with a device, of steps without, or of devices without steps."""
    if not context.facts.rows:
        yield from _without_steps(context)
    elif context.facts.has_device:
        yield from _waiting(context)
    else:
        yield from _one_by_one(context)


def _waiting(context: TimeContext) -> Findings:
    """The device waits while the host computes, or does what no event shows; what it waits for a
    straggler is said there.
    """
    facts = context.facts
    behind = context.behind.waited_in("finish") if context.behind else 0
    lost = waiting_ps(facts) - np.maximum(launching_ps(facts, context.gaps), context.first_use_ps)
    lost = np.maximum(lost, 0)
    whole = max(int(lost.sum()) - behind, 0)
    share = whole / facts.wall_ps if facts.wall_ps else 0.0
    if share < KIND.least:
        return
    is_known = facts.total("host_compute_ps") >= facts.total("idle_ps")
    what = "while the host computes" if is_known else "and no event says what for"
    trace = "" if is_known else "Profile with the Python tracer to see what the host does then. "
    parts = ("host_compute_ps", "idle_ps")
    yield KIND.finding(
        f"{share:.0%} of the step time the device waits {what}",
        evidence_of(facts, share, whole, *parts),
        f"{trace}Take work out of the loop that calls the device: compile the whole step, read "
        "losses and metrics only now and then (each read waits for the device), and prepare the "
        "next batch on another thread.",
        rows_by_step(facts, lost, *parts),
    )


def _one_by_one(context: TimeContext) -> Findings:
    """Most of a step goes to getting from one op to the next."""
    facts = context.facts
    result = eager_ops_of(context.profile, facts)
    if result is None:
        return
    frame = function_around(context.profile, result.calls, by_number=True)
    where = "" if frame is None else f", in {frame.title}"
    yield KIND.finding(
        f"{result.per_step:.0f} ops a step are run one by one: {result.share:.0%} of the time goes "
        f"to getting from one to the next; most often {result.ops[0][0]}{where}",
        {
            "steps": facts.count,
            "ops_per_step": result.per_step,
            "wall_ps": facts.wall_ps,
            "work_ps": result.work_ps,
            "op": result.ops[0][0],
            **of_frame(frame),
            **gain_of(facts, result.share, result.lost_ps),
        },
        "Compile the whole step as one function (tf.function, jax.jit), so that Python runs once a "
        "step instead of once an op.",
        tuple({"op": op, "times_a_step": times} for op, times in result.ops),
        severity="warning" if result.share >= MOSTLY else "info",
    )


def _without_steps(context: TimeContext) -> Findings:
    """Devices that stood idle because the host had launched nothing, about the idlest.

    Those that do the job's work come first; that another one waits is a note, said where no other
    device does.
    """
    profile = context.profile
    if "device_time" not in profile.tables or not profile.has_rows("device_time"):
        return

    devices = idle_devices_of(profile, KIND.least)
    if not devices:
        return
    first = devices[0]
    is_compiling = first.compile_ps > MOSTLY * first.idle_ps
    why = "compiled" if is_compiling else "had not launched its next work"
    note = f" (it does {first.work_share:.1%} of the work of the busiest device)"
    yield KIND.finding(
        f"{first.device} waits for {first.share:.0%} of {time_text(first.span_ps)} while the host "
        f"{why}{'' if first.works else note}",
        {
            "device": first.device,
            "devices": len(devices),
            "idle_ps": first.idle_ps,
            "compile_ps": first.compile_ps,
            "share": first.share,
            "gain_ps": first.not_launched_ps + first.being_launched_ps if first.works else 0,
            "gain_share": first.share if first.works else 0.0,
        },
        "Run the program once before the profile begins, or keep compiled programs "
        "(jax_compilation_cache_dir), so that the profile shows the work itself."
        if is_compiling
        else "Take work out of the loop that calls the device, compile the whole step as one "
        "program (tf.function, jax.jit, torch.compile), and prepare the next batch on another "
        "thread. Mark the steps to see what of this every step pays.",
        tuple(one.as_row() for one in devices),
        severity="" if first.works else "info",
    )
