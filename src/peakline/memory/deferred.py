"""Deferred deallocations: the two bounds that they leave for an allocator's peak.

A runtime that frees memory while a device still works on it logs the deallocation as deferred,
and once more when the work is done (log_memory.proto). Current TensorFlow hands the memory back
at the first of the two (``gpu_device.cc``), older ones at the second. `find_peaks` takes the
first; what follows adds up what would be in use if the second counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, IntpArray
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.lifetimes import Lifetimes
from peakline.memory.peak import AllocatorPeak
from peakline.memory.usage import buffer_bytes
from peakline.shown import Brief
from peakline.tables.columns import Columns


@dataclass(frozen=True, repr=False)
class Deferred(Brief):
    """The deferred deallocations of one allocator: how many there are, how many of them were
    completed, and the bytes that the peak may have been.
    """

    count: int
    completed: int
    upper_peak_bytes: int


def find_deferred(
    events: Columns,
    peak: AllocatorPeak,
    lifetimes: Lifetimes,
    eligible: BoolArray | None = None,
) -> Deferred | None:
    """What makes the ``peak`` of an allocator uncertain; None where nothing does.

    ``events`` in time order, ``peak`` what `find_peaks` made of them with ``eligible``. The upper
    bound is the largest sum of buffers when each deferred one is held until the record that
    completes it, or to the end where none does. An allocator that reports its bytes in use has no
    bounds, and where both are the same nothing is uncertain.
    """
    deferred = events.array("deferred").astype(np.bool_) & events.is_valid("deferred")
    if peak.reported or not deferred.any():
        return None
    number = lifetimes.allocators.index(peak.allocator)
    late = np.flatnonzero(deferred & (lifetimes.begin >= 0) & (lifetimes.allocator == number))
    if not late.size:
        return None
    upper = _upper_bound(events, lifetimes, number, late, eligible)
    if upper <= peak.peak_bytes:
        return None
    completed = int(events.is_valid("returned_sequence")[late].sum())
    return Deferred(int(late.size), completed, upper)


def _upper_bound(
    events: Columns,
    lifetimes: Lifetimes,
    number: int,
    late: IntpArray,
    eligible: BoolArray | None,
) -> int:
    """The allocator's largest sum when the buffers that ``late`` ends are held for longer."""
    begins = np.flatnonzero((lifetimes.allocator == number) & (lifetimes.kind == ALLOCATION))
    size = buffer_bytes(events, begins)
    end = lifetimes.end[begins].astype(np.int64)
    until = np.where(end < 0, events.rows, end)
    # Where the sequence says that a deferred deallocation took effect, not where it was called.
    place = np.full(events.rows + 1, -1, np.int64)
    known = events.is_valid("returned_sequence")[late]
    returned = events.array("returned_sequence")[late]
    held = np.searchsorted(events.array("sequence"), np.where(known, returned, 0))
    place[late] = np.where(known, np.maximum(held, late), events.rows)
    until = np.where(place[until] >= 0, place[until], until)

    change = np.zeros(events.rows + 1, np.int64)
    np.add.at(change, begins, size)
    np.add.at(change, until, -size)
    total = np.cumsum(change[:-1])
    if eligible is not None:
        total = total[eligible]
    return int(total.max(initial=0))
