"""The ``roofline_model`` tool: how fast each instruction was against what the device can do.

The table of XProf's tool of the same name (openxla/xprof), of CPUs too; shares are fractions, and
called so. A column marks rates above the device's peak.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peakline import timing
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import Column, DataTable, Value, tables_csv, tables_json
from peakline.tools.hlo_stats import HloStatsParameters

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.ops.metrics import OpMetrics
    from peakline.timing.programs.hlo_host import HostHlo
    from peakline.timing.programs.rates import PeakRates, Rates

COLUMNS = (
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
TOTAL, AVERAGE = "Total", "Average"
_PEAKS = 2
_MARK = Column("rate_above_peak", "string", "Rates above the peak of the device")


class RooflineModelParameters(HloStatsParameters):
    """The parameters, those of `hlo_stats`; text is accepted for every value."""


@dataclass(frozen=True)
class Limits:
    """The peaks as the table shows them: GFLOP/s, and GiB/s by kind of memory, 0 for none."""

    flops: float = 0.0
    bandwidths: tuple[float, ...] = (0.0,) * len(_KINDS)
    has_cmem: bool = False
    has_merged_vmem: bool = False
    has_megacore: bool = False


def limits_of(peaks: PeakRates, *, is_gpu: bool) -> Limits:
    """The peaks of a device in the table's units."""
    hbm = timing.gibi(peaks.bandwidth(0))
    if is_gpu:
        shared = timing.gibi(peaks.bandwidth(1)), timing.gibi(peaks.bandwidth(2))
        return Limits(peaks.gigaflops, (hbm, 0.0, 0.0, *shared), has_merged_vmem=True)
    cmem, vmem = (0.0, 0.0), (0.0, 0.0)
    if peaks.has_cmem:
        cmem = timing.gibi(peaks.bandwidth(3)), timing.gibi(peaks.bandwidth(4))
    elif peaks.has_merged_vmem:
        vmem = timing.gibi(peaks.bandwidth(5)), timing.gibi(peaks.bandwidth(6))
    return Limits(
        peaks.gigaflops, (hbm, *cmem, *vmem), peaks.has_cmem, peaks.has_merged_vmem,
        peaks.has_megacore,
    )  # fmt: skip


def table_of(
    rows: list[list[Value]], limits: Limits, device_type: str, multiplier: float, *, is_gpu: bool
) -> DataTable:
    """The table of rows in `COLUMNS`, without the columns that only TPUs have on a GPU."""
    places = [n for n, (name, _, _) in enumerate(COLUMNS) if not (is_gpu and name in _OF_TPUS)]
    columns = [
        Column(name, kind, _ON_GPUS.get(name, label) if is_gpu else label)  # type: ignore[arg-type]
        for name, kind, label in (COLUMNS[n] for n in places)
    ]
    properties: dict[str, str] = {"device_type": device_type}
    numbers: dict[str, float] = {"peak_flop_rate": limits.flops}
    for kind, rate in zip(_KINDS, limits.bandwidths, strict=True):
        if not is_gpu or kind in ("hbm", "vmem_write"):
            numbers[f"peak_{kind}_bw"] = rate
            numbers[f"{kind}_ridge_point"] = timing.ratio(limits.flops, rate * timing.GIBI)
    if not is_gpu:
        numbers |= {
            "megacore": limits.has_megacore, "has_cmem": limits.has_cmem,
            "has_merged_vmem": limits.has_merged_vmem,
            "time_scale_multiplier": multiplier,
        }  # fmt: skip
    properties |= {name: f"{float(number):.6g}" for name, number in numbers.items()}
    return DataTable(columns, [[row[n] for n in places] for row in rows], properties)


@dataclass(frozen=True)
class Rows:
    """What the rows of a table have in common: the peaks, and how many devices there are."""

    limits: Limits
    devices: int

    def row(
        self,
        op: OpMetrics,
        rates: Rates,
        step: str,
        total_ps: int,
        *,
        with_transfers: bool,
        steps: int = 0,
    ) -> list[Value]:
        """The row of an op; the average of the steps is of ``steps``."""
        from peakline.toolbox.source_cells import source_cell

        limits = self.limits
        total, own = op.total_ps / 1e6, op.self_ps / 1e6
        averages = timing.ratio(total, op.occurrences), timing.ratio(own, op.occurrences)
        if step == AVERAGE:
            total, own = timing.ratio(total, steps), timing.ratio(own, steps)
        speeds = (
            rates.hbm, rates.cmem_read, rates.cmem_write, rates.vmem_read, rates.vmem_write,
        )  # fmt: skip
        uses = [timing.ratio(*pair) for pair in zip(speeds, limits.bandwidths, strict=True)]
        counts = (True, *[limits.has_cmem] * 2, *[limits.has_merged_vmem] * 2)
        memory = max(use for use, counted in zip(uses, counts, strict=True) if counted)
        compute = timing.ratio(rates.flops, limits.flops)
        known = [use for use in (memory, compute) if not math.isnan(use)]
        best = max(known, default=math.nan)
        category = op.facts.category or ("Program" if op.name == "Program" else "unknown")
        return [
            step, 0, category, op.name, op.occurrences, total, averages[0], own,
            averages[1], 0.0, 0.0, timing.ratio(op.stall_ps, op.total_ps),
            rates.flops, rates.model_flops, rates.memory, *speeds, rates.intensity,
            rates.hbm_intensity, rates.cmem_read_intensity, rates.cmem_write_intensity,
            rates.vmem_read_intensity, rates.vmem_write_intensity, rates.bottleneck_intensity,
            rates.bound_by, timing.ratio(total, self.devices), timing.ratio(op.total_ps, total_ps),
            timing.ratio(rates.flops, best), best, compute, memory, with_transfers, str(op.program),
            source_cell(op.facts.source),
        ]  # fmt: skip


def _partial(profile: Profile, _parameters: RooflineModelParameters) -> HostHlo:
    return timing.host_hlo(profile)


def _combine(
    parts: Sequence[tuple[str, HostHlo]], parameters: RooflineModelParameters, output_format: str
) -> bytes:
    host = timing.chosen(
        timing.combine_hosts([part for _, part in parts]), program=parameters.program,
        category=parameters.category, idle=not parameters.exclude_idle,
    )  # fmt: skip
    table = timing.joined(host.table) if parameters.deduplicated else host.table
    is_gpu = host.chips.kind == "GPU"
    limits = limits_of(host.chips.peaks, is_gpu=is_gpu)
    rows: list[list[Value]] = []
    marks: list[str] = []
    unknown = _unknown(limits)
    for row, mark in _rows(replace(host, table=table), limits):
        rows.append([math.nan if n in unknown else value for n, value in enumerate(row)])
        marks.append(mark)
    shown = table_of(
        rows, limits, host.chips.name, timing.ratio(table.normalized_ps, table.op_ps), is_gpu=is_gpu
    )
    columns = [_fraction(column) for column in shown.columns]
    marked = [[*row, mark] for row, mark in zip(shown.rows, marks, strict=True)]
    result = DataTable([*columns, _MARK], marked, _known(shown.properties))
    if output_format == "csv":
        return tables_csv(result)
    diagnostics = DataTable(
        (Column("severity", "string", "Severity"), Column("message", "string", "Message"))
    )
    return tables_json(result, diagnostics)


def _rows(host: HostHlo, limits: Limits) -> Iterator[tuple[list[Value], str]]:
    """All ops as one, then each, with what brings data in and out and then without."""
    table, maker, peaks = host.table, Rows(limits, host.chips.count), host.chips.peaks
    ops = [*table.ops.values()]
    gone = sum(op.total_ps for op in ops if timing.is_transfer(op.facts.category))
    for with_transfers in (True, False):
        total_ps = table.total_ps - (0 if with_transfers else gone)
        whole = timing.work_of(ops, table.total_ps).program(with_transfers=with_transfers)
        rates = timing.rates_of(whole, peaks, host.chips.kind)
        yield maker.row(whole, rates, TOTAL, whole.total_ps, with_transfers=with_transfers), ""
        rank, cumulated = 0, 0.0
        for op in timing.sorted_ops(ops):
            if not op.occurrences or (timing.is_transfer(op.facts.category) and not with_transfers):
                continue
            share = timing.ratio(op.self_ps, total_ps)
            rank, cumulated = rank + 1, cumulated + share
            rates = timing.rates_of(op, peaks, host.chips.kind)
            shown = timing.known_rates(op, rates)
            row = maker.row(op, shown, TOTAL, total_ps, with_transfers=with_transfers)
            row[1], row[9], row[10] = rank, share, cumulated
            yield row, timing.above_peak(rates, peaks)


def _unknown(limits: Limits) -> frozenset[int]:
    """The places of what cannot be said without a peak."""
    names: set[str] = set()
    if not limits.flops:
        names.add("compute_efficiency")
    if not any(limits.bandwidths):
        names.add("max_mem_bw_utilization")
    if len(names) == _PEAKS:
        names |= {"roofline_efficiency", "optimal_flop_rate"}
    return frozenset(n for n, (name, _, _) in enumerate(COLUMNS) if name in names)


def _fraction(column: Column) -> Column:
    """Shares are between 0 and 1."""
    return replace(column, label=column.label.replace("(%)", "(fraction)"))


def _known(properties: Mapping[str, str]) -> dict[str, str]:
    """Peaks that nobody knows are empty, not 0."""
    unknown = ("_bw", "_rate", "_point")
    return {
        name: "" if value == "0" and name.endswith(unknown) else value
        for name, value in properties.items()
    }


TOOL = Tool(
    name="roofline_model",
    doc="How fast each instruction was against what the device's units and memories can do.",
    parameters=RooflineModelParameters,
    formats=("json", "csv"),
    shows=(("events",),),
    partial=_partial,
    combine=_combine,
    runtime_steps=True,
)
