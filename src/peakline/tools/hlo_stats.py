"""The ``hlo_stats`` tool: how often each instruction of the compiled programs ran and how fast.

The table of XProf's tool of the same name (openxla/xprof), and a column that marks rates above the
device's peak. Instructions that XLA ran on the threads of a CPU count too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from peakline import timing
from peakline.toolbox.parameters import XprofParameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import Column, DataTable, Value, tables_csv, tables_json

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.ops.metrics import OpMetrics
    from peakline.timing.programs.hlo_host import HostHlo
    from peakline.timing.programs.rates import Rates

COLUMNS = (
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
"""Id, type and label."""
_OWN_COLUMNS = (*COLUMNS, ("rate_above_peak", "string", "Rates above the peak of the device"))
_STALL = 13


class HloStatsParameters(XprofParameters):
    """The parameters; text is accepted for every value."""

    program: str | None = parameter(
        None, description="only this program: its id, its name or name(id)", max_length=4096
    )
    category: str | None = parameter(
        None, description="only instructions of this category", max_length=4096
    )
    exclude_idle: bool = parameter(
        default=False, description="shares of the time of ops, not of all time"
    )
    deduplicated: bool = parameter(
        default=False, description="instructions that are duplicates of one another as one row"
    )


def _partial(profile: Profile, _parameters: HloStatsParameters) -> HostHlo:
    return timing.host_hlo(profile)


def _combine(
    parts: Sequence[tuple[str, HostHlo]], parameters: HloStatsParameters, output_format: str
) -> bytes:
    host = timing.chosen(
        timing.combine_hosts([part for _, part in parts]), program=parameters.program,
        category=parameters.category, idle=not parameters.exclude_idle,
    )  # fmt: skip
    table = timing.joined(host.table) if parameters.deduplicated else host.table
    rows: list[list[Value]] = []
    for op, parent, place in ranked([*table.ops.values()], table.total_ps / 1e6):
        rates = timing.rates_of(op, host.chips.peaks, host.chips.kind)
        row = row_of(op, timing.known_rates(op, rates), parent, place)
        # A share as the other percents.
        row[_STALL] = 100.0 * float(row[_STALL] or 0.0)
        rows.append([*row, timing.above_peak(rates, host.chips.peaks)])
    columns = [Column(name, kind, label) for name, kind, label in _OWN_COLUMNS]  # type: ignore[arg-type]
    result = DataTable(columns, rows)
    return tables_csv(result) if output_format == "csv" else tables_json(result)


def ranked(
    ops: Sequence[OpMetrics], total_us: float
) -> Iterator[tuple[OpMetrics, str, tuple[int, float, float]]]:
    """The ops that ran, with the name of the one that a SparseCore did them for, and their rank,
    share of the self time and cumulated share; 0 of what a SparseCore did.
    """
    rank, cumulated = 0, 0.0
    for op in timing.sorted_ops(ops):
        if op.occurrences == 0:
            continue
        share = timing.ratio(op.self_ps / 1e6, total_us)
        rank, cumulated = rank + 1, cumulated + share
        yield op, "", (rank, share, cumulated)
        waiting = [(part, op.name) for part in reversed(timing.sorted_ops(op.facts.children or ()))]
        while waiting:
            part, parent = waiting.pop()
            if part.occurrences == 0:
                continue
            if not parent or part.facts.core == "SparseCore":
                yield part, parent, (0, 0.0, 0.0)
            inner = reversed(timing.sorted_ops(part.facts.children or ()))
            waiting += [(one, part.name) for one in inner]


def row_of(
    op: OpMetrics, rates: Rates, parent: str, place: tuple[int, float, float]
) -> list[Value]:
    """The row of an op in `COLUMNS`: rank, share and cumulated share are in ``place``."""
    from peakline.toolbox.source_cells import source_cell

    facts = op.facts
    text = facts.long_name or op.name
    total, own = op.total_ps / 1e6, op.self_ps / 1e6
    rank, share, cumulated = place
    return [
        rank, str(op.program), facts.category, text.split(" = ", 1)[0].removeprefix("%"), text,
        op.provenance, op.occurrences, total, timing.ratio(total, op.occurrences), own,
        timing.ratio(own, op.occurrences), share * 100.0, cumulated * 100.0,
        timing.ratio(op.stall_ps, op.total_ps), rates.model_flops, rates.flops, rates.memory,
        rates.hbm, rates.cmem_read, rates.cmem_write, rates.intensity, rates.bound_by,
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
    shows=(("events",),),
    partial=_partial,
    combine=_combine,
    runtime_steps=True,
)
