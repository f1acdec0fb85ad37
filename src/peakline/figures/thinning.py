"""Long series in few points that draw the same picture."""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, Int64Array, IntpArray
from peakline.memory.signatures import History


def usage_rows(history: History, allocator: int) -> IntpArray:
    """The records of an allocator's memory over time: those that say how much is in use.

    Records that stand for buffers from before the profile are all of its first moment, and only
    their sum was ever in use: of those that lead, the line begins with the last.
    """
    rows = history.rows_of(allocator)
    rows = rows[history.measured[rows]]
    recorded = np.flatnonzero(~history.was_there[rows])
    leading = int(recorded[0]) if recorded.size else rows.size
    return rows[max(leading - 1, 0) :]


def places_to_draw(time: Int64Array, value: AnyArray, buckets: int) -> IntpArray:
    """The places of a step line that are worth drawing, in order, at most 4 per bucket.

    ``time`` never falls. It is cut into ``buckets`` equal spans, and of each span the first, the
    last, the (first) least and the (first) largest value are chosen: a drawing no wider than
    ``buckets`` dots looks the same as that of all values (M4, Jugel et al., VLDB 2014). Of values
    that repeat the one before nothing is lost when they are left out. The first and the last place
    are always among them.
    """
    if not time.size:
        return np.zeros(0, np.intp)
    kept = np.arange(time.size)
    if time.size > 4 * buckets:
        first, last = int(time[0]), int(time[-1])
        edges = [first + (last - first) * k // buckets for k in range(buckets)]
        starts = np.unique(np.searchsorted(time, np.array(edges, np.int64)))
        ends = np.append(starts[1:], time.size)
        kept = np.concatenate(
            [
                starts,
                ends - 1,
                _first_equal(value, starts, ends, np.minimum.reduceat(value, starts)),
                _first_equal(value, starts, ends, np.maximum.reduceat(value, starts)),
            ]
        )
        kept = np.unique(kept)
    repeats = np.zeros(kept.size, np.bool_)
    repeats[1:-1] = value[kept][1:-1] == value[kept][:-2]
    places: IntpArray = kept[~repeats]
    return places


def _first_equal(
    value: AnyArray,
    starts: IntpArray,
    ends: IntpArray,
    wanted: AnyArray,
) -> IntpArray:
    """Per span, the first place that holds the value ``wanted`` of that span."""
    equal = np.flatnonzero(value == np.repeat(wanted, ends - starts))
    first: IntpArray = equal[np.searchsorted(equal, starts)]
    return first
