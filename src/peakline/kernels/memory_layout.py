"""The numbers that the kernels of memory records share with their callers."""

from __future__ import annotations

OTHER = 0
"""A record that neither begins nor ends a buffer (reservation, expansion)."""
ALLOCATION = 1
"""Begins a buffer."""
DEALLOCATION = 2
"""Ends a buffer, or finds none live under its key."""
UNTRACKED_ALLOCATION = 3
"""An allocation without an id and without an address: its end can never be seen."""
UNTRACKED_DEALLOCATION = 4
"""A deallocation without an id and without an address."""

# Columns of what `usage.measure` adds up, one row per allocator.
(
    U_ALLOCATIONS,
    U_DEALLOCATIONS,
    U_UNMATCHED,
    U_UNTRACKED,
    U_DOUBLE,
    U_LIVE,
    U_UNMATCHED_BYTES,
    U_NET,
    U_BEFORE,
    U_SEEN_REPORT,
    U_LAST_IN_USE,
    U_LAST_REPORTED,
    U_PEAK_ROW,
    U_PEAK,
    U_UNMATCHED_AT_PEAK,
    U_LIFETIME_PEAK,
    U_FIELDS,
) = range(17)

ALL, ALL_BUT_ONE, OF_THE_STEP, FROM_BEFORE = range(4)
"""Which of a group's live buffers shrink: all, all but one of average size, those made in the step
that runs, those made before it (or before the profile)."""

CHURN_FIELDS = ("allocations", "bytes", "same_step", "short", "most_live")
"""Columns per signature: allocations, their bytes, how many were freed in the step that made them
and how many after few records, and the most that lived at a time."""

SAMPLE_FIELDS = ("row", "free", "largest", "holes", "touched", "live")
"""Columns of a sample of free memory: the record, bytes free in touched cells, the largest run of
them, how many runs there are, touched bytes, bytes of buffers with an address that live."""

EXTENSION_FIELDS = ("row", "new", "free", "largest", "touched")
"""Columns of an extension: the record, bytes it touched first, and as above just before it."""
