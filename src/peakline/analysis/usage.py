"""The memory of every allocator over time, folded to what an answer about its peak needs.

One compiled pass over the records: counts, running sums, and the record at which memory in use
was largest. `peakline.analysis.peak` turns the sums into an explanation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from peakline.analysis.lifetimes import (
    ALLOCATION,
    DEALLOCATION,
    OTHER,
    UNTRACKED_ALLOCATION,
    UNTRACKED_DEALLOCATION,
    Lifetimes,
)
from peakline.profile.columns import Columns

__all__ = ["Usage", "buffer_bytes", "measure"]

(
    _ALLOCATIONS,
    _DEALLOCATIONS,
    _UNMATCHED,
    _UNTRACKED,
    _DOUBLE,
    _LIVE,
    _UNMATCHED_BYTES,
    _NET,
    _BEFORE,
    _SEEN_REPORT,
    _LAST_IN_USE,
    _LAST_REPORTED,
    _PEAK_ROW,
    _PEAK,
    _UNMATCHED_AT_PEAK,
    _LIFETIME_PEAK,
    _FIELDS,
) = range(17)
_NEVER = -(2**63)


@dataclass(frozen=True)
class Usage:
    """What one pass found for one allocator. Sizes are bytes.

    ``reported``: the allocator reported its bytes in use on some record; then the peak is the
    largest reported in use + reserved, else the largest running sum of live buffers.
    ``before`` is what was in use before the first record as its report implies (0 where
    nothing was reported). ``peak_row`` is -1 when no record was eligible. ``lifetime_peak`` is
    the largest lifetime peak it reported, None when it reported none.
    """

    reported: bool
    allocations: int
    deallocations: int
    unmatched: int
    untracked: int
    double: int
    live_at_end: int
    before: int
    unmatched_bytes: int
    peak_row: int
    peak: int
    unmatched_bytes_at_peak: int
    lifetime_peak: int | None


def buffer_bytes(events: Columns, rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Bytes handed out by the allocations ``rows``; what was asked for where that is unknown."""
    allocated = events.array("allocated_bytes")[rows]
    asked = np.where(
        events.is_valid("requested_bytes")[rows], events.array("requested_bytes")[rows], 0
    )
    return np.where(events.is_valid("allocated_bytes")[rows], allocated, asked).astype(np.int64)


@nb.njit(cache=True, nogil=True)
def _measure(
    state: npt.NDArray[np.int64],
    reports: npt.NDArray[np.bool_],
    eligible: npt.NDArray[np.bool_],
    allocator: npt.NDArray[np.int32],
    kind: npt.NDArray[np.uint8],
    begin: npt.NDArray[Any],
    allocated: npt.NDArray[np.int64],
    has_allocated: npt.NDArray[np.bool_],
    requested: npt.NDArray[np.int64],
    has_requested: npt.NDArray[np.bool_],
    in_use: npt.NDArray[np.int64],
    has_in_use: npt.NDArray[np.bool_],
    reserved: npt.NDArray[np.int64],
    has_reserved: npt.NDArray[np.bool_],
    peak: npt.NDArray[np.int64],
    has_peak: npt.NDArray[np.bool_],
) -> None:  # pragma: no cover - compiled
    """Fold the records into ``state[allocator]``; an empty ``eligible`` means every record."""
    for row in range(kind.size):
        s = state[allocator[row]]
        what = kind[row]
        report = has_in_use[row]
        own = np.int64(0)
        if has_allocated[row]:
            own = allocated[row]
        elif has_requested[row]:
            own = requested[row]
        ended = np.int64(0)
        if begin[row] >= 0:
            first = begin[row]
            if has_allocated[first]:
                ended = allocated[first]
            elif has_requested[first]:
                ended = requested[first]
            s[_LIVE] -= ended

        if what == ALLOCATION or what == UNTRACKED_ALLOCATION:
            s[_ALLOCATIONS] += 1
            if not s[_SEEN_REPORT]:
                s[_NET] += own
            if what == ALLOCATION:
                s[_LIVE] += own
                s[_DOUBLE] += begin[row] >= 0
            else:
                s[_UNTRACKED] += 1
        elif what == DEALLOCATION or what == UNTRACKED_DEALLOCATION:
            s[_DEALLOCATIONS] += 1
            if not s[_SEEN_REPORT]:
                s[_NET] -= own if own > 0 else ended
            if what == UNTRACKED_DEALLOCATION:
                s[_UNTRACKED] += 1
            elif begin[row] < 0:
                s[_UNMATCHED] += 1
                if own <= 0 and report and s[_LAST_REPORTED]:
                    # Some allocators do not repeat the size: their report tells it.
                    own = max(s[_LAST_IN_USE] - in_use[row], np.int64(0))
                s[_UNMATCHED_BYTES] += own

        if report and not s[_SEEN_REPORT]:
            s[_SEEN_REPORT] = 1
            s[_BEFORE] = in_use[row] - s[_NET]
        # A report is compared with the next one only when no change lies between them.
        s[_LAST_REPORTED] = report or (what == OTHER and s[_LAST_REPORTED])
        if report:
            s[_LAST_IN_USE] = in_use[row]

        if has_peak[row]:
            s[_LIFETIME_PEAK] = max(s[_LIFETIME_PEAK], peak[row])

        if eligible.size and not eligible[row]:
            continue
        if report:
            used = in_use[row] + (reserved[row] if has_reserved[row] else 0)
        elif not reports[allocator[row]]:
            used = s[_LIVE]
        else:
            continue
        if s[_PEAK_ROW] < 0 or used > s[_PEAK]:
            s[_PEAK_ROW] = row
            s[_PEAK] = used
            s[_UNMATCHED_AT_PEAK] = s[_UNMATCHED_BYTES]


def measure(
    events: Columns, lifetimes: Lifetimes, eligible: npt.NDArray[np.bool_] | None = None
) -> list[Usage]:
    """One `Usage` per allocator of ``lifetimes``.

    Every record counts in the sums; only ``eligible`` ones (default: all) can be the peak.
    """

    def column(name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        return np.ascontiguousarray(events.array(name), np.int64), events.is_valid(name)

    count = len(lifetimes.allocators)
    in_use, has_in_use = column("in_use_bytes")
    reports = np.zeros(count, np.bool_)
    reports[lifetimes.allocator[has_in_use]] = True
    state = np.zeros((count, _FIELDS), np.int64)
    state[:, _PEAK_ROW] = -1
    state[:, _LIFETIME_PEAK] = _NEVER
    _measure(
        state,
        reports,
        np.zeros(0, np.bool_) if eligible is None else eligible,
        lifetimes.allocator,
        lifetimes.kind,
        lifetimes.begin,
        *column("allocated_bytes"),
        *column("requested_bytes"),
        in_use,
        has_in_use,
        *column("reserved_bytes"),
        *column("peak_bytes"),
    )
    return [
        Usage(
            reported=bool(reports[number]),
            allocations=s[_ALLOCATIONS],
            deallocations=s[_DEALLOCATIONS],
            unmatched=s[_UNMATCHED],
            untracked=s[_UNTRACKED],
            double=s[_DOUBLE],
            live_at_end=s[_LIVE],
            before=s[_BEFORE],
            unmatched_bytes=s[_UNMATCHED_BYTES],
            peak_row=s[_PEAK_ROW],
            peak=s[_PEAK],
            unmatched_bytes_at_peak=s[_UNMATCHED_AT_PEAK],
            lifetime_peak=None if s[_LIFETIME_PEAK] == _NEVER else s[_LIFETIME_PEAK],
        )
        for number, s in enumerate(state.tolist())
    ]
