"""Each step, or each turn of a loop in it, does more than the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.steps import COLUMNS
from peakline.timing.frame_work import function_of_loop
from peakline.timing.ops.growing import GrowingSteps, GrowingTurns, growing_steps, growing_turns

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.finding import Finding
    from peakline.findings.time_context import TimeContext
    from peakline.timing.ops.in_steps import StepOps

KIND = Kind(
    "growing_work",
    __doc__,
    about="time",
    phrase="every step does more than the one before",
    severity="warning",
    section="steps",
    least=0.10,
    columns=COLUMNS
    | FRAME
    | columns(
        "op", first_count="Ops of the first step", last_count="Ops of the last step",
        more_per_step="More in each step", turns="Turns a step", first_rows="Rows at first",
        last_rows="Rows at last", most_gain_share="Would save at most",
    ),
    saves="gain_share",
)  # fmt: skip


def find(context: TimeContext) -> Findings:
    """At most one of steps, and one of loops within them."""
    facts = context.facts.main
    if facts.rows:
        steps = growing_steps(context.profile, facts)
        if steps is not None:
            yield _of_steps(context, steps)
            return
    ops = context.ops
    turns = None if ops is None or not ops.wall_ps else growing_turns(context.profile, ops)
    if ops is not None and turns is not None and turns.excess_ps >= KIND.least * ops.wall_ps:
        yield _of_turns(context, ops, turns)


def _of_steps(context: TimeContext, result: GrowingSteps) -> Finding:
    frame = function_of_loop(context.profile, result.event)
    where = "" if frame is None else f", in {frame.title}"
    least, most = (one / max(result.wall_ps, 1) for one in (result.least_ps, result.most_ps))
    counts = ", ".join(f"{count:,}" for count in result.counts[:4])
    return KIND.finding(
        f"every step runs {result.more:,} ops more than the one before ({counts}, ...), most of "
        f"their time {result.name}{where}: {least:.0%} to {most:.0%} of the recorded steps would "
        "go, and more of later ones",
        {
            "steps": len(result.counts),
            "wall_ps": result.wall_ps,
            "op": result.name,
            "first_count": result.counts[0],
            "last_count": result.counts[-1],
            "more_per_step": result.more,
            **of_frame(frame),
            "gain_ps": result.least_ps,
            "gain_share": least,
            "most_gain_share": most,
        },
        "Each step goes through what all steps before it made: detach what is carried on "
        "(state = state.detach(), hidden states too), sum up numbers and not tensors "
        "(loss.item(), loss.detach()), and drop retain_graph=True.",
    )


def _of_turns(context: TimeContext, ops: StepOps, result: GrowingTurns) -> Finding:
    frame = function_of_loop(context.profile, result.event)
    where = "" if frame is None else f", in {frame.title}"
    share = result.excess_ps / ops.wall_ps
    # Attention over what is cached grows too.
    least = share / 2
    return KIND.finding(
        f"in each of {result.turns:,.0f} turns {result.name} takes more rows than in the one "
        f"before ({result.first:,} at first, {result.last:,} at last){where}: {least:.0%} to "
        f"{share:.0%} of the time is what was computed in earlier turns already",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "op": result.name,
            "turns": round(result.turns, 1),
            "first_rows": result.first,
            "last_rows": result.last,
            **of_frame(frame),
            "gain_ps": result.excess_ps // 2,
            "gain_share": least,
            "most_gain_share": share,
        },
        "Compute what is new alone: hold the keys and values of earlier tokens in a cache of fixed "
        "size (past_key_values, use_cache=True), and the sums of earlier turns in a variable.",
    )
