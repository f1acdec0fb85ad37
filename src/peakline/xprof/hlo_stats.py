"""The ``hlo_stats`` tool with XProf's numbers (``convert/op_stats_to_hlo_stats.cc``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from peakline.toolbox.parameters import XprofParameters
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import Column, DataTable, Value, tables_csv, tables_json

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.xprof.rules.hlo_host import HloHost
    from peakline.xprof.rules.op_metrics import OpMetrics

_COLUMNS = (
    ("rank", "number", "Rank"),
    ("program_id", "string", "Program id"),
    ("category", "string", "HLO op category"),
    ("hlo_op_name", "string", "HLO op name"),
    ("hlo_op_expression", "string", "HLO op text"),
    ("tf_op_name", "string", "Framework op name"),
    ("occurrences", "number", "#Occurrences"),
    ("total_time", "number", "Total time (us)"),
    ("avg_time", "number", "Avg. time (us)"),
    ("total_self_time", "number", "Total self time (us)"),
    ("avg_self_time", "number", "Avg. self time (us)"),
    ("total_self_time_percent", "number", "Total self time (%)"),
    ("cumulative_total_self_time_percent", "number", "Cumulative total self time (%)"),
    ("dma_stall_percent", "number", "%time stalled by DMA"),
    ("model_flop_rate", "number", "Model GFLOP/s"),
    ("normalized_flop_rate", "number", "Normalized GFLOP/s"),
    ("measured_memory_bw", "number", "Measured memory BW (GiB/s)"),
    ("hbm_bw", "number", "HBM BW (GiB/s)"),
    ("cmem_read_bw", "number", "CMEM Read BW (GiB/s)"),
    ("cmem_write_bw", "number", "CMEM Write BW (GiB/s)"),
    ("operational_intensity", "number", "Operational intensity (FLOPS/Byte)"),
    ("bound_by", "string", "Bound by"),
    ("hlo_rematerialization", "string", "Rematerialization"),
    ("outside_compilation", "string", "Outside Compilation"),
    ("autotuned", "string", "Autotuned"),
    ("source_info", "string", "Source Info"),
    ("core_type", "string", "TPU core type"),
    ("parent_op_name", "string", "Parent op name"),
    ("vdd_energy", "number", "VDD Energy (J)"),
)


class HloStatsParameters(XprofParameters):
    """The parameters; text is accepted for every value."""


def _partial(profile: Profile, _parameters: HloStatsParameters) -> HloHost:
    from peakline.xprof.rules.hlo_host import hlo_host

    return hlo_host(profile)


def _combine(
    parts: Sequence[tuple[str, HloHost]], _parameters: HloStatsParameters, output_format: str
) -> bytes:
    from peakline.xprof.rules.hlo_host import combine_hlo_hosts, sorted_ops

    host = combine_hlo_hosts([part for _, part in parts])
    columns = [Column(name, kind, label) for name, kind, label in _COLUMNS]  # type: ignore[arg-type]
    rows: list[list[Value]] = []
    total_us, rank, cumulated = host.table.total_ps / 1e6, 0, 0.0
    for op in sorted_ops([*host.table.ops.values()]):
        if op.occurrences == 0:
            continue
        share = _share(op, total_us)
        rank, cumulated = rank + 1, cumulated + share
        rows.append(_row(op, host, "", (rank, share, cumulated)))
        rows += _of_sparse_cores(op, host)
    table = DataTable(columns, rows)
    return tables_csv(table) if output_format == "csv" else tables_json(table)


def _of_sparse_cores(op: OpMetrics, host: HloHost) -> Iterator[list[Value]]:
    """The rows of what SparseCores did for an op, without rank and shares, as XProf has them."""
    from peakline.xprof.rules.hlo_host import sorted_ops

    waiting = [(part, op.name) for part in reversed(sorted_ops(op.facts.children or ()))]
    while waiting:
        part, parent = waiting.pop()
        if part.occurrences == 0:
            continue
        if not parent or part.facts.core == "SparseCore":
            yield _row(part, host, parent, (0, 0.0, 0.0))
        inner = reversed(sorted_ops(part.facts.children or ()))
        waiting += [(one, part.name) for one in inner]


def _share(op: OpMetrics, total_us: float) -> float:
    from peakline.xprof.rules.rates import ratio

    return ratio(op.self_ps / 1e6, total_us)


def _row(op: OpMetrics, host: HloHost, parent: str, place: tuple[int, float, float]) -> list[Value]:
    from peakline.xprof.rules.rates import rates_of, ratio
    from peakline.xprof.rules.sources import source_cell

    facts = op.facts
    text = facts.long_name or op.name
    total, own = op.total_ps / 1e6, op.self_ps / 1e6
    rates = rates_of(op, host.peaks, host.environment.hardware)
    rank, share, cumulated = place
    return [
        rank, str(op.program), facts.category, text.split(" = ", 1)[0].removeprefix("%"), text,
        op.provenance, op.occurrences, total, ratio(total, op.occurrences), own,
        ratio(own, op.occurrences), share * 100.0, cumulated * 100.0,
        ratio(op.stall_ps, op.total_ps), rates.model_flops, rates.flops, rates.memory, rates.hbm,
        rates.cmem_read, rates.cmem_write, rates.intensity, rates.bound_by,
        _yes(_is_again(facts.long_name, op.provenance)),
        _yes(_is_outside(facts.long_name, op.provenance)), _yes(said=False),
        source_cell(facts.source), facts.core, parent, op.energy_j,
    ]  # fmt: skip


def _yes(said: bool) -> str:
    return "Yes" if said else "No"


def _is_again(text: str, provenance: str) -> bool:
    """Whether it computes anew what was there (``xla_op_utils.h`` in openxla/xla)."""
    return ".remat" in text.split("=", 1)[0] or "/rematted_computation/" in provenance


def _is_outside(text: str, provenance: str) -> bool:
    """Whether it serves what runs on the host (``tf_op_utils.h`` in openxla/xla)."""
    if provenance.endswith((":XlaSendToHost", ":XlaRecvFromHost")):
        return True
    return "send-done" in text and "is_host_transfer=true" in text


TOOL = Tool(
    name="hlo_stats",
    doc="How often each instruction of the compiled programs ran and how fast it was.",
    parameters=HloStatsParameters,
    formats=("json", "csv"),
    shows=(("planes", "events"),),
    partial=_partial,
    combine=_combine,
    runtime_steps=True,
)
