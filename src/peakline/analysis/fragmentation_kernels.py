"""Compiled passes that `peakline.analysis.fragmentation` is made of.

Addresses are cut into *cells* at every place where some buffer of the profile begins or ends; a
*span* is a distinct pair of first and last address. A cell has been *touched* once a buffer lay on
it: from then on it is known to belong to the allocator's memory.
"""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["EXTENSION_FIELDS", "SAMPLE_FIELDS", "sweep"]

SAMPLE_FIELDS = ("row", "free", "largest", "holes", "touched", "live")
"""Columns of a sample: the record, bytes free in touched cells, the largest run of them, how many
runs there are, touched bytes, bytes of buffers with an address that live."""

EXTENSION_FIELDS = ("row", "new", "free", "largest", "touched")
"""Columns of an extension: the record, bytes it touched first, and as above just before it."""


@nb.njit(cache=True, nogil=True)
def _holes(live, first_cell, end_cell, cell_bytes, touched, change):  # type: ignore[no-untyped-def]
    """Free bytes in touched cells, the largest run of such cells, and how many runs there are."""
    for cell in range(change.size):
        change[cell] = 0
    for span in range(live.size):
        if live[span] > 0:
            change[first_cell[span]] += 1
            change[end_cell[span]] -= 1
    free = np.int64(0)
    largest = np.int64(0)
    holes = np.int64(0)
    run = np.int64(0)
    cover = np.int64(0)
    for cell in range(cell_bytes.size):
        cover += change[cell]
        if touched[cell] and cover == 0:
            if run == 0:
                holes += 1
            run += cell_bytes[cell]
            free += cell_bytes[cell]
            largest = max(largest, run)
        else:
            run = np.int64(0)
    return free, largest, holes


@nb.njit(cache=True, nogil=True)
def sweep(  # type: ignore[no-untyped-def]
    rows,
    begin,
    place_of,
    span_of,
    span_bytes,
    first_cell,
    end_cell,
    cell_bytes,
    wanted,
    min_new,
    samples,
    extensions,
    first_seen,
):
    """Follow the spans through ``rows``; fill samples and extensions.

    What returns is the number of extensions and the most bytes of buffers that lived at a time.
    ``place_of[begin[row]]`` is the place in ``rows`` of the allocation that ``row`` ended.
    ``wanted`` (ascending places in ``rows``) are sampled after their record; an allocation that
    touches ``min_new`` bytes or more for the first time is an extension, as far as there is room.
    ``first_seen`` gets the row at which each span first occurs.
    """
    live = np.zeros(span_bytes.size, np.int32)
    cells = cell_bytes.size
    touched = np.zeros(cells, np.bool_)
    change = np.zeros(cells + 1, np.int32)
    # Where to look for the next cell that is not touched, from every cell on.
    onward = np.arange(cells + 1)
    known = np.int64(0)
    held = np.int64(0)
    most = np.int64(0)
    sampled = 0
    extended = 0
    for place in range(rows.size):
        row = rows[place]
        ended = begin[row]
        if ended >= 0:
            span = span_of[place_of[ended]]
            if span >= 0:
                live[span] -= 1
                held -= span_bytes[span]
        span = span_of[place]
        if span >= 0:
            if first_seen[span] < 0:
                first_seen[span] = row
                new = np.int64(0)
                cell = first_cell[span]
                while True:
                    while onward[cell] != cell:
                        onward[cell] = onward[onward[cell]]
                        cell = onward[cell]
                    if cell >= end_cell[span]:
                        break
                    new += cell_bytes[cell]
                    cell += 1
                if new >= min_new and extended < extensions.shape[0]:
                    free, largest, _ = _holes(
                        live, first_cell, end_cell, cell_bytes, touched, change
                    )
                    extensions[extended, 0] = row
                    extensions[extended, 1] = new
                    extensions[extended, 2] = free
                    extensions[extended, 3] = largest
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
                known += new
            live[span] += 1
            held += span_bytes[span]
            most = max(most, held)
        if sampled < wanted.size and wanted[sampled] == place:
            free, largest, holes = _holes(live, first_cell, end_cell, cell_bytes, touched, change)
            samples[sampled, 0] = row
            samples[sampled, 1] = free
            samples[sampled, 2] = largest
            samples[sampled, 3] = holes
            samples[sampled, 4] = known
            samples[sampled, 5] = held
            sampled += 1
    return extended, most
