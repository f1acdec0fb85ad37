"""Free memory between buffers, by their addresses.

Addresses are cut into *cells* at every place where some buffer of the profile begins or ends; a
*span* is a distinct pair of first and last address. A cell has been *touched* once a buffer lay on
it: from then on it is known to belong to the allocator's memory.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import signed64

__all__ = ["sweep"]

Rows = cython.fused_type(cython.int, cython.longlong)
"""Row numbers: 32 bits where that is enough."""


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _holes(
    live: cython.const[cython.int][::1],
    first_cell: cython.const[cython.longlong][::1],
    end_cell: cython.const[cython.longlong][::1],
    cell_bytes: cython.const[cython.longlong][::1],
    touched: cython.const[cython.uchar][::1],
    change: cython.int[::1],
    found: cython.longlong[::1],
) -> cython.void:
    """Free bytes in touched cells, the largest run of such cells, and how many runs there are."""
    cell: cython.longlong
    span: cython.longlong
    free: cython.longlong = 0
    largest: cython.longlong = 0
    holes: cython.longlong = 0
    run: cython.longlong = 0
    cover: cython.longlong = 0
    for cell in range(change.shape[0]):
        change[cell] = 0
    for span in range(live.shape[0]):
        if live[span] > 0:
            change[first_cell[span]] += 1
            change[end_cell[span]] -= 1
    for cell in range(cell_bytes.shape[0]):
        cover += change[cell]
        if touched[cell] and cover == 0:
            if run == 0:
                holes += 1
            run = signed64(run + cell_bytes[cell])
            free = signed64(free + cell_bytes[cell])
            largest = max(largest, run)
        else:
            run = 0
    found[0], found[1], found[2] = free, largest, holes


def sweep(
    rows: cython.const[cython.longlong][::1],
    begin: cython.const[Rows][::1],
    place_of: cython.const[cython.int][::1],
    span_of: cython.const[cython.int][::1],
    span_bytes: cython.const[cython.longlong][::1],
    first_cell: cython.const[cython.longlong][::1],
    end_cell: cython.const[cython.longlong][::1],
    cell_bytes: cython.const[cython.longlong][::1],
    wanted: cython.const[cython.longlong][::1],
    min_new: cython.longlong,
    samples: cython.longlong[:, ::1],
    extensions: cython.longlong[:, ::1],
    first_seen: cython.longlong[::1],
    live: cython.int[::1],
    touched: cython.uchar[::1],
    change: cython.int[::1],
    onward: cython.longlong[::1],
    result: cython.longlong[::1],
) -> tuple[int, int]:
    """Follow the spans through ``rows``; fill samples and extensions.

    Returns the number of extensions and the most bytes of buffers that lived at a time.
    ``place_of[begin[row]]`` is the place in ``rows`` of the allocation that ``row`` ended.
    ``wanted`` (ascending places in ``rows``) are sampled after their record; an allocation that
    touches ``min_new`` bytes or more for the first time is an extension, as far as there is room.
    ``first_seen`` gets the row at which each span first occurs.

    The rest is room: ``live`` (0) per span; per cell ``touched`` (0), and with one more ``change``
    and ``onward`` (0, 1, 2, ...): where to look for the next cell that is not touched; ``result``
    has three places.
    """
    known: cython.longlong = 0
    held: cython.longlong = 0
    most: cython.longlong = 0
    sampled: cython.longlong = 0
    extended: cython.longlong = 0
    place: cython.longlong
    row: cython.longlong
    ended: cython.longlong
    span: cython.longlong
    cell: cython.longlong
    new: cython.longlong
    with cython.nogil:
        for place in range(rows.shape[0]):
            row = rows[place]
            ended = begin[row]
            if ended >= 0:
                span = span_of[place_of[ended]]
                if span >= 0:
                    live[span] -= 1
                    held = signed64(held - span_bytes[span])
            span = span_of[place]
            if span >= 0:
                if first_seen[span] < 0:
                    first_seen[span] = row
                    new = 0
                    cell = first_cell[span]
                    while True:
                        while onward[cell] != cell:
                            onward[cell] = onward[onward[cell]]
                            cell = onward[cell]
                        if cell >= end_cell[span]:
                            break
                        new = signed64(new + cell_bytes[cell])
                        cell += 1
                    if new >= min_new and extended < extensions.shape[0]:
                        _holes(live, first_cell, end_cell, cell_bytes, touched, change, result)
                        extensions[extended, 0] = row
                        extensions[extended, 1] = new
                        extensions[extended, 2] = result[0]
                        extensions[extended, 3] = result[1]
                        extensions[extended, 4] = known
                        extended += 1
                    cell = first_cell[span]
                    while True:
                        while onward[cell] != cell:
                            cell = onward[cell]
                        if cell >= end_cell[span]:
                            break
                        touched[cell] = True
                        onward[cell] = cell + 1
                        cell += 1
                    known = signed64(known + new)
                live[span] += 1
                held = signed64(held + span_bytes[span])
                most = max(most, held)
            if sampled < wanted.shape[0] and wanted[sampled] == place:
                _holes(live, first_cell, end_cell, cell_bytes, touched, change, result)
                samples[sampled, 0] = row
                samples[sampled, 1] = result[0]
                samples[sampled, 2] = result[1]
                samples[sampled, 3] = result[2]
                samples[sampled, 4] = known
                samples[sampled, 5] = held
                sampled += 1
    return extended, most
