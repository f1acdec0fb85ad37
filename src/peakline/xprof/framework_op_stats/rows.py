"""The rows of ``framework_op_stats`` (``xprof/convert/op_stats_to_tf_stats.cc``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peakline.timing.kernels import KernelReport
from peakline.timing.ops.metrics import OpMetrics, OpTable, combine_tables, framework_ops
from peakline.timing.ops.names import is_jax_op, is_tf_op
from peakline.toolbox.written import Column, DataTable, Value
from peakline.xprof.rules.hardware import Peaks, combine_peaks, is_gradient
from peakline.xprof.rules.kernels import MOST_KERNELS, longest

MOST_OPS = 500
"""So many of each side XProf shows."""
_GIBI = 1e9 / 2**30
_TENSOR_CORES = Column("gpu_tensorcore_utilization", "number", "GPU TensorCore utilization")
_COLUMNS = (
    Column("rank", "number", "Rank"),
    Column("host_or_device", "string", "Host/device"),
    Column("type", "string", "Operation Type"),
    Column("operation", "string", "Operation Name"),
    Column("occurrences", "number", "#Occurrences"),
    Column("total_time", "number", "Total time (us)"),
    Column("avg_time", "number", "Avg. time (us)"),
    Column("total_self_time", "number", "Total self-time (us)"),
    Column("avg_self_time", "number", "Avg. self-time (us)"),
    Column("device_total_self_time_percent", "number", "Total self-time on Device (%)"),
    Column(
        "device_cumulative_total_self_time_percent",
        "number",
        "Cumulative total-self time on Device (%)",
    ),
    Column("host_total_self_time_percent", "number", "Total self-time on Host (%)"),
    Column(
        "Host_cumulative_total_self_time_percent",
        "number",
        "Cumulative total-self time on Host (%)",
    ),
    Column("measured_flop_rate", "number", "Normalized FLOP Rate (FLOPs/s)"),
    Column("model_flop_rate", "number", "Model FLOP Rate (GFLOP/s)"),
    Column("measured_memory_bw", "number", "Measured Memory BW (GBytes/Sec)"),
    Column("operational_intensity", "number", "Operational Intensity (FLOPs/Byte)"),
)
_LAST = (Column("bound_by", "string", "Bound by"), Column("eager", "string", "Execution mode"))


@dataclass(frozen=True)
class HostOpStats:
    """What one host contributes."""

    host_ops: OpTable
    device_ops: OpTable
    peaks: Peaks
    kernels: list[KernelReport]


def op_tables(hosts: Sequence[HostOpStats], *, strict: bool) -> list[DataTable]:
    """The tables with and without IDLE; ``strict`` cuts them where XProf does."""
    host_ops = combine_tables(host.host_ops for host in hosts)
    device_ops = framework_ops(combine_tables(host.device_ops for host in hosts))
    peaks = combine_peaks([host.peaks for host in hosts])
    use = _tensor_core_use(hosts, strict=strict)
    return [
        _table(host_ops, device_ops, peaks, use, with_idle=with_idle, strict=strict)
        for with_idle in (True, False)
    ]


def is_cut(table: OpTable, *, device: bool) -> int:
    """How many ops XProf leaves out."""
    ops = framework_ops(table) if device else table
    return max(0, len(ops.ops) - MOST_OPS)


def _tensor_core_use(hosts: Sequence[HostOpStats], *, strict: bool) -> dict[str, float]:
    """The share of an op's kernel time that used tensor cores."""
    kernels: list[KernelReport] = []
    for host in hosts:
        kernels += host.kernels[:MOST_KERNELS] if strict else host.kernels
    if strict:
        kernels = longest(kernels)
    total: dict[str, int] = {}
    used: dict[str, int] = {}
    for kernel in kernels:
        op = kernel.launch.op
        total[op] = total.get(op, 0) + kernel.total_ps
        if kernel.launch.uses_tensor_cores:
            used[op] = used.get(op, 0) + kernel.total_ps
    return {op: _ratio(used.get(op, 0), time) for op, time in total.items()}


def _table(
    host_ops: OpTable,
    device_ops: OpTable,
    peaks: Peaks,
    use: dict[str, float],
    *,
    with_idle: bool,
    strict: bool,
) -> DataTable:
    is_gpu = "GPU" in peaks.device_type
    columns = [*_COLUMNS, *((_TENSOR_CORES,) if is_gpu else ()), *_LAST]
    rows: list[list[Value]] = []
    is_training = False
    for side, table in (("Device", device_ops), ("Host", host_ops)):
        total_us = (table.total_ps if with_idle else table.op_ps) / 1e6
        cumulated = 0.0
        result = sorted(
            table.ops.values(), key=lambda op: (-op.self_ps, op.name.encode("utf-8", "replace"))
        )
        for op in result[:MOST_OPS] if strict else result:
            if op.is_idle and not with_idle:
                continue
            share = _ratio(op.self_ps / 1e6, total_us)
            cumulated += share
            shares = [share, cumulated, 0.0, 0.0]
            if side == "Host":
                shares = shares[2:] + shares[:2]
            row: list[Value] = [len(rows) + 1, side, op.op_type, op.name]
            row += [*_times(op), *shares, *_rates(op)]
            if is_gpu:
                row.append(use.get(op.name, 0.0) if side == "Device" else 0.0)
            rows.append([*row, _bound_by(op, peaks), "Eager" if op.is_eager else "Function"])
            is_training |= _is_gradient(op)
    properties = {
        "architecture_type": "Unknown",
        "task_type": "Training" if is_training else "Inference",
    }
    return DataTable(columns, rows, properties)


def _times(op: OpMetrics) -> list[Value]:
    total, own = op.total_ps / 1e6, op.self_ps / 1e6
    return [op.occurrences, total, _ratio(total, op.occurrences), own, _ratio(own, op.occurrences)]


def _rates(op: OpMetrics) -> list[Value]:
    """GFLOP/s as the device does them and as the model needs them, GiB/s, FLOPs per byte."""
    nanoseconds = op.total_ps / 1e3
    return [
        _ratio(op.flops, nanoseconds),
        _ratio(op.model_flops, nanoseconds),
        _ratio(op.bytes_accessed, nanoseconds) * _GIBI,
        _ratio(op.flops, op.bytes_accessed),
    ]


def _bound_by(op: OpMetrics, peaks: Peaks) -> str:
    """What the op uses the largest share of; of equal ones the first."""
    nanoseconds = op.total_ps / 1e3
    bandwidth = _ratio(op.bytes_accessed, nanoseconds)
    shares = [
        ("Compute", _ratio(_ratio(op.flops, nanoseconds), peaks.gigaflops)),
        ("HBM", _ratio(bandwidth, peaks.memory_gigabytes)),
    ]
    if peaks.hardware == "GPU":
        shares.append(("Shm/L1", _ratio(bandwidth, peaks.shared_gigabytes)))
    best, most = "Unknown", 0.0
    for name, share in shares:
        if share > most:
            best, most = name, share
    return best


def _ratio(one: float, other: float) -> float:
    return one / other if other else 0.0


def _is_gradient(op: OpMetrics) -> bool:
    """Whether an op says that the program computes gradients (``model_tracker.cc``)."""
    is_named = is_tf_op(op.name, op.op_type) or is_jax_op(op.name, op.op_type) or not op.op_type
    return is_named and is_gradient(op.name, op.op_type)
