"""The ``hlo_stats`` tool with XProf's numbers (``convert/op_stats_to_hlo_stats.cc``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from peakline import timing
from peakline.toolbox.written import Column, DataTable, Value, tables_csv, tables_json
from peakline.tools import hlo_stats as ours
from peakline.xprof import rules

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.xprof.rules.hlo_host import HloHost


def _partial(profile: Profile, _parameters: ours.HloStatsParameters) -> HloHost:
    return rules.hlo_of_host(profile)


def _combine(
    parts: Sequence[tuple[str, HloHost]], _parameters: ours.HloStatsParameters, output_format: str
) -> bytes:
    host = rules.combine_hlo_hosts([part for _, part in parts])
    columns = [Column(name, kind, label) for name, kind, label in ours.COLUMNS]  # type: ignore[arg-type]
    rows: list[list[Value]] = [
        ours.row_of(op, timing.rates_of(op, host.peaks, host.environment.hardware), parent, place)
        for op, parent, place in ours.ranked([*host.table.ops.values()], host.table.total_ps / 1e6)
    ]
    table = DataTable(columns, rows)
    return tables_csv(table) if output_format == "csv" else tables_json(table)


TOOL = replace(ours.TOOL, partial=_partial, combine=_combine)
