"""Stats of one plane's events as they stand in the file: whose, which, and where the value is."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.formats.xplane.outline import PlaneOutline
from peakline.wire import Union


@dataclass(frozen=True, eq=False)
class StatRows:
    """``event`` is the number of the event in the plane, ascending, ``number`` the stat's id."""

    plane: PlaneOutline
    event: AnyArray
    number: Int64Array
    value: Union

    def named(self, wanted: AbstractSet[str]) -> StatRows:
        """Those that have one of the names ``wanted``."""
        known = self.plane.stat_names.items()
        ids = [number for number, name in known if name in wanted]
        rows = np.flatnonzero(np.isin(self.number, ids))
        return StatRows(self.plane, self.event[rows], self.number[rows], self.value.take(rows))
