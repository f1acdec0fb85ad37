"""One kind of work that seldom is what a model is for takes much of the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns
from peakline.findings.steps import COLUMNS, gain_of, where_of
from peakline.timing.frame_work import function_around
from peakline.timing.ops.grown_arrays import grown_array
from peakline.trace.work_classes import WORDS, Work

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.finding import Finding
    from peakline.findings.time_context import TimeContext
    from peakline.timing.ops.in_steps import StepOps

KIND = Kind(
    "expensive_op",
    __doc__,
    about="time",
    phrase="one kind of op takes the step",
    severity="warning",
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns(
        "op", "op_type", "shape", work="Kind of work", times_a_step="Times a step", op_ps="Time",
        runs_share="Runs for", added="Added", most_gain_share="Would save at most",
    ),
    saves="gain_share",
)  # fmt: skip

_SHARES = {
    Work.SORT: (0.10, 0.25),
    Work.STRING: (0.10, 0.25),
    Work.PRINT: (0.05, 0.15),
    Work.CAST: (0.12, 0.25),
    Work.LAYOUT: (0.15, 0.30),
    Work.GATHER: (0.35, 0.60),
    Work.RANDOM: (0.40, 0.60),
    Work.LINALG: (0.10, 0.25),
    Work.SOLVE: (0.35, 0.60),
    Work.JOIN: (0.20, 0.40),
    Work.REDUCE: (0.35, 0.60),
    Work.SCAN: (0.20, 0.40),
    Work.RESIZE: (0.25, 0.50),
    Work.FFT: (0.25, 0.50),
    Work.CHECK: (0.05, 0.10),
    Work.HISTOGRAM: (0.05, 0.15),
}
"""From which share of the steps each is said, and from which it is an alarm: some casts, copies,
joins and sums are in every model, a model of embeddings gathers most of the time, what runs on
made-up data makes it of random numbers, a Gaussian process is made of Cholesky and solves, and
networks of images and of waves resize and transform."""
_ADVICE = {
    Work.SORT: "Sort less: top_k in place of a sort, argmax for one value, a bound on the number "
    "of values, a hash or a segment sum in place of unique; or do it when the data are made.",
    Work.STRING: "Turn strings into numbers once, when the data are made, or in the input pipeline "
    "on other threads (tf.data map with num_parallel_calls).",
    Work.PRINT: "Print every hundredth step, outside of the compiled function.",
    Work.CAST: "Cast once, where the data come in, and keep one type: weights and inputs in the "
    "type of the computation (mixed precision policy, autocast around the whole forward pass).",
    Work.LAYOUT: "Choose one layout for the whole model (NCHW or NHWC, channels_last, batch "
    "first), make what is used again contiguous once, and drop clones of what is not written to.",
    Work.GATHER: "Gather whole rows in place of single elements, sort or batch the indices, or "
    "express it as slices, masks or a matrix product.",
    Work.RANDOM: "Draw indices in place of shuffling a whole table; make random numbers once for "
    "several steps, with a cheaper generator (Philox, "
    "jax_default_prng_impl=rbg), or in the input pipeline.",
    Work.LINALG: "Compute less than the whole decomposition: a few rounds of power iteration for "
    "the largest singular value or eigenvalue, a solve in place of an inverse, Cholesky where the "
    "matrix is symmetric and positive; or do it every so many steps.",
    Work.SOLVE: "Factor once and keep the factor for all right-hand sides, in float32, and of "
    "several small matrices as one batch; or do it every so many steps.",
    Work.JOIN: "Write into one array that is made once (a ring that wraps around, "
    "tf.TensorArray, jax.lax.dynamic_update_slice, slices of torch.empty), broadcast in place of "
    "repeating, and let a convolution pad.",
    Work.REDUCE: "Reduce once what several results need, over the last dimension in memory, of "
    "less: every so many steps, or of a sample, where it is for a log.",
    Work.SCAN: "Over short or few rows a product with a triangular matrix is faster; run it "
    "along the last dimension in memory; of what is fixed, compute it once.",
    Work.RESIZE: "Resize when the data are made or in the input pipeline, to fewer pixels, by "
    "nearest neighbours, or with a strided or transposed convolution.",
    Work.FFT: "Transform real input with rfft, once for all that use it, in lengths of small prime "
    "factors; convolve with short filters directly.",
    Work.CHECK: "Turn the checks off where nothing is searched for "
    "(tf.debugging.disable_check_numerics), or check the loss alone.",
    Work.HISTOGRAM: "Where they are for a log, count every hundredth step, or of a sample.",
}
_IN_PLACE = (
    "Allocate it once at its full size and write what is new in place (cache[:, :, at:at + 1] = "
    "new, index_copy_, a static cache), where the oldest goes into a ring: position modulo length, "
    "with the mask or the position embeddings turned alike."
)
_LEAST_OF_GROWN, _MOST_OF_GROWN, _LIMIT = 0.7, 1.3, 0.98
"""What is new is written anyhow; copies evict what the ops after them read, so that more may go."""
_BESIDE = 2.0
"""What runs so many times as long as it runs alone runs beside others."""
_ROWS = 10


def find(context: TimeContext) -> Findings:
    """One for each such kind of work."""
    ops = context.ops
    if ops is None or not ops.wall_ps:
        return
    for work, (least, much) in _SHARES.items():
        chosen = (ops.work == work) & ~ops.is_inner
        lost = ops.alone_ps(chosen)
        share = lost / ops.wall_ps
        if share >= least:
            # What runs beside other ops slows them down too.
            runs = ops.covered_ps(chosen) / ops.wall_ps
            is_much = share >= much or runs >= _BESIDE * much
            yield _finding(context, ops, work, lost, runs, is_much=is_much)


def _finding(
    context: TimeContext, ops: StepOps, work: Work, lost: int, runs: float, *, is_much: bool
) -> Finding:
    chosen = (ops.work == work) & ~ops.is_inner
    result = ops.by_op(chosen)
    share = lost / ops.wall_ps
    name, op_type, _, times = result[0]
    frame = function_around(context.profile, ops.event[chosen])
    where, source = where_of(context, ops, chosen, frame)
    more = f" and {len(result) - 1} others" if len(result) > 1 else ""
    whole = "step time" if ops.has_steps else "profile's time"
    grown = grown_array(context.profile, ops, chosen) if work == Work.JOIN else None
    gain = gain_of(context.facts, share, lost * context.facts.lanes)
    copies, advice = "", _ADVICE[work]
    if grown is not None:
        least, most = _LEAST_OF_GROWN * share, min(_MOST_OF_GROWN * share, _LIMIT)
        copies = (
            f", which copies an array {list(grown.array)} to add {list(grown.added)} to it, so "
            f"that both are in memory: {least:.0%} to {most:.0%} of the time would go"
        )
        gain |= {"gain_ps": round(_LEAST_OF_GROWN * lost), "gain_share": least}
        gain |= {"most_gain_share": most, "shape": str(list(grown.array))}
        gain |= {"added": str(list(grown.added))}
        advice = _IN_PLACE
    beside = f", which runs for {runs:.0%} of it, beside others" if runs >= _BESIDE * share else ""
    return KIND.finding(
        f"{share:.0%} of the {whole} goes to {WORDS[work]}: {name}{more}{where}{beside}{copies}",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "work": WORDS[work],
            "op": name,
            "op_type": op_type,
            "times_a_step": round(times, 1),
            "runs_share": runs,
            **source,
            **gain,
        },
        advice,
        tuple(
            {"op": op, "op_type": kind, "times_a_step": round(each, 1), "op_ps": whole_ps}
            for op, kind, whole_ps, each in result[:_ROWS]
        ),
        severity="warning" if is_much or grown is not None else "info",
    )
