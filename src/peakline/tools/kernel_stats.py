"""The ``kernel_stats`` tool: the kernels of GPUs, their launch parameters and their ops.

The table of XProf's tool of the same name (openxla/xprof), those that took longest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from peakline.errors import NotFoundError
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.kernels import KernelReport
    from peakline.toolbox.data_table import Value

__all__ = ["TOOL", "KernelStatsParameters"]

_CUT, _GPU = "kernels_cut", "/device:GPU:"
_MOST = 1000
"""So many kernels XProf shows."""
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


class KernelStatsParameters(Parameters):
    """The parameters; text is accepted for every value."""

    host: str | None = parameter(None, description="the host, where a session has several")
    compatible: Literal["", "xprof"] = parameter(
        "", description="xprof: the numbers of XProf 2.24.2, also where they are wrong"
    )


def _partial(profile: Profile, parameters: KernelStatsParameters) -> list[KernelReport]:
    from peakline.timing.kernels import kernel_reports

    strict = bool(parameters.compatible) and profile.has_runtime_planes
    found = kernel_reports(profile, strict=strict)
    if parameters.compatible and len(found) > _MOST:
        profile.warn(_CUT, f"kernels beyond the first {_MOST} left out", len(found) - _MOST)
        return found[:_MOST]
    return found


def _combine(
    parts: Sequence[tuple[str, list[KernelReport]]],
    parameters: KernelStatsParameters,
    output_format: str,
) -> bytes:
    from peakline.timing.kernels import merge_reports
    from peakline.toolbox.data_table import Column, DataTable, tables_csv, tables_json

    every = [report for _, reports in parts for report in reports]
    strict = bool(parameters.compatible)
    if strict:
        # XProf puts the kernels of several hosts side by side.
        every = sorted(every, key=lambda report: report.order())[:_MOST]
    elif len(parts) > 1:
        every = merge_reports(every)
    columns = [Column(name, kind, label) for name, kind, label in _COLUMNS]  # type: ignore[arg-type]
    rows = [_row(number + 1, report, strict=strict) for number, report in enumerate(every)]
    table = DataTable(columns, rows)
    return tables_csv(table) if output_format == "csv" else tables_json(table)


def _row(rank: int, report: KernelReport, *, strict: bool) -> list[Value]:
    launch = report.launch
    shared = launch.static_shared + launch.dynamic_shared
    total = report.total_ps
    # XProf counts in whole ns, and adds as a uint32 does.
    average = (
        total // 1000 // report.occurrences / 1e3 if strict else total / report.occurrences / 1e6
    )
    return [
        rank, launch.name, launch.registers, shared % 2**32 if strict else shared,
        ",".join(map(str, launch.block)), ",".join(map(str, launch.grid)),
        report.occupancy_percent, launch.could_use, launch.uses_tensor_cores, launch.op,
        report.occurrences, total / 1e6, average, report.shortest_ps / 1e6,
        report.longest_ps / 1e6,
    ]  # fmt: skip


def _run(profile: Profile, parameters: KernelStatsParameters, output_format: str) -> bytes:
    if parameters.host and parameters.host != profile.host:
        known = profile.host or "one without a name"
        raise NotFoundError(f"no host {parameters.host!r} in {profile.path}; there is: {known}")
    return _combine([(profile.host, _partial(profile, parameters))], parameters, output_format)


def _has_gpu(profile: Profile) -> bool:
    """XProf's rule for an XSpace, which needs no event; of other formats a device with kernels."""
    planes = profile.columns("planes")
    if profile.has_runtime_planes:
        return any((name or "").startswith(_GPU) for name in planes.names("name").to_list())
    return "device" in planes.names("kind").to_list() and profile.has_rows("kernels")


TOOL = Tool(
    name="kernel_stats",
    doc="Kernels of GPUs: time, launch parameters, tensor cores and the op that launched each.",
    parameters=KernelStatsParameters,
    formats=("json", "csv"),
    shows=(("planes", "events"),),
    looks=_has_gpu,
    run=_run,
    partial=_partial,
    combine=_combine,
)
