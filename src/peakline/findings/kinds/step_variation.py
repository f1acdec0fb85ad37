"""Some steps take much longer than the median, for another reason than compilation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.steps import COLUMNS, ROWS
from peakline.text import ordinal, time_text
from peakline.timing.frame_work import callee_title
from peakline.timing.steps.facts import PARTS, WARM_UP
from peakline.timing.steps.slow import ALONE, HALF, slow_steps_of
from peakline.trace.frames import EVALUATES

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext
    from peakline.timing.steps.slow import SlowSteps

# What slow steps take beyond the median, as a share of all steps' time.
KIND = Kind(
    "step_variation",
    __doc__,
    about="time",
    phrase="some steps take much longer than the others",
    severity="warning",
    least=0.05,
    much=0.20,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns("median_ps", "slow_steps", "slow_median_ps", "period_steps", "most", "most_share")
    | columns("longest", "longest_extra_ps", only_in_slow="In slow steps alone")
    | columns("compute_ps", "communication_ps")
    | columns("device_to_device_ps", "device_to_host_ps", "host_to_device_ps", "input_wait_ps")
    | columns("compile_ps", "launch_ps", "host_compute_ps", "idle_ps", "unknown_ps"),
    saves="gain_share",
)

_FEW = 2
"""In so few steps the machine may have had other work: at even distances too, with one of the first
steps, and whatever function they all run.
"""
EVALUATION = 0.40
"""An evaluation is an alarm from this share of the time on."""
VARIES_ONCE = 0.10
"""A single slow step may be an accident."""


def find(context: TimeContext) -> Findings:
    """At most one; of steps of several names those with most time are compared."""
    facts = context.facts.main
    slow = slow_steps_of(context.profile, facts, KIND.least, VARIES_ONCE)
    if slow is None:
        return
    count, median, longest = slow.rows.size, round(slow.median_ps), slow.longest
    part = min(slow.beyond[slow.most] / slow.lost_ps, 1.0)
    when = f", every {ordinal(slow.period)}" if slow.period else ""
    # Else the reader wonders why it is not the median above.
    differs = time_text(median) != time_text(facts.median_ps)
    without = f" without the first {WARM_UP}" if differs else ""
    yield KIND.finding(
        f"{count} of {slow.steps} steps {'takes' if count == 1 else 'take'} "
        f"{slow.slow_median_ps / slow.median_ps:.1f} times the median "
        f"({time_text(median)}{without}){when}: {slow.share:.0%} of the time{_because(slow)}",
        {
            "steps": facts.count,
            "slow_steps": int(count),
            "median_ps": median,
            "slow_median_ps": round(slow.slow_median_ps),
            "period_steps": slow.period,
            "most": slow.most.removesuffix("_ps"),
            "most_share": part,
            "longest": None if longest is None else longest.name,
            "longest_extra_ps": None if longest is None else longest.extra_ps,
            "only_in_slow": ", ".join(slow.only.names) if slow.only is not None else None,
            **of_frame(slow.function),
            "share": slow.share,
            "gain_ps": round(slow.lost_ps),
            "gain_share": slow.share,
        },
        _advice(slow, part, PARTS[slow.most], has_device=facts.has_device),
        tuple(
            {
                "step": facts.label(row),
                "wall_ps": int(facts.part("wall_ps")[row]),
                **{name: int(facts.part(name)[row]) for name in PARTS if slow.beyond[name]},
            }
            for row in slow.rows[:ROWS].tolist()
        ),
        severity="info" if _is_evaluation(slow) or _is_chance(slow) else "",
    )


def _is_evaluation(slow: SlowSteps) -> bool:
    """Whether they hold an evaluation, which takes its time, by the name of its function."""
    if slow.share >= EVALUATION:
        return False
    if slow.function is not None:
        return EVALUATES.search(slow.function.function) is not None
    only = slow.only
    return only is not None and only.has_function and EVALUATES.search(only.names[0]) is not None


def _is_chance(slow: SlowSteps) -> bool:
    """Whether they do what the others do, now and then: the machine may have had other work."""
    if slow.only is not None or (slow.function is not None and slow.is_alone):
        return False
    if slow.rows.size > _FEW and (slow.period is not None or slow.function is not None):
        return False
    return slow.longest is not None and slow.longest.is_same_work


def _because(slow: SlowSteps) -> str:
    """What makes them slow, in the title, where something says it."""
    if slow.function is not None:
        how = "which the others do not run" if slow.is_alone else "which takes longer in them"
        return f", in {slow.function.title}, {how}"
    longer, only = slow.longest, slow.only
    is_little = longer is None or longer.extra_ps < HALF * slow.lost_ps / slow.rows.size
    if only is not None and (only.has_function or is_little):
        return f", in {' and '.join(only.names)}, which the others do not run"
    if longer is None or is_little:
        return ""
    alone = ", which the others do not run" if longer.usual_runs <= ALONE * longer.runs else ""
    return f", in {callee_title(longer.name)}{alone}"


def _advice(slow: SlowSteps, share: float, part: str, *, has_device: bool) -> str:
    if slow.function is not None and slow.is_alone:
        return (
            f"{slow.function.title} takes {time_text(slow.function_ps)} of a slow step: do it less "
            "often, on another thread, or apart from the training (checkpoints: asynchronously)."
        )
    if slow.only is not None and slow.only.has_function:
        return (
            f"{slow.only.names[0]} and what is run with it take {time_text(slow.only.each_ps)} of "
            "a slow step, and the others do not run it: do it less often (at the end of an "
            "epoch), on fewer data, or apart from the training."
        )
    if slow.most == "unknown_ps" or (slow.most == "idle_ps" and has_device):
        what = "the device waits" if has_device else "no op runs"
        return (
            f"For {share:.0%} of what they take longer {what} and no event says why: look for "
            "what happens every so many steps (a checkpoint, an evaluation, a log, gc.collect()), "
            "and do it on another thread or less often."
        )
    where = f"{share:.0%} of what they take longer is {part}"
    if slow.longest is not None and _shuffles_below_repeat(slow.longest.name):
        return (
            f"{where}: the shuffle buffer is filled again for each epoch, as it lies below repeat: "
            "put repeat before shuffle, make buffer_size smaller, or shuffle the files."
        )
    if slow.most == "input_wait_ps":
        return f"{where}: prefetch more batches, so that a slow read does not stop the training."
    longer = slow.longest
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


def _shuffles_below_repeat(name: str) -> bool:
    """Whether an iterator of tf.data is so made (``Iterator::Root::Repeat::Shuffle``)."""
    _, _, iterator = name.partition("Iterator::")
    _, _, below = iterator.partition("Repeat")
    return "Shuffle" in below
