"""The ``overview_page`` tool: how a job spends its steps, and on what, on one page.

An array of seven tables in the shape of XProf's tool of the same name: the device ops that take
longest, steps, the run's environment, recommendations, latency of inference (without rows: requests
are not followed), an empty object, diagnostics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import tables_csv, tables_json

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.xprof.overview_page.facts import HostOverview

__all__ = ["TOOL", "OverviewParameters"]


class OverviewParameters(Parameters):
    """The parameters; text is accepted for every value."""

    compatible: Literal["", "xprof"] = parameter(
        "", description="xprof: its numbers, also where it leaves something out"
    )


def _partial(profile: Profile, parameters: OverviewParameters) -> HostOverview:
    from peakline.xprof.overview_page.facts import host_overview

    return host_overview(profile, compatible=parameters.compatible == "xprof")


def _combine(
    parts: Sequence[tuple[str, HostOverview]], parameters: OverviewParameters, output_format: str
) -> bytes:
    from peakline.xprof.overview_page.facts import combine_overviews
    from peakline.xprof.overview_page.tables import overview_tables

    compatible = parameters.compatible == "xprof"
    tables = overview_tables(combine_overviews(parts, compatible=compatible), compatible=compatible)
    return tables_csv(tables[0]) if output_format == "csv" else tables_json(*tables)


TOOL = Tool(
    name="overview_page",
    doc="How a job spends its steps: top ops, steps, environment, advice (tables).",
    parameters=OverviewParameters,
    formats=("json", "csv"),
    shows=(("events",), ("op_runs",)),
    partial=_partial,
    combine=_combine,
    runtime_steps=True,
)
