"""The ``kernel_stats`` tool with XProf's numbers (``convert/kernel_stats_to_data_table.cc``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from peakline.tools import kernel_stats as ours
from peakline.xprof import rules

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.kernels import KernelReport
    from peakline.toolbox.written import Value

_CUT = "kernels_cut"
_SHARED, _AVERAGE = 2, 11
"""The places of what XProf counts otherwise."""


def _partial(profile: Profile, _parameters: ours.KernelStatsParameters) -> list[KernelReport]:
    result = rules.xprof_kernel_reports(profile)
    if (cut := len(result) - rules.MOST_KERNELS) > 0:
        profile.warn(_CUT, f"kernels beyond the first {rules.MOST_KERNELS} left out", cut)
    return result[: rules.MOST_KERNELS]


def _combine(
    parts: Sequence[tuple[str, list[KernelReport]]],
    _parameters: ours.KernelStatsParameters,
    output_format: str,
) -> bytes:
    every = rules.longest([report for _, reports in parts for report in reports])
    return ours.kernel_table(map(_row, every), output_format)


def _row(report: KernelReport) -> list[Value]:
    row, launch = ours.row_of(report), report.launch
    # XProf counts in whole ns, and adds as a uint32 does.
    row[_SHARED] = (launch.static_shared + launch.dynamic_shared) % 2**32
    row[_AVERAGE] = report.total_ps // 1000 // report.occurrences / 1e3
    return row


TOOL = replace(ours.TOOL, partial=_partial, combine=_combine)
