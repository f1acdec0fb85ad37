"""The ``roofline_model`` tool with XProf's numbers (``convert/op_stats_to_roofline_model.cc``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.toolbox.parameters import XprofParameters
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import Column, DataTable, Value, tables_csv, tables_json

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.xprof.rules.hlo_host import HloHost
    from peakline.xprof.rules.op_metrics import OpMetrics
    from peakline.xprof.rules.step_model import HostSteps, StepDatabase

_MOST_OPS = 1000
_COLUMNS = (
    ("step", "string", "Step"),
    ("rank", "number", "Rank"),
    ("category", "string", "Category"),
    ("operation", "string", "Operation"),
    ("occurrences", "number", "# Occurrences"),
    ("total_time", "number", "Total Time (us)"),
    ("avg_time", "number", "Avg. time (us)"),
    ("total_self_time", "number", "Total self time (us)"),
    ("avg_self_time", "number", "Avg. self time (us)"),
    ("total_self_time_percent", "number", "Total self time (%)"),
    ("cumulative_total_self_time_percent", "number", "Cumulative total self time (%)"),
    ("dma_stall_percent", "number", "%time stalled by DMA"),
    ("measured_flop_rate", "number", "Normalized FLOP Rate (GFLOP/s)"),
    ("model_flop_rate", "number", "Model FLOP Rate (GFLOP/s)"),
    ("measured_memory_bw", "number", "Memory BW (GiB/s)"),
    ("hbm_bw", "number", "HBM BW (GiB/s)"),
    ("cmem_read_bw", "number", "CMEM Read BW (GiB/s)"),
    ("cmem_write_bw", "number", "CMEM Write BW (GiB/s)"),
    ("vmem_read_bw", "number", "VMEM Read BW (GiB/s)"),
    ("vmem_write_bw", "number", "VMEM Write BW (GiB/s)"),
    ("operational_intensity", "number", "Operational Intensity (FLOP/Byte)"),
    ("hbm_operational_intensity", "number", "HBM Operational Intensity (FLOP/Byte)"),
    ("cmem_read_operational_intensity", "number", "CMEM Read Operational Intensity (FLOP/Byte)"),
    ("cmem_write_operational_intensity", "number", "CMEM Write Operational Intensity (FLOP/Byte)"),
    ("vmem_read_operational_intensity", "number", "VMEM Read Operational Intensity (FLOP/Byte)"),
    ("vmem_write_operational_intensity", "number", "VMEM Write Operational Intensity (FLOP/Byte)"),
    ("bottleneck_operational_intensity", "number", "Bottleneck Operational Intensity (FLOP/Byte)"),
    ("bound_by", "string", "Bound by"),
    ("total_time_per_core", "number", "Total Time per core (us)"),
    ("total_time_in_percentage", "number", "Total Time (%)"),
    ("optimal_flop_rate", "number", "Optimal FLOP Rate (GFLOP/s)"),
    ("roofline_efficiency", "number", "Roofline efficiency (%)"),
    ("compute_efficiency", "number", "FLOP Rate / Peak (%)"),
    (
        "max_mem_bw_utilization",
        "number",
        "Max memory BW utilization (among supported memories) (%)",
    ),
    ("include_infeed_outfeed", "boolean", "Include Infeed/Outfeed"),
    ("hlo_module_id", "string", "Program ID"),
    ("source_info", "string", "Source Info"),
)
_OF_TPUS = frozenset(
    """
    dma_stall_percent cmem_read_bw cmem_write_bw vmem_read_bw cmem_read_operational_intensity
    cmem_write_operational_intensity vmem_read_operational_intensity
    """.split()
)
_ON_GPUS = {
    "vmem_write_bw": "SHM/L1 BW (GiB/s)",
    "vmem_write_operational_intensity": "SHM/L1 Operational Intensity (FLOP/Byte)",
}
_KINDS = ("hbm", "cmem_read", "cmem_write", "vmem_read", "vmem_write")
_TOTAL, _AVERAGE = "Total", "Average"


class RooflineModelParameters(XprofParameters):
    """The parameters; text is accepted for every value."""


@dataclass(frozen=True)
class _Limits:
    """The peaks as the table shows them: GFLOP/s, and GiB/s by kind of memory, 0 for none."""

    flops: float = 0.0
    bandwidths: tuple[float, ...] = (0.0,) * len(_KINDS)
    has_cmem: bool = False
    has_merged_vmem: bool = False
    has_megacore: bool = False


def _partial(profile: Profile, _parameters: RooflineModelParameters) -> tuple[HloHost, HostSteps]:
    from peakline.xprof.rules.hlo_host import hlo_host
    from peakline.xprof.rules.steps import host_steps

    return hlo_host(profile), host_steps(profile, compatible=True)


def _combine(
    parts: Sequence[tuple[str, tuple[HloHost, HostSteps]]],
    _parameters: RooflineModelParameters,
    output_format: str,
) -> bytes:
    from peakline.xprof.rules.hardware import GPU, TPU
    from peakline.xprof.rules.hlo_host import combine_hlo_hosts
    from peakline.xprof.rules.step_tables import diagnostics_table, step_warnings
    from peakline.xprof.rules.steps import combine_steps

    host = combine_hlo_hosts([part for _, (part, _) in parts])
    steps = combine_steps([(name, part) for name, (_, part) in parts])
    hardware = host.environment.hardware
    rows: list[list[Value]] = []
    warnings: list[str] = []
    limits, device_type = _Limits(), ""
    if hardware in (GPU, TPU):
        limits, device_type = _limits(host), host.environment.device_type
        warnings = step_warnings(steps)
        table = _Table(host, steps, limits, has_average=hardware == TPU or len(parts) > 1)
        rows = [*table.rows(with_transfers=True), *table.rows(with_transfers=False)]
    shown = _shown(rows, limits, device_type, host)
    if output_format == "csv":
        return tables_csv(shown)
    return tables_json(shown, diagnostics_table(warnings))


def _shown(rows: list[list[Value]], limits: _Limits, device_type: str, host: HloHost) -> DataTable:
    from peakline.xprof.rules.rates import GIBI, ratio

    is_gpu = "GPU" in device_type
    places = [n for n, (name, _, _) in enumerate(_COLUMNS) if not (is_gpu and name in _OF_TPUS)]
    columns = [
        Column(name, kind, _ON_GPUS.get(name, label) if is_gpu else label)  # type: ignore[arg-type]
        for name, kind, label in (_COLUMNS[n] for n in places)
    ]
    properties: dict[str, str] = {"device_type": device_type}
    numbers: dict[str, float] = {"peak_flop_rate": limits.flops}
    for kind, rate in zip(_KINDS, limits.bandwidths, strict=True):
        if not is_gpu or kind in ("hbm", "vmem_write"):
            numbers[f"peak_{kind}_bw"] = rate
            numbers[f"{kind}_ridge_point"] = ratio(limits.flops, rate * GIBI)
    if not is_gpu:
        numbers |= {
            "megacore": limits.has_megacore, "has_cmem": limits.has_cmem,
            "has_merged_vmem": limits.has_merged_vmem,
            "time_scale_multiplier": ratio(host.table.normalized_ps, host.table.op_ps),
        }  # fmt: skip
        if not device_type and not rows:
            numbers["time_scale_multiplier"] = 0.0
    properties |= {name: f"{float(number):.6g}" for name, number in numbers.items()}
    return DataTable(columns, [[row[n] for n in places] for row in rows], properties)


def _limits(host: HloHost) -> _Limits:
    from peakline.xprof.rules.hardware import GPU
    from peakline.xprof.rules.rates import gibi

    peaks = host.peaks
    hbm = gibi(peaks.bandwidth(0))
    if host.environment.hardware == GPU:
        shared = gibi(peaks.bandwidth(1)), gibi(peaks.bandwidth(2))
        return _Limits(peaks.gigaflops, (hbm, 0.0, 0.0, *shared), has_merged_vmem=True)
    cmem, vmem = (0.0, 0.0), (0.0, 0.0)
    if peaks.has_cmem:
        cmem = gibi(peaks.bandwidth(3)), gibi(peaks.bandwidth(4))
    elif peaks.has_merged_vmem:
        vmem = gibi(peaks.bandwidth(5)), gibi(peaks.bandwidth(6))
    return _Limits(
        peaks.gigaflops, (hbm, *cmem, *vmem), peaks.has_cmem, peaks.has_merged_vmem,
        peaks.has_megacore,
    )  # fmt: skip


@dataclass(frozen=True)
class _Table:
    """The rows of all hosts together."""

    host: HloHost
    steps: StepDatabase
    limits: _Limits
    has_average: bool

    def rows(self, *, with_transfers: bool) -> Iterator[list[Value]]:
        """The whole record with its ops, the average of the steps, each step."""
        from peakline.xprof.rules.hlo_host import sorted_ops
        from peakline.xprof.rules.rates import ratio
        from peakline.xprof.rules.step_work import Work, is_transfer, work_of

        table = self.host.table
        ops = [*table.ops.values()]
        whole = work_of(ops, table.total_ps).program(with_transfers=with_transfers)
        yield self._row(whole, _TOTAL, whole.total_ps, with_transfers=with_transfers)
        rank, cumulated = 0, 0.0
        gone = sum(op.total_ps for op in ops if is_transfer(op.facts.category))
        total_ps = (table.total_ps - (0 if with_transfers else gone)) % 2**64
        for op in sorted_ops(ops)[:_MOST_OPS]:
            if not op.occurrences or (is_transfer(op.facts.category) and not with_transfers):
                continue
            share = ratio(op.self_ps / 1e6, total_ps / 1e6)
            rank, cumulated = rank + 1, cumulated + share
            row = self._row(op, _TOTAL, total_ps, with_transfers=with_transfers)
            row[1], row[9], row[10] = rank, share, cumulated
            yield row
        works, every = [], Work()
        for step in self.steps.steps:
            work = Work()
            for core in step.cores.values():
                if core.work is not None:
                    work.add(core.work)
            works.append((str(step.number), work))
            every.add(work)
        if self.has_average:
            works.insert(0, (_AVERAGE, every))
        for label, work in works:
            one = work.program(with_transfers=with_transfers)
            yield self._row(one, label, one.total_ps, with_transfers=with_transfers)

    def _row(self, op: OpMetrics, step: str, total_ps: int, *, with_transfers: bool) -> list[Value]:
        from peakline.xprof.rules.rates import rates_of, ratio
        from peakline.xprof.rules.sources import source_cell

        environment, limits = self.host.environment, self.limits
        total, own = op.total_ps / 1e6, op.self_ps / 1e6
        averages = ratio(total, op.occurrences), ratio(own, op.occurrences)
        if step == _AVERAGE:
            count = len(self.steps.steps)
            total, own = ratio(total, count), ratio(own, count)
        rates = rates_of(op, self.host.peaks, environment.hardware)
        speeds = (
            rates.hbm, rates.cmem_read, rates.cmem_write, rates.vmem_read, rates.vmem_write,
        )  # fmt: skip
        uses = [ratio(*pair) for pair in zip(speeds, limits.bandwidths, strict=True)]
        counts = (True, *[limits.has_cmem] * 2, *[limits.has_merged_vmem] * 2)
        memory = max(use for use, counted in zip(uses, counts, strict=True) if counted)
        compute = ratio(rates.flops, limits.flops)
        best = max(memory, compute)
        category = op.facts.category or ("Program" if op.name == "Program" else "unknown")
        return [
            step, 0, category, op.name, op.occurrences, total, averages[0], own,
            averages[1], 0.0, 0.0, ratio(op.stall_ps, op.total_ps),
            rates.flops, rates.model_flops, rates.memory, *speeds, rates.intensity,
            rates.hbm_intensity, rates.cmem_read_intensity, rates.cmem_write_intensity,
            rates.vmem_read_intensity, rates.vmem_write_intensity, rates.bottleneck_intensity,
            rates.bound_by, ratio(total, environment.devices), ratio(op.total_ps, total_ps),
            ratio(rates.flops, best), best, compute, memory, with_transfers, str(op.program),
            source_cell(op.facts.source),
        ]  # fmt: skip


TOOL = Tool(
    name="roofline_model",
    doc="How fast each instruction was against what the device's units and memories can do.",
    parameters=RooflineModelParameters,
    formats=("json", "csv"),
    shows=(("planes", "events"),),
    partial=_partial,
    combine=_combine,
    runtime_steps=True,
)
