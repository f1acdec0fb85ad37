"""The ``kernel_stats`` tool: the kernels of GPUs, their launch parameters and their ops.

The table of XProf's tool of the same name (openxla/xprof), those that took longest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from peakline import timing
from peakline.toolbox.parameters import XprofParameters
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import Column, DataTable, Value, tables_csv, tables_json

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.kernels import KernelReport

_COLUMNS = (
    ("rank", "number", "Rank"),
    ("kernel_name", "string", "Kernel Name"),
    ("registers_per_thread", "number", "Registers per thread"),
    ("shmem_bytes", "number", "Shared Mem bytes"),
    ("block_dim", "string", "Block dim"),
    ("grid_dim", "string", "Grid dim"),
    ("occupancy_pct", "number", "Theoretical Occupancy %"),
    ("is_op_tensor_core_eligible", "boolean", "Op is TensorCore eligible"),
    ("is_kernel_using_tensor_core", "boolean", "Kernel uses TensorCore"),
    ("op_name", "string", "Op Name"),
    ("occurrences", "number", "Occurrences"),
    ("total_duration_us", "number", "Total Duration (μs)"),
    ("avg_duration_us", "number", "Avg Duration (μs)"),
    ("min_duration_us", "number", "Min Duration (μs)"),
    ("max_duration_us", "number", "Max Duration (μs)"),
)


class KernelStatsParameters(XprofParameters):
    """The parameters; text is accepted for every value."""


def _partial(profile: Profile, _parameters: KernelStatsParameters) -> list[KernelReport]:
    return timing.kernel_reports(profile)


def _combine(
    parts: Sequence[tuple[str, list[KernelReport]]],
    _parameters: KernelStatsParameters,
    output_format: str,
) -> bytes:
    every = [report for _, reports in parts for report in reports]
    if len(parts) > 1:
        every = timing.merge_reports(every)
    return kernel_table(map(row_of, every), output_format)


def kernel_table(rows: Iterable[list[Value]], output_format: str) -> bytes:
    """The table of kernels, in order of rank."""
    columns = [Column(name, kind, label) for name, kind, label in _COLUMNS]  # type: ignore[arg-type]
    table = DataTable(columns, [[number, *row] for number, row in enumerate(rows, 1)])
    return tables_csv(table) if output_format == "csv" else tables_json(table)


def row_of(report: KernelReport) -> list[Value]:
    """The row of a kernel, without its rank; times in µs."""
    launch, total = report.launch, report.total_ps
    return [
        launch.name, launch.registers, launch.static_shared + launch.dynamic_shared,
        ",".join(map(str, launch.block)), ",".join(map(str, launch.grid)),
        report.occupancy_percent, launch.could_use, launch.uses_tensor_cores, launch.op,
        report.occurrences, total / 1e6, total / report.occurrences / 1e6,
        report.shortest_ps / 1e6, report.longest_ps / 1e6,
    ]  # fmt: skip


def _has_gpu(profile: Profile) -> bool:
    """XProf's rule where the names of planes say what they are, which needs no event; else a device
    with kernels.
    """
    planes, names = profile.columns("planes"), profile.event_rules.planes
    if names is not None:
        return any((name or "").startswith(names.gpu) for name in planes.names("name").to_list())
    return "device" in planes.names("kind").to_list() and profile.has_rows("kernels")


TOOL = Tool(
    name="kernel_stats",
    doc="Kernels of GPUs: time, launch parameters, tensor cores and the op that launched each.",
    parameters=KernelStatsParameters,
    formats=("json", "csv"),
    shows=(("planes", "events"),),
    looks=_has_gpu,
    partial=_partial,
    combine=_combine,
)
