"""The ``framework_op_stats`` tool: how long the ops of TensorFlow, JAX or PyTorch took.

The tables of XProf's tool of the same name (openxla/xprof), with time without an op and then
without that: the ops of devices, then those of the host, each by self time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peakline import timing
from peakline.toolbox.parameters import XprofParameters
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import tables_csv, tables_json
from peakline.xprof import rules

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.xprof.framework_op_stats.rows import HostOpStats

__all__ = ["TOOL", "FrameworkOpStatsParameters"]

_CUT = "ops_cut"


class FrameworkOpStatsParameters(XprofParameters):
    """The parameters; text is accepted for every value."""


def _partial(profile: Profile, parameters: FrameworkOpStatsParameters) -> HostOpStats:
    from peakline.xprof.framework_op_stats.rows import MOST_OPS, HostOpStats, is_cut

    if parameters.compatible and profile.event_rules.planes is not None:
        host, device = rules.xprof_host_table(profile), rules.xprof_device_table(profile)
        for side, table in (("host", host), ("device", device)):
            if cut := is_cut(table, device=side == "device"):
                profile.warn(_CUT, f"ops of the {side} beyond the first {MOST_OPS} left out", cut)
        return HostOpStats(
            host, device, rules.peaks_of(profile, strict=True), rules.xprof_kernel_reports(profile)
        )
    return HostOpStats(
        rules.host_table(profile),
        rules.device_table(profile),
        rules.peaks_of(profile),
        timing.kernel_reports(profile),
    )


def _combine(
    parts: Sequence[tuple[str, HostOpStats]],
    parameters: FrameworkOpStatsParameters,
    output_format: str,
) -> bytes:
    from peakline.xprof.framework_op_stats.rows import op_tables

    hosts = [part for _, part in parts]
    tables = op_tables(hosts, strict=bool(parameters.compatible))
    return tables_csv(tables[0]) if output_format == "csv" else tables_json(*tables)


TOOL = Tool(
    name="framework_op_stats",
    doc="How often each op of the framework ran and how long, on devices and on the host.",
    parameters=FrameworkOpStatsParameters,
    formats=("json", "csv"),
    shows=(("events",), ("op_runs",)),
    partial=_partial,
    combine=_combine,
    runtime_steps=True,
)
