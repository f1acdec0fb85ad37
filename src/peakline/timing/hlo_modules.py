"""Columns of ``hlo_modules`` that take more than reading: peak, costs, and when each ran."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from peakline.hlo.memory import memory_of
from peakline.hlo.row_costs import row_costs
from peakline.tables import Columns, Names, Profile
from peakline.tables.columns import Column
from peakline.timing.programs.runs import program_runs, run_totals

_COSTS = ("flops", "transcendentals", "bytes_accessed")


def columns_of(profile: Profile, names: AbstractSet[str]) -> Columns:
    """Those of ``names``, a value per program; null where the profile does not say it.

    Raises InputError when the profile cannot be read.
    """
    count = len(profile.programs() or ())
    data: dict[str, Column] = {}
    valid = {}
    if {"peak_bytes", "peak_found_by"} & names:
        peaks = [memory_of(profile, number) for number in range(count)]
        data["peak_bytes"] = np.array([one.peak_bytes for one in peaks], np.int64)
        valid["peak_bytes"] = np.array([one.is_known for one in peaks], np.bool_)
        data["peak_found_by"] = Names.encode(
            [one.found_by if one.is_known else None for one in peaks]
        )
    if set(_COSTS) & names:
        totals = [row_costs(profile, number).total for number in range(count)]
        for name in _COSTS:
            data[name] = np.array([getattr(total, name) for total in totals], np.float64)
    if {"runs", "run_ps"} & names:
        data["runs"], data["run_ps"] = run_totals(profile)
        valid["runs"] = valid["run_ps"] = np.full(count, program_runs(profile).rows > 0)
    return Columns(data, valid)
