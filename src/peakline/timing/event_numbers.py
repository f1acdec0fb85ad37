"""Numbers that events of devices carry, for the tools that add them up by op."""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, Float64Array, Int64Array
from peakline.tables import Profile
from peakline.tables.joins import positions
from peakline.tables.once import once

_NAMES = frozenset(
    (
        "Time Scale Multiplier", "dma_stall_duration_ps", "vdd_energy_j", "flops", "bytes_accessed",
        "offload_core_id", "tc_offload_start_id",
    )
)  # fmt: skip


class EventNumbers:
    """The stats of these names by row of ``events``; a stat may stand more than once there."""

    def __init__(self, profile: Profile) -> None:
        stats = profile.typed_stats(_NAMES)
        names = stats.names("name")
        self._parts: dict[str, tuple[Int64Array, Int64Array, Float64Array]] = {}
        columns = (stats.array(name) for name in ("event_id", "integer", "real"))
        row, integer, real = columns
        real = np.where(stats.is_valid("real"), real, 0.0)
        integer = np.where(stats.is_valid("integer"), integer, 0)
        for name in _NAMES:
            here = np.flatnonzero(names.codes == names.code_of(name))
            if here.size:
                self._parts[name] = row[here].astype(np.int64), integer[here], real[here]

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def first(self, name: str, rows: AnyArray) -> tuple[Int64Array, Float64Array, AnyArray]:
        """Of each of ``rows`` the first such stat as a whole and as a real number, 0 where it is
        of another kind, and whether there is one.
        """
        if name not in self._parts:
            none = np.zeros(rows.size, np.int64)
            return none, none.astype(np.float64), none.astype(np.bool_)
        row, integer, real = self._parts[name]
        distinct, at = np.unique(row, return_index=True)
        place = positions(distinct, rows)
        result = at[place]
        has = place >= 0
        return np.where(has, integer[result], 0), np.where(has, real[result], 0.0), has

    def last(self, name: str, rows: AnyArray) -> tuple[Int64Array, AnyArray]:
        """Of each of ``rows`` the last such stat as a whole number, and whether there is one."""
        if name not in self._parts:
            none = np.zeros(rows.size, np.int64)
            return none, none.astype(np.bool_)
        row, integer, _ = self._parts[name]
        distinct, at = np.unique(row[::-1], return_index=True)
        place = positions(distinct, rows)
        has = place >= 0
        return np.where(has, integer[::-1][at[place]], 0), has

    def real(self, name: str, rows: AnyArray) -> Float64Array:
        """Of each of ``rows`` the sum of such stats as real numbers."""
        total = np.zeros(rows.size, np.float64)
        if name in self._parts:
            row, _, real = self._parts[name]
            self._add(total, rows, row, real)
        return total

    @staticmethod
    def _add(total: AnyArray, rows: AnyArray, row: Int64Array, values: AnyArray) -> None:
        order = np.argsort(rows, kind="stable")
        place = positions(rows[order], row)
        here = place >= 0
        np.add.at(total, order[place[here]], values[here])


@once
def event_numbers_of(profile: Profile) -> EventNumbers:
    """Those of a profile, read once."""
    return EventNumbers(profile)
