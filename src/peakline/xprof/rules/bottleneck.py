"""What holds steps up, in the words and with the thresholds of XProf.

Source: ``convert/op_stats_to_input_pipeline_analysis.cc`` of openxla/xprof. Shares are percent of
the time of all steps together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from peakline.xprof.rules.step_kinds import SpanKind
from peakline.xprof.rules.step_model import FIRST_SPARSE_CORE, GENERIC_CORE, StepDatabase
from peakline.xprof.rules.tpu_steps import LEAST, TpuStep, tpu_step

_PS_PER_MS = 1e9
_INPUT, _OUTPUT = (5.0, 20.0), (5.0, 20.0)
_OTHER, _LAUNCH, _COLLECTIVES = (3.0, 15.0), (3.0, 15.0), (3.0, 15.0)
"""Moderately bound from the first on, highly from the second."""
_KINDS = (
    SpanKind.DEVICE_COMPUTE_16, SpanKind.DEVICE_COMPUTE_32, SpanKind.DEVICE_TO_DEVICE,
    SpanKind.DEVICE_COLLECTIVES, SpanKind.HOST_COMPUTE, SpanKind.HOST_PREPARE,
    SpanKind.HOST_WAIT_INPUT, SpanKind.HOST_TO_DEVICE, SpanKind.DEVICE_TO_HOST, SpanKind.UNKNOWN,
    SpanKind.HOST_COMPILE,
)  # fmt: skip
"""What the parts of a `GenericStep` are made of, in its order; the first two are one."""
_TPU_IDLE, _SPARSE = 3.0, 10.0
_NO_TIME = "No step time measured. Therefore we cannot tell where the performance bottleneck is."
_LOOP_DOC = (
    "https://www.tensorflow.org/guide/tpu#improving_performance_by_multiple_steps_within_tffunction"
)


@dataclass(frozen=True)
class Summary:
    """Of a number per step the average, the sample standard deviation, the least and the most."""

    average: float = 0.0
    deviation: float = 0.0
    least: float = 0.0
    most: float = 0.0


def summary_of(values: Sequence[float]) -> Summary:
    """The summary of ``values``; all zero of none.

    As upstream's statistics: their search for the most starts at the smallest positive number, and
    the deviation of a single 0 is not a number.
    """
    if not values:
        return Summary()
    total, squares = 0.0, 0.0
    for value in values:
        total += value
        squares += value * value
    count, least, most = len(values), min(values), max(LEAST, *values)
    if least == most:
        return Summary(total / count, 0.0, least, most)
    variance = (squares - total**2 / count) / (count - 1) if count > 1 else math.nan
    return Summary(total / count, math.sqrt(variance) if variance >= 0 else math.nan, least, most)


@dataclass(frozen=True)
class GenericStep:
    """One step of a host and its GPUs: what its time went to, in ms; the parts add up to it."""

    name: str
    step_ms: float
    device_compute_ms: float
    device_to_device_ms: float
    collectives_ms: float
    host_compute_ms: float
    launch_ms: float
    wait_input_ms: float
    host_to_device_ms: float
    output_ms: float
    other_ms: float
    compile_ms: float = 0.0

    @property
    def input_ms(self) -> float:
        """Waiting for input and sending it to the device."""
        return self.wait_input_ms + self.host_to_device_ms


def generic_steps(database: StepDatabase, *, compatible: bool) -> list[GenericStep]:
    """The steps of hosts with GPUs or without a device.

    Of several hosts XProf shows the first one; we show of each step the host that took longest.
    """
    result = []
    for step in database.steps:
        if compatible:
            cores = [step.cores[GENERIC_CORE]] if GENERIC_CORE in step.cores else []
        else:
            cores = sorted(step.cores.values(), key=lambda core: -core.duration_ps)[:1]
        for core in cores:
            half, single, *others = [core.kinds.get(kind, 0) / _PS_PER_MS for kind in _KINDS]
            name, step_ms = core.name or str(step.number), core.duration_ps / _PS_PER_MS
            result.append(GenericStep(name, step_ms, half + single, *others))
    return result


def tpu_steps_of(database: StepDatabase) -> list[TpuStep]:
    """The steps of TPUs."""
    return [tpu_step(step, database.core_details) for step in database.steps]


def step_time_summary(database: StepDatabase) -> Summary:
    """The time of steps in ms; the slowest core, SparseCores apart, decides each."""
    return summary_of([
        max(
            (c.duration_ps / _PS_PER_MS for n, c in step.cores.items() if n < FIRST_SPARSE_CORE),
            default=0.0,
        )
        for step in database.steps
    ])  # fmt: skip


@dataclass(frozen=True)
class Bottleneck:
    """What XProf says of what the time of all steps went to.

    ``input_class`` is host (highly bound), both, device (not bound) or unknown; those of output are
    the same, those of the others high, moderate, no (of TPUs' idle: yes, no). Statements are empty
    where there is nothing to say.
    """

    input_class: str = "unknown"
    input_statement: str = _NO_TIME
    output_class: str = ""
    output_statement: str = ""
    launch_class: str = "no"
    launch_statement: str = ""
    other_class: str = "no"
    other_statement: str = ""
    collectives_class: str = "no"
    collectives_statement: str = ""
    tpu_idle_class: str = "no"
    tpu_idle_statement: str = ""
    sparse_class: str = "no"
    sparse_statement: str = ""


def generic_bottleneck(steps: Sequence[GenericStep], *, uses_tf_data: bool) -> Bottleneck:
    """Of hosts with GPUs or without a device; ``uses_tf_data``: a pipeline's stages were seen."""
    whole = _total(step.step_ms for step in steps)
    if whole == 0:
        return Bottleneck()
    input_, output, collectives, launch, other = (
        100.0 * _total(getattr(step, part) for step in steps) / whole
        for part in ("input_ms", "output_ms", "collectives_ms", "launch_ms", "other_ms")
    )
    input_class, input_statement, other_told = _input(input_, other)
    output_class, output_statement = _output(output)
    launch_class, launch_statement = _spent(launch, _LAUNCH, "'Kernel Launch'.")
    if launch_statement and uses_tf_data:
        launch_statement += (
            " It could be due to CPU contention with tf.data. In this case, you may try to set the "
            "environment variable TF_GPU_THREAD_MODE=gpu_private."
        )
    other_class, other_statement = ("no", "") if other_told else _spent(
        other, _OTHER, "'All Others' time. This could be due to Python execution overhead."
    )  # fmt: skip
    shared = _spent(collectives, _COLLECTIVES, "'Device Collective Communication'.")
    return Bottleneck(
        input_class, input_statement, output_class, output_statement,
        launch_class, launch_statement, other_class, other_statement, *shared,
    )  # fmt: skip


def tpu_bottleneck(steps: Sequence[TpuStep], *, compatible: bool) -> Bottleneck:
    """Of TPUs, all of whose cores were profiled.

    XProf counts collectives twice in what is the whole, as compute and once more.
    """
    whole = _total(step.step_ms + step.all_reduce_ms * compatible for step in steps)
    if whole == 0:
        return Bottleneck()
    input_, output, idle, sparse = (
        100.0 * _total(getattr(step, part) for step in steps) / whole
        for part in ("input_ms", "outfeed_ms", "idle_ms", "sparse_compute_ms")
    )
    input_class, input_statement, _ = _input(input_, 0.0)
    output_class, output_statement = _output(output)
    idle_statement = sparse_class = sparse_statement = ""
    if idle >= _TPU_IDLE:
        idle_statement = (
            f"{idle:.1f} % of the total step time sampled is due to host overhead that is not "
            "input-related. For TF 2.x, you may want to use a "
            + link(_LOOP_DOC, "host-training loop (i.e. running multiple steps within a "
                   "tf.function).")
        )  # fmt: skip
    if sparse:
        sparse_class = "moderate" if sparse < _SPARSE else "high"
        advice = (
            "You may also want to reduce the SparseCoreV0 compute time."
            if sparse < _SPARSE
            else "You should focus on reducing the SparseCoreV0 compute time as well."
        )
        sparse_statement = (
            f"Also, {sparse:.1f} % of the total step time sampled is spent on the SparseCoreV0 "
            f"compute. {advice}"
        )
    return Bottleneck(
        input_class, input_statement, output_class, output_statement,
        tpu_idle_class="yes" if idle_statement else "no", tpu_idle_statement=idle_statement,
        sparse_class=sparse_class or "no", sparse_statement=sparse_statement,
    )  # fmt: skip


def link(address: str, text: str) -> str:
    """A link as the profiler's pages show it."""
    return f'<a href="{address}" target="_blank">{text}</a>'


def next_step(bottleneck: Bottleneck, *, uses_tf_data: bool) -> str:
    """Where to look next on the page of the input pipeline."""
    if bottleneck.input_class not in {"host", "both"}:
        return "You may skip the rest of this page."
    if uses_tf_data:
        return "Look at Section 3 for the breakdown of input time on the host."
    tf_data = link("https://www.tensorflow.org/guide/data", "the tf.data API")
    return (
        f"Consider using {tf_data} to enable profiler's host-side analysis for input pipeline. "
        "Profiler currently does not support custom input pipeline (please ignore Section 3 below)."
    )


def _total(values: Iterable[float]) -> float:
    """The sum, added up one by one as upstream does: the last digit is seen."""
    result = 0.0
    for value in values:
        result += value
    return result


def _input(percent: float, other: float) -> tuple[str, str, bool]:
    """Class and statement, and whether all other time is part of it."""
    bound = _bound(percent, _INPUT, "input", "waiting for input")
    if bound is not None:
        return *bound, False
    if other >= _OTHER[0]:
        return "both", (
            f"Your program is POTENTIALLY input-bound because {other:.1f}% of the total step time "
            "sampled is spent on 'All Others' time (which could be due to I/O or Python execution "
            "or both)."
        ), True  # fmt: skip
    return "device", (
        f"Your program is NOT input-bound because only {percent:.1f}% of the total step time "
        "sampled is waiting for input. Therefore, you should focus on reducing other time."
    ), False  # fmt: skip


def _output(percent: float) -> tuple[str, str]:
    return _bound(percent, _OUTPUT, "output", "spent on output") or ("device", "")


def _bound(
    percent: float, bounds: tuple[float, float], by: str, spent: str
) -> tuple[str, str] | None:
    """Class and statement where steps are highly or moderately bound, else None."""
    if percent < bounds[0]:
        return None
    is_high = percent >= bounds[1]
    advice = (
        f"should first focus on reducing the {by} time"
        if is_high
        else f"would need to reduce both the {by} time and other time"
    )
    return "host" if is_high else "both", (
        f"Your program is {'HIGHLY' if is_high else 'MODERATELY'} {by}-bound because "
        f"{percent:.1f}% of the total step time sampled is {spent}. Therefore, you {advice}."
    )


def _spent(percent: float, bounds: tuple[float, float], on: str) -> tuple[str, str]:
    if percent < bounds[0]:
        return "no", ""
    statement = f"{percent:.1f} % of the total step time sampled is spent on {on}"
    return ("high" if percent >= bounds[1] else "moderate"), statement
