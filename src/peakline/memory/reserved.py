"""What a caching allocator took from its device, and how much of that was allocated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.memory.peak import AllocatorPeak
from peakline.tables import Profile
from peakline.tables.columns import Names

CHANGES = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
"""What takes memory from the device, and what gives it back."""


@dataclass(frozen=True)
class Reserved:
    """What one allocator has of its device at the time of the snapshot, in bytes.

    The names are PyTorch's (``torch.cuda.memory_stats``): ``reserved_bytes`` were taken from the
    device, which is what ``nvidia-smi`` shows, with the CUDA context besides
    (https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management). ``allocated_bytes``
    of them are allocated, ``awaiting_free_bytes`` are given back but still used by another
    stream; ``requested_bytes`` is what the program requested of these two. ``free_bytes`` are the
    rest. ``at_peak_bytes`` were reserved at the peak of what was allocated.
    """

    reserved_bytes: int
    allocated_bytes: int
    awaiting_free_bytes: int
    requested_bytes: int
    free_bytes: int
    at_peak_bytes: int


def reserved_of(profile: Profile, peak: AllocatorPeak) -> Reserved | None:
    """What the allocator of ``peak`` has reserved; None where the file has no segments of it."""
    if "segments" not in profile.tables:
        return None
    segments = profile.columns("segments")
    mine = _rows_of(segments.names("allocator"), peak.allocator)
    if not mine.any():
        return None
    total, allocated, active, requested = (
        int(segments.array(name)[mine].sum())
        for name in ("total_bytes", "allocated_bytes", "active_bytes", "requested_bytes")
    )
    events = profile.columns("allocator_events")
    since = _rows_of(events.names("allocator"), peak.allocator)
    since &= events.array("time_ps") > peak.peak_time_ps
    at_peak = total
    for action, sign in CHANGES.items():
        rows = since & _rows_of(events.names("region_type"), action)
        at_peak -= sign * int(events.array("allocated_bytes")[rows].sum())
    return Reserved(
        reserved_bytes=total,
        allocated_bytes=allocated,
        awaiting_free_bytes=max(active - allocated, 0),
        requested_bytes=requested,
        free_bytes=max(total - active, 0),
        at_peak_bytes=max(at_peak, 0),
    )


def _rows_of(names: Names, wanted: str) -> BoolArray:
    return names.per_row(wanted.__eq__, np.bool_)


def reserved_over_time(profile: Profile, allocator: str) -> tuple[Int64Array, Int64Array] | None:
    """When what a caching allocator has of its device changed, and to how many bytes; the first
    entry is what it had before the first change. None where the file has no segments of it.
    """
    if "segments" not in profile.tables or "allocator_events" not in profile.tables:
        return None
    segments = profile.columns("segments")
    mine = _rows_of(segments.names("allocator"), allocator)
    events = profile.columns("allocator_events")
    own = _rows_of(events.names("allocator"), allocator)
    sign = events.names("region_type").per_row(lambda text: CHANGES.get(text, 0), np.int64)
    rows = np.flatnonzero(own & (sign != 0))
    if not mine.any() and not rows.size:
        return None
    change = sign[rows] * events.array("allocated_bytes")[rows]
    total = int(segments.array("total_bytes")[mine].sum())
    after = total - int(change.sum()) + np.cumsum(change)
    time = events.array("time_ps")[rows]
    before = total - int(change.sum())
    first = int(events.array("time_ps").min()) if events.rows else 0
    return np.concatenate([[first], time]), np.concatenate([[before], after])
