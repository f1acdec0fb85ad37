"""Deferred deallocations: the two bounds that they leave for an allocator's peak.

A runtime that frees memory while a device still works on it logs the deallocation as deferred,
and once more when the work is done (log_memory.proto). Current TensorFlow hands the memory back
at the first of the two (``gpu_device.cc``), older ones at the second. `find_peaks` takes the
first; what follows adds up what would be in use if the second counted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from peakline.findings.memory_peak import Finding
from peakline.memory.lifetimes import ALLOCATION, Lifetimes, match_lifetimes
from peakline.memory.peak import AllocatorPeak
from peakline.memory.usage import buffer_bytes
from peakline.tables.columns import Columns

__all__ = ["deferred_findings"]


def deferred_findings(
    events: Columns,
    peaks: tuple[AllocatorPeak, ...],
    eligible: npt.NDArray[np.bool_] | None = None,
    lifetimes: Lifetimes | None = None,
) -> list[Finding]:
    """A finding per allocator whose peak is not certain for deferred deallocations.

    ``events`` in time order, ``peaks`` what `find_peaks` made of them with ``eligible``;
    ``lifetimes`` are those of `match_lifetimes` where they are known already. The
    upper bound is the largest sum of buffers when each deferred one is held until the record
    that completes it, or to the end where none does. An allocator that reports its bytes in use
    has no bounds, and nothing is told where both are the same.
    """
    deferred = events.array("deferred").astype(np.bool_) & events.is_valid("deferred")
    if not deferred.any():
        return []
    if lifetimes is None:
        lifetimes = match_lifetimes(events)
    late = np.flatnonzero(deferred & (lifetimes.begin >= 0))
    findings = []
    for peak in peaks:
        number = lifetimes.allocators.index(peak.allocator)
        own = late[lifetimes.allocator[late] == number]
        if own.size and not peak.reported:
            upper = _upper_bound(events, lifetimes, number, own, eligible)
            if upper > peak.peak_bytes:
                findings.append(_finding(peak, events, own, upper))
    return findings


def _upper_bound(
    events: Columns,
    lifetimes: Lifetimes,
    number: int,
    late: npt.NDArray[np.intp],
    eligible: npt.NDArray[np.bool_] | None,
) -> int:
    """The allocator's largest sum when the buffers that ``late`` ends are held for longer."""
    begins = np.flatnonzero((lifetimes.allocator == number) & (lifetimes.kind == ALLOCATION))
    size = buffer_bytes(events, begins)
    end = lifetimes.end[begins].astype(np.int64)
    until = np.where(end < 0, events.rows, end)
    # Where the sequence says that a deferred deallocation took effect, not where it was asked for.
    place = np.full(events.rows + 1, -1, np.int64)
    told = events.is_valid("returned_sequence")[late]
    returned = events.array("returned_sequence")[late]
    held = np.searchsorted(events.array("sequence"), np.where(told, returned, 0))
    place[late] = np.where(told, np.maximum(held, late), events.rows)
    until = np.where(place[until] >= 0, place[until], until)

    change = np.zeros(events.rows + 1, np.int64)
    np.add.at(change, begins, size)
    np.add.at(change, until, -size)
    total = np.cumsum(change[:-1])
    if eligible is not None:
        total = total[eligible]
    return int(total.max(initial=0))


def _finding(
    peak: AllocatorPeak, events: Columns, late: npt.NDArray[np.intp], upper: int
) -> Finding:
    name = peak.allocator or "(unnamed allocator)"
    return Finding(
        "deferred_frees",
        "info",
        f"{name}: {late.size} deallocations were deferred; the peak lies between "
        f"{peak.peak_bytes} and {upper} bytes",
        {
            "allocator": peak.allocator,
            "deferred": int(late.size),
            "completed": int(events.is_valid("returned_sequence")[late].sum()),
            "peak_bytes": peak.peak_bytes,
            "upper_peak_bytes": upper,
        },
        "The lower bound holds where memory can be handed out again at once (current TensorFlow), "
        "the upper one where it waits for the device (PyTorch's streams, old TensorFlow).",
    )
