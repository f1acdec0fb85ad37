"""Counts, running sums and the peak of every allocator, in one pass over its records."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import signed64
    from peakline.kernels.memory_layout import (
        ALLOCATION,
        DEALLOCATION,
        OTHER,
        U_ALLOCATIONS,
        U_BEFORE,
        U_DEALLOCATIONS,
        U_DOUBLE,
        U_LAST_IN_USE,
        U_LAST_REPORTED,
        U_LIFETIME_PEAK,
        U_LIVE,
        U_NET,
        U_PEAK,
        U_PEAK_ROW,
        U_SEEN_REPORT,
        U_UNMATCHED,
        U_UNMATCHED_AT_PEAK,
        U_UNMATCHED_BYTES,
        U_UNTRACKED,
        UNTRACKED_ALLOCATION,
        UNTRACKED_DEALLOCATION,
    )

__all__ = ["measure"]

Rows = cython.fused_type(cython.int, cython.longlong)
"""Row numbers: 32 bits where that is enough."""


def measure(
    state: cython.longlong[:, ::1],
    reports: cython.const[cython.uchar][::1],
    eligible: cython.const[cython.uchar][::1],
    allocator: cython.const[cython.int][::1],
    kind: cython.const[cython.uchar][::1],
    begin: cython.const[Rows][::1],
    allocated: cython.const[cython.longlong][::1],
    has_allocated: cython.const[cython.uchar][::1],
    requested: cython.const[cython.longlong][::1],
    has_requested: cython.const[cython.uchar][::1],
    in_use: cython.const[cython.longlong][::1],
    has_in_use: cython.const[cython.uchar][::1],
    reserved: cython.const[cython.longlong][::1],
    has_reserved: cython.const[cython.uchar][::1],
    peak: cython.const[cython.longlong][::1],
    has_peak: cython.const[cython.uchar][::1],
) -> None:
    """Fold the records into ``state[allocator]``; an empty ``eligible`` means every record."""
    row: cython.longlong
    s: cython.longlong
    first: cython.longlong
    size: cython.longlong
    ended: cython.longlong
    used: cython.longlong
    what: cython.int
    report: cython.bint
    all_count: cython.bint = eligible.shape[0] == 0
    with cython.nogil:
        for row in range(kind.shape[0]):
            s = allocator[row]
            what = kind[row]
            report = has_in_use[row] != 0
            size = 0
            if has_allocated[row]:
                size = allocated[row]
            elif has_requested[row]:
                size = requested[row]
            ended = 0
            first = begin[row]
            if first >= 0:
                if has_allocated[first]:
                    ended = allocated[first]
                elif has_requested[first]:
                    ended = requested[first]
                state[s, U_LIVE] = signed64(state[s, U_LIVE] - ended)

            if what == ALLOCATION or what == UNTRACKED_ALLOCATION:
                state[s, U_ALLOCATIONS] += 1
                if not state[s, U_SEEN_REPORT]:
                    state[s, U_NET] = signed64(state[s, U_NET] + size)
                if what == ALLOCATION:
                    state[s, U_LIVE] = signed64(state[s, U_LIVE] + size)
                    if first >= 0:
                        state[s, U_DOUBLE] += 1
                else:
                    state[s, U_UNTRACKED] += 1
            elif what == DEALLOCATION or what == UNTRACKED_DEALLOCATION:
                state[s, U_DEALLOCATIONS] += 1
                if not state[s, U_SEEN_REPORT]:
                    state[s, U_NET] = signed64(state[s, U_NET] - (size if size > 0 else ended))
                if what == UNTRACKED_DEALLOCATION:
                    state[s, U_UNTRACKED] += 1
                elif first < 0:
                    state[s, U_UNMATCHED] += 1
                    if size <= 0 and report and state[s, U_LAST_REPORTED]:
                        # Some allocators do not repeat the size: what they report implies it.
                        size = signed64(state[s, U_LAST_IN_USE] - in_use[row])
                        size = max(0, size)
                    state[s, U_UNMATCHED_BYTES] = signed64(state[s, U_UNMATCHED_BYTES] + size)

            if report and not state[s, U_SEEN_REPORT]:
                state[s, U_SEEN_REPORT] = 1
                state[s, U_BEFORE] = signed64(in_use[row] - state[s, U_NET])
            # A report is compared with the next one only when no change lies between them.
            if what != OTHER or report:
                state[s, U_LAST_REPORTED] = report
            if report:
                state[s, U_LAST_IN_USE] = in_use[row]

            if has_peak[row] and peak[row] > state[s, U_LIFETIME_PEAK]:
                state[s, U_LIFETIME_PEAK] = peak[row]

            if not (all_count or eligible[row]):
                continue
            if report:
                used = in_use[row]
                if has_reserved[row]:
                    used = signed64(used + reserved[row])
            elif not reports[s]:
                used = state[s, U_LIVE]
            else:
                continue
            if state[s, U_PEAK_ROW] < 0 or used > state[s, U_PEAK]:
                state[s, U_PEAK_ROW] = row
                state[s, U_PEAK] = used
                state[s, U_UNMATCHED_AT_PEAK] = state[s, U_UNMATCHED_BYTES]
