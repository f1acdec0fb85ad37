"""Free memory in pieces: over time, the damage it did, and which buffers stand between the pieces.

Where an allocator reports its fragmentation, that figure is given: (free - largest free) / free
of its pool (openxla/xla ``bfc_allocator.cc``). The same is made from addresses: memory that a
buffer of the profile has lain on is known to be the allocator's, and what of it no buffer lies on
is free. What no buffer of the profile ever lay on stays unknown, and so does memory from before
the profile that is never freed; so the figures are a lower bound of what is free.

Damage is seen where an allocation went to memory that had not been touched although enough was
free, in pieces that were all too small: had the free memory been in one piece, the pool would not
have had to grow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Float64Array, Int32Array, Int64Array, IntpArray, UInt64Array
from peakline.deadline import check_deadline, checked
from peakline.kernels.fragmentation import sweep
from peakline.kernels.memory_layout import ALLOCATION, EXTENSION_FIELDS, SAMPLE_FIELDS
from peakline.memory.signatures import History, Signature, number_keys, split_by
from peakline.shown import Brief

_SAMPLES = 512
"""Points of memory over time."""
_EXTENSIONS = 256
"""Allocations that are looked at when they grow the memory touched."""
_WORK = 2**28
"""Cells and spans that may be looked at for all samples together."""
LARGE = 1 / 256
"""An allocation that grows the memory touched by this share of all of it is looked at."""
PIN = 1 / 8
"""A buffer with a hole on either side is a pin when it takes this share of them or less."""
LASTING = 0.1
"""... and lives for this share of the allocator's records or more."""

PINNED_HOLES = 4
"""Fragmentation is harmful when so many holes or more lie in a row, small buffers between, ..."""
PINNED_SHARE = 0.1
"""... which would be a hole of this share of the peak, large enough for what found none, ..."""
WASTED_SHARE = 0.1
"""... and when memory of this share of the peak was touched only for lack of it."""


@dataclass(frozen=True, repr=False)
class Hole(Brief):
    """Free pieces of at least ``from_bytes`` and less than twice that."""

    from_bytes: int
    count: int
    bytes: int


@dataclass(frozen=True, repr=False)
class Pin(Brief):
    """Long-lived small buffers of one signature that stand between holes: how many, and bytes."""

    signature: Signature
    count: int
    bytes: int
    since_ps: int


@dataclass(frozen=True, repr=False)
class Pins(Brief):
    """The row of holes that would be the largest hole if the pins between them were elsewhere.

    ``bytes`` is what it would have, pins included, ``holes`` how many there are and ``largest``
    the largest of them.
    """

    bytes: int
    holes: int
    largest: int
    pins: tuple[Pin, ...]


@dataclass(frozen=True, repr=False)
class Forced(Brief):
    """An allocation that found enough memory free, but in pieces that were all too small.

    ``bytes`` is what it requested, ``new_bytes`` what it touched for the first time, ``free`` and
    ``largest`` what was free just before it in memory touched by then.
    """

    row: int
    time_ps: int
    signature: Signature
    bytes: int
    new_bytes: int
    free: int
    largest: int


@dataclass(frozen=True, eq=False, repr=False)
class Fragmentation(Brief):
    """The free memory of one allocator. Sizes are bytes, times picoseconds.

    The arrays are one series over time: ``free``, ``largest`` hole and number of ``holes`` made
    from addresses, ``touched`` the memory known by then, and ``reported`` the allocator's own
    figure (NaN where it gave none). ``touched_bytes`` is all memory that buffers lay on,
    ``peak_bytes`` the most that buffers with addresses took of it at a time: what is above it was
    needed only because of where buffers lay. ``forced`` are the allocations that found enough
    free but no piece large enough; ``worst`` the one of them that touched most, ``at_worst`` its
    holes by size, largest first, and ``pins`` what stands between them.
    """

    allocator: str
    time_ps: Int64Array
    free: Int64Array
    largest: Int64Array
    holes: Int64Array
    touched: Int64Array
    reported: Float64Array
    touched_bytes: int
    peak_bytes: int
    forced: tuple[Forced, ...]
    worst: Forced | None
    at_worst: tuple[Hole, ...]
    pins: Pins | None

    @property
    def forced_bytes(self) -> int:
        """Bytes that were touched only because what was free lay in pieces."""
        return sum(forced.new_bytes for forced in self.forced)

    @property
    def recoverable_bytes(self) -> int:
        """Of those, what exceeds the most that buffers ever took at a time."""
        return min(self.forced_bytes, max(self.touched_bytes - self.peak_bytes, 0))

    @property
    def is_harmful(self) -> bool:
        """Whether pins hold so much free memory in pieces that it is worth a word."""
        worst, pins, peak = self.worst, self.pins, self.peak_bytes
        return (
            worst is not None
            and pins is not None
            and pins.holes >= PINNED_HOLES
            and pins.bytes >= max(PINNED_SHARE * peak, worst.bytes)
            and self.recoverable_bytes >= WASTED_SHARE * peak
        )

    def at(self, time_ps: int) -> float | None:
        """(free - largest hole) / free at ``time_ps``, made from addresses.

        That is at the last point of the series until then; None before the first, and where nothing
        was free. What is free is a lower bound: memory that no buffer of the profile lay on is not
        known.
        """
        place = int(np.searchsorted(self.time_ps, time_ps, "right")) - 1
        if place < 0 or not self.free[place]:
            return None
        return float(1 - self.largest[place] / self.free[place])


@dataclass(frozen=True, eq=False)
class _Space:
    """The spans of an allocator and the cells that they are cut into."""

    rows: Int64Array
    span_of: Int32Array
    start: UInt64Array
    size: Int64Array
    first_cell: Int64Array
    end_cell: Int64Array
    cell_start: UInt64Array
    cell_bytes: Int64Array


def find_fragmentation(history: History, allocator: int) -> Fragmentation | None:
    """The free memory of ``history.lifetimes.allocators[allocator]``; None without addresses."""
    space = _space(history, allocator)
    if not space.start.size:
        return None
    place_of = np.zeros(history.rows, np.int32)
    place_of[space.rows] = np.arange(space.rows.size, dtype=np.int32)
    count = max(min(_SAMPLES, _WORK // (space.start.size + space.cell_bytes.size)), 1)
    wanted = _places(history, space.rows, count)
    samples = np.zeros((wanted.size, len(SAMPLE_FIELDS)), np.int64)
    extensions = np.zeros((min(_EXTENSIONS, count), len(EXTENSION_FIELDS)), np.int64)
    first_seen = np.full(space.start.size, -1, np.int64)
    is_touched = _cover(space, np.arange(space.start.size)) > 0
    touched_bytes = int(space.cell_bytes[is_touched].sum())
    check_deadline()
    result, most = sweep(
        space.rows,
        history.lifetimes.begin,
        place_of,
        space.span_of,
        space.size,
        space.first_cell,
        space.end_cell,
        space.cell_bytes,
        wanted,
        max(int(LARGE * touched_bytes), 1),
        samples,
        extensions,
        first_seen,
        np.zeros(space.start.size, np.int32),
        np.zeros(space.cell_bytes.size, np.uint8),
        np.zeros(space.cell_bytes.size + 1, np.int32),
        np.arange(space.cell_bytes.size + 1),
        np.zeros(3, np.int64),
    )
    check_deadline()
    forced = _forced(history, extensions[:result])
    worst = max(forced, key=lambda one: (one.new_bytes, one.free), default=None)
    at_worst, pins = ((), None) if worst is None else _pieces(history, space, first_seen, worst)
    rows, free, largest, holes, touched = samples.T[:5]
    known = history.events.is_valid("fragmentation")[rows]
    reported = np.where(known, history.events.array("fragmentation")[rows], np.nan)
    return Fragmentation(
        allocator=history.lifetimes.allocators[allocator],
        time_ps=history.events.array("time_ps")[rows],
        free=free,
        largest=largest,
        holes=holes,
        touched=touched,
        reported=reported.astype(np.float64),
        touched_bytes=touched_bytes,
        peak_bytes=most,
        forced=forced,
        worst=worst,
        at_worst=at_worst,
        pins=pins,
    )


def _space(history: History, allocator: int) -> _Space:
    events, lifetimes = history.events, history.lifetimes
    rows = history.rows_of(allocator)
    lies = (lifetimes.kind[rows] == ALLOCATION) & events.is_valid("address")[rows]
    places = np.flatnonzero(lies & (history.allocated[rows] > 0))
    address = events.array("address")[rows[places]].astype(np.uint64, copy=False)
    size = history.allocated[rows[places]]
    numbers, first = number_keys(np.stack([address.view(np.int64), size, size], axis=1))
    span_of = np.full(rows.size, -1, np.int32)
    span_of[places] = numbers
    start, size = address[first], size[first]
    # The last bytes of the address space have no end that can be written.
    end = start + np.minimum(size.astype(np.uint64), np.uint64(2**64 - 1) - start)
    bounds = np.unique(np.concatenate([start, end]))
    return _Space(
        rows,
        span_of,
        start,
        size,
        np.searchsorted(bounds, start),
        np.searchsorted(bounds, end),
        bounds[:-1],
        np.diff(bounds).astype(np.int64),
    )


def _places(history: History, rows: Int64Array, count: int) -> Int64Array:
    """Evenly spaced places in ``rows``, the last and the fullest among them."""
    even = np.linspace(0, rows.size - 1, min(count, rows.size)).astype(np.int64)
    fullest = int(np.argmax(history.used[rows]))
    return np.unique(np.append(even, fullest))


def _cover(space: _Space, spans: AnyArray) -> Int64Array:
    """Per cell, how many of ``spans`` lie on it."""
    change = np.zeros(space.cell_bytes.size + 1, np.int64)
    np.add.at(change, space.first_cell[spans], 1)
    np.add.at(change, space.end_cell[spans], -1)
    return np.cumsum(change[:-1])


def _forced(history: History, extensions: Int64Array) -> tuple[Forced, ...]:
    result = []
    times = history.events.array("time_ps")
    for row, new, free, largest, _ in extensions.tolist():
        size = int(history.requested[row])
        if largest < size <= free:
            signature = history.signatures[int(history.signatures.codes[row])]
            result.append(Forced(row, int(times[row]), signature, size, new, free, largest))
    return tuple(result)


def _pieces(
    history: History, space: _Space, first_seen: Int64Array, worst: Forced
) -> tuple[tuple[Hole, ...], Pins | None]:
    """The holes just before ``worst`` by size, and the pins between them."""
    lifetimes = history.lifetimes
    place = int(np.searchsorted(space.rows, worst.row))
    begun = space.rows[:place]
    end = lifetimes.end[begun]
    lives = (space.span_of[:place] >= 0) & ((end < 0) | (end >= worst.row))
    live_rows, live_spans = begun[lives], space.span_of[:place][lives]
    touched = _cover(space, np.flatnonzero((first_seen >= 0) & (first_seen < worst.row))) > 0
    free = touched & (_cover(space, live_spans) == 0)
    edges = np.diff(np.concatenate([[0], free.astype(np.int8), [0]]))
    opens, closes = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    total = np.concatenate([[0], np.cumsum(space.cell_bytes)])
    sizes = total[closes] - total[opens]
    classes = np.floor(np.log2(np.maximum(sizes, 1))).astype(np.int64)
    kinds = [
        Hole(2**power, int((classes == power).sum()), int(sizes[classes == power].sum()))
        for power in np.unique(classes)[::-1].tolist()
    ]
    return tuple(kinds), _pins(history, space, live_rows, live_spans, opens, closes, sizes)


def _pins(
    history: History,
    space: _Space,
    live_rows: Int64Array,
    live_spans: Int32Array,
    opens: IntpArray,
    closes: IntpArray,
    sizes: Int64Array,
) -> Pins | None:
    """The row of holes, with nothing but pins between them, that has the most bytes."""
    order = np.argsort(space.first_cell[live_spans], kind="stable")
    live_rows, live_spans = live_rows[order], live_spans[order]
    first = space.first_cell[live_spans]
    lasting = LASTING * space.rows.size
    begun = np.searchsorted(space.rows, live_rows)
    end = history.lifetimes.end[live_rows]
    ended = np.where(end < 0, space.rows.size, np.searchsorted(space.rows, np.maximum(end, 0)))
    lasts = ended - begun >= lasting
    best: tuple[int, int, int] | None = None
    start = 0
    bytes_here = int(sizes[0]) if sizes.size else 0
    for hole in checked(range(1, sizes.size + 1)):
        if hole < sizes.size:
            gap = space.cell_start[opens[hole]] - space.cell_start[closes[hole - 1]]
            between = slice(*np.searchsorted(first, (closes[hole - 1], opens[hole])))
            pinned = int(space.size[live_spans[between]].sum())
            beside = int(sizes[hole - 1] + sizes[hole])
            # Only live buffers may lie between, without a byte that is not known.
            if pinned == int(gap) and pinned <= PIN * beside and bool(lasts[between].all()):
                bytes_here += pinned + int(sizes[hole])
                continue
        if hole - start > 1 and (best is None or bytes_here > best[0]):
            best = (bytes_here, start, hole)
        if hole < sizes.size:
            start, bytes_here = hole, int(sizes[hole])
    if best is None:
        return None
    size, start, stop = best
    between = slice(*np.searchsorted(first, (closes[start], opens[stop - 1])))
    return Pins(
        size, stop - start, int(sizes[start:stop].max()), _by_signature(history, live_rows[between])
    )


def _by_signature(history: History, rows: Int64Array) -> tuple[Pin, ...]:
    codes, place_of = np.unique(history.signatures.codes[rows], return_inverse=True)
    times = history.events.array("time_ps")
    result = []
    for code, places in zip(codes.tolist(), checked(split_by(place_of, codes.size)), strict=True):
        own = rows[places]
        size = int(history.allocated[own].sum())
        result.append(Pin(history.signatures[code], own.size, size, int(times[own].min())))
    return tuple(sorted(result, key=lambda pin: (-pin.bytes, pin.signature.title)))
