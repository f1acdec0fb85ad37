"""The tables of steps and of diagnostics that several of XProf's tools show.

Source: ``convert/op_stats_to_input_pipeline_analysis.cc`` and ``utils/diagnostics.cc`` of
openxla/xprof; the TPU form is that of its version 2.24.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from peakline.toolbox.written import Column, DataTable, Value
from peakline.xprof.rules.bottleneck import (
    Bottleneck,
    GenericStep,
    Summary,
    generic_bottleneck,
    generic_steps,
    next_step,
    step_time_summary,
    summary_of,
    tpu_bottleneck,
    tpu_steps_of,
)
from peakline.xprof.rules.host_ops import HostInput, InputOps, input_ops
from peakline.xprof.rules.step_model import TPU, StepDatabase
from peakline.xprof.rules.tpu_steps import TpuStep


class NoTable(DataTable):
    """A table without columns, which XProf writes out where a host has nothing to show."""

    def as_json(self) -> dict[str, object]:
        """Empty lists."""
        return {"cols": [], "rows": []}


_TOOLTIP = Column("tooltip", "string", "tooltip", {"role": "tooltip"})
_NO_MARKER = (
    "No step marker observed and hence the step time is unknown. This may happen if (1) training "
    "steps are not instrumented (e.g., if you are not using Keras) or (2) the profiling duration "
    "is shorter than the step time. For (1), you need to add step instrumentation; for (2), you "
    "may try to profile longer."
)
_NO_COMMON_STEP = (
    "Although there are steps observed on some host(s), the intersection of the steps over all "
    "hosts is empty (because the differences among individual host's step sequences are too big). "
    "Consequently, the overall step time is unknown."
)
_GENERIC = (
    ("deviceComputeTimeMs", "Device compute", "device_compute"),
    ("deviceToDeviceTimeMs", "Device to device", "device_to_device"),
    ("deviceCollectivesTimeMs", "Device collective communication", "device_collectives"),
    ("hostComputeTimeMs", "Host compute", "host_compute"),
    ("kernelLaunchTimeMs", "Kernel launch", "kernel_launch"),
    ("infeedTimeMs", "Input", "infeed"),
    ("outfeedTimeMs", "Output", "outfeed"),
    ("compileTimeMs", "Compilation", "compile"),
    ("otherTimeMs", "All others", "other"),
)
"""Column, label, and what properties call it; in the order of `_parts`."""
_TOOLTIP_LABELS = (
    "Device compute", "Device to device", "Device collectives", "Host compute", "Kernel launch",
    "Input", "Output", "Compilation", "All others",
)  # fmt: skip
_TOLD = "".join(f"\n-{label}: %.2f ms" for label in reversed(_TOOLTIP_LABELS))


def analysed(
    database: StepDatabase, host: HostInput, *, compatible: bool
) -> tuple[DataTable, Bottleneck, InputOps]:
    """The table of steps, what limits them, and the ops of the host that bring data."""
    step_time = step_time_summary(database)
    if database.hardware == TPU:
        ops = input_ops(host, step_ms=0.0, host_to_device_ms=0.0)
        steps = tpu_steps_of(database)
        result = tpu_bottleneck(steps, compatible=compatible)
        advice = next_step(result, uses_tf_data=ops.uses_tf_data)
        has_sparse_cores = any(core.is_sparse_core for core in database.core_details.values())
        table = _tpu_table(
            steps, step_time, result, advice, has_sparse_cores=has_sparse_cores,
            compatible=compatible,
        )  # fmt: skip
        return table, result, ops
    generic = generic_steps(database, compatible=compatible)
    sent = summary_of([step.host_to_device_ms for step in generic])
    ops = input_ops(host, step_ms=step_time.average, host_to_device_ms=sent.average)
    result = generic_bottleneck(generic, uses_tf_data=ops.uses_tf_data)
    advice = next_step(result, uses_tf_data=ops.uses_tf_data)
    table = _generic_table(
        generic, step_time, database.hardware, result, advice, compatible=compatible
    )
    return table, result, ops


def _generic_table(
    steps: Sequence[GenericStep],
    step_time: Summary,
    hardware: str,
    bottleneck: Bottleneck,
    advice: str,
    *,
    compatible: bool,
) -> DataTable:
    """Steps of hosts with GPUs or without a device.

    With ``compatible`` the properties ``*_bottleneck`` hold the statement, as XProf's; else how
    strongly the steps are bound.
    """
    ids = [column for column, _, _ in _GENERIC]
    properties = {
        "hardware_type": hardware,
        "step_time_graph_column_ids": ",".join(["stepnum", *ids]) + ", tooltip",
        "input_conclusion": bottleneck.input_statement,
        "summary_nextstep": advice,
        **_time_properties("steptime_ms", step_time, 1, compatible),
    }
    parts = [_parts(step) for step in steps]
    for number, (_, _, word) in enumerate(_GENERIC):
        summary = summary_of([part[number] for part in parts])
        properties[f"{word}_time_ms_avg"] = f"{summary.average:.1f}"
        properties[f"{word}_time_ms_sdv"] = _deviation(summary, 1, compatible)
    for word, level, statement in (
        ("device_collectives", bottleneck.collectives_class, bottleneck.collectives_statement),
        ("kernel_launch", bottleneck.launch_class, bottleneck.launch_statement),
        ("all_other", bottleneck.other_class, bottleneck.other_statement),
    ):
        properties[f"{word}_bottleneck"] = statement if compatible else level
        properties[f"{word}_statement"] = statement
    columns = [
        Column("stepnum", "string", "Step number"),
        *(Column(column, "number", label) for column, label, _ in _GENERIC),
        _TOOLTIP,
        Column("stepTimeMs", "number", "Step time"),
    ]
    rows: list[list[Value]] = []
    for step, part in zip(steps, parts, strict=True):
        result = f"Step {step.name}, duration: {step.step_ms:.2f} ms{_TOLD % (*reversed(part),)}"
        rows.append([step.name, *part, result, step.step_ms])
    return DataTable(columns, rows, properties)


def _parts(step: GenericStep) -> list[float]:
    return [
        step.device_compute_ms, step.device_to_device_ms, step.collectives_ms,
        step.host_compute_ms, step.launch_ms, step.input_ms, step.output_ms, step.compile_ms,
        step.other_ms,
    ]  # fmt: skip


def _deviation(summary: Summary, digits: int, compatible: bool) -> str:
    """Of one step there is none; upstream then writes what the C library calls it."""
    if math.isnan(summary.deviation):
        return "-nan" if compatible else f"{0.0:.{digits}f}"
    return f"{summary.deviation:.{digits}f}"


def _time_properties(
    prefix: str, summary: Summary, digits: int, compatible: bool
) -> dict[str, str]:
    return {
        f"{prefix}_average": f"{summary.average:.{digits}f}",
        f"{prefix}_standard_deviation": _deviation(summary, digits, compatible),
        f"{prefix}_minimum": f"{summary.least:.{digits}f}",
        f"{prefix}_maximum": f"{summary.most:.{digits}f}",
    }


def _tpu_table(
    steps: Sequence[TpuStep],
    step_time: Summary,
    bottleneck: Bottleneck,
    advice: str,
    *,
    has_sparse_cores: bool,
    compatible: bool,
) -> DataTable:
    """Steps of TPUs; ``has_sparse_cores``: the cores with numbers of their own, not version 0."""
    sparse = [] if has_sparse_cores else [
        Column("scv0ComputeTimeMs", "number", "SparseCoreV0 compute (in ms)"),
        Column("scv0InfeedTimeMs", "number", "SparseCoreV0 input (in ms)"),
    ]  # fmt: skip
    times = [
        Column("stepnum", "string", "stepnum"),
        Column("tcComputeTimeMs", "number", "TensorCore compute (in ms)"),
        *sparse,
        Column("tcInfeedTimeMs", "number", "TensorCore input (in ms)"),
        Column("tcOutfeedTimeMs", "number", "TensorCore output (in ms)"),
        Column("tcIdleTimeMs", "number", "TensorCore idle (in ms)"),
        Column("hostTransferTimeMs", "number", "Host transfer (in ms)"),
        _TOOLTIP,
    ]
    interval = {"role": "interval"}
    columns = [
        *times,
        Column("infeedPercentAverage", "number", "% step time waiting for input data"),
        Column("infeedPercentMin", "number", "Infeed percent min", interval),
        Column("infeedPercentMax", "number", "Infeed percent max", interval),
    ]
    infeed = summary_of([step.infeed_percent[2] for step in steps])
    properties = {
        "hardware_type": "TPU",
        "step_time_graph_column_ids": ",".join(column.id for column in times),
        "input_conclusion": bottleneck.input_statement,
        "output_conclusion": bottleneck.output_statement,
        "summary_nextstep": advice,
        **_time_properties("steptime_ms", step_time, 2, compatible),
        **_time_properties("infeed_percent", infeed, 1, compatible),
        **_tpu_averages(steps, has_sparse_cores),
    }
    rows: list[list[Value]] = []
    for step in steps:
        waits = [step.sparse_compute_ms, step.sparse_infeed_ms] if sparse else []
        tooltip = (
            f"step {step.number}:\nTime waiting for input data = {step.input_ms:.3f} ms, "
            f"Step time = {step.step_ms:.3f} ms"
        )
        rows.append([
            str(step.number), step.compute_ms, *waits, step.infeed_ms, step.outfeed_ms,
            step.idle_ms, step.host_transfer_ms, tooltip, *step.infeed_percent,
        ])  # fmt: skip
    return DataTable(columns, rows, properties)


def _tpu_averages(steps: Sequence[TpuStep], has_sparse_cores: bool) -> dict[str, str]:
    def average(part: str) -> str:
        return f"{summary_of([getattr(step, part) for step in steps]).average:.2f}"

    shown = {
        "tc_compute_ms_average": average("compute_ms"),
        "tc_infeed_ms_average": average("infeed_ms"),
        "tc_outfeed_ms_average": average("outfeed_ms"),
        "tc_idle_ms_average": average("idle_ms"),
        "host_transfer_ms_average": average("host_transfer_ms"),
        "tc_active_ms_average": average("busy_ms"),
        "active_steptime_ms_average": average("active_ms"),
    }
    if not has_sparse_cores:
        shown["scv0_compute_ms_average"] = average("sparse_compute_ms")
        shown["scv0_infeed_ms_average"] = average("sparse_infeed_ms")
    sparse = summary_of([step.sc_step_ms for step in steps])
    if has_sparse_cores and sparse.least > 0:
        shown |= {
            "sc_compute_ms_average": average("sc_compute_ms"),
            "sc_active_ms_average": average("sc_active_ms"),
            "sc_infeed_ms_average": "0.00",
            "sc_outfeed_ms_average": "0.00",
            "sc_idle_ms_average": average("sc_idle_ms"),
            "sc_step_time_ms_average": f"{sparse.average:.1f}",
        }
    return shown


def step_warnings(database: StepDatabase) -> list[str]:
    """What is wrong with the steps as a whole."""
    if database.steps:
        return []
    return [_NO_COMMON_STEP if database.empty_intersection else _NO_MARKER]


def diagnostics_table(warnings: Sequence[str], errors: Sequence[str] = ()) -> DataTable:
    """What there is to say about the profile itself, by severity."""
    result = (("WARNING", warnings), ("ERROR", errors))
    return DataTable(
        (Column("severity", "string", "Severity"), Column("message", "string", "Message")),
        [[severity, message] for severity, messages in result for message in messages],
    )
