"""What the peak would be if some buffers were smaller."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import signed64
    from peakline.kernels.memory_layout import ALL_BUT_ONE, ALLOCATION, FROM_BEFORE, OF_THE_STEP

__all__ = ["peaks_without"]

Rows = cython.fused_type(cython.int, cython.longlong)
"""Row numbers: 32 bits where that is enough."""


@cython.cdivision(False)  # sizes may be negative: quotients round down
def peaks_without(
    rows: cython.const[cython.longlong][::1],
    kind: cython.const[cython.uchar][::1],
    begin: cython.const[Rows][::1],
    codes: cython.const[cython.int][::1],
    allocated: cython.const[cython.longlong][::1],
    used: cython.const[cython.longlong][::1],
    was_there: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    counted: cython.const[cython.uchar][::1],
    in_group: cython.const[cython.uchar][:, ::1],
    numerator: cython.const[cython.longlong][::1],
    denominator: cython.const[cython.longlong][::1],
    which: cython.const[cython.schar][::1],
    peaks: cython.longlong[::1],
    live: cython.longlong[::1],
    made: cython.longlong[::1],
    count: cython.longlong[::1],
) -> None:
    """Fill ``peaks[group]`` with the largest memory in use if the group's buffers were smaller.

    ``in_group[code, group]`` says which signatures a group has. A group's buffers shrink by
    ``numerator / denominator`` of their bytes, those that ``which[group]`` says; of `ALL_BUT_ONE`
    all bytes go. ``rows`` are the allocator's records, ``starts`` the first records of the steps,
    ascending. Of all records, ``was_there`` marks those whose buffer is from before the profile and
    ``counted`` those that can be the peak. ``live``, ``made`` and ``count`` (given as 0) are room
    for a number per group.
    """
    groups: cython.longlong = in_group.shape[1]
    lowest: cython.longlong = 0
    step_start: cython.longlong = 0
    passed: cython.longlong = 0
    k: cython.longlong
    row: cython.longlong
    first: cython.longlong
    code: cython.longlong
    group: cython.longlong
    saved: cython.longlong
    left: cython.longlong
    with cython.nogil:
        for k in range(rows.shape[0]):
            row = rows[k]
            if passed < starts.shape[0] and starts[passed] <= row:
                while passed < starts.shape[0] and starts[passed] <= row:
                    step_start = starts[passed]
                    passed += 1
                for group in range(groups):
                    made[group] = 0
            first = begin[row]
            if first >= 0:
                code = codes[first]
                for group in range(groups):
                    if in_group[code, group]:
                        live[group] = signed64(live[group] - allocated[first])
                        count[group] -= 1
                        if first >= step_start and not was_there[first]:
                            made[group] = signed64(made[group] - allocated[first])
            if kind[row] == ALLOCATION:
                code = codes[row]
                for group in range(groups):
                    if in_group[code, group]:
                        live[group] = signed64(live[group] + allocated[row])
                        count[group] += 1
                        if not was_there[row]:
                            made[group] = signed64(made[group] + allocated[row])
            if not counted[row] or used[row] <= lowest:
                continue
            for group in range(groups):
                if which[group] == ALL_BUT_ONE:
                    saved = 0
                    if count[group] > 1:
                        saved = signed64(live[group] - live[group] // count[group])
                else:
                    saved = live[group]
                    if which[group] == OF_THE_STEP:
                        saved = made[group]
                    elif which[group] == FROM_BEFORE:
                        saved = signed64(saved - made[group])
                    saved = signed64(saved * numerator[group]) // denominator[group]
                left = signed64(used[row] - saved)
                peaks[group] = max(peaks[group], left)
            # Less than what every group has reached changes nothing.
            lowest = peaks[0]
            for group in range(1, groups):
                lowest = min(lowest, peaks[group])
