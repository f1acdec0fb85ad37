"""The tables of the ``overview_page`` tool.

Source of columns, words and rules: ``convert/op_stats_to_overview_page.cc`` of openxla/xprof; what
only its version 2.24.2 shows is as that shows it.
"""

from __future__ import annotations

from dataclasses import replace

from peakline.timing.ops.metrics import OpTable
from peakline.toolbox.written import Column, DataTable
from peakline.xprof.overview_page.facts import Overview, top_ops
from peakline.xprof.rules.bottleneck import Bottleneck, link, summary_of, tpu_steps_of
from peakline.xprof.rules.step_model import TPU
from peakline.xprof.rules.step_tables import analysed, diagnostics_table, step_warnings

_TOP = 10
_LOW_PRECISION = 10.0
"""Less than this percentage of 16-bit computation is worth a word."""
_NO_DEVICE_TRACE = (
    "No TensorCore device trace was collected. This might happen if your job hadn't been run on "
    "the device when sampling was turned on. You could try the sampling again later."
)
_HOST_TIPS = (
    (
        "input_pipeline_analyzer (especially Section 3 for the breakdown of input operations on "
        "the Host)"
    ),
    (
        "trace_viewer (look at the activities on the timeline of each Host Thread near the bottom "
        "of the trace view)"
    ),
)
_DOCUMENTS = (
    (
        "https://www.tensorflow.org/guide/data_performance_analysis",
        "Analyze tf.data performance with the TF Profiler",
    ),
    (
        "https://www.tensorflow.org/guide/data_performance",
        "Better performance with the tf.data API",
    ),
)
_LATENCY = DataTable(
    [
        Column("percentile", "string", "percentile"),
        Column("hostTimeMs", "number", "Host time (in ms)"),
        Column("deviceTimeMs", "number", "Device time (in ms)"),
        Column("communicationTimeMs", "number", "Host-device communication time (in ms)"),
        Column("totalTimeMs", "number", "Total latency (in ms)"),
    ]
)


def overview_tables(result: Overview, *, compatible: bool) -> list[DataTable]:
    """All seven, the sixth of them empty."""
    steps, bottleneck = _steps(result, compatible=compatible)
    top = _top_ops(result)
    if result.steps.hardware == TPU and result.steps.steps:
        top = replace(top, properties={**top.properties, **_tpu_times(result, steps)})
    errors = list(result.errors)
    if not errors and result.environment.device_type != "CPU" and result.environment.devices <= 0:
        errors = [_NO_DEVICE_TRACE]
    warnings = [*result.warnings, *step_warnings(result.steps)]
    return [
        top,
        steps,
        _environment(result),
        _recommendations(result, bottleneck),
        _LATENCY,
        DataTable(()),
        diagnostics_table(warnings, errors),
    ]


def _steps(result: Overview, *, compatible: bool) -> tuple[DataTable, Bottleneck]:
    table, bottleneck, _ = analysed(result.steps, result.input, compatible=compatible)
    if compatible and result.steps.hardware == TPU and result.steps.steps:
        # The text of its analysis of TPUs does not reach the recommendations.
        bottleneck = Bottleneck(
            input_class="", input_statement="", launch_class="", other_class="",
            collectives_class="",
        )  # fmt: skip
    return table, bottleneck


def _top_ops(result: Overview) -> DataTable:
    on_host = [op for op in result.input.ops.ops.values() if not op.is_idle]
    on_device = [op for op in result.framework_ops.ops.values() if not op.is_idle]
    host_runs = sum(op.occurrences for op in result.input.ops.ops.values())
    device_runs = sum(op.occurrences for op in on_device)
    eager_host = sum(op.self_ps for op in on_host if op.is_eager)
    eager_device = sum(op.self_ps for op in on_device if op.is_eager)
    properties = {
        "host_trace_level": "0",
        "host_tf_op_percent": _percent(host_runs, host_runs + device_runs),
        "device_tf_op_percent": _percent(device_runs, host_runs + device_runs),
        "host_op_time_eager_percent": _percent(eager_host, sum(op.self_ps for op in on_host)),
        "device_op_time_eager_percent": _percent(eager_device, sum(op.self_ps for op in on_device)),
        "remark_text": "",
        "remark_color": "",
        "mxu_utilization_percent": f"{result.environment.matrix_percent:.1f}%",
        "hbm_utilization_percent": f"{result.environment.memory_percent:.1f}%",
    }
    columns = [
        Column("selfTimePercent", "number", "Time (%)"),
        Column("cumulativeTimePercent", "number", "Cumulative time (%)"),
        Column("category", "string", "Category"),
        Column("operation", "string", "Operation"),
    ]
    rows: list[list[str | float | bool | None]] = []
    is_gpu = "GPU" in result.environment.device_type
    for op, share, together in top_ops(result.framework_ops, _TOP):
        rate = op.flops / (op.total_ps / 1000) if op.total_ps else 0.0
        rows.append([share, together, op.op_type, op.name, rate])
        if is_gpu:
            rows[-1] += result.tensor_cores.get(op.name, (False, False))
    if is_gpu:
        columns += [
            Column("flopRate", "number", "GFLOPs/Sec"),
            Column("tcEligibility", "boolean", "TensorCore eligibility"),
            Column("tcUtilization", "boolean", "Op is using TensorCore"),
        ]
        computed = sum(result.precision_ps)
        properties["device_compute_16bit_percent"] = _percent(result.precision_ps[0], computed)
        properties["device_compute_32bit_percent"] = _percent(result.precision_ps[1], computed)
    else:
        columns.append(Column("flopRate", "number", "Bf16 Normalized Flop Rate(GFLOPs/Sec)"))
        properties |= _utilisation(result)
    return DataTable(columns, rows, properties)


def _utilisation(result: Overview) -> dict[str, str]:
    """How much of the devices and the host was used; of a job on the host alone all zero."""
    shown = {
        "flop_rate_utilization_relative_to_roofline": "0.0%",
        "memory_bw_utilization_relative_to_hw_limit": "0.0%",
        "device_idle_time_percent": "0.0%",
        "device_duty_cycle_percent": "0.0%",
        "device_duty_cycle_high_confidence_percent": "0.0%",
        "host_idle_time_percent": "0.0%",
    }
    if "TPU" not in result.environment.device_type:
        return shown
    duty = result.duty_cycle
    on_duty = _percent(duty.active_ps, duty.active_ps + duty.idle_ps)
    return shown | {
        "device_idle_time_percent": _idle(result.device_ops),
        "device_duty_cycle_percent": on_duty,
        "device_duty_cycle_high_confidence_percent": on_duty,
        "host_idle_time_percent": _idle(result.input.ops),
        **({"idle_time_high_confidence_ps": f"{duty.idle_ps:.6g}"} if duty.idle_ps else {}),
    }


def _tpu_times(result: Overview, steps: DataTable) -> dict[str, str]:
    """What the table of steps says of a TPU's, once more beside the top ops."""
    own = tpu_steps_of(result.steps)
    averages = {
        "tc_active_ms_average": summary_of([step.busy_ms for step in own]).average,
        "active_steptime_ms_average": summary_of([step.active_ms for step in own]).average,
        "sc_active_ms_average": summary_of([step.sc_active_ms for step in own]).average,
    }
    shown = {
        name: steps.properties[name]
        for name, average in averages.items()
        if average and name in steps.properties
    }
    average = summary_of([step.sc_step_ms for step in own]).average
    if "sc_active_ms_average" in steps.properties and average:
        idle = summary_of([step.sc_idle_ms for step in own]).average
        shown |= {
            "sc_steptime_average": f"{average:.1f}",
            "sc_infeed_time_avg": "0.0",
            "sc_outfeed_time_avg": "0.0",
            "sc_idle_time_avg": f"{idle:.1f}",
        }
    return shown


def _idle(table: OpTable) -> str:
    """How much of the time no op ran; all of it where there is no time at all."""
    return f"{100.0 * (1.0 - (table.op_ps / table.total_ps if table.total_ps else 0.0)):.1f}%"


def _percent(part: float, whole: float) -> str:
    return f"{100.0 * part / whole if whole else 0.0:.1f}%"


def _environment(result: Overview) -> DataTable:
    names = ("host_id", "command_line", "start_time", "bns_address")
    tasks = f"{result.tasks} (num tasks per host = {result.tasks // max(result.hosts, 1)})"
    return DataTable(
        [Column(name, "string", name) for name in names],
        (),
        {
            "host_count": str(result.hosts),
            "task_count": tasks,
            "device_type": result.environment.device_type,
            "device_core_count": str(result.environment.devices),
            "is_training": "true" if result.environment.is_training else "false",
        },
    )


def _recommendations(result: Overview, bottleneck: Bottleneck) -> DataTable:
    is_gpu, is_tpu = (
        "GPU" in result.environment.device_type,
        "TPU" in result.environment.device_type,
    )
    hardware = "GPU" if is_gpu else "TPU" if is_tpu else "UNKNOWN_HARDWARE"
    if result.environment.device_type == "CPU":
        hardware = "CPU_ONLY"
    tool, timeline = ("op_profile", "TPU core") if is_tpu else ("framework_op_stats", hardware)
    device_tips = (
        f"{tool} (identify the time-consuming operations executed on the {hardware})",
        (
            f"trace_viewer (look at the activities on the timeline of each {timeline} in the trace "
            "view)"
        ),
    )
    rows = [["faq", "Refer to the TF2 Profiler FAQ", "Tool troubleshooting / FAQ"]]
    rows += [["host", tip, "Next steps for reducing the Host time"] for tip in _HOST_TIPS]
    rows += [["device", tip, "Next steps for reducing the Device time"] for tip in device_tips]
    rows += [["doc", link(*document), "Other useful resources"] for document in _DOCUMENTS]
    others = {"host": "device", "device": "host"}
    return DataTable(
        [Column(name, "string", name) for name in ("tip_type", "link", "description")],
        rows,
        {
            "bottleneck": bottleneck.input_class,
            "statement": bottleneck.input_statement,
            "kernel_launch_bottleneck": bottleneck.launch_class,
            "kernel_launch_statement": bottleneck.launch_statement,
            "all_other_bottleneck": bottleneck.other_class,
            "all_other_statement": bottleneck.other_statement,
            "precision_statement": _precision(*result.precision_ps),
            "device_collectives_bottleneck": bottleneck.collectives_class,
            "device_collectives_statement": bottleneck.collectives_statement,
            "non_bottleneck_tip_types": others.get(bottleneck.input_class, ""),
        },
    )


def _precision(half_ps: int, single_ps: int) -> str:
    if not half_ps + single_ps:
        return ""
    percent = 100.0 * half_ps / (half_ps + single_ps)
    if percent >= _LOW_PRECISION:
        return ""
    return (
        f"Only {percent:.1f}% of device computation is 16 bit. So you might want to replace more "
        "32-bit Ops by 16-bit Ops to improve performance (if the reduced accuracy is acceptable)."
    )
