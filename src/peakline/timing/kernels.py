"""Statistics of the kernels of GPUs: how often each ran, how long, and how it was launched.

A kernel is an event of a stream with the launch parameters that the profiler noted: the stat
``kernel_details`` of an XSpace (NVIDIA: ``regs``, ``static_shared``, ``dynamic_shared``, ``grid``,
``block``, ``occ_pct``; AMD: ``private_mem``, ``group_mem``, the latter being its shared memory), or
those of Kineto's category ``kernel``. Kernels are one when name, launch parameters and op agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from peakline.tables import Columns, Profile
from peakline.tables.once import once
from peakline.tables.tables import columns_of_rows
from peakline.timing.launches.kernels import Launch, Launches, is_helper, launches_of
from peakline.trace.distribution import distribution


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel and all its runs; times in ps.

    ``occupancy_percent`` is that of its first launch.
    """

    launch: Launch
    occupancy_percent: float
    occurrences: int
    total_ps: int
    shortest_ps: int
    median_ps: int
    p95_ps: int
    longest_ps: int

    def order(self) -> tuple[object, ...]:
        """By total time, the longest first, then by what distinguishes kernels."""
        return (-self.total_ps, self.launch)


@once
def kernel_reports(profile: Profile) -> list[KernelReport]:
    """The kernels of a profile, those that took longest first; made once.

    Raises InputError when the profile cannot be read.
    """
    return reports_of(launches_of(profile))


def reports_of(result: Launches) -> list[KernelReport]:
    """The kernels of these runs, those that took longest first."""
    spread = distribution(result.launch, result.duration_ps, len(result.launches))
    columns = (
        spread.count, spread.total, spread.shortest, spread.median, spread.p95, spread.longest,
    )  # fmt: skip
    rows = zip(*(column.tolist() for column in columns), strict=True)
    made = [
        KernelReport(launch, occupancy, *row)
        for (launch, occupancy), row in zip(result.launches.items(), rows, strict=True)
    ]
    return sorted(made, key=KernelReport.order)


def merge_reports(reports: Iterable[KernelReport]) -> list[KernelReport]:
    """One report per kernel, of several hosts.

    What lies in the middle cannot be put together: it is that of the host with most runs.
    """
    joined: dict[Launch, KernelReport] = {}
    most: dict[Launch, int] = {}
    for report in reports:
        before = joined.get(report.launch)
        if before is None:
            joined[report.launch], most[report.launch] = report, report.occurrences
            continue
        middle = report if report.occurrences > most[report.launch] else before
        most[report.launch] = max(most[report.launch], report.occurrences)
        joined[report.launch] = replace(
            before,
            occurrences=before.occurrences + report.occurrences,
            total_ps=before.total_ps + report.total_ps,
            shortest_ps=min(before.shortest_ps, report.shortest_ps),
            median_ps=middle.median_ps,
            p95_ps=middle.p95_ps,
            longest_ps=max(before.longest_ps, report.longest_ps),
        )
    return sorted(joined.values(), key=KernelReport.order)


def columns_of(profile: Profile) -> Columns:
    """The table ``kernels``, those that took longest first."""
    reports = ((report.launch, report) for report in kernel_reports(profile))
    return columns_of_rows(
        "kernels",
        (
            (
                launch.name, launch.op or None, ",".join(map(str, launch.grid)),
                ",".join(map(str, launch.block)), launch.registers, launch.static_shared,
                launch.dynamic_shared, report.occupancy_percent, launch.uses_tensor_cores,
                launch.uses_tensor_cores or (launch.could_use and not is_helper(launch.name)),
                report.occurrences, report.total_ps, report.shortest_ps,
                report.median_ps, report.p95_ps, report.longest_ps,
            )
            for launch, report in reports
        ),
    )  # fmt: skip
