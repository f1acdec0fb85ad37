"""What each op allocated, and the most of it that was live at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.tables import Profile
from peakline.tables.joins import summed
from peakline.tables.once import once


@dataclass(frozen=True)
class OpBytes:
    """Bytes that an op allocated in all, in so many buffers, and the most of them live at once."""

    allocated: int
    buffers: int
    peak: int


def op_bytes_of(profile: Profile, between: tuple[int, int] | None = None) -> dict[str, OpBytes]:
    """The memory of each op by its name, of buffers allocated ``between`` two times (ps, the second
    exclusive; default: all); empty where no buffer says its op.

    Raises InputError when the profile cannot be read.
    """
    return _all(profile) if between is None else _between(profile, *between)


@once
def _all(profile: Profile) -> dict[str, OpBytes]:
    return _between(profile, None, None)


def _between(profile: Profile, begin: int | None, end: int | None) -> dict[str, OpBytes]:
    table = profile.columns_or_empty("buffers")
    names = table.names("op")
    start = np.where(table.is_valid("start_ps"), table.array("start_ps"), np.iinfo(np.int64).min)
    chosen = names.codes >= 0
    if begin is not None and end is not None:
        chosen &= (start >= begin) & (start < end)
    rows = np.flatnonzero(chosen)
    if not rows.size:
        return {}
    requested = np.where(table.is_valid("requested_bytes"), table.array("requested_bytes"), 0)
    size = np.where(table.is_valid("allocated_bytes"), table.array("allocated_bytes"), requested)
    size, start, code = size[rows].astype(np.int64), start[rows], names.codes[rows]
    freed = table.is_valid("end_ps")[rows]
    stop = np.where(freed, table.array("end_ps")[rows], np.iinfo(np.int64).max)
    width = len(names.values)
    # At one moment what is freed goes first.
    change = np.concatenate([size, -size])
    order = np.lexsort((change, np.concatenate([start, stop]), np.tile(code, 2)))
    live = np.cumsum(change[order])
    # What one op allocated is all freed in the end: sums begin anew with each.
    owner = np.tile(code, 2)[order]
    peak = np.zeros(width, np.int64)
    np.maximum.at(peak, owner, live)
    total = summed(code, size, width)
    many = np.bincount(code, minlength=width)
    return {
        names.values[k]: OpBytes(int(total[k]), int(many[k]), int(peak[k]))
        for k in np.flatnonzero(many).tolist()
    }
